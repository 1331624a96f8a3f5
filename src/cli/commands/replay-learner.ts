/** Command `longplay replay-learner`. */
import type { Command } from 'commander';
import { out } from '../../console/terminal.ts';
import { replayRun } from '../../run/replay-learner.ts';
import { runCommand } from '../fail.ts';

/** Adds the command. */
export function replayLearner(program: Command): void {
  program
    .command('replay-learner')
    .description("make a run's updates again from its journal, and compare the weights")
    .argument('<run>', 'folder of a run with a journal (train --journal, --cluster)')
    .option('--json', 'one JSON object')
    .action((run: string, { json }: { readonly json?: boolean }) =>
      runCommand(async () => {
        const replayed = await replayRun(run);
        const { from, updates } = replayed;
        if (json) out.json(replayed);
        else out.line(`${updates} updates made again from update ${from} on: each has the recorded weights`);
      }),
    );
}
