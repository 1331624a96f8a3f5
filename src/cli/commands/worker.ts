/** Command `longplay worker`. */
import type { Command } from 'commander';
import { findCredentials } from '../../cluster/credentials.ts';
import { err } from '../../console/terminal.ts';
import { hostEnvs } from '../../run/env-hosts.ts';
import { work } from '../../run/worker.ts';
import { runCommand } from '../fail.ts';
import { MOST, refuseFlags, wholeNumber } from '../flags.ts';
import { onInterrupt } from '../interrupt.ts';

interface WorkerFlags {
  readonly run: string;
  readonly slots?: number;
  readonly envs?: number;
  readonly env?: string;
  readonly model?: string;
  readonly creds?: string;
}

/** Adds the command. */
export function worker(program: Command): void {
  program
    .command('worker')
    .description('play groups for a run that is trained elsewhere (train --cluster), or have its environments (--envs)')
    .argument('<url>', 'NATS server, nats://host:4222')
    .requiredOption('--run <name>', "the run's name: that of its folder")
    .option('--slots <n>', "groups at once; by default the run's rollout.concurrentGroups", wholeNumber(1, MOST.held))
    .option(
      '--envs <n>',
      'no groups but env hosts: processes at once in which the run plays (--env-hosts)',
      wholeNumber(1, MOST.threads),
    )
    .option('--env <path>', "the world's module on this machine, where the run has its user's own")
    .option(
      '--model <folder>',
      "the model's folder on this machine, where the run's policy is behind a server: tokenizer and config.json are enough",
    )
    .option(
      '--creds <file>',
      'credentials of the cluster (worker.creds of longplay cluster init; with --envs envs.creds)',
    )
    .action((url: string, { creds, envs: places, ...flags }: WorkerFlags, command: Command) =>
      runCommand(async () => {
        if (places !== undefined) refuseFlags(command, ['slots', 'model'], 'a machine with --envs plays no groups');
        const credentials = findCredentials(creds);
        const onNotice = (line: string) => err.line(line);
        const interrupt = onInterrupt(onNotice, 'giving back what is played here');
        const common = { ...flags, url, credentials, interrupt: interrupt.signal, onNotice };
        try {
          await (places === undefined ? work(common) : hostEnvs({ ...common, places }));
        } finally {
          interrupt.close();
        }
      }),
    );
}
