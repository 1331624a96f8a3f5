#!/usr/bin/env node
/** The command line. */
import { Command } from 'commander';
import { dpo, sft } from './commands/offline.ts';
import { train } from './commands/train.ts';

const program = new Command('longplay')
  .description('Train and evaluate language agents over many turns.')
  .showSuggestionAfterError()
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  });

for (const command of [train, sft, dpo]) command(program);

await program.parseAsync();
