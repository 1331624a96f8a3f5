/** Commands `longplay sft` and `longplay dpo`: training from recorded episodes, without an environment. */
import { basename } from 'node:path';
import type { Command } from 'commander';
import { registry } from '../../../envs/registry.ts';
import { chooseEngine } from '../../compute/engine/open.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { requireOneWorld } from '../../config/worlds.ts';
import { duration, percent } from '../../console/numbers.ts';
import { err, out } from '../../console/terminal.ts';
import { AGENT } from '../../core/agent-call.ts';
import type { PublishedEpisodes } from '../../core/agentgym.ts';
import type { Env, EnvOptions } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import type { World } from '../../core/world.ts';
import { fetchModel } from '../../policy/pretrained/hub.ts';
import { findWorld } from '../../run/find-world.ts';
import { type Demonstration, readDemonstrations } from '../../run/offline/demonstrations.ts';
import { playAgain } from '../../run/offline/published.ts';
import { type OfflineRequest, preferRun, superviseRun } from '../../run/offline/run.ts';
import type { OfflineStep } from '../../run/offline/step.ts';
import { createRunFolder, discard, freeRunName, runDir } from '../../run/run-folder.ts';
import { acquireRunLock, releaseRunLock } from '../../run/run-lock.ts';
import { worldPrompt } from '../../text/prompts/world-prompt.ts';
import { readConfigFile } from '../config-file.ts';
import { runCommand } from '../fail.ts';
import { collectFlag, number, wholeNumber } from '../flags.ts';
import { ProgressLine } from '../progress-line.ts';

interface OfflineFlags {
  readonly data: readonly string[];
  readonly set: readonly string[];
  readonly name?: string;
  readonly runs: string;
  readonly epochs: number;
  readonly batch: number;
  readonly minScore?: number;
  readonly beta?: number;
  readonly allowTest?: boolean;
  readonly thoughts: boolean;
  readonly json?: boolean;
}

/** Adds `sft`. */
export function sft(program: Command): void {
  offline(program, 'sft', 4, 'train a policy to imitate recorded episodes')
    .option('--min-score <score>', 'leave out episodes that scored less', number(Number.NEGATIVE_INFINITY))
    .action((path: string, flags: OfflineFlags) => runCommand(() => sftCommand(path, flags)));
}

/** Adds `dpo`. */
export function dpo(program: Command): void {
  offline(program, 'dpo', 1, 'train a policy to prefer the better of two recorded episodes of a task')
    .option('--beta <beta>', 'how closely to stay to the weights it starts from', number(0, true), 0.1)
    .action((path: string, flags: OfflineFlags) => runCommand(() => dpoCommand(path, flags)));
}

/**
 * Adds what both commands share.
 * @param epochs by default; a preference is soon learnt by heart, and more passes then cost success
 */
function offline(program: Command, name: string, epochs: number, description: string): Command {
  return program
    .command(name)
    .description(`${description}; go on from its weights with --set policy.init=<run>`)
    .argument('<config>', 'configuration, YAML')
    .requiredOption(
      '--data <path>',
      'a run, a traces folder, a trace file (.jsonl); AgentTraj, ShareGPT or messages (.json, .jsonl); may be given again',
      collectFlag,
    )
    .option('--epochs <n>', 'passes over the data', wholeNumber(1), epochs)
    .option('--batch <n>', 'episodes (or pairs) of one optimiser step', wholeNumber(1), 32)
    .option('--set <key=value>', 'override a key of the configuration; give it once for each', collectFlag, [])
    .option('--allow-test', 'learn from episodes of the test split too: evaluations on it then prove nothing')
    .option('--no-thoughts', 'a language model learns actions alone, and not the thoughts before them')
    .option('--name <name>', `the run's name; by default <configuration>-${name}`)
    .option('--runs <folder>', 'where runs live', 'runs')
    .option('--json', 'one JSON object per line');
}

async function sftCommand(path: string, flags: OfflineFlags): Promise<void> {
  const least = flags.minScore ?? Number.NEGATIVE_INFINITY;
  await learn('sft', path, flags, async (request) => {
    const demonstrations = request.demonstrations.filter(({ score }) => score >= least);
    if (demonstrations.length === 0 && request.demonstrations.length > 0) {
      const best = request.demonstrations.reduce((most, { score }) => Math.max(most, score), Number.NEGATIVE_INFINITY);
      const none = `none of ${request.demonstrations.length} episodes scored ${least} or more; the best scored ${best}`;
      throw new UserError('BAD_ARGUMENT', `--min-score: ${none}`);
    }
    await superviseRun({ ...request, demonstrations }, printEpochs(flags));
    return `${demonstrations.length} episodes`;
  });
}

async function dpoCommand(path: string, flags: OfflineFlags): Promise<void> {
  const beta = flags.beta!;
  await learn(
    'dpo',
    path,
    flags,
    async (request) => `${await preferRun({ ...request, beta }, printEpochs(flags))} pairs`,
  );
}

/**
 * Learns: reads everything, makes the run's folder, teaches. A run that came to nothing leaves no folder.
 * @param teach learns, and returns from how much
 */
