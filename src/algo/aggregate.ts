import { z } from 'zod';
import { ShapeError, UserError } from '../core/errors.ts';
import type { AlgorithmFacts } from './facts.ts';
import { count } from './ranges.ts';

/** Shape of an aggregation's configuration. */
export const aggregationSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('token-mean') }),
  z.strictObject({ type: z.literal('sequence-mean') }),
  z.strictObject({
    type: z.literal('constant'),
    tokens: count.describe("Tokens that a trajectory's loss is divided by."),
  }),
]);

/**
 * Aggregation of the losses of single tokens into one number:
 * - `token-mean`: every trained token of the batch counts the same (DAPO);
 * - `sequence-mean`: every trajectory counts the same, its tokens share it (GRPO);
 * - `constant`: every token counts 1/`tokens` of a trajectory, whatever the trajectory's own length (Dr. GRPO), so
 *   that no length is favoured. `tokens` is a fixed budget, e.g. the longest trajectory's number of trained tokens. The
 *   denominator is the same whatever is masked: trajectories with nothing trained count in it too.
 */
export type Aggregation = z.infer<typeof aggregationSchema>;

/** Facts of the aggregations. */
export const aggregationFacts: Readonly<Record<Aggregation['type'], AlgorithmFacts>> = {
  'token-mean': {
    title: 'Token mean (DAPO)',
    papers: ['2503.14476'],
    summary: 'Every trained token of the minibatch weighs the same.',
    use: 'The default: long episodes count by their length.',
  },
  'sequence-mean': {
    title: 'Mean over sequences of the mean over tokens (GRPO)',
    papers: ['2402.03300'],
    summary: 'Every episode weighs the same, its tokens share it.',
    use: 'Episodes of very different length, of which none should dominate; GSPO’s.',
  },
  constant: {
    title: 'Fixed length (Dr. GRPO); with tokens 1 the sum over tokens',
    papers: ['2503.20783'],
    summary: 'A token weighs 1/`tokens` of an episode, whatever the episode’s own length.',
    use: 'With dr_grpo: no length is favoured.',
  },
};

/**
 * Weight of each *token* of a decision in the loss, so that
 *
 *   L = Σ over decisions d · Σ over tokens k of d · weight(d) · ℓ(d, k)
 *
 * (a choice is one token). Untrained decisions weigh 0 and count nowhere; a trajectory with none trained counts as
 * none, but under `constant`. Weights refer to the trajectories passed: call it per minibatch, and each step sees a loss of the same scale.
 *
 * @param tokens  per trajectory [D] trained tokens of each decision
 * @param trained per trajectory [D], 1 or 0
 * @returns       per trajectory [D] weights ≥ 0
 * @throws {ShapeError} if the shapes differ
 * @throws {UserError} BAD_CONFIG if `constant` has no positive number of tokens
 * @see Yu et al. 2025 (DAPO), §3.3. https://arxiv.org/abs/2503.14476
 * @see Liu et al. 2025 (Dr. GRPO), §3. https://arxiv.org/abs/2503.20783
 */
export function aggregationWeights(
  tokens: readonly Int32Array[],
  trained: readonly Uint8Array[],
  aggregation: Aggregation,
): Float64Array[] {
  const lengths = tokens.map((row, i) => {
    if (trained[i]?.length !== row.length) {
      throw new ShapeError(`aggregate: trained[${i}] must be [${row.length}], got [${trained[i]?.length}]`);
    }
    let length = 0;
    for (const [d, count] of row.entries()) if (trained[i]![d] !== 0) length += count;
    return length;
  });
  const trajectories = lengths.filter((length) => length > 0).length;
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const share = (i: number): number => {
    if (aggregation.type === 'token-mean') return 1 / total;
    if (aggregation.type === 'sequence-mean') return 1 / (trajectories * lengths[i]!);
    return 1 / (tokens.length * aggregation.tokens);
  };
  if (aggregation.type === 'constant' && !(aggregation.tokens > 0)) {
    throw new UserError('BAD_CONFIG', `aggregation.tokens: expected a number > 0, got ${aggregation.tokens}`);
  }
  return tokens.map((row, i) => Float64Array.from(row, (_, d) => (trained[i]![d] === 0 ? 0 : share(i))));
}
