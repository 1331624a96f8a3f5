#!/usr/bin/env node
/** The command line. */
import { Command } from 'commander';
import { exportTraces } from './commands/export.ts';
import { replay } from './commands/replay.ts';
import { train } from './commands/train.ts';
import { view } from './commands/view.ts';

const program = new Command('longplay')
  .description('Train and evaluate language agents over many turns.')
  .showSuggestionAfterError()
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  });

for (const command of [train, replay, view, exportTraces]) command(program);

await program.parseAsync();
