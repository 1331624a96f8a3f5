/** Epochs and minibatches: what one update of many steps is made of. */
import { describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { smallModel } from '../../../src/compute/model/config.ts';
import { initialParams } from '../../../src/compute/model/parameters.ts';
import type { Group } from '../../../src/core/trajectory.ts';
import { Trainer, type TrainerOptions } from '../../../src/learning/learner/trainer.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { view } from '../../support/toy-worlds.ts';
import { trainerOptions } from '../../support/trainer-options.ts';

const codec = new ViewCodec(view);
const model = smallModel(codec.vocabSize, { hiddenSize: 8, layers: 1, maxPositions: 64, valueHead: false });
const options = trainerOptions({
  model,
  codec,
  decoder: 'choice',
  coefficients: { clipLow: 0.2, clipHigh: 0.28, entropyCoef: 0.01, valueCoef: 0, valueClip: 1 },
  learningRate: { peak: 0.01, warmupSteps: 3, decay: 'none', final: 1 },
  maxGradNorm: 1,
});
const made = { world: 'chain', codec, decoder: 'choice', size: 4, horizon: 6, seed: 9 } as const;
const NONE = new Int32Array(0);
const groups = toyGroups({ ...made, groups: 3 });

/** Weights, in hex, after one update per batch. */
async function weightsAfter(
  change: Partial<TrainerOptions>,
  batches: readonly (readonly Group[])[],
  version = 0,
): Promise<string> {
  const engine = await openEngine({ name: 'reference' });
  const trainer = await Trainer.create(
    engine,
    { ...options, ...change },
    { params: { ...initialParams(model, 1), version } },
  );
  let steps = 0;
  for (const batch of batches) {
    const { broken, optimizerSteps } = await trainer.update(batch, 0);
    expect(broken).toBeUndefined();
    steps += optimizerSteps;
  }
  expect(trainer.moments.steps).toBe(steps);
  const hex = Object.values(trainer.params.values).map((v) =>
    Buffer.from(v.buffer, v.byteOffset, v.byteLength).toString('hex'),
  );
  return `${steps} ${hex.join('')}`;
}

const orders = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
];

describe('an update of several steps', () => {
  it('over three minibatches is three updates of one group each, in an order that the seed gives', async () => {
    const whole = await weightsAfter({ minibatches: 3 }, [groups]);
    const inParts = await Promise.all(
      orders.map((order) =>
        weightsAfter(
          {},
          order.map((i) => [groups[i]!]),
        ),
      ),
    );
    expect(inParts).toContain(whole);
    expect(new Set(inParts).size).toBe(orders.length);
    expect(await weightsAfter({ minibatches: 3 }, [groups])).toBe(whole);
    const seeds = await Promise.all([2, 3, 4, 5].map((seed) => weightsAfter({ minibatches: 3, seed }, [groups])));
    expect(new Set([whole, ...seeds]).size).toBeGreaterThan(1);
    for (const one of seeds) expect(inParts).toContain(one);
  }, 60_000);

  it('takes them in another order in another update', async () => {
    const later = await Promise.all(
      [0, 1, 2, 3, 4].map((version) => weightsAfter({ minibatches: 3 }, [groups], version)),
    );
    expect(new Set(later).size).toBeGreaterThan(1);
  }, 60_000);

  it('reads every group’s prompt once and all that its members read after it, in every epoch', async () => {
    const trainer = await Trainer.create(
      await openEngine({ name: 'reference' }),
      { ...options, epochs: 2 },
      { params: initialParams(model, 1) },
    );
    const { tokens, filtered } = await trainer.update(groups, 0);
    expect(filtered).toEqual([]);
    let read = 0;
    for (const { trajectories } of groups) {
      const prompt = codec.open({ observation: trajectories[0]!.turns[0]!.observation, actions: NONE, newActions: [] });
      read += prompt.prompt.tokens.length;
      for (const { turns } of trajectories) {
        for (const { decision } of turns) read += decision!.context.length;
        read -= prompt.prompt.tokens.length; // in the first context of each
      }
    }
    expect(tokens).toBe(2 * read);
  });

  it('of two epochs is two updates of the same groups: the ratio stays the one to the behaviour', async () => {
    expect(await weightsAfter({ epochs: 2 }, [groups])).toBe(await weightsAfter({}, [groups, groups]));
  }, 30_000);

  it('uses every group in every epoch, also where minibatches do not divide them', async () => {
    const two = await weightsAfter({ minibatches: 2, epochs: 2 }, [groups]);
    expect(two.startsWith('4 ')).toBe(true);
    const more = await weightsAfter({ minibatches: 9 }, [groups]);
    expect(more).toBe(await weightsAfter({ minibatches: 3 }, [groups])); // never an empty part
  }, 30_000);
});
