/**
 * Single-thread rates of BabyAI, replaying recorded actions where they are given, else scripted random ones: the
 * low-level world (step and image), resets of all 40 levels, the text world, the vectorised interface, and the memory
 * of live environments.
 */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { createEnv } from '../../envs/babyai/env.ts';
import { IMAGE_BYTES } from '../../envs/babyai/grid.ts';
import { VectorBabyAI } from '../../envs/babyai/gym.ts';
import { generate, NUM_LEVELS } from '../../envs/babyai/levels.ts';
import { OriginalText } from '../../envs/babyai/original.ts';
import { PAPER_LEVELS } from '../../envs/babyai/tasks.ts';
import { Rng } from '../../src/core/rng.ts';

/** One measured rate: the median over runs, with the extremes. */
export interface Rate {
  readonly name: string;
  /** Per second, or bytes for memory. */
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly unit: string;
  /** The original's figure on the same workload (Python 3, one process, idle machine), where there is one. */
  readonly original?: number;
}

interface Recorded {
  readonly level: number;
  readonly seed: number;
  readonly data_idx?: number;
  readonly steps: readonly { readonly a?: number; readonly action?: string }[];
}

/** The original's rates: lab measurements with `bench_inprocess.py`. */
const ORIGINAL = { raw: 12_483, resets: 991, text: 699 };

function load(folder: string, name: string): Recorded[] | undefined {
  const file = `${folder}/babyai/${name}.jsonl.gz`;
  if (!existsSync(file)) return undefined;
  const lines = gunzipSync(readFileSync(file)).toString('utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Recorded);
}

/** Random episodes of the same shape, for machines without recordings. */
function scripted(): Recorded[] {
  const rng = Rng.fromSeed(7);
  return Array.from({ length: 240 }, (_, n) => ({
    level: (n % NUM_LEVELS) + 1,
    seed: Math.floor(n / NUM_LEVELS),
    data_idx: n,
    steps: Array.from({ length: 78 }, () => ({ a: rng.pick([0, 1, 2, 2, 2, 3, 4, 5]), action: '' })),
  }));
}

/**
 * Measures.
 *
 * @param options.golden folder of recordings
 * @param options.seconds of one run of one measurement
 */
export function babyaiSteps(
  options: { readonly golden?: string; readonly runs?: number; readonly seconds?: number } = {},
): Rate[] {
  const { golden = process.env.LONGPLAY_GOLDEN ?? '../shared/golden', runs = 5, seconds = 1 } = options;
  const raw = load(golden, 'raw') ?? scripted();
  const recordedText = load(golden, 'text');
  const text = recordedText ?? scripted();

  const measure = (name: string, once: () => number, original?: number): Rate => {
    once();
    const rates = Array.from({ length: runs }, () => {
      let count = 0;
      const start = performance.now();
      while (performance.now() - start < seconds * 1000) count += once();
      return (count * 1000) / (performance.now() - start);
    }).sort((a, b) => a - b);
    const rate = { name, median: rates[rates.length >> 1]!, min: rates[0]!, max: rates.at(-1)!, unit: '1/s' };
    return original === undefined ? rate : { ...rate, original };
  };

  const image = new Uint8Array(IMAGE_BYTES);
  /** Steps alone are timed by playing each episode on a world made beforehand. */
  const rawSteps = (): Rate => {
    const rates = Array.from({ length: runs + 1 }, () => {
      let count = 0;
      let ms = 0;
      while (ms < seconds * 1000) {
        const worlds = raw.map(({ level, seed }) => generate(level, seed));
        const start = performance.now();
        for (const [n, { steps }] of raw.entries()) {
          const world = worlds[n]!;
          for (const { a } of steps) {
            world.step(a!);
            world.observe(image);
          }
          count += steps.length;
        }
        ms += performance.now() - start;
      }
      return (count * 1000) / ms;
    })
      .slice(1)
      .sort((a, b) => a - b);
    const median = rates[rates.length >> 1]!;
    return {
      name: 'low-level steps with image',
      median,
      min: rates[0]!,
      max: rates.at(-1)!,
      unit: '1/s',
      original: ORIGINAL.raw,
    };
  };

  const textSteps = (fidelity: 'original' | 'corrected'): Rate => {
    const env = createEnv({ fidelity });
    const rng = Rng.fromSeed(11);
    const rates = Array.from({ length: runs + 1 }, () => {
      let count = 0;
      let ms = 0;
      while (ms < seconds * 1000) {
        for (const { data_idx: index, steps } of text) {
          const session = fidelity === 'original' ? undefined : env.open({ env: 'babyai', index: index!, seed: 0 });
          const original = fidelity === 'original' ? new OriginalText(index!) : undefined;
          const start = performance.now();
          for (const { action } of steps) {
            // Recorded actions are the original's; the corrected world is played by random listed ones.
            if (original) original.step(recordedText ? action! : rng.pick(original.available()));
            else if (session && 'step' in session) session.step(rng.pick(session.actions()));
            count++;
          }
          ms += performance.now() - start;
        }
      }
      return (count * 1000) / ms;
    })
      .slice(1)
      .sort((a, b) => a - b);
    return {
      name: `text steps, ${fidelity}`,
      median: rates[rates.length >> 1]!,
      min: rates[0]!,
      max: rates.at(-1)!,
      unit: '1/s',
      original: ORIGINAL.text,
    };
  };

  const vector = (numEnvs: number): Rate => {
    const envs = new VectorBabyAI({ level: 2, numEnvs });
    const rng = Rng.fromSeed(5);
    const actions = Array.from({ length: 16 }, () => Uint8Array.from({ length: numEnvs }, () => rng.int(7)));
    let k = 0;
    return measure(`vectorised steps, ${numEnvs} worlds, resets included`, () => {
      for (let n = 0; n < 16; n++) envs.step(actions[k++ & 15]!);
      return 16 * numEnvs;
    });
  };

  return [
    rawSteps(),
    measure(
      'resets, all 40 levels, recorded seeds',
      () => {
        for (const { level, seed } of raw) generate(level, seed);
        return raw.length;
      },
      ORIGINAL.resets,
    ),
    textSteps('original'),
    textSteps('corrected'),
    vector(32),
    vector(1024),
    memory(10_000),
  ];
}

/** Heap and buffers of `count` live text sessions of the paper's levels after ten turns. */
function memory(count: number): Rate {
  const env = createEnv();
  const rng = Rng.fromSeed(3);
  const used = (): number => {
    (globalThis as { gc?: () => void }).gc?.();
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    return heapUsed + Math.max(external, arrayBuffers);
  };
  const before = used();
  const sessions = Array.from({ length: count }, (_, n) => {
    const level = PAPER_LEVELS[n % PAPER_LEVELS.length]!;
    const session = env.open({ env: 'babyai', index: level - 1 + 40 * (n % 900), seed: 0 });
    if (!('step' in session)) throw new Error('babyai opens synchronously');
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
      return `${name.padEnd(50)} ${Math.round(median)} ${unit} [${Math.round(min)} .. ${Math.round(max)}]${times}`;
    })
    .join('\n');
}
