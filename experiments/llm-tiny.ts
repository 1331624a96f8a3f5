/**
 * A tiny chat model learns TextCraft through the whole path of a pretrained one: random weights of the Qwen2 block and a
 * byte-level tokenizer of our own, supervised fine-tuning from the planner's episodes in chat form, its folder written as
 * Hugging Face would, then reinforcement learning through `train`. Actions are spelt, token by token, among those listed.
 * The fine-tuning is slight on purpose, so that there is something left to find out, and the horizon is what most goals of
 * depth 1 need, so that a wasted turn costs the reward.
 *
 *     npm run experiment -- llm-tiny [--seed 2] [--adapter]
 *
 * Prints held-out success at depth 1 of the random weights, after the fine-tuning and after the learning, the paired
 * difference of the last two by goal, and, as it learns, how many groups carried a signal: a group whose members all
 * scored the same teaches nothing. Some five minutes of processor time. A tiny model shows nothing about real ones.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { createEnv, createOracle, prompt } from '../envs/textcraft/index.ts';
import { checkRunConfig } from '../src/config/load.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { Rng } from '../src/core/rng.ts';
import { bootstrap, type Estimated, wilson } from '../src/learning/evaluation/intervals.ts';
import type { MetricsRow } from '../src/metrics/metric-table.ts';
import { exportPolicy } from '../src/run/export-policy.ts';
import type { Demonstration } from '../src/run/offline/demonstrations.ts';
import { superviseRun } from '../src/run/offline/run.ts';
import { createRunFolder } from '../src/run/run-folder.ts';
import { startRun } from '../src/run/start-run.ts';
import { localUrl, packageRoot } from '../src/runtime/module-url.ts';
import { loadNewest } from '../src/storage/checkpoint.ts';
import { ACKNOWLEDGEMENT, instructions } from '../src/text/prompts/conversation.ts';
import { FORMATS } from '../src/text/prompts/formats.ts';
import { writeTinyChatModel } from './tiny-chat-model.ts';

const world = localUrl(new URL('envs/textcraft/index.js', packageRoot));
const LABEL = 'depth 1';

export interface TinyStudy {
  readonly seed: number;
  /** Passes of fine-tuning over the planner's episodes. */
  readonly epochs: number;
  /** Planner's episodes of each training task, under different recipes. */
  readonly copies: number;
  /** Training tasks that are planned, at most; all where absent. */
  readonly planned?: number;
  /** Updates of reinforcement learning. */
  readonly updates: number;
  /** Held-out tasks to evaluate on, and episodes of each. */
  readonly tasks: number;
  readonly episodes: number;
  /** Turns of an episode at most. A short horizon leaves few goals that are always or never reached. */
  readonly horizon: number;
  /** Learning rate of the fine-tuning, which should leave something to find out. */
  readonly tuningRate: number;
  /** Groups of one update. */
  readonly groups: number;
  /** True to train every weight by reinforcement, false an adapter. */
  readonly full: boolean;
  readonly learningRate: number;
}

export interface Success {
  readonly successes: number;
  readonly episodes: number;
  /** Success rate of each goal, in the order of the tasks. */
  readonly goals: readonly number[];
  /** Updates that the evaluated weights have seen. */
  readonly version: number;
}

/** Difference of two policies on the same goals and seeds, with its 95 % interval over goals (bootstrap). */
export function computePairedGain(before: Success, after: Success): Estimated {
  const differences = after.goals.map((rate, goal) => rate - before.goals[goal]!);
  const mean = (sample: readonly number[]) => sample.reduce((sum, x) => sum + x, 0) / sample.length;
  return bootstrap(differences, mean, Rng.fromSeed(1));
}

