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
  readonly creds?: string;
  readonly relay?: string;
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
    .option('--relay <address>', 'host[:port] by which other workers reach this machine, to hand large weights on')
    .option('--creds <file>', 'credentials of the cluster (worker.creds of longplay cluster init)')
    .action((url: string, { creds, ...flags }: WorkerFlags) =>
      runCommand(async () => {
        const credentials = findCredentials(creds);
        const interrupt = onInterrupt((line) => err.line(line), 'giving back what is played here');
        try {
          await work({ ...flags, url, credentials, interrupt: interrupt.signal, onNotice: (line) => err.line(line) });
        } finally {
          interrupt.close();
        }
      }),
    );
}
