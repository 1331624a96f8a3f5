/**
 * Rates of BabyAI, replaying recorded actions where they are given, else random ones. In one thread: the low-level
 * world (step and image), resets of all 40 levels, both text worlds, the vectorised interface, and the memory of live
 * environments; in a pool of threads: the vectorised interface.
 */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import { CorrectedSession } from '../../envs/babyai/env.ts';
import { IMAGE_BYTES } from '../../envs/babyai/grid.ts';
import { VectorBabyAI } from '../../envs/babyai/gym.ts';
import { generate, NUM_LEVELS } from '../../envs/babyai/levels.ts';
import { OriginalText } from '../../envs/babyai/original.ts';
import { indexOf, PAPER_LEVELS } from '../../envs/babyai/tasks.ts';
import { Rng } from '../../src/core/rng.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import { bytesInUse } from '../../src/world/conformance/measure.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';
import type { VectorInit, VectorRate } from './vector-worker.ts';

/** Options of a measurement: recordings, runs, and their length. */
export interface BenchOptions {
  /** Folder of recordings; default `$LONGPLAY_GOLDEN`, else `../shared/golden`. */
  readonly golden?: string;
  /** Runs of one measurement, ≥ 1, after one to warm up. Default 5. */
  readonly runs?: number;
  /** Measured seconds of one run. Default 1. */
  readonly seconds?: number;
}

interface Recorded {
  readonly level: number;
  readonly seed: number;
  readonly steps: readonly { readonly a?: number; readonly action?: string }[];
}

/** The original's rates, measured with AgentGym's and Minigrid's own code replaying the same recordings in one process. */
export const ORIGINAL = { steps: 12_483, resets: 991, text: 699 };
/** Gymnasium 1.3.0 on two cores. Its world is CartPole, four numbers; ours a grid seen as 147 bytes. */
const GYMNASIUM = {
  async: { name: "Gymnasium's AsyncVectorEnv, CartPole, 32 worlds", value: 37_800 },
  sync: { name: "Gymnasium's SyncVectorEnv, CartPole, 32 worlds", value: 200_000 },
  numpy: { name: "Gymnasium's NumPy CartPole, 1024 worlds", value: 18_400_000 },
};
const LIVE = 10_000;

/** Measures everything; takes about `7 × (runs + 1) × seconds`, and as long again for the threads. */
export async function babyaiSteps(options: BenchOptions = {}): Promise<Figure[]> {
  const { golden = process.env.LONGPLAY_GOLDEN ?? '../shared/golden', runs = 5, seconds = 1 } = options;
  const raw = load(golden, 'raw');
  const text = load(golden, 'text');

  /** @param round does some work and returns how many units it did in how many milliseconds */
  const measure = (
    name: string,
    unit: string,
    round: () => readonly [count: number, ms: number],
    reference?: Figure['reference'],
  ): Figure => {
    const rates: number[] = [];
    for (let run = -1; run < runs; run++) {
      let count = 0;
      let ms = 0;
      while (ms < seconds * 1000) {
        const [more, took] = round();
        count += more;
        ms += took;
      }
      if (run >= 0) rates.push((count * 1000) / ms);
    }
    return { name: `BabyAI ${name}`, value: median(rates), unit, ...(reference ? { reference } : {}) };
  };
  const original = (value: number) => ({ name: "the original's", value });

  const oneThread = [
    measure('low-level steps with image', 'steps/s', () => lowLevel(raw), original(ORIGINAL.steps)),
    measure('resets, all 40 levels', 'resets/s', () => measureMs(() => resets(raw)), original(ORIGINAL.resets)),
    measure('text, original rules, recorded actions', 'steps/s', () => originalText(text), original(ORIGINAL.text)),
    measure('text, corrected rules, random actions', 'steps/s', () => formatCorrected(text), original(ORIGINAL.text)),
    measure('vectorised, 32 worlds, resets included', 'steps/s', stepVectorised(32), GYMNASIUM.sync),
    measure('vectorised, 1024 worlds, resets included', 'steps/s', stepVectorised(1024), GYMNASIUM.numpy),
  ];
  return [...oneThread, ...(await stepVectorisedPool(32, runs, seconds)), ...memory(LIVE)];
}

