/**
 * Extremes of lists of any length. `Math.max(...list)` passes each value as an argument, and a call takes some 120,000 of
 * them; so does `push(...list)`. A test refuses both everywhere.
 */

/** Largest of some values and of `least`; NaN where one is. */
export function largestOf(values: Iterable<number>, least = Number.NEGATIVE_INFINITY): number {
  let largest = least;
  for (const value of values) largest = Math.max(largest, value);
  return largest;
}

/** Smallest of some values and of `most`; NaN where one is. */
export function smallestOf(values: Iterable<number>, most = Number.POSITIVE_INFINITY): number {
  let smallest = most;
  for (const value of values) smallest = Math.min(smallest, value);
  return smallest;
}

/** Appends values to a list. */
export function append<T>(list: T[], values: Iterable<T>): void {
  for (const value of values) list.push(value);
}