/** Runs the study in a folder. @returns held-out success before, after fine-tuning and after learning */
export async function studyTiny(
  dir: string,
  study: TinyStudy,
  print: (line: string) => void = () => {},
): Promise<{ readonly untrained: Success; readonly tuned: Success; readonly learnt: Success }> {
  const { seed } = study;
  const demonstrations = recordPlanned(study);
  const text = demonstrations.flatMap(({ turns }) => turns.flatMap(({ observation, action }) => [observation, action]));
  // The instructions too, which every prompt begins with: in bytes they would be most of it.
  const prompts = [instructions(prompt, FORMATS.action), ACKNOWLEDGEMENT, 'user\n', 'assistant\n'];
  const folder = join(dir, 'model');
  writeTinyChatModel(folder, {
    text: [...text, ...Array.from({ length: 30 }, () => prompts).flat()],
    merges: 700,
    seed,
  });

  const tuning = configOf(study, folder, { full: true }, { learningRate: study.tuningRate }, study.updates);
  const untrained = await listHeldOut(tuning, join(dir, 'untrained'), study);
  print(`random weights: ${formatFigure(untrained)}`);
  const tunedRun = join(dir, 'tuned');
  createRunFolder(tunedRun, tuning);
  const request = {
    config: tuning,
    dir: tunedRun,
    view: undefined,
    prompt,
    demonstrations,
    epochs: study.epochs,
    batch: 16,
  };
  await superviseRun(request, ({ nll }) => print(`fine-tuning: ${nll.toFixed(3)} nats a token`));
  const tunedFolder = join(dir, 'tuned-model');
  exportPolicy(tunedRun, tuning, 'hf', tunedFolder);

  const learning = configOf(
    study,
    tunedFolder,
    { full: study.full },
    { learningRate: study.learningRate, epochs: 2 },
    study.updates,
  );
  const tuned = await listHeldOut(learning, join(dir, 'before'), study);
  print(`fine-tuned: ${formatFigure(tuned)}`);
  const learntRun = join(dir, 'learnt');
  createRunFolder(learntRun, learning);
  const metrics$ = new Subject<MetricsRow>();
  let signal = 0;
  metrics$.subscribe(({ update, success, entropy, trainedGroups, filteredGroups }) => {
    signal += Number(trainedGroups) / (Number(trainedGroups) + Number(filteredGroups));
    if (Number(update) % 10 !== 0) return;
    const share = (x: unknown) => `${(100 * Number(x)).toFixed(0)} %`;
    const words = `training episodes ${share(success)}, entropy ${Number(entropy).toFixed(3)} nats a token`;
    print(`update ${update}: ${words}, groups with a signal ${share(signal / Number(update))} so far`);
  });
  const run = await startRun({
    config: learning,
    dir: learntRun,
    mode: 'async',
    envModule: world,
    learn: true,
    metrics$,
  });
  try {
    await run.train();
    const saved = await run.save();
    if (!saved.ok) throw new Error(saved.message);
  } finally {
    await run.stop();
  }
  const learnt = await listHeldOut(learning, join(dir, 'after'), study, learntRun);
  print(`learnt: ${formatFigure(learnt)}`);
  const { value, low, high } = computePairedGain(tuned, learnt);
  const points = (x: number) => `${x > 0 ? '+' : ''}${(100 * x).toFixed(1)}`;
  print(`learnt over fine-tuned, paired by goal: ${points(value)} points (${points(low)} to ${points(high)})`);
  return { untrained, tuned, learnt };
}

/** The planner's episodes of the training tasks. */
function recordPlanned({ copies, planned }: TinyStudy): Demonstration[] {
  const env = createEnv();
  const indices = env.tasks.split('train').filter((index) => env.tasks.label(index) === LABEL);
  return indices.slice(0, planned).flatMap((index) =>
    Array.from({ length: copies }, (_, seed): Demonstration => {
      const session = env.open({ env: 'textcraft', index, seed });
      const oracle = createOracle()({ env: 'textcraft', index, seed });
      const turns: { observation: string; action: string; actions: string[] }[] = [];
      let observation = session.first.observation;
      let action = oracle(session.first);
      while (action !== undefined) {
        turns.push({ observation, action, actions: [...session.actions()] });
        const step = session.step(action);
        observation = step.observation;
        action = oracle(step);
      }
      return {
        source: `planner ${index}/${seed}`,
        task: String(index),
        turns,
        finalObservation: observation,
        score: 1,
      };
    }),
  );
}

