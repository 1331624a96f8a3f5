/**
 * Ranges of the numbers in a configuration. Each upper bound stands far above what is of use and below what breaks: a
 * timer that wraps, an array that no process holds, threads that no machine has.
 */
import { z } from 'zod';
import { MAX_COUNT } from '../algo/ranges.ts';

export { count, share } from '../algo/ranges.ts';

/** Longest delay of a timer, 2^31 − 1 ms: Node turns a longer one into 1 ms. */
export const MAX_MS = 2 ** 31 - 1;
/** Sizes that buffers and tables are made of: episodes and turns in memory at once. */
const MAX_HELD = 100_000;

const whole = (from: number, to: number) => z.int().min(from).max(to);

/** Count that may be 0. */
export const countFrom0 = whole(0, MAX_COUNT);
/** Number of things held in memory at once: 1 … 100,000. */
export const held = whole(1, MAX_HELD);
/** Turns of an episode, 1 … 100,000: a trajectory is held whole. */
export const turns = held;
/** Versions that decisions may lag, 0 … 10,000: as many updates' groups may be in flight. */
export const lag = whole(0, 10_000);
/** Threads of one kind, 1 … 256: each is a V8 heap of its own. */
export const threads = whole(1, 256);
/** Members of a group, 1 … 4,096: they share one batch. */
export const members = whole(1, 4096);
/** Repetitions of one piece of work: epochs, minibatches, attempts, restarts. */
export const repeats = whole(1, 10_000);
/** Width of a model's layer, 1 … 16,384: a matrix of that width squared is 1 GiB. */
export const width = whole(1, 16_384);
/** Layers or attention heads, 1 … 256. */
export const depth = whole(1, 256);
/** Tokens that a model reads at once, 1 … 1,048,576. */
export const positions = whole(1, 2 ** 20);
/** Mebibytes of a heap, 8 … 1,048,576. */
export const mebibytes = whole(8, 2 ** 20);
/** Bytes of a file, 1 KiB … 1 TiB. */
export const fileBytes = whole(1024, 2 ** 40);

/** Share in (0, 1]. */
export const shareAbove0 = z.number().positive().max(1);
/** Rate or coefficient in (0, 10^6]: beyond it single precision loses what it is added to. */
export const rate = z.number().positive().max(1e6);
/** Rate that may be 0. */
export const rateFrom0 = z.number().min(0).max(1e6);
/** Milliseconds of a timer, above 0. */
export const milliseconds = z.number().positive().max(MAX_MS);
/** Minutes of a run, above 0, up to ten years. */
export const minutes = z.number().positive().max(5_256_000);
