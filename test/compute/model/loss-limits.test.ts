/** The surrogate and the KL where log-ratios are beyond what single precision can raise to a power, by hand. */
import { expect, it } from 'vitest';
import { interpret } from '../../../src/compute/engine/reference.ts';
import { lossCoefficients, policyLoss } from '../../../src/compute/model/loss.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import type { NdArray } from '../../../src/compute/tensor/ndarray.ts';
import { input } from '../../../src/compute/tensor/tensor.ts';

const logprob = input('logprob', ['N']);
const { loss, stats } = policyLoss({ logprob, entropy: input('entropy', ['N']), value: undefined }, ['N']);
const graph = defineGraph({ loss, ...stats, slope: gradients(loss, [logprob])[0]! });

/** Loss, statistics and slope of one decision. */
function lossAt(decision: { readonly oldLogprob: number; readonly referenceLogprob: number }, klCoef3: number) {
  const fed = { logprob: 0, entropy: 0, advantage: -1, weight: 1, ...decision };
  const coefficients = { clipLow: 0.2, clipHigh: 0.2, klCoef3 } as Record<string, number>;
  const feeds = new Map<string, NdArray>([
    ...lossCoefficients.map(
      (name) => [`loss.${name}`, { shape: [], data: Float64Array.of(coefficients[name] ?? 0) }] as const,
    ),
    ...Object.entries(fed).map(([name, value]) => {
      const own = name === 'logprob' || name === 'entropy' ? name : `decisions.${name}`;
      return [own, { shape: [1], data: Float64Array.of(value) }] as const;
    }),
  ]);
  const out = interpret(graph, feeds, new Map([['N', 1]]));
  return (name: string) => out.get(name)!.data[0]!;
}

it('a bad action grown likelier is pushed back by its ratio, up to e^20 and there with no slope', () => {
  const within = lossAt({ oldLogprob: -19, referenceLogprob: 0 }, 0);
  expect(within('policyLoss')).toBeCloseTo(Math.exp(19), 0);
  expect(within('slope')).toBeCloseTo(Math.exp(19), 0);
  const beyond = lossAt({ oldLogprob: -200, referenceLogprob: 0 }, 0);
  expect(beyond('policyLoss')).toBeCloseTo(Math.exp(20), 0);
  expect(beyond('slope')).toBe(0);
});

it('k3 grows as e^−x, up to e^20 − 21 and there with no slope', () => {
  const within = lossAt({ oldLogprob: 0, referenceLogprob: 19 }, 1);
  expect(within('klReference')).toBeCloseTo(Math.exp(19) - 20, 0);
  expect(within('slope')).toBeCloseTo(1 + 1 - Math.exp(19), 0); // −A·r is 1 here; k3′ = 1 − e^−x
  const beyond = lossAt({ oldLogprob: 0, referenceLogprob: 500 }, 1);
  expect(beyond('klReference')).toBeCloseTo(Math.exp(20) - 21, 0);
  expect(beyond('slope')).toBe(1);
});
