/**
 * Single-thread rates of BabyAI, replaying recorded actions where they are given, else random ones: the low-level
 * world (step and image), resets of all 40 levels, both text worlds, the vectorised interface, and the memory of live
 * environments.
 */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { CorrectedSession } from '../../envs/babyai/env.ts';
import { IMAGE_BYTES } from '../../envs/babyai/grid.ts';
import { VectorBabyAI } from '../../envs/babyai/gym.ts';
import { generate, NUM_LEVELS } from '../../envs/babyai/levels.ts';
import { OriginalText } from '../../envs/babyai/original.ts';
import { indexOf, PAPER_LEVELS } from '../../envs/babyai/tasks.ts';
import { Rng } from '../../src/core/rng.ts';

/** One measured rate: the median over runs, with the extremes. */
export interface Rate {
  readonly name: string;
  /** Per second, or bytes for memory. */
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly unit: '1/s' | 'bytes';
  /** The original's figure on the same workload (CPython, one process, idle machine), where there is one. */
  readonly original?: number;
}

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

/** The original's rates, measured with AgentGym's and Minigrid's own code replaying the same recordings. */
const ORIGINAL = { steps: 12_483, resets: 991, text: 699 };

/** Measures everything; takes about `8 × (runs + 1) × seconds`. */
export function babyaiSteps(options: BenchOptions = {}): Rate[] {
  const { golden = process.env.LONGPLAY_GOLDEN ?? '../shared/golden', runs = 5, seconds = 1 } = options;
  const raw = load(golden, 'raw');
  const text = load(golden, 'text');

  /** @param round does some work and says how many units it did in how many milliseconds */
  const measure = (name: string, round: () => readonly [count: number, ms: number], original?: number): Rate => {
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
    rates.sort((a, b) => a - b);
    const rate = { name, median: rates[rates.length >> 1]!, min: rates[0]!, max: rates.at(-1)!, unit: '1/s' as const };
    return original === undefined ? rate : { ...rate, original };
  };

  return [
    measure('low-level steps with image', () => lowLevel(raw), ORIGINAL.steps),
    measure('resets, all 40 levels', () => timed(() => resets(raw)), ORIGINAL.resets),
    measure('text steps, original rules, recorded actions', () => originalText(text), ORIGINAL.text),
    measure('text steps, corrected rules, random actions', () => correctedText(text), ORIGINAL.text),
    ...[32, 1024].map((n) => measure(`vectorised steps, ${n} worlds, resets included`, vectorised(n))),
    memory(10_000),
  ];
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

function timed(work: () => number): [count: number, ms: number] {
  const start = performance.now();
  const count = work();
  return [count, performance.now() - start];
}

/** Steps alone: the worlds are made before the clock runs. */
function lowLevel(episodes: readonly Recorded[]): [number, number] {
  const image = new Uint8Array(IMAGE_BYTES);
  const worlds = episodes.map(({ level, seed }) => generate(level, seed));
  return timed(() => {
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
  return timed(() => {
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
function correctedText(episodes: readonly Recorded[]): [number, number] {
  const rng = Rng.fromSeed(11);
  const sessions = episodes.map(({ level, seed }) => new CorrectedSession(indexOf(level, seed)));
  return timed(() => {
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
function vectorised(numEnvs: number): () => [number, number] {
  const envs = new VectorBabyAI({ level: 2, numEnvs });
  const rng = Rng.fromSeed(5);
  const actions = Array.from({ length: 16 }, () => Uint8Array.from({ length: numEnvs }, () => rng.int(7)));
  return () =>
    timed(() => {
      for (const each of actions) envs.step(each);
      return actions.length * numEnvs;
    });
}

/** Heap and buffers of `count` live text sessions of the paper's levels after ten turns; run with `--expose-gc`. */
function memory(count: number): Rate {
  const rng = Rng.fromSeed(3);
  const used = (): number => {
    (globalThis as { gc?: () => void }).gc?.();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  const sessions = Array.from({ length: count }, (_, n) => {
    const level = PAPER_LEVELS[n % PAPER_LEVELS.length]!;
    const session = new CorrectedSession(indexOf(level, n % 900));
    for (let t = 0; t < 10; t++) session.step(rng.pick(session.actions()));
    return session;
  });
  const bytes = (used() - before) / sessions.length;
  return { name: 'memory per live text environment', median: bytes, min: bytes, max: bytes, unit: 'bytes' };
}

/** One line per rate. */
export function formatRates(rates: readonly Rate[]): string {
  return rates
    .map(({ name, median, min, max, unit, original }) => {
      const times = original === undefined ? '' : `  ${(median / original).toFixed(0)}x the original's ${original}/s`;
      return `${name.padEnd(48)} ${Math.round(median)} ${unit} [${Math.round(min)} .. ${Math.round(max)}]${times}`;
    })
    .join('\n');
}
