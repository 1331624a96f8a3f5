import { deepStrictEqual } from 'node:assert/strict';
import { it } from 'vitest';
import { compareFigures } from '../../experiments/bench/against.ts';
import type { Figure } from '../../experiments/bench/contract.ts';

const figure = (value: number, reference: number, name = 'rollout'): Figure => ({
  name,
  value,
  unit: 'tokens/s',
  reference: { name: 'bare', value: reference },
});

it('figures of two builds are compared pair by pair, and so are their ratios to a reference', () => {
  const pairs = [
    { here: [figure(90, 100)], there: [figure(60, 120)] },
    { here: [figure(80, 100)], there: [figure(20, 80)] },
    { here: [figure(50, 100)], there: [figure(25, 50)] },
  ];
  deepStrictEqual(compareFigures(pairs), [
    {
      name: 'rollout (of bare)',
      unit: 'tokens/s',
      here: 80,
      there: 25,
      ratio: 2,
      toReference: { here: 0.8, there: 0.5, ratio: 1.8 },
    },
  ]);
});

it('a figure that only one of the builds reports is left out', () => {
  const alone: Figure = { name: 'turns', value: 1, unit: 'turns' };
  deepStrictEqual(compareFigures([{ here: [alone, figure(1, 1, 'new')], there: [{ ...alone, value: 2 }] }]), [
    { name: 'turns', unit: 'turns', here: 1, there: 2, ratio: 0.5 },
  ]);
});
