/**
 * Size, seed and growth of the attacks in this folder. `npm run test:long -- attack` runs all of them whole; `npm test`
 * some thousandths, and each way at least once, from a fixed seed. The seed is printed, and `LONGPLAY_ATTACK_SEED` repeats
 * it; `LONGPLAY_ATTACK_SHARE` sets how much of the whole is run.
 */
import { expect } from 'vitest';
import { isUserMistake, LongplayError, messageOf } from '../../src/core/errors.ts';
import { Rng, seedFrom } from '../../src/core/rng.ts';
import { bytesInUse } from '../../src/world/conformance/measure.ts';

export const LONG = process.env.LONGPLAY_LONG === '1';
const SHARE = Number(process.env.LONGPLAY_ATTACK_SHARE ?? (LONG ? 1 : 0.001));

/** Seed of everything random in an attack. */
export const SEED = Number(process.env.LONGPLAY_ATTACK_SEED ?? (LONG ? Date.now() % 2 ** 32 : 1));

/** Number of the `whole` campaign's attacks that this run makes, at least `min`. */
export function amount(whole: number, min = 1): number {
  return Math.max(min, Math.round(SHARE * whole));
}

/** Prints a figure of the campaign. */
export function printFigure(line: string): void {
  console.log(`attack (seed ${SEED}): ${line}`);
}

/** Randomness of the n-th attack of a kind: one that broke something is repeated alone. */
export function rngOf(kind: string, n: number): Rng {
  return Rng.fromSeed(seedFrom(SEED, kind, n));
}

/**
 * Makes `count` attacks one after the other. After a tenth of them the memory in use is noted; at the end it may not have
 * grown by more than `growthMb`.
 * @param attack the n-th one; throws where something is broken
 */
export async function campaign(
  kind: string,
  count: number,
  attack: (rng: Rng, n: number) => void | Promise<void>,
  growthMb = 48,
): Promise<void> {
  let slowest = 0;
  let before = 0;
  const warm = Math.floor(count / 10);
  for (let n = 0; n < count; n++) {
    if (n === warm) before = usedMb();
    const began = performance.now();
    try {
      await attack(rngOf(kind, n), n);
    } catch (thrown) {
      throw new Error(`${kind}, attack ${n} of seed ${SEED}: ${thrown instanceof Error ? thrown.stack : thrown}`);
    }
    slowest = Math.max(slowest, performance.now() - began);
  }
  const grown = usedMb() - before;
  printFigure(`${kind}: ${count} inputs, slowest ${slowest.toFixed(0)} ms, memory grew by ${grown.toFixed(1)} MB`);
  expect(grown).toBeLessThan(growthMb);
}

/** MiB that are in use once garbage is collected: the JavaScript heap and buffers. */
export function usedMb(): number {
  return bytesInUse() / 2 ** 20;
}

/** Longest line that a person gets to read about a mistake of theirs. */
const MAX_LINE = 8000;

/** Holds what was thrown to be a message for the author of the input: of a known kind, short lines, and no stack. */
export function expectMistake(thrown: unknown): void {
  if (!(thrown instanceof LongplayError) || !isUserMistake(thrown)) {
    throw new Error(`no message for a person: ${thrown instanceof Error ? thrown.stack : messageOf(thrown)}`);
  }
  const { message } = thrown;
  expect(message).not.toMatch(/^\s+at /m);
  expect(message.length).toBeLessThan(MAX_LINE);
}

/** Runs what may only fail by a message for a person. @returns its result, or undefined */
export function orMistake<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (thrown) {
    expectMistake(thrown);
    return undefined;
  }
}
