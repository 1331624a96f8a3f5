/** Program of the command line: its commands, each loaded when it is asked for, and the way each of them ends. */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command, CommanderError, Help } from 'commander';
import { err, out } from '../console/terminal.ts';
import { readJsonFile } from '../core/bounded-file.ts';
import { packageRoot } from '../runtime/module-url.ts';
import { examples } from './examples.ts';
import { report } from './fail.ts';

/** Modules of the commands, in the order of the help. Loading all of them takes a second of computing. */
const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  train: async () => (await import('./commands/train.ts')).trainCommand,
  preflight: async () => (await import('./commands/preflight.ts')).preflightCommand,
  sft: async () => (await import('./commands/offline.ts')).sft,
  dpo: async () => (await import('./commands/offline.ts')).dpo,
  eval: async () => (await import('./commands/eval.ts')).evaluate,
  compare: async () => (await import('./commands/compare.ts')).compare,
  rollout: async () => (await import('./commands/rollout.ts')).rollout,
  play: async () => (await import('./commands/play.ts')).play,
  replay: async () => (await import('./commands/replay.ts')).replay,
  'replay-learner': async () => (await import('./commands/replay-learner.ts')).replayLearner,
  rescore: async () => (await import('./commands/rescore.ts')).rescoreTraces,
  'optimize-prompt': async () => (await import('./commands/optimize-prompt.ts')).optimizePromptCommand,
  view: async () => (await import('./commands/view.ts')).view,
  export: async () => (await import('./commands/export.ts')).exportTraces,
  import: async () => (await import('./commands/import.ts')).importCommand,
  envs: async () => (await import('./commands/envs.ts')).envs,
  'check-env': async () => (await import('./commands/check-env.ts')).checkEnv,
  'new-env': async () => (await import('./commands/new-files.ts')).newEnv,
  'new-agent': async () => (await import('./commands/new-files.ts')).newAgent,
  'new-study': async () => (await import('./commands/new-files.ts')).newStudy,
  index: async () => (await import('./commands/index-corpus.ts')).indexCorpus,
  worker: async () => (await import('./commands/worker.ts')).worker,
  cluster: async () => (await import('./commands/cluster.ts')).cluster,
  'serve-env': async () => (await import('./commands/serve-env.ts')).serveEnv,
  'serve-policy': async () => (await import('./commands/serve-policy.ts')).servePolicy,
  'serve-retriever': async () => (await import('./commands/serve-retriever.ts')).serveRetriever,
  gateway: async () => (await import('./commands/gateway.ts')).gateway,
  algorithms: async () => (await import('./commands/algorithms.ts')).algorithms,
  models: async () => (await import('./commands/models.ts')).models,
  'prune-engines': async () => (await import('./commands/prune-engines.ts')).pruneEngines,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
};

/**
 * Loads the commands, ready to parse. A mistake in flags or arguments throws a `CommanderError` after its message.
 * @param name the one command that is needed; all of them (for the help, for a name that is none) where it names none
 */
export async function commandLine(name = ''): Promise<Command> {
  const { version } = readJsonFile(new URL('package.json', packageRoot)) as { version: string };
  const root = newProgram('longplay', 'Train and evaluate language agents over many turns.').version(version);
  const wanted = Object.hasOwn(commands, name) ? [name] : Object.keys(commands);
  for (const one of wanted) (await commands[one]!())(root);
  for (const command of root.commands) {
    const lines = examples[command.name()] ?? [];
    command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  longplay ${line}`).join('\n')}`);
  }
  return root;
}

/**
 * Program without commands yet, whose help and errors go through the terminal: a mistake is one line.
 * @param name as it is typed, e.g. `npm run bench --`
 */
export function newProgram(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .showSuggestionAfterError()
    .exitOverride()
    .configureHelp({
      // A flag that may be given again begins with an empty list, which is no default worth showing.
      optionDescription(option) {
        const { defaultValue } = option;
        const isHidden = Array.isArray(defaultValue) && defaultValue.length === 0;
        const shown = isHidden ? Object.create(option, { defaultValue: { value: undefined } }) : option;
        return Help.prototype.optionDescription.call(this, shown);
      },
    })
    .configureOutput({
      writeOut: (text) => out.line(text.trimEnd()),
      writeErr: (text) => {
        for (const line of text.trimEnd().split('\n')) err.line(line);
      },
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
}

/**
 * Runs one command.
 * @param args without `node` and the program's name
 * @returns exit code: 0 done, 1 failed, 2 a mistake of the caller
 */
export async function runLongplay(args: readonly string[]): Promise<number> {
  // `help trian` would show the help of everything, as if there were such a command.
  const [first, of] = args;
  const asked = first === 'help' && of !== undefined ? [of, ...(Object.hasOwn(commands, of) ? ['--help'] : [])] : args;
  return runProgram(() => commandLine(asked[0]), asked);
}

/** Runs a program. @param args without `node` and the program's name @returns exit code, as `runLongplay` */
export async function runProgram(load: () => Command | Promise<Command>, args: readonly string[]): Promise<number> {
  process.exitCode = 0;
  try {
    const program = await load();
    await program.parseAsync(args, { from: 'user' });
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    report(thrown);
  }
  return Number(process.exitCode);
}

/** Runs a program whose module is the script of this process; does nothing where it was imported. @param url its `import.meta.url` */
export async function runAsScript(url: string, load: () => Command): Promise<void> {
  const script = process.argv[1];
  // The URL of a module has its symbolic links resolved, the script's path as it was typed has not.
  if (script === undefined || realpathSync(script) !== fileURLToPath(url)) return;
  process.exitCode = await runProgram(load, process.argv.slice(2));
}
