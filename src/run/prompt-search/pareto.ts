/** Choice of the prompt to change next, as GEPA makes it. Pure. */
import { largestOf } from '../../core/extremes.ts';
import type { Rng } from '../../core/rng.ts';

/**
 * Counts for each candidate the tasks on which it is among the best. Candidates are left out that others dominate: wherever one
 * of them is best, another that stays is best too.
 * @param scores `[candidates, tasks]`, at least one of each
 * @returns counts by candidate, 0 for those left out
 * @see Agrawal et al. 2025, algorithm 2, https://arxiv.org/abs/2507.19457
 */
export function countParetoTasks(scores: readonly (readonly number[])[]): readonly number[] {
  const tasks = scores[0]!.map((_, task) => {
    const best = largestOf(scores.map((own) => own[task]!));
    return new Set(scores.flatMap((own, candidate) => (own[task]! === best ? [candidate] : [])));
  });
  const staying = new Set(tasks.flatMap((best) => [...best]));
  // The weakest first, as the paper does: of two that dominate each other one stays.
  const sums = scores.map((own) => own.reduce((sum, score) => sum + score, 0));
  for (const candidate of [...staying].sort((a, b) => sums[a]! - sums[b]! || b - a)) {
    const isDominated = tasks.every(
      (best) => !best.has(candidate) || [...best].some((other) => other !== candidate && staying.has(other)),
    );
    if (isDominated) staying.delete(candidate);
  }
  return scores.map((_, candidate) =>
    staying.has(candidate) ? tasks.filter((best) => best.has(candidate)).length : 0,
  );
}

/** Selects a candidate with a probability in proportion to its count. */
export function selectParent(scores: readonly (readonly number[])[], rng: Rng): number {
  const counts = countParetoTasks(scores);
  let at = rng.int(counts.reduce((sum, count) => sum + count, 0));
  return counts.findIndex((count) => (at -= count) < 0);
}
