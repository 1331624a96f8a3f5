#!/usr/bin/env node
/** The command line. */
import { Command } from 'commander';
import { checkEnv } from './commands/check-env.ts';
import { doctor } from './commands/doctor.ts';
import { envs } from './commands/envs.ts';
import { evaluate } from './commands/eval.ts';
import { newEnv } from './commands/new-env.ts';
import { play } from './commands/play.ts';
import { train } from './commands/train.ts';

const program = new Command('longplay')
  .description('Train and evaluate language agents over many turns.')
  .showSuggestionAfterError()
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  });

for (const command of [train, evaluate, play, envs, checkEnv, newEnv, doctor]) command(program);

await program.parseAsync();
