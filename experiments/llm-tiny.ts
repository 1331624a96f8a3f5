/**
 * A tiny chat model learns TextCraft through the whole path of a pretrained one: random weights of the Qwen2 block and a
 * byte-level tokenizer of our own, supervised fine-tuning from the planner's episodes in chat form, its folder written as
 * Hugging Face would, then reinforcement learning of an adapter through `train`. Actions are spelt, token by token, among
 * those listed.
 *
 *     npm run experiment -- llm-tiny
 *
 * Expected: held-out success at depth 1 rises with the fine-tuning and again with the learning. About ten minutes on two
 * cores. What it shows is that the path learns; a tiny model says nothing about real ones.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRun } from '../actors/tree.ts';
import { createEnv, createOracle, prompt } from '../envs/textcraft/index.ts';
import { checkRunConfig } from '../src/config/load.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { wilson } from '../src/evaluation/intervals.ts';
import type { Demonstration } from '../src/offline/demonstrations.ts';
import { superviseRun } from '../src/offline/run.ts';
import { exportPolicy } from '../src/policy/export-policy.ts';
import { loadNewest } from '../src/record/checkpoint.ts';
import { createRunFolder } from '../src/run/run-folder.ts';
import { localUrl, packageRoot } from '../src/runtime/thread.ts';
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
  /** True to train every weight by reinforcement, false an adapter. */
  readonly full: boolean;
  readonly learningRate: number;
}

export interface Success {
  readonly successes: number;
  readonly episodes: number;
}

/** Runs the study in a folder. @returns held-out success before, after fine-tuning and after learning */
export async function studyTiny(
  dir: string,
  study: TinyStudy,
  say: (line: string) => void = () => {},
): Promise<{ readonly untrained: Success; readonly tuned: Success; readonly learnt: Success }> {
  const { seed } = study;
  const demonstrations = planned(study);
  const text = demonstrations.flatMap(({ turns }) => turns.flatMap(({ observation, action }) => [observation, action]));
  const folder = join(dir, 'model');
  writeTinyChatModel(folder, { text, merges: 300, seed });

  const tuning = configOf(study, folder, { full: true }, { learningRate: 2e-3, maxTokens: 16_384 }, study.updates);
  const untrained = await heldOut(tuning, join(dir, 'untrained'), study);
  say(`random weights: ${shown(untrained)}`);
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
  await superviseRun(request, ({ nll }) => say(`fine-tuning: ${nll.toFixed(3)} nats a token`));
  const tunedFolder = join(dir, 'tuned-model');
  exportPolicy(tunedRun, tuning, 'hf', tunedFolder);

  const learning = configOf(
    study,
    tunedFolder,
    { full: study.full },
    { learningRate: study.learningRate, maxTokens: 16_384 },
    study.updates,
  );
  const tuned = await heldOut(learning, join(dir, 'before'), study);
  say(`fine-tuned: ${shown(tuned)}`);
  const learntRun = join(dir, 'learnt');
  createRunFolder(learntRun, learning);
  const run = await startRun({
    config: learning,
    dir: learntRun,
    mode: 'async',
    envModule: world,
    learn: true,
  });
  try {
    await run.train();
  } finally {
    await run.stop();
  }
  const learnt = await heldOut(learning, learntRun, study);
  say(`learnt: ${shown(learnt)}`);
  return { untrained, tuned, learnt };
}

/** The planner's episodes of the training tasks. */
function planned({ copies, planned: most }: TinyStudy): Demonstration[] {
  const env = createEnv();
  const indices = env.tasks.split('train').filter((index) => env.tasks.label(index) === LABEL);
  return indices.slice(0, most).flatMap((index) =>
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

function configOf({ seed }: TinyStudy, path: string, policy: object, learner: object, updates: number): RunConfig {
  return checkRunConfig(
    {
      seed,
      env: { id: 'textcraft' },
      tasks: { labels: [LABEL], sampling: { type: 'uniform' } },
      horizon: { type: 'fixed', rounds: 6 },
      policy: {
        kind: 'checkpoint',
        path,
        masked: true,
        maxTokens: 40,
        chat: { format: 'action', contextTokens: 2048 },
        ...policy,
      },
      rollout: { groupSize: 8, concurrentGroups: 4, maxBatch: 32 },
      learner: { groupsPerUpdate: 4, warmupSteps: 5, epochs: 1, entropyCoef: 0, recompute: false, ...learner },
      stop: { updates: Math.max(1, updates) },
      checkpoint: { everyUpdates: 1000 },
      trace: { everyGroups: 0 },
    },
    'llm-tiny',
  );
}

/** Sampled episodes of held-out tasks under the newest weights of a run; under the folder's own where there is no run. */
async function heldOut(config: RunConfig, dir: string, { tasks: most, episodes }: TinyStudy): Promise<Success> {
  let checkpoint: ReturnType<typeof loadNewest> | undefined;
  try {
    checkpoint = loadNewest(join(dir, 'checkpoints'));
  } catch {
    checkpoint = undefined;
  }
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
      tasks: indices.slice(0, most).map((index) => ({ env: 'textcraft', index, seed: tasks.evalSeed })),
      episodes,
      horizon: 6,
      temperature: 1,
      seed: 1,
    });
    const all = results.flatMap(({ successes }) => successes);
    return { successes: all.filter(Boolean).length, episodes: all.length };
  } finally {
    await run.stop();
  }
}

function shown({ successes, episodes }: Success): string {
  const { low, high } = wilson(successes, episodes);
  const percent = (x: number) => `${(100 * x).toFixed(1)} %`;
  return `${percent(successes / episodes)} of ${episodes} held-out episodes (${percent(low)} to ${percent(high)})`;
}

/** The study from the command line. */
export async function llmTiny({ seed, updates }: { readonly seed: number; readonly updates: number }): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-llm-tiny-'));
  try {
    const study = { seed, updates, epochs: 3, copies: 2, tasks: 30, episodes: 8, full: false, learningRate: 3e-3 };
    await studyTiny(dir, study, (line) => console.log(line));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
