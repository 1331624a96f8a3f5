#!/usr/bin/env node
/** The command line. */
import { Command } from 'commander';
import { doctor } from './commands/doctor.ts';
import { envs } from './commands/envs.ts';
import { evaluate } from './commands/eval.ts';
import { exportTraces } from './commands/export.ts';
import { play } from './commands/play.ts';
import { replay } from './commands/replay.ts';
import { serveEnv } from './commands/serve-env.ts';
import { train } from './commands/train.ts';
import { view } from './commands/view.ts';

const program = new Command('longplay')
  .description('Train and evaluate language agents over many turns.')
  .showSuggestionAfterError()
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  });

for (const command of [train, evaluate, play, replay, view, exportTraces, envs, serveEnv, doctor]) command(program);

await program.parseAsync();
