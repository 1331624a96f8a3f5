/** Program of the command line: all commands, and the way each of them ends. */
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { err, out } from '../console/terminal.ts';
import { packageRoot } from '../runtime/thread.ts';
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
import { examples } from './examples.ts';
import { report } from './fail.ts';

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

/** The commands, ready to parse. A mistake in flags or arguments throws a `CommanderError` after its message. */
export function commandLine(): Command {
  const { version } = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8')) as { version: string };
  const root = new Command('longplay')
    .description('Train and evaluate language agents over many turns.')
    .version(version)
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => out.line(text.trimEnd()),
      writeErr: (text) => err.line(text.trimEnd()),
      // One line, like every other mistake's.
      outputError: (text) =>
        err.line(
          text
            .trim()
            .replace(/^error:/, 'longplay:')
            .replace(/\s*\n\s*/g, ' '),
        ),
      getOutHelpWidth: () => out.columns,
      getErrHelpWidth: () => err.columns,
    });
  for (const command of commands) command(root);
  for (const command of root.commands) {
    const lines = examples[command.name()] ?? [];
    command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  longplay ${line}`).join('\n')}`);
  }
  return root;
}

/**
 * Runs one command.
 * @param args without `node` and the program's name
 * @returns exit code: 0 done, 1 failed, 2 a mistake of the caller
 */
export async function runLongplay(args: readonly string[]): Promise<number> {
  process.exitCode = 0;
  try {
    await commandLine().parseAsync(args, { from: 'user' });
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    report(thrown);
  }
  return Number(process.exitCode);
}
