/** Whatever is not finite takes its whole update back: weights and moments are bit-identical, and the run goes on. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Engine } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { findBrokenRecord } from '../../../src/compute/finite.ts';
import { smallModel } from '../../../src/compute/model/config.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { initialParams } from '../../../src/compute/model/parameters.ts';
import type { Group, Turn } from '../../../src/core/trajectory.ts';
import { quarantine } from '../../../src/learning/learner/quarantine.ts';
import { Trainer, type TrainerOptions } from '../../../src/learning/learner/trainer.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { inFolder, type ToyRun, toyConfig, withToyRun } from '../../support/toy-run.ts';
import { view } from '../../support/toy-worlds.ts';

const codec = new ViewCodec(view);
const model = smallModel(codec.vocabSize, { hiddenSize: 8, layers: 1, maxPositions: 64 });
const options: TrainerOptions = {
  model,
  codec,
  decoder: 'choice',
  estimator: {
    algorithm: 'ppo',
    gamma: 1,
    lambda: 0.9,
    whiten: true,
    truncation: 'terminal',
    aggregation: { type: 'token-mean' },
  },
  epochs: 2,
  minibatches: 2,
  coefficients: { clipLow: 0.2, clipHigh: 0.2, entropyCoef: 0.01, valueCoef: 0.5, valueClip: 0.2 },
  offPolicy: { type: 'truncated', cap: 2, per: 'decision' },
  learningRate: { peak: 0.01, warmupSteps: 1, decay: 'none', final: 1 },
  maxGradNorm: 1,
  adamW: defaultAdamW,
  filterGroups: true,
  seed: 1,
};
const made = { world: 'chain', codec, decoder: 'choice', groups: 4, size: 3, horizon: 6 } as const;

/** The batch with one turn changed. */
function spoil(groups: readonly Group[], change: (turn: Turn) => Turn): Group[] {
  return groups.map((group, g) =>
    g === 1
      ? {
          ...group,
          trajectories: group.trajectories.map((one, i) =>
            i === 2 ? { ...one, turns: one.turns.map((turn, t) => (t === 0 ? change(turn) : turn)) } : one,
          ),
        }
      : group,
  );
}

/** An engine whose training program spoils one output of its `n`-th call. */
function poisoned(engine: Engine, output: string, value: number, n: number): Engine {
  return {
    ...engine,
    async compile(graph) {
      const program = await engine.compile(graph);
      let calls = 0;
      return {
        ...program,
        run: async (feeds) => {
          const out = await program.run(feeds);
          const tensor = out[output];
          if (tensor && ++calls === n) (tensor.data as Float32Array)[0] = value;
          return out;
        },
      };
    },
  };
}

const bits = (trainer: Trainer) => {
  const { params, moments } = trainer;
  const hex = (values: Readonly<Record<string, Float32Array>>) =>
    Object.entries(values).map(
      ([name, v]) => `${name} ${Buffer.from(v.buffer, v.byteOffset, v.byteLength).toString('hex')}`,
    );
  return [moments.steps, hex(params.values), hex(moments.m), hex(moments.v)];
};

