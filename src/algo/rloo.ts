import { z } from 'zod';
import { UserError } from '../core/errors.ts';
import { commonShape, credit, type Estimator, groupRelative } from './estimator.ts';
import { isConstant } from './group-advantage.ts';

export const rlooSchema = z.strictObject({ algorithm: z.literal('rloo'), ...commonShape, credit });
/** RLOO: scores against the mean of the others in their group. */
export type RlooConfig = z.infer<typeof rlooSchema>;
/** Estimator of RLOO. */
export const rloo: Estimator<RlooConfig> = groupRelative(
  {
    title: 'RLOO',
    papers: ['2402.14740'],
    summary: 'R − mean of the others of the group.',
    use: 'Small groups: the baseline is unbiased from two episodes on.',
  },
  (scores) => leaveOneOut(scores),
);

/**
 * REINFORCE leave-one-out: each trajectory against the mean of the others.
 *
 *   Aᵢ = Rᵢ − 1/(n − 1) · Σ_{j≠i} Rⱼ  =  n/(n − 1) · (Rᵢ − mean(R))
 *
 * The baseline does not depend on trajectory i, so the gradient stays unbiased at any n ≥ 2. Equal scores give
 * exactly 0.
 *
 * @param scores [n] one score per trajectory of the group
 * @returns      [n] advantages
 * @throws {UserError} BAD_ARGUMENT for a group of one, which has nothing to be compared with
 * @see Kool et al. 2019, https://openreview.net/forum?id=r1lgTGL5DE; Ahmadian et al. 2024, https://arxiv.org/abs/2402.14740
 */
export function leaveOneOut(scores: ArrayLike<number>): Float64Array {
  const n = scores.length;
  if (n === 1) throw new UserError('BAD_ARGUMENT', 'rloo: needs groups of at least 2 trajectories, got a group of 1');
  const advantages = new Float64Array(n);
  if (isConstant(scores)) return advantages;
  let total = 0;
  for (let i = 0; i < n; i++) total += scores[i]!;
  for (let i = 0; i < n; i++) advantages[i] = scores[i]! - (total - scores[i]!) / (n - 1);
  return advantages;
}
