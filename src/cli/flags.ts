/** Flag parsers, and the wait for the signal that ends a server. */
import { InvalidArgumentError } from 'commander';
import { MAX_MS } from '../config/ranges.ts';

/** Upper bounds of flags, far above what is of use and below what breaks (as src/config/ranges.ts for configurations). */
export const MOST = {
  /** A timer's, beyond which Node makes it 1 ms. */
  milliseconds: MAX_MS,
  seconds: Math.floor(MAX_MS / 1000),
  minutes: Math.floor(MAX_MS / 60_000),
  port: 65_535,
  /** Each is a V8 heap of its own. */
  threads: 256,
  /** Things in memory at once: sessions, turns of an episode, turns of a call. */
  held: 100_000,
  /** Episodes, cases or epochs of a whole command, which it counts through. */
  repeats: 1_000_000,
  /** Buffers are made of it. */
  bytes: 2 ** 30,
  /** Seeds are uint32. */
  seed: 0xffffffff,
} as const;

/** Parser of whole numbers in [least, most]. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isInteger(value) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`expected a whole number from ${least} to ${most}.`);
  };
}

/** Parser of numbers in [least, most]. */
export function number(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`expected a number from ${least} to ${most}.`);
  };
}

/** Resolves at SIGINT or SIGTERM; a second signal ends the process at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let seen = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (seen) process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
      seen = true;
      resolve(signal);
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}
