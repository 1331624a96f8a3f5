/** Options of a trainer over a toy world, as tests of the learner begin with them. */

import { smallModel } from '../../src/compute/model/config.ts';
import { defaultAdamW } from '../../src/compute/model/optimizer.ts';
import type { TrainerOptions } from '../../src/learning/learner/trainer.ts';

/** GRPO over whole episodes, one pass and one step an update. Advantages of a group depend on it alone. */
export function trainerOptions({
  codec,
  decoder,
  ...change
}: Pick<TrainerOptions, 'codec' | 'decoder'> & Partial<TrainerOptions>): TrainerOptions {
  const size = { hiddenSize: 8, layers: 1, maxPositions: 64, valueHead: false };
  return {
    model: smallModel(codec.vocabSize, { ...size, choiceHead: decoder === 'choice' }),
    codec,
    decoder,
    estimator: {
      algorithm: 'grpo',
      std: true,
      credit: 'trajectory',
      gamma: 0.9,
      truncation: 'terminal',
      aggregation: { type: 'token-mean' },
    },
    epochs: 1,
    minibatches: 1,
    coefficients: { clipLow: 0.2, clipHigh: 0.2, entropyCoef: 0, valueCoef: 0, valueClip: 1 },
    offPolicy: { type: 'ratio' },
    learningRate: { peak: 0.01, warmupSteps: 0, decay: 'none', final: 1 },
    maxGradNorm: 1e9,
    adamW: defaultAdamW,
    filterGroups: true,
    seed: 1,
    ...change,
  };
}
