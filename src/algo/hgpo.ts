/**
 * HGPO: turns taken in the same state are compared as in GiGPO, and once more among those that share the states before
 * it, up to `history` of them. The advantages of these nested groups are averaged, the more shared history the more weight.
 *
 *   A^H(d) = Σₖ wₖ·Aₖ(d),   wₖ = (k + 1)^α / Σ (k + 1)^α      k = 0 … history
 *
 * Aₖ is GRPO's advantage of the rewards-to-go among the decisions of the task whose last k states and present one are equal.
 * A level counts where the decision has company in it; with none on any level, A^H = 0. There is no term for whole episodes:
 * what followed is in the discounted rewards-to-go.
 *
 * Differs from the authors' code, which also leaves out levels whose advantage happens to be 0, and divides by the
 * population's std; here the std is the sample's, as for GRPO.
 *
 * @see He et al. 2026 (HGPO). https://arxiv.org/abs/2602.22817
 */
import { z } from 'zod';
import { ShapeError } from '../core/errors.ts';
import { commonShape, type Estimator, estimatorDefaults, std } from './estimator.ts';
import { groupAdvantage } from './group-advantage.ts';

export const hgpoSchema = z.strictObject({
  algorithm: z.literal('hgpo'),
  ...commonShape,
  std,
  history: z.int().min(0).max(1000).default(2).describe('States before the present one that are compared at most.'),
  alpha: z
    .number()
    .min(0)
    .max(100)
    .default(1)
    .describe('Power of the weight of shared history; 0: all levels the same.'),
});
/** HGPO: advantages of turns over nested groups of the same state and history. */
export type HgpoConfig = z.infer<typeof hgpoSchema>;

/** Estimator of HGPO. */
export const hgpo: Estimator<HgpoConfig> = {
  ...estimatorDefaults,
  facts: {
    title: 'HGPO',
    papers: ['2602.22817'],
    summary:
      'GRPO over the turns of a group in the same state, for each depth of shared history, weighed by the depth.',
    use: 'As GiGPO, where what happened before changes what a state is worth.',
  },
  needsGroup: true,
  needsAnchors: true,
  advantages: (group, config, anchorOf) =>
    hierarchicalAdvantage(
      group.map(({ returns }) => returns),
      group.map(({ trajectory, columns }) => Array.from(columns.turns, (t) => anchorOf(trajectory, t))),
      config,
    ),
  check({ history, alpha }, need) {
    need(Number.isInteger(history) && history >= 0, 'history', 'a whole number ≥ 0', history);
    need(alpha >= 0, 'alpha', 'a number ≥ 0', alpha);
  },
};

/**
 * Advantages of HGPO.
 * @param returns per trajectory [D] discounted rewards-to-go
 * @param anchors per trajectory [D] name of the state each decision was taken in; equal names, equal state
 * @returns       per trajectory [D]
 * @throws {ShapeError} if the shapes differ
 */
export function hierarchicalAdvantage(
  returns: readonly Float64Array[],
  anchors: readonly (readonly string[])[],
  { std, history, alpha }: { readonly std: boolean; readonly history: number; readonly alpha: number },
): Float64Array[] {
  for (const [i, row] of returns.entries()) {
    if (anchors[i]?.length !== row.length) {
      throw new ShapeError(`hierarchicalAdvantage: anchors[${i}] must be [${row.length}], got [${anchors[i]?.length}]`);
    }
  }
  const sums = returns.map(({ length }) => new Float64Array(length));
  const totals = returns.map(({ length }) => new Float64Array(length));
  for (let k = 0; k <= history; k++) {
    const weight = (k + 1) ** alpha;
    for (const group of groupByContext(anchors, k)) {
      if (group.length < 2) continue;
      const relative = groupAdvantage(
        Float64Array.from(group, ({ trajectory, decision }) => returns[trajectory]![decision]!),
        { std },
      );
      for (const [j, { trajectory, decision }] of group.entries()) {
        sums[trajectory]![decision]! += weight * relative[j]!;
        totals[trajectory]![decision]! += weight;
      }
    }
  }
  return sums.map((row, i) => row.map((sum, d) => (totals[i]![d] === 0 ? 0 : sum / totals[i]![d]!)));
}

/** Decision of a trajectory. */
interface Place {
  readonly trajectory: number;
  readonly decision: number;
}

/** Groups decisions by their state and the k states before it; those with fewer before them are in no group. */
function groupByContext(anchors: readonly (readonly string[])[], k: number): Iterable<readonly Place[]> {
  const places = new Map<string, Place[]>();
  for (const [trajectory, names] of anchors.entries()) {
    for (let decision = k; decision < names.length; decision++) {
      const context = JSON.stringify(names.slice(decision - k, decision + 1));
      const group = places.get(context);
      if (group) group.push({ trajectory, decision });
      else places.set(context, [{ trajectory, decision }]);
    }
  }
  return places.values();
}
