/** Comparison of a recording with our answers, for parity. */
import type { Difference } from '../../src/core/parity.ts';

/** A recorded object. */
export type Json = Record<string, unknown>;

/** Comparison: compares, counts and reports. */
export class Comparison {
  episodes = 0;
  steps = 0;
  readonly #report: (difference: Difference) => void;

  constructor(report: (difference: Difference) => void) {
    this.#report = report;
  }

  /** Checks equality as JSON, with numbers within 1e-9 (or `within`). */
  check(where: string, what: string, got: unknown, expected: unknown, within = 1e-9): void {
    if (!equalWithin(got, expected, within)) this.#report({ where, what, expected, got });
  }
}

function equalWithin(a: unknown, b: unknown, within: number): boolean {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b) <= within;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  const [left, right] = [Object.keys(a), Object.keys(b)];
  if (Array.isArray(a) !== Array.isArray(b) || left.length !== right.length) return false;
  return left.every((key) => Object.hasOwn(b, key) && equalWithin((a as Json)[key], (b as Json)[key], within));
}