/** Recorded episodes, or random ones of the same shape on machines without recordings. */
function load(folder: string, name: string): Recorded[] {
  const file = `${folder}/babyai/${name}.jsonl.gz`;
  if (existsSync(file)) {
    const lines = gunzipSync(readFileSync(file)).toString('utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line) as Recorded);
  }
  const rng = Rng.fromSeed(7);
  return Array.from({ length: 240 }, (_, n) => ({
    level: (n % NUM_LEVELS) + 1,
    seed: Math.floor(n / NUM_LEVELS),
    steps: Array.from({ length: 78 }, () => ({ a: rng.pick([0, 1, 2, 2, 2, 3, 4, 5]) })),
  }));
}

function measureMs(work: () => number): [count: number, ms: number] {
  const start = performance.now();
  const count = work();
  return [count, performance.now() - start];
}

/** Steps alone: the worlds are made before the clock runs. */
function lowLevel(episodes: readonly Recorded[]): [number, number] {
  const image = new Uint8Array(IMAGE_BYTES);
  const worlds = episodes.map(({ level, seed }) => generate(level, seed));
  return measureMs(() => {
    let count = 0;
    for (const [n, { steps }] of episodes.entries()) {
      const world = worlds[n]!;
      for (const { a } of steps) {
        world.step(a!);
        world.observe(image);
      }
      count += steps.length;
    }
    return count;
  });
}

function resets(episodes: readonly Recorded[]): number {
  for (const { level, seed } of episodes) generate(level, seed);
  return episodes.length;
}

function originalText(episodes: readonly Recorded[]): [number, number] {
  const rng = Rng.fromSeed(11);
  const games = episodes.map(({ level, seed }) => new OriginalText(indexOf(level, seed)));
  return measureMs(() => {
    let count = 0;
    for (const [n, { steps }] of episodes.entries()) {
      const game = games[n]!;
      for (const { action } of steps) game.step(action ?? rng.pick(game.available()));
      count += steps.length;
    }
    return count;
  });
}

/** Listing the actions and choosing one is part of a step here. */
function formatCorrected(episodes: readonly Recorded[]): [number, number] {
  const rng = Rng.fromSeed(11);
  const sessions = episodes.map(({ level, seed }) => new CorrectedSession(indexOf(level, seed)));
  return measureMs(() => {
    let count = 0;
    for (const session of sessions) {
      for (let t = 0; t < 50; t++) {
        count++;
        if (session.step(rng.pick(session.actions())).kind === 'terminated') break;
      }
    }
    return count;
  });
}

/** A round of 16 steps in each of `numEnvs` worlds of level 2, by random actions. */
export function stepVectorised(numEnvs: number): () => [count: number, ms: number] {
  const envs = new VectorBabyAI({ level: 2, numEnvs });
  const rng = Rng.fromSeed(5);
  const actions = Array.from({ length: 16 }, () => Uint8Array.from({ length: numEnvs }, () => rng.int(7)));
  return () =>
    measureMs(() => {
      for (const each of actions) envs.step(each);
      return actions.length * numEnvs;
    });
}

/** The same in as many threads as there are cores, all at once. */
async function stepVectorisedPool(numEnvs: number, runs: number, seconds: number): Promise<Figure[]> {
  const threads = availableParallelism();
  const url = workerUrl(new URL('./vector-worker.js', import.meta.url));
  const init: VectorInit = { numEnvs, runs, seconds };
  const perThread = await Promise.all(
    Array.from(
      { length: threads },
      () =>
        new Promise<VectorRate>((resolve, reject) => {
          const worker = new Worker(url, { workerData: init });
          worker.once('message', resolve);
          worker.once('error', reject);
        }),
    ),
  );
  const name = `BabyAI vectorised, ${numEnvs} worlds in each of ${threads} threads`;
  return [
    { name: `${name}, per env thread`, value: median(perThread), unit: 'steps/s', reference: GYMNASIUM.sync },
    {
      name: `${name}, the whole pool`,
      value: perThread.reduce((a, b) => a + b, 0),
      unit: 'steps/s',
      reference: GYMNASIUM.async,
    },
  ];
}

/** Heap and buffers of `count` live text sessions of the paper's levels after ten turns. */
function memory(count: number): Figure[] {
  const rng = Rng.fromSeed(3);
  const before = bytesInUse();
  const sessions = Array.from({ length: count }, (_, n) => {
    const level = PAPER_LEVELS[n % PAPER_LEVELS.length]!;
    const session = new CorrectedSession(indexOf(level, n % 900));
    for (let t = 0; t < 10; t++) session.step(rng.pick(session.actions()));
    return session;
  });
  const bytes = bytesInUse() - before;
  const live = sessions.length; // and so they are alive until here
  return [
    { name: 'BabyAI memory per live text environment', value: bytes / live / 1024, unit: 'kB' },
    {
      name: `BabyAI memory of ${live.toLocaleString('en')} live text environments`,
      value: bytes / 2 ** 20,
      unit: 'MB',
    },
  ];
}