async function learn(
  command: string,
  path: string,
  flags: OfflineFlags,
  teach: (request: OfflineRequest) => Promise<string>,
): Promise<void> {
  const { epochs, batch, thoughts } = flags;
  const config = readConfigFile(path, flags.set);
  requireOneWorld(config, command);
  const { world, env } = await findWorld(config.env.id, config.env.options);
  const prompt = worldPrompt(world, config.env.options, env.description);
  await fetchModel(config.policy.path, (notice) => err.line(notice));
  const demonstrations = await episodesOf(flags, config, world, env, prompt);
  err.line((await chooseEngine(config.engine)).notice);
  const name = flags.name ?? freeRunName(flags.runs, `${basename(path).replace(/\.ya?ml$/, '')}-${command}`);
  const dir = runDir(flags.runs, name);
  createRunFolder(dir, config);
  acquireRunLock(dir);
  const line = new ProgressLine();
  try {
    const onStep = progressOf(line, epochs);
    const learnt = await teach({
      config,
      dir,
      view: world.view,
      prompt,
      demonstrations,
      epochs,
      batch,
      thoughts,
      onStep,
    });
    line.end();
    const next = `longplay eval ${dir}, or train on with --set policy.init=${dir}`;
    if (flags.json) out.json({ run: dir, learnt });
    else out.line(`learnt from ${learnt}; run ${dir}: ${next}`);
  } catch (thrown) {
    line.end();
    discard(dir);
    throw thrown;
  } finally {
    releaseRunLock(dir);
  }
}

/** Reads all data, plays published episodes again, and refuses what evaluations hold back. */
async function episodesOf(
  flags: OfflineFlags,
  config: RunConfig,
  world: World,
  env: Env,
  prompt: WorldPrompt,
): Promise<Demonstration[]> {
  const onNotice = (message: string) => err.line(message);
  const read = flags.data.flatMap((file) => readDemonstrations(file, onNotice, prompt, config.env.id === AGENT));
  for (const one of read) checkWorld(one, env.id);
  const published = world.agentgym?.openPublished?.(config.env.options);
  const onlyListed = config.policy.decoder === 'choice' || config.policy.masked;
  const demonstrations = published ? await playAgain(read, published, { onlyListed, onNotice }) : read;

  const open = new Set(env.tasks.split('train')); // a world may have one set of tasks for both
  const heldOut = new Set(env.tasks.split('test').filter((index) => !open.has(index)));
  const held = demonstrations.filter(({ index }) => index !== undefined && heldOut.has(index));
  if (held.length === 0) return demonstrations;
  const some = `${held.length} of ${demonstrations.length} episodes are of the test split`;
  if (!flags.allowTest) {
    const ways = [
      'play train tasks (rollout --split train)',
      ...(held.some(({ trajectory }) => !trajectory) ? chooseOptions(published, config.env.options) : []),
      'or pass --allow-test to learn from them all the same',
    ];
    throw new UserError('BAD_TRACE', `${some}, which evaluations hold back: ${ways.join(', ')}`);
  }
  onNotice(`${some}: evaluations on it will flatter`);
  return demonstrations;
}

/** The options under which no published episode is of the test split, where the configuration has others. */
function chooseOptions(published: PublishedEpisodes | undefined, configured: EnvOptions): string[] {
  const others = Object.entries(published?.options ?? {}).filter(([key, value]) => configured[key] !== value);
  const set = others.map(([key, value]) => `--set env.options.${key}=${value}`);
  return set.length > 0 ? [`or train in the world of the published episodes (${set.join(' ')})`] : [];
}

/**
 * Checks the world of a demonstration. A trace names it; of an AgentTraj item's name only a start that is a world's id
 * counts.
 */
function checkWorld({ source, world, trajectory }: Demonstration, id: string): void {
  if (world === undefined || world === id || (!trajectory && !(world in registry))) return;
  throw new UserError('BAD_TRACE', `${source}: it was played in ${world}, the configuration's world is ${id}`);
}

/** Shows steps as they are taken, with the time that is left. */
function progressOf(line: ProgressLine, epochs: number): (step: OfflineStep) => void {
  const began = performance.now();
  return ({ done, total, loss }) =>
    line.show(() => {
      const epoch = Math.min(epochs, 1 + Math.floor((done * epochs) / total));
      const left = (((performance.now() - began) / done) * (total - done)) / 1000;
      return `epoch ${epoch} of ${epochs}, ${percent(done / total)}, loss ${loss.toPrecision(3)}, ${duration(left)} left`;
    });
}

/** Prints each epoch as it ends. */
function printEpochs({ json }: OfflineFlags): (figures: object) => void {
  let epoch = 0;
  return (figures) => {
    const row = { epoch: ++epoch, ...figures };
    err.status(undefined); // on one terminal with the line of progress, which comes again
    if (json) out.json(row);
    else
      out.line(
        Object.entries(row)
          .map(([name, value]) => `${name}=${Number(Number(value).toPrecision(4))}`)
          .join(' '),
      );
  };
}
