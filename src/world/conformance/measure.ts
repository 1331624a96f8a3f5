/** Cost of an environment: milliseconds per answer, bytes per live session, bytes kept per finished episode. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../../core/clock.ts';
import type { Env, EnvStep, Session } from '../../core/env.ts';
import { largestOf } from '../../core/extremes.ts';
import { Rng } from '../../core/rng.ts';
import { close, open, step } from './script.ts';

/** Quantiles in milliseconds. */
export interface Latency {
  readonly median: number;
  readonly p99: number;
  readonly max: number;
  readonly n: number;
}

export interface Costs {
  readonly open: Latency;
  readonly step: Latency;
  /** Latency of listing actions. */
  readonly list: Latency;
  /** Steps per second of one thread that does nothing else. */
  readonly stepsPerSecond: number;
  /** Bytes a session holds while its episode runs. */
  readonly bytesPerSession: number;
}

export interface Leak {
  readonly episodes: number;
  /** Bytes that stay behind when an episode is over and closed; what the laws allow is `LEAK_BYTES`. */
  readonly bytesPerEpisode: number;
  readonly ok: boolean;
}

/** Growth under this is noise of the heap; a leak that matters in a long run is above it. */
export const LEAK_BYTES = 32;
/** Growth under this in all is noise too. */
const LEAK_TOTAL = 256 * 1024;
/** Turns of the longest episode that is measured. */
const MAX_TURNS = 30;
/** Sessions that are held at once, at most: each may be a process. */
const HELD_SESSIONS = 1000;
/** Milliseconds after which no further episode is timed, and no further session is held. */
const TIMED_MS = 10_000;
const HOLD_MS = 2000;
const CHECKPOINTS = 10;

/**
 * Plays episodes with uniform random listed actions and times every call.
 * @param clock milliseconds, fractional
 * @param onProgress called every so often while it goes on
 */
export async function measureCosts(
  createEnv: () => Env,
  clock: Clock,
  seed: number,
  episodes = 300,
  onProgress: () => void = () => {},
): Promise<Costs> {
  const env = createEnv();
  const rng = Rng.fromSeed(seed);
  const times = { open: [] as number[], step: [] as number[], list: [] as number[] };
  const measureMs = async <T>(of: number[], work: () => T): Promise<Awaited<T>> => {
    const start = clock.now();
    const value = work();
    const result = (value instanceof Promise ? await value : value) as Awaited<T>;
    of.push(clock.now() - start);
    return result;
  };
  const began = clock.now();
  for (let n = 0; n < episodes && (n === 0 || clock.now() - began < TIMED_MS); n++) {
    if (n % 16 === 0) onProgress();
    const session = await measureMs(times.open, () =>
      open(env, { index: rng.int(env.tasks.count), seed: n, moves: [] }),
    );
    for (let t = 0; t < MAX_TURNS; t++) {
      const listed = await measureMs(times.list, () => session.actions());
      const answer: EnvStep = await measureMs(times.step, () =>
        step(session, listed.length > 0 ? rng.pick(listed) : ''),
      );
      if (answer.kind === 'terminated') break;
    }
    await close(session);
  }
  const busy = [...times.open, ...times.step, ...times.list].reduce((sum, ms) => sum + ms, 0);
  return {
    open: latency(times.open),
    step: latency(times.step),
    list: latency(times.list),
    stepsPerSecond: (1000 * times.step.length) / busy,
    bytesPerSession: await sessionBytes(env, rng, clock, onProgress),
  };
}

async function sessionBytes(env: Env, rng: Rng, clock: Clock, onProgress: () => void): Promise<number> {
  await measureHeldBytes(env, rng, clock, onProgress); // fills caches and leaves compiled code behind, which belong to no session
  return Math.max(0, await measureHeldBytes(env, rng, clock, onProgress));
}

/** Bytes that a session in the midst of its episode holds: the mean of many at once. */
async function measureHeldBytes(env: Env, rng: Rng, clock: Clock, onProgress: () => void): Promise<number> {
  const before = bytesInUse();
  const began = clock.now();
  const sessions: Session[] = [];
  for (let n = 0; n < HELD_SESSIONS && (n === 0 || clock.now() - began < HOLD_MS); n++) {
    if (n % 16 === 0) onProgress();
    const session = await open(env, { index: rng.int(env.tasks.count), seed: n, moves: [] });
    for (let t = 0; t < 5; t++) if ((await randomStep(session, rng)).kind === 'terminated') break;
    sessions.push(session);
  }
  const held = bytesInUse() - before;
  for (const session of sessions) await close(session);
  return held / sessions.length;
}

/** Times that growth is looked for; caches with a bound stop growing meanwhile, leaks do not. */
const LEAK_ROUNDS = 4;

/**
 * Plays short random episodes, closes each, and looks after every tenth of them at what is left on the heap after a
 * garbage collection. The first half warms up (caches fill, code is compiled); growth is the median slope of the rest.
 * What grows is played as often again, up to three times: a cache of all tasks' texts takes longer to fill.
 * @param episodes of one round
 */
export async function measureLeak(
  createEnv: () => Env,
  episodes: number,
  seed: number,
  onProgress: (done: number) => void = () => {},
): Promise<Leak> {
  const env = createEnv();
  const rng = Rng.fromSeed(seed);
  const part = Math.max(1, Math.ceil(episodes / CHECKPOINTS));
  let played = 0;
  for (let round = 1; ; round++) {
    const used: number[] = [];
    for (let n = 1; n <= part * CHECKPOINTS; n++) {
      const session = await open(env, { index: rng.int(env.tasks.count), seed: ++played, moves: [] });
      for (let t = rng.int(8); t > 0; t--) if ((await randomStep(session, rng)).kind === 'terminated') break;
      await close(session);
      if (played % 64 === 0) onProgress(played);
      if (n % part === 0 && n > (part * CHECKPOINTS) / 2) used.push(bytesInUse());
    }
    const slopes = used.flatMap((from, i) => used.slice(i + 1).map((to, k) => (to - from) / ((k + 1) * part)));
    const bytesPerEpisode = quantile(slopes, 0.5);
    const ok = bytesPerEpisode <= LEAK_BYTES || used.at(-1)! - used[0]! <= LEAK_TOTAL;
    if (ok || round === LEAK_ROUNDS) return { episodes: played, bytesPerEpisode, ok };
  }
}

async function randomStep(session: Session, rng: Rng): Promise<EnvStep> {
  const listed = session.actions();
  return step(session, listed.length > 0 ? rng.pick(listed) : '');
}

let collect: (() => void) | undefined;

/** Bytes this thread's heap and buffers hold after a full collection; needs no flag of node. */
export function bytesInUse(): number {
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function latency(ms: number[]): Latency {
  return { median: quantile(ms, 0.5), p99: quantile(ms, 0.99), max: largestOf(ms, 0), n: ms.length };
}

function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
}
