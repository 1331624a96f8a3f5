/** Command `longplay worker`. */
import type { Command } from 'commander';
import { err } from '../../console/terminal.ts';
import { work } from '../../run/worker.ts';
import { runCommand } from '../fail.ts';
import { MOST, wholeNumber } from '../flags.ts';
import { onInterrupt } from '../interrupt.ts';

interface WorkerFlags {
  readonly run: string;
  readonly slots?: number;
  readonly env?: string;
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
    .action((url: string, flags: WorkerFlags) =>
      runCommand(async () => {
        const interrupt = onInterrupt((line) => err.line(line), 'giving back what is played here');
        try {
          await work({ ...flags, url, interrupt: interrupt.signal, onNotice: (line) => err.line(line) });
        } finally {
          interrupt.close();
        }
      }),
    );
}
