/** Pools that grow: rows of one array, widened together, and what masks hold where nothing may be read. */

/** Mask value: added to a score, it leaves no probability in f32; −∞ would make a row without any token NaN. */
export const MASKED = -1e9;

/** Factor by which a pool that has to grow is made longer than it has to be: it grows step by step. */
const HEADROOM = 1.5;

/** Least multiple of `step` that is not below `n`. */
export function roundUp(n: number, step: number): number {
  return Math.ceil(n / step) * step;
}

/**
 * Regrows a pool: `rows` rows of width `from` at width `to`, in place where the pool is long enough. What lies between a row's
 * old end and its new one is left as it is: masks keep it from being read.
 * @returns the pool, or a longer one: with room to spare, for a pool grows step by step
 */
export function growPool(pool: Float32Array, rows: number, from: number, to: number): Float32Array {
  const size = rows * to;
  if (size > pool.length) {
    const next = new Float32Array(from > 0 ? Math.ceil(size * HEADROOM) : size);
    for (let row = 0; row < rows; row++) next.set(pool.subarray(row * from, (row + 1) * from), row * to);
    return next;
  }
  // Backwards, since rows only move to the right: the last one has to leave before another lands on it.
  for (let row = rows - 1; row > 0 && from > 0; row--) pool.copyWithin(row * to, row * from, (row + 1) * from);
  return pool;
}