function configOf(
  { seed, horizon, groups }: TinyStudy,
  path: string,
  policy: object,
  learner: object,
  updates: number,
): RunConfig {
  return checkRunConfig(
    {
      seed,
      env: { id: 'textcraft' },
      tasks: { labels: [LABEL], sampling: { type: 'uniform' } },
      horizon: { type: 'fixed', rounds: horizon },
      policy: {
        kind: 'checkpoint',
        path,
        masked: true,
        maxTokens: 40,
        chat: { format: 'action', contextTokens: 2048 },
        ...policy,
      },
      rollout: { groupSize: 8, concurrentGroups: groups, maxBatch: 8 * groups },
      learner: {
        groupsPerUpdate: groups,
        warmupSteps: 5,
        epochs: 1,
        entropyCoef: 0.02, // without one the few groups with a signal make the policy deterministic within twenty updates
        recompute: false,
        maxTokens: 16_384,
        ...learner,
      },
      stop: { updates: Math.max(1, updates) },
      checkpoint: { everyUpdates: 1000 },
      trace: { everyGroups: 0 },
    },
    'llm-tiny',
  );
}

/**
 * Sampled episodes of held-out tasks under the newest weights of a run, or under the folder's own.
 * @param dir      folder of the evaluation
 * @param learning run whose weights are evaluated; it must have some
 */
async function listHeldOut(
  config: RunConfig,
  dir: string,
  { tasks: max, episodes, horizon }: TinyStudy,
  learning?: string,
): Promise<Success> {
  const checkpoint = learning === undefined ? undefined : loadNewest(join(learning, 'checkpoints'));
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: world,
    learn: false,
    ...(checkpoint ? { checkpoint } : {}),
  });
  try {
    const { tasks } = run.env;
    const indices = tasks.split('test').filter((index) => tasks.label(index) === LABEL);
    const { results } = await run.evaluate({
      name: 'held-out',
      tasks: indices.slice(0, max).map((index) => ({ env: 'textcraft', index, seed: tasks.evalSeed })),
      episodes,
      horizon,
      temperature: 1,
      seed: 1,
    });
    const all = results.flatMap(({ successes }) => successes);
    const goals = results.map(({ successes }) => successes.filter(Boolean).length / successes.length);
    return { successes: all.filter(Boolean).length, episodes: all.length, goals, version: checkpoint?.update ?? 0 };
  } finally {
    await run.stop();
  }
}

function formatFigure({ successes, episodes }: Success): string {
  const { low, high } = wilson(successes, episodes);
  const percent = (x: number) => `${(100 * x).toFixed(1)} %`;
  return `${percent(successes / episodes)} of ${episodes} held-out episodes (${percent(low)} to ${percent(high)})`;
}

/** Settings of the study; all weights are trained. */
export const TINY_STUDY = {
  horizon: 2,
  tasks: 31,
  episodes: 16,
  epochs: 1,
  copies: 1,
  tuningRate: 3e-5,
  updates: 100,
  groups: 16,
  full: true,
  learningRate: 1e-3,
} as const satisfies Omit<TinyStudy, 'seed'>;

/** Settings that differ where an adapter is trained (rank 16, every projection). */
const ADAPTER_STUDY = { full: false, learningRate: 5e-3 };

export interface LlmTinyFlags {
  readonly seed: number;
  /** Reinforcement trains an adapter and leaves the fine-tuned weights alone. Default false. */
  readonly adapter?: boolean;
}

/** The study from the command line. */
export async function llmTiny({ seed, adapter = false }: LlmTinyFlags): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-llm-tiny-'));
  try {
    await studyTiny(dir, { ...TINY_STUDY, ...(adapter ? ADAPTER_STUDY : {}), seed }, (line) => console.log(line));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
