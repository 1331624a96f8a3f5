/** Command line `longplay`: every command in one program. */
import { Command } from 'commander';
import { checkEnv } from './commands/check-env.ts';
import { doctor } from './commands/doctor.ts';
import { envs } from './commands/envs.ts';
import { evaluate } from './commands/eval.ts';
import { exportTraces } from './commands/export.ts';
import { indexCorpus } from './commands/index-corpus.ts';
import { newEnv } from './commands/new-env.ts';
import { dpo, sft } from './commands/offline.ts';
import { play } from './commands/play.ts';
import { replay } from './commands/replay.ts';
import { rollout } from './commands/rollout.ts';
import { serveEnv } from './commands/serve-env.ts';
import { servePolicy } from './commands/serve-policy.ts';
import { serveRetriever } from './commands/serve-retriever.ts';
import { trainCommand } from './commands/train.ts';
import { view } from './commands/view.ts';

const commands = [
  trainCommand,
  sft,
  dpo,
  evaluate,
  rollout,
  play,
  replay,
  view,
  exportTraces,
  envs,
  checkEnv,
  newEnv,
  indexCorpus,
  serveEnv,
  servePolicy,
  serveRetriever,
  doctor,
];

/** Makes the command line; a mistake in it exits with 2. */
export function commandLine(): Command {
  const program = new Command('longplay')
    .description('Train and evaluate language agents over many turns.')
    .showSuggestionAfterError()
    .exitOverride((error) => {
      process.exit(error.exitCode === 0 ? 0 : 2);
    });
  for (const command of commands) command(program);
  return program;
}
