import fc from 'fast-check';
import { expect, it } from 'vitest';
import { smallModel } from '../../src/compute/model/config.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import { fitCache } from '../../src/policy/cache-room.ts';
import { KvCache } from '../../src/policy/kv-cache.ts';

const model = smallModel(100, { layers: 2, hiddenSize: 32, heads: 4, kvHeads: 2, maxPositions: 1024 });
/** MiB of one episode: 2 layers · 2 heads · 8 numbers · keys and values · 4 bytes · 1024 tokens. */
const ONE = (2 * 2 * 8 * 2 * 4 * 1024) / 2 ** 20;

function configOf(rollout: object, cacheMb?: number, episodesPerTask = 2) {
  return checkRunConfig(
    {
      env: { id: 'textcraft' },
      horizon: { type: 'fixed', rounds: 3 },
      stop: { updates: 1 },
      policy: cacheMb === undefined ? {} : { cacheMb },
      evaluation: { episodesPerTask },
      rollout,
    },
    'test',
  );
}

it('counts keys and values of every layer and head, in single precision', () => {
  expect(KvCache.countMaxBytes(model, 3, 8)).toBe(3 * 8 * ONE * 2 ** 20);
});

it('never lets more episodes run than fit when each is as long as the model reads, and as many as do', () => {
  const sizes = fc.record({
    groupSize: fc.integer({ min: 2, max: 8 }),
    concurrentGroups: fc.integer({ min: 1, max: 20 }),
    maxBatch: fc.integer({ min: 8, max: 64 }),
  });
  let lowered = 0;
  fc.assert(
    fc.property(
      sizes,
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 8, max: 40 }),
      (rollout, evaluated, cacheMb) => {
        const members = Math.max(rollout.groupSize, evaluated);
        fc.pre(members * ONE <= cacheMb);
        const { config, notice } = fitCache(configOf(rollout, cacheMb, evaluated), model);
        const { concurrentGroups, maxBatch } = config.rollout;
        expect(concurrentGroups * members * ONE <= cacheMb || concurrentGroups === rollout.concurrentGroups).toBe(true);
        const next = (concurrentGroups + 1) * members * ONE;
        expect(concurrentGroups === rollout.concurrentGroups || next > cacheMb).toBe(true);
        expect(maxBatch).toBeGreaterThanOrEqual(Math.min(rollout.maxBatch, members));
        expect(notice !== undefined).toBe(concurrentGroups < rollout.concurrentGroups);
        if (notice) lowered++;
      },
    ),
  );
  expect(lowered).toBeGreaterThan(5);
});

it('changes nothing where no limit is given, and refuses in one line where not even one group fits', () => {
  const free = configOf({ groupSize: 8 });
  expect(fitCache(free, model)).toEqual({ config: free, notice: undefined });
  const large = { ...model, maxPositions: 8192 };
  expect(() => fitCache(configOf({ groupSize: 8 }, 8), large)).toThrow(
    /^policy\.cacheMb: a group of 8 episodes of 8192 tokens takes 16 MiB, got 8; raise it/,
  );
});
