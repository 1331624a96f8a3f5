import { z } from 'zod';
import { ShapeError } from '../core/errors.ts';
import { broadcast, commonShape, type Estimator, estimatorDefaults, std } from './estimator.ts';
import { groupAdvantage } from './group-advantage.ts';

export const gigpoSchema = z.strictObject({ algorithm: z.literal('gigpo'), ...commonShape, std });

/** GiGPO: advantages over episodes, and over turns in the same state. */
export interface GigpoConfig extends z.infer<typeof gigpoSchema> {
  /** Weight ω of the step-level advantage, ≥ 0. Default 1, the paper's. */
  readonly stepWeight?: number | undefined;
}

/** Estimator of GiGPO; its episodes are compared by undiscounted sums. */
export const gigpo: Estimator<GigpoConfig> = {
  ...estimatorDefaults,
  facts: {
    title: 'GiGPO',
    papers: ['2505.10978'],
    summary: 'GRPO over episodes, plus GRPO over the turns of a group that were taken in the same state.',
    use: 'Long episodes that come back to the same states.',
  },
  needsGroup: true,
  needsAnchors: true,
  score: ({ total }) => total,
  advantages(group, config, anchorOf) {
    const { stepWeight = 1 } = config;
    const returns = group.map((row) => row.returns);
    const anchors = group.map(({ trajectory, columns }) => Array.from(columns.turns, (t) => anchorOf(trajectory, t)));
    const steps = stepAdvantage(returns, anchors, config);
    const scores = Float64Array.from(group, ({ total }) => total);
    return broadcast(group, groupAdvantage(scores, config)).map((A, i) =>
      A.map((a, d) => a + stepWeight * steps[i]![d]!),
    );
  },
  check: ({ stepWeight = 1 }, need) => need(stepWeight >= 0, 'stepWeight', 'a number ≥ 0', stepWeight),
};

/**
 * Step-level advantage of GiGPO: decisions of one group that were taken in the same *anchor state* are compared with
 * each other, whichever trajectory and turn they belong to.
 *
 *   A^S(d) = (G(d) − mean(G over the anchor's decisions)) / F      F = std + ε, or 1
 *
 * The full advantage is A^E + ω·A^S with GRPO's trajectory-level A^E; `gigpo` adds them up. As in the paper,
 * A^E compares undiscounted sums of rewards and A^S discounted rewards-to-go, so γ distinguishes steps, never whole
 * trajectories. A state visited once has nothing to be compared with: A^S = 0.
 *
 * @param returns per trajectory [D] discounted rewards-to-go
 * @param anchors per trajectory [D] name of the state each decision was taken in; equal names, equal state
 * @param std     divide by the sample's standard deviation, as for GRPO
 * @returns       per trajectory [D]
 * @throws {ShapeError} if the shapes differ
 * @see Feng et al. 2025 (GiGPO), §4.1–4.3. https://arxiv.org/abs/2505.10978
 */
export function stepAdvantage(
  returns: readonly Float64Array[],
  anchors: readonly (readonly string[])[],
  { std }: { readonly std: boolean },
): Float64Array[] {
  const places = new Map<string, { readonly trajectory: number; readonly decision: number }[]>();
  for (const [i, row] of returns.entries()) {
    const names = anchors[i];
    if (names?.length !== row.length) {
      throw new ShapeError(`stepAdvantage: anchors[${i}] must be [${row.length}], got [${names?.length}]`);
    }
    for (const [d, name] of names.entries()) {
      const place = { trajectory: i, decision: d };
      const group = places.get(name);
      if (group) group.push(place);
      else places.set(name, [place]);
    }
  }
  const advantages = returns.map(({ length }) => new Float64Array(length));
  for (const group of places.values()) {
    const relative = groupAdvantage(
      Float64Array.from(group, (at) => returns[at.trajectory]![at.decision]!),
      { std },
    );
    for (const [k, at] of group.entries()) advantages[at.trajectory]![at.decision] = relative[k]!;
  }
  return advantages;
}
