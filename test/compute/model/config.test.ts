/** The model's configuration: what cannot be is named. */
import { describe, expect, it } from 'vitest';
import { checkModelConfig, smallModel } from '../../../src/compute/model/config.ts';

describe('a model configuration', () => {
  it.each([
    [{ layers: 0 }, 'model.layers: expected a positive integer, got 0'],
    [{ hiddenSize: 48, heads: 5, kvHeads: 5 }, 'model.heads: hiddenSize 48 must split into 5 heads of even width'],
    [{ heads: 4, kvHeads: 3 }, 'model.kvHeads: 3 must divide heads 4'],
    [
      { heads: 1, kvHeads: 1, sameTokenBias: 3, sameLineBias: { bias: 3, newline: 5 } },
      'model.heads: sameTokenBias and sameLineBias take a head each; expected at least 2, got 1',
    ],
  ])('%o is refused by name', (given, message) => {
    expect(() => checkModelConfig(smallModel(30, given))).toThrow(message);
  });

  it('takes one of the two biases on a single head', () => {
    checkModelConfig(smallModel(30, { heads: 1, kvHeads: 1, sameLineBias: { bias: 3, newline: 5 } }));
  });
});
