/** Alternates the runs of what is compared, so that a busy machine slows all of them equally. */
import { median } from './median.ts';

/** Measures a rate. @returns what `work` counted, per second */
export async function rate(work: () => Promise<number>): Promise<number> {
  const began = performance.now();
  const count = await work();
  return (1000 * count) / (performance.now() - began);
}

/**
 * Two warm-ups and `runs` rounds in which each takes its turn, every other round in reverse, so that none always comes
 * after the same one.
 * @returns by measure, the values of all rounds
 */
export async function rounds(measures: readonly (() => Promise<number>)[], runs: number): Promise<number[][]> {
  const values: number[][] = measures.map(() => []);
  for (let round = -2; round < runs; round++) {
    const turns = [...measures.keys()];
    for (const i of round % 2 === 0 ? turns : turns.reverse()) {
      const value = await measures[i]!();
      if (round >= 0) values[i]!.push(value);
    }
  }
  return values;
}

/** Alternates as `rounds`, and gives the median of each measure. */
export async function alternate(measures: readonly (() => Promise<number>)[], runs = 5): Promise<number[]> {
  return (await rounds(measures, runs)).map(median);
}
