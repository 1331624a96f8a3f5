/** The weight of the KL to the reference policy, update after update, against Ziegler et al. 2019, §2.2, by hand. */
import { expect, it } from 'vitest';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { smallModel } from '../../../src/compute/model/config.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { initialParams } from '../../../src/compute/model/parameters.ts';
import { Trainer, type TrainerOptions } from '../../../src/learning/learner/trainer.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { view } from '../../support/toy-worlds.ts';

const codec = new ViewCodec(view);
const model = smallModel(codec.vocabSize, { hiddenSize: 8, layers: 1, maxPositions: 64, valueHead: false });

function options(inPlace: 'loss' | 'reward', target: number): TrainerOptions {
  return {
    model,
    codec,
    decoder: 'choice',
    estimator: {
      algorithm: 'reinforce_pp',
      baseline: 'none',
      gamma: 1,
      truncation: 'terminal',
      aggregation: { type: 'token-mean' },
    },
    epochs: 1,
    minibatches: 1,
    coefficients: { clipLow: 0.2, clipHigh: 0.2, entropyCoef: 0, valueCoef: 0, valueClip: 1 },
    offPolicy: { type: 'ratio' },
    kl: { in: inPlace, estimator: 'k3', control: { type: 'adaptive', coefficient: 0.5, target, window: 20 } },
    learningRate: { peak: 0.01, warmupSteps: 1, decay: 'none', final: 1 },
    maxGradNorm: 1,
    adamW: defaultAdamW,
    filterGroups: false,
    seed: 1,
  };
}

it.each(['loss', 'reward'] as const)(
  'β in the %s moves by the clipped error, by share of the window, every update',
  async (inPlace) => {
    const groups = toyGroups({
      world: 'chain',
      codec,
      decoder: 'choice',
      groups: 2,
      size: 4,
      horizon: 6,
      seed: 3,
    });
    // 8 of 20 episodes: an error that is clipped to ±0.2 moves β by 8 % of itself.
    for (const [target, factor] of [
      [1e-9, 1.08],
      [1e9, 0.92],
    ] as const) {
      const trainer = await Trainer.create(await openEngine({ name: 'reference' }), options(inPlace, target), {
        params: initialParams(model, 1),
      });
      const used: number[] = [];
      for (let update = 0; update < 3; update++) {
        const { stats, broken } = await trainer.update(groups, 0);
        expect(broken).toBeUndefined();
        used.push(stats.klCoefficient!);
      }
      used.forEach((beta, k) => {
        expect(beta).toBeCloseTo(0.5 * factor ** k, 12);
      });
      expect(trainer.state.kl!.coefficient).toBeCloseTo(0.5 * factor ** 3, 12);
      await trainer.dispose();
    }
  },
);
