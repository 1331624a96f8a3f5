/** Policy losses of the tensor graph over single tokens, for twins to be compared with. */
import { type PolicyLossConfig, policyLossNumbers } from '../../src/algo/policy-loss.ts';
import { interpret } from '../../src/compute/engine/reference.ts';
import { policyLoss } from '../../src/compute/model/loss.ts';
import { gradients } from '../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../src/compute/tensor/graph.ts';
import type { NdArray } from '../../src/compute/tensor/ndarray.ts';
import { input } from '../../src/compute/tensor/tensor.ts';

/** Tokens of a batch; `sequence` numbers what they belong to, in order. */
export interface LossBatch {
  readonly logprob: readonly number[];
  readonly old: readonly number[];
  readonly advantage: readonly number[];
  readonly weight: readonly number[];
  readonly sequence: readonly number[];
}

const none = { entropyCoef: 0, klCoef1: 0, klCoef2: 0, klCoef3: 0 };

/** Value, slopes by each log-probability, and statistics of the graph. */
export function computePolicyLoss(batch: LossBatch, config: PolicyLossConfig, clip = { clipLow: 0.2, clipHigh: 0.28 }) {
  const logprob = input('logprob', ['N']);
  const terms = { logprob, entropy: input('entropy', ['N']), value: undefined };
  const { loss, stats } = policyLoss(terms, ['N'], config.type);
  const graph = defineGraph({ loss, ...stats, slope: gradients(loss, [logprob])[0]! });
  const N = batch.logprob.length;
  const row = (values: readonly number[]): NdArray => ({ shape: [N], data: Float64Array.from(values) });
  const lengths = batch.sequence.map((s) => batch.sequence.filter((other) => other === s).length);
  const feeds = new Map<string, NdArray>([
    ['logprob', row(batch.logprob)],
    ['entropy', row(batch.logprob.map(() => 0))],
    ['decisions.oldLogprob', row(batch.old)],
    ['decisions.referenceLogprob', row(batch.old)],
    ['decisions.advantage', row(batch.advantage)],
    ['decisions.weight', row(batch.weight)],
    ['decisions.sequence', row(batch.sequence.map((s) => batch.sequence.indexOf(s)))],
    ['decisions.sequenceShare', row(lengths.map((length) => 1 / length))],
    ...Object.entries({ ...none, ...clip, ...policyLossNumbers(config) }).map(
      ([name, value]) => [`loss.${name}`, { shape: [], data: Float64Array.of(value) }] as [string, NdArray],
    ),
  ]);
  const out = interpret(graph, feeds, new Map([['N', N]]));
  return {
    loss: out.get('loss')!.data[0]!,
    slopes: Array.from(out.get('slope')!.data),
    clipFraction: out.get('clipFraction')?.data[0],
  };
}

/** Central differences of a function of all log-probabilities, in float64. */
export function slopesOf(f: (x: readonly number[]) => number, at: readonly number[]): number[] {
  const h = 1e-6;
  return at.map((x, i) => (f(at.with(i, x + h)) - f(at.with(i, x - h))) / (2 * h));
}