describe('circuit breaker', () => {
  const records: Readonly<Record<string, [where: string, (turn: Turn) => Turn]>> = {
    'a NaN reward': ['reward', (turn) => ({ ...turn, reward: Number.NaN })],
    'an infinite reward': ['reward', (turn) => ({ ...turn, reward: Number.NEGATIVE_INFINITY })],
    'a reward whose advantage overflows': [
      'advantage',
      (turn) => ({ ...turn, reward: 1.7e308, decision: { ...turn.decision!, value: -1.7e308 } as never }),
    ],
    'a NaN behaviour log-probability': [
      'behaviour',
      (turn) => ({ ...turn, decision: { ...turn.decision!, kind: 'choice', choice: 0, logprob: Number.NaN } }),
    ],
    'a NaN value': ['behaviour', (turn) => ({ ...turn, decision: { ...turn.decision!, value: Number.NaN } as never })],
  };
  for (const [name, [where, change]] of Object.entries(records)) {
    it(`${name} takes the update back`, async () => {
      const trainer = await Trainer.create(await openEngine({ name: 'reference' }), options, {
        params: initialParams(model, 1),
      });
      const before = bits(trainer);
      const result = await trainer.update(spoil(toyGroups({ ...made, seed: 1 }), change), 0);
      expect(result.broken?.where).toBe(where);
      expect(bits(trainer)).toEqual(before);
      expect(trainer.params.version).toBe(1);
      const good = await trainer.update(toyGroups({ ...made, seed: 1 }), 0);
      expect(good.broken).toBeUndefined();
      expect(bits(trainer)).not.toEqual(before);
    });
  }

  // Two epochs of two minibatches: the first steps are good and must be taken back too.
  const outputs: readonly [where: string, output: string, value: number, call: number][] = [
    ['loss', 'loss', Number.NaN, 1],
    ['loss', 'policyLoss', Number.POSITIVE_INFINITY, 3],
    ['gradient', 'gradNorm', Number.NaN, 4],
    ['weights', 'w/model.norm.weight', Number.NaN, 2],
    ['weights', 'w/value_head.bias', Number.POSITIVE_INFINITY, 4],
    ['weights', 'v/model.norm.weight', Number.POSITIVE_INFINITY, 3],
    ['measurement', 'logprob', Number.NaN, 1],
  ];
  for (const [where, output, value, call] of outputs) {
    it(`${value} in ${output} of step ${call} takes the whole update back`, async () => {
      const engine = poisoned(await openEngine({ name: 'reference' }), output, value, call);
      const trainer = await Trainer.create(engine, options, { params: { ...initialParams(model, 1), version: 3 } });
      const before = bits(trainer);
      const result = await trainer.update(toyGroups({ ...made, seed: 1, version: 2 }), 0); // older: measured first
      expect(result.broken).toMatchObject({ where });
      expect(bits(trainer)).toEqual(before);
    });
  }

  it('looks at the log-probability of every token of a run', () => {
    const [group] = toyGroups({ ...made, decoder: 'tokens', seed: 1 });
    const spoilt = spoil([group!, group!], (turn) => {
      if (turn.decision?.kind !== 'tokens') throw new Error('expected a run of tokens');
      const logprobs = turn.decision.logprobs.map((logprob, i, all) => (i === all.length - 1 ? Number.NaN : logprob));
      return { ...turn, decision: { ...turn.decision, logprobs } };
    });
    expect(findBrokenRecord([group!])).toBeUndefined();
    expect(findBrokenRecord(spoilt)?.where).toBe('behaviour');
    expect(findBrokenRecord(spoilt)?.message).toMatch(/turn 0 is not finite/);
  });

  it('keeps the newest twenty batches in quarantine', async () => {
    await inFolder(async (dir) => {
      for (let update = 1; update <= 23; update++) quarantine(dir, update, { where: 'reward', message: '' }, []);
      const kept = readdirSync(dir).map((name) => Number.parseInt(name, 10));
      expect(kept.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i + 4));
    });
  });

  it('quarantines the batch readably', async () => {
    await inFolder(async (dir) => {
      const groups = spoil(toyGroups({ ...made, seed: 1 }), (turn) => ({ ...turn, reward: Number.NaN }));
      const path = quarantine(join(dir, 'quarantine'), 7, { where: 'reward', message: 'is NaN' }, groups);
      const [header, ...lines] = readFileSync(path, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(header).toMatchObject({ format: 'longplay-quarantine', update: 7, where: 'reward' });
      expect(lines).toHaveLength(12);
      expect(lines.filter(({ turns }) => turns[0].reward === 'NaN')).toHaveLength(1);
      expect(quarantine(path, 7, { where: 'reward', message: '' }, groups)).toMatch(/^nowhere \(E/);
    });
  }, 60_000);

  it('a rollback takes weights, moments and step count back, and goes on with a smaller step', async () => {
    const engine = await openEngine({ name: 'reference' });
    const batch = (seed: number) => toyGroups({ ...made, seed });
    const trainer = await Trainer.create(engine, options, { params: initialParams(model, 1) });
    await trainer.update(batch(1), 0);
    const good = { params: trainer.params, moments: trainer.moments };
    const before = bits(trainer);
    await trainer.update(batch(2), 0);
    trainer.rollBack(good.params.values, good.moments, 0.5);
    expect(bits(trainer)).toEqual(before);
    expect(trainer.params.version).toBe(2); // updates seen do not run back
    expect(trainer.state.rateScale).toBe(0.5);
    await trainer.update(batch(3), 0);

    const half = { ...options, learningRate: { ...options.learningRate, peak: 0.005 } };
    const params = { version: 2, values: good.params.values };
    const other = await Trainer.create(engine, half, { params, moments: good.moments });
    await other.update(batch(3), 0);
    expect(bits(trainer)).toEqual(bits(other));
  });

  it('a run goes on: three broken updates, then the last good weights with a smaller step, and it learns', async () => {
    await inFolder(async (dir) => {
      // The rate overflows single precision; the rollback makes it 0.01.
      const learner = { warmupSteps: 0 };
      const toy = toyConfig('memory', { learner, stop: { updates: 30 }, checkpoint: { everyUpdates: 1, keep: 40 } });
      const config = { ...toy, learner: { ...toy.learner, learningRate: 1e39 } }; // beyond what a configuration allows
      const trained = async ({ run, rows, notices }: ToyRun) => {
        await run.train();
        await run.save();
        return { rows, notices };
      };
      const limits = { breaker: { rollbackAfter: 3, shrink: 1e-41 } };
      const { rows, notices } = await withToyRun(config, dir, trained, { limits });
      expect(rows.map(({ skippedSteps }) => skippedSteps! > 0)).toEqual(rows.map((_, i) => i < 3));
      expect(rows.slice(0, 3).map(({ filteredGroups }) => filteredGroups)).toEqual([4, 4, 4]);
      expect(notices.slice(0, 3)).toEqual([
        expect.stringMatching(/^update 1 was taken back: not finite: .*quarantine\/1\.jsonl$/),
        expect.stringMatching(/^update 2 was taken back/),
        expect.stringMatching(/3 in a row: the weights of update 0 are restored, learning rate × 1e-41/),
      ]);
      expect(readFileSync(join(dir, 'quarantine', '3.jsonl'), 'utf8').split('\n')).toHaveLength(4 * 8 + 2);
      expect(rows.at(-1)!.success).toBeGreaterThan(0.9);
      expect(() => readFileSync(join(dir, 'checkpoints', '2', 'state.json'))).toThrow(/ENOENT/);
    });
  }, 60_000);
});
