/** Command line `longplay`: every command in one program, loaded when it is asked for. */
import { Command } from 'commander';

/** Modules of the commands, in the order of the help. Loading all of them takes a second of computing. */
const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  train: async () => (await import('./commands/train.ts')).trainCommand,
  sft: async () => (await import('./commands/offline.ts')).sft,
  dpo: async () => (await import('./commands/offline.ts')).dpo,
  eval: async () => (await import('./commands/eval.ts')).evaluate,
  rollout: async () => (await import('./commands/rollout.ts')).rollout,
  play: async () => (await import('./commands/play.ts')).play,
  replay: async () => (await import('./commands/replay.ts')).replay,
  view: async () => (await import('./commands/view.ts')).view,
  export: async () => (await import('./commands/export.ts')).exportTraces,
  envs: async () => (await import('./commands/envs.ts')).envs,
  'check-env': async () => (await import('./commands/check-env.ts')).checkEnv,
  'new-env': async () => (await import('./commands/new-env.ts')).newEnv,
  index: async () => (await import('./commands/index-corpus.ts')).indexCorpus,
  'serve-env': async () => (await import('./commands/serve-env.ts')).serveEnv,
  'serve-policy': async () => (await import('./commands/serve-policy.ts')).servePolicy,
  'serve-retriever': async () => (await import('./commands/serve-retriever.ts')).serveRetriever,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
};

/**
 * Makes the command line; a mistake in it exits with 2.
 * @param name the one command that is needed; all of them (for the help, for a name that is none) where it names none
 */
export async function commandLine(name = ''): Promise<Command> {
  const program = new Command('longplay')
    .description('Train and evaluate language agents over many turns.')
    .showSuggestionAfterError()
    .exitOverride((error) => {
      process.exit(error.exitCode === 0 ? 0 : 2);
    });
  const wanted = Object.hasOwn(commands, name) ? [name] : Object.keys(commands);
  for (const one of wanted) (await commands[one]!())(program);
  return program;
}
