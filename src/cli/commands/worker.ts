/** Command `longplay worker`. */
import type { Command } from 'commander';
import { findCredentials } from '../../cluster/credentials.ts';
import { err } from '../../console/terminal.ts';
import { work } from '../../run/worker.ts';
import { runCommand } from '../fail.ts';
import { MOST, wholeNumber } from '../flags.ts';
import { onInterrupt } from '../interrupt.ts';

interface WorkerFlags {
  readonly run: string;
  readonly slots?: number;
  readonly env?: string;
  readonly model?: string;
  readonly creds?: string;
}

/** Adds the command. */
export function worker(program: Command): void {
  program
    .command('worker')
    .description('play groups for a run that is trained elsewhere (train --cluster)')
    .argument('<url>', 'NATS server, nats://host:4222')
    .requiredOption('--run <name>', "the run's name: that of its folder")
    .option('--slots <n>', "groups at once; by default the run's rollout.concurrentGroups", wholeNumber(1, MOST.held))
    .option('--env <path>', "the world's module on this machine, where the run has its user's own")
    .option(
      '--model <folder>',
      "the model's folder on this machine, where the run's policy is behind a server: tokenizer and config.json are enough",
    )
    .option('--creds <file>', 'credentials of the cluster (worker.creds of longplay cluster init)')
    .action((url: string, { creds, ...flags }: WorkerFlags) =>
      runCommand(async () => {
        const credentials = findCredentials(creds);
        const onNotice = (line: string) => err.line(line);
        const interrupt = onInterrupt(onNotice, 'giving back what is played here');
        try {
          await work({ ...flags, url, credentials, interrupt: interrupt.signal, onNotice });
        } finally {
          interrupt.close();
        }
      }),
    );
}
