/** Distance of two gradients, as a share of the second, which must not be 0. */
import { expect } from 'vitest';

export function gradientDistance(
  got: Readonly<Record<string, ArrayLike<number>>>,
  want: Readonly<Record<string, ArrayLike<number>>>,
): number {
  let [difference, norm] = [0, 0];
  for (const [name, values] of Object.entries(want)) {
    for (let i = 0; i < values.length; i++) {
      difference += (got[name]![i]! - values[i]!) ** 2;
      norm += values[i]! ** 2;
    }
  }
  expect(norm).toBeGreaterThan(0);
  return Math.sqrt(difference / norm);
}
