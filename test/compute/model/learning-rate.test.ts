import { describe, expect, it } from 'vitest';
import { smallModel } from '../../../src/compute/model/config.ts';
import { type LearningRate, learningRate } from '../../../src/compute/model/optimizer.ts';
import { trainerOptions } from '../../../src/learning/learner/options.ts';
import { toyConfig } from '../../support/toy-run.ts';

const rate = { peak: 0.8, warmupSteps: 4, final: 0.25 } as const;

describe('the learning rate', () => {
  it.each<readonly [LearningRate['decay'], number, number, number]>([
    // warm-up: 1/4, 2/4, 3/4 of the peak at progress 0
    ['none', 0, 0, 0.2],
    ['linear', 1, 0, 0.4],
    ['cosine', 2, 0, 0.6],
    ['linear', 3, 0, 0.8],
    // then from the peak to a quarter of it
    ['none', 9, 1, 0.8],
    ['linear', 9, 0.5, 0.5],
    ['linear', 9, 1, 0.2],
    ['cosine', 9, 0.5, 0.5],
    ['cosine', 9, 1 / 3, 0.8 * (0.25 + 0.75 * 0.75)], // (1 + cos 60°)/2 = 0.75
    ['cosine', 9, 1, 0.2],
    // out of range: as at the ends
    ['linear', 9, 2, 0.2],
    ['linear', 9, -1, 0.8],
  ])('with decay %s at step %d, %d of the run done, is %d', (decay, step, progress, expected) => {
    expect(learningRate({ ...rate, decay }, step, progress)).toBeCloseTo(expected, 12);
  });

  it('ends at the share that the configuration names', () => {
    const config = toyConfig('chain', { learner: { learningRate: 0.4, finalRate: 0.1, decay: 'linear' } });
    const { learningRate: options } = trainerOptions(config, smallModel(30));
    expect(learningRate(options, 1000, 1)).toBeCloseTo(0.04, 12);
  });
});
