/**
 * Replicas: passes shared with other threads give the very sums of one engine, in any order of completion, and none is
 * left running.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine, HostTensor, Program } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { smallModel } from '../../../src/compute/model/config.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { initialParams } from '../../../src/compute/model/parameters.ts';
import { sumPasses } from '../../../src/learning/learner/micro-batches.ts';
import { Replica } from '../../../src/learning/learner/replica.ts';
import { Trainer, type TrainerOptions } from '../../../src/learning/learner/trainer.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { view } from '../../support/toy-worlds.ts';

type Feeds = Readonly<Record<string, HostTensor>>;
const scalar = (value: number): HostTensor => ({ dtype: 'f32', shape: [], data: Float32Array.of(value) });

/** Program of a test: adds its two feeds, and ends on a signal. */
function standIn(whenDone: (value: number) => Promise<unknown>) {
  const runs: number[] = [];
  const held: Feeds[] = [];
  const run = async (feeds: Feeds): Promise<Feeds> => {
    const value = feeds.x!.data[0]!;
    runs.push(value);
    await whenDone(value);
    return { y: scalar(Math.fround(Math.fround(value) + (held.at(-1)?.w ?? feeds.w)!.data[0]!)) };
  };
  const program = { run: async (feeds: Feeds) => run(feeds) } as unknown as Program;
  return { program, replica: { hold: (feeds: Feeds) => void held.push(feeds), run }, runs };
}

describe('sums over passes', () => {
  it('are those of one engine, to the bit, in whatever order replicas are through', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.float({ noNaN: true, min: -1e6, max: 1e6 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 0, max: 3 }),
        fc.scheduler(),
        async (values, count, scheduler) => {
          const passes = values.map((value) => () => ({ x: scalar(value) }));
          const alone = await sumPasses(
            { program: standIn(async () => {}).program, replicas: [] },
            { w: scalar(3) },
            passes,
          );
          const own = standIn((value) => scheduler.schedule(Promise.resolve(), `own ${value}`));
          const others = Array.from({ length: count }, (_, i) =>
            standIn((value) => scheduler.schedule(Promise.resolve(), `replica ${i} ${value}`)),
          );
          const shared = sumPasses(
            { program: own.program, replicas: others.map(({ replica }) => replica) },
            { w: scalar(3) },
            passes,
          );
          const sums = await scheduler.waitFor(shared);
          expect(sums).toEqual(alone);
          const ran = [own, ...others].flatMap(({ runs }) => runs);
          const sorted = (all: readonly number[]) => all.map((x) => (Object.is(x, -0) ? '-0' : String(x))).sort();
          expect(sorted(ran)).toEqual(sorted(values));
        },
      ),
      { numRuns: 200 },
    );
  });

  it('fail with the first failure once nothing runs any more, and begin no further pass', async () => {
    let through = 0;
    const slow = standIn(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      through++;
    });
    const failing = standIn(async () => {
      throw new Error('no room');
    });
    const passes = Array.from({ length: 40 }, (_, i) => () => ({ x: scalar(i) }));
    const sums = sumPasses(
      { program: slow.program, replicas: [failing.replica, slow.replica] },
      { w: scalar(0) },
      passes,
    );
    await expect(sums).rejects.toThrow('no room');
    expect(through).toBe(slow.runs.length);
    expect(slow.runs.length + failing.runs.length).toBeLessThan(10);
  });
});

const codec = new ViewCodec(view);
const model = smallModel(codec.vocabSize, { hiddenSize: 8, layers: 1, maxPositions: 64, valueHead: true });
const options: TrainerOptions = {
  model,
  codec,
  decoder: 'choice',
  estimator: {
    algorithm: 'ppo',
    lambda: 0.9,
    whiten: false,
    gamma: 0.9,
    truncation: 'terminal',
    aggregation: { type: 'token-mean' },
  },
  epochs: 2,
  minibatches: 2,
  maxTokens: 40,
  coefficients: { clipLow: 0.2, clipHigh: 0.28, entropyCoef: 0.01, valueCoef: 0.5, valueClip: 1 },
  offPolicy: { type: 'ratio' },
  learningRate: { peak: 0.01, warmupSteps: 3, decay: 'none', final: 1 },
  maxGradNorm: 1,
  adamW: defaultAdamW,
  filterGroups: false,
  seed: 1,
};
const groups = toyGroups({ world: 'chain', codec, decoder: 'choice', size: 4, horizon: 6, seed: 9, groups: 6 });

describe('a learner with replicas', () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  });
  afterAll(() => engine.dispose());

  // Nine layers are trained layer by layer, in every thread.
  it.each([1, 9])(
    'learns the same to the bit as one without, %i layers',
    async (layers) => {
      const model = { ...options.model, layers };
      const learnt = async (replicas: number, maxTokens = options.maxTokens) => {
        const own = { ...options, model, replicas, maxTokens };
        const trainer = await Trainer.create(engine, own, { params: initialParams(model, 1) });
        for (let update = 0; update < 3; update++) {
          const { broken, optimizerSteps } = await trainer.update(groups, 0);
          expect([broken, optimizerSteps]).toEqual([undefined, 4]);
        }
        await trainer.dispose();
        return trainer.params.values;
      };
      const alone = await learnt(1);
      expect(alone).not.toEqual(initialParams(model, 1).values);
      for (const replicas of [2, 3]) expect(await learnt(replicas)).toEqual(alone);
    },
    60_000,
  );

  it('takes a minibatch in one pass where no bound is set, layer by layer too', async () => {
    const deep = { ...options, model: { ...model, layers: 9 } };
    const stats: Readonly<Record<string, number>>[] = [];
    for (const maxTokens of [undefined, 1e6]) {
      const params = initialParams(deep.model, 1);
      const trainer = await Trainer.create(engine, { ...deep, epochs: 1, minibatches: 1, maxTokens }, { params });
      const result = await trainer.update(groups, 0);
      expect([result.broken, result.optimizerSteps]).toEqual([undefined, 1]);
      expect(trainer.params.values).not.toEqual(params.values);
      stats.push(result.stats);
      await trainer.dispose();
    }
    const [inOne, bounded] = stats as [(typeof stats)[0], (typeof stats)[0]];
    expect(Object.keys(inOne)).toContain('gradNorm');
    // Weights whose gradient is all but 0 differ more: Adam makes steps of one size of any gradient.
    for (const [name, value] of Object.entries(bounded)) expect(inOne[name], name).toBeCloseTo(value, 5);
  }, 60_000);

  it('reports what a replica could not compute, and the replica ends after its runs', async () => {
    const program = { engine: { name: 'onnxruntime-node', threads: 1 }, model } as const;
    const replica = await Replica.open({ ...program, options: { decoder: 'choice', objective: 'policy' } });
    const runs = [replica.run({}), replica.run({})];
    const failed = Promise.all(runs.map((run) => expect(run).rejects.toThrow(/input '.*': expected .*, got nothing/)));
    await replica.dispose();
    await failed;
    await expect(replica.run({})).rejects.toThrow(/a replica of the learner has ended/);
    await replica.dispose();
    const wrong = { ...program, engine: { name: 'onnxruntime-node', threads: 0 } } as const;
    await expect(Replica.open({ ...wrong, options: { decoder: 'choice', objective: 'policy' } })).rejects.toThrow(
      /a replica of the learner: .*threads must be an integer of at least 1, got 0/,
    );
  }, 60_000);
});
