/** Estimates of several worlds in one batch: each by its own γ and λ, whitened by itself where that is asked for. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { estimate, scores, type WorldEstimators } from '../../src/algo/advantages.ts';
import { isInformative } from '../../src/algo/dynamic-sampling.ts';
import { type EstimatorConfig, estimatorSchema } from '../../src/algo/estimators.ts';
import type { Group } from '../../src/core/trajectory.ts';
import { group } from '../support/trajectories.ts';

const ppo = (gamma: number, lambda: number, whiten = true): EstimatorConfig =>
  ({ ...estimatorSchema.parse({ algorithm: 'ppo', gamma, lambda }), whiten }) as EstimatorConfig;
const configs = { a: ppo(0.5, 0.25), b: ppo(0.9, 1) };
const swapped = { a: configs.b, b: configs.a };

const turn = fc.record({
  reward: fc.double({ min: 0, max: 1, noNaN: true }),
  value: fc.double({ min: -1, max: 1, noNaN: true }),
});
const episode = fc.record({ turns: fc.array(turn, { minLength: 2, maxLength: 4 }) });
const batch = fc
  .array(fc.tuple(fc.constantFrom('a', 'b'), fc.array(episode, { minLength: 1, maxLength: 2 })), {
    minLength: 2,
    maxLength: 6,
  })
  .filter((all) => new Set(all.map(([world]) => world)).size === 2)
  .map((all) => all.map(([env, specs], n): Group => inWorld(group(specs, n), env)));

function inWorld(one: Group, env: string): Group {
  const task = { env, index: 0, seed: 0 };
  return { ...one, task, trajectories: one.trajectories.map((trajectory) => ({ ...trajectory, task })) };
}

const numbersOf = (groups: readonly Group[], worlds: WorldEstimators) =>
  estimate(groups, configs.a, undefined, undefined, worlds).map(({ advantages, returns }) => [
    [...advantages],
    [...returns],
  ]);

describe('several worlds in one batch', () => {
  it('each is estimated as if its groups were alone, where each is whitened by itself', () => {
    fc.assert(
      fc.property(batch, (groups) => {
        const all = numbersOf(groups, { configs, normalizePerWorld: true });
        const alone = { a: [] as number[][][], b: [] as number[][][] };
        for (const world of ['a', 'b'] as const) {
          const own = groups.filter(({ task }) => task.env === world);
          alone[world] = estimate(own, configs[world]).map(({ advantages, returns }) => [
            [...advantages],
            [...returns],
          ]);
        }
        const expected = groups.flatMap(({ task, trajectories }) =>
          trajectories.map(() => alone[task.env as 'a' | 'b'].shift()),
        );
        expect(all).toEqual(expected);
      }),
    );
  });

  it('by hand: γ is each world’s, and a swap of two is seen', () => {
    const spec = { turns: [{ value: 0 }, { value: 0 }, { reward: 1, value: 0 }] };
    const groups = [inWorld(group([spec], 0), 'a'), inWorld(group([spec], 1), 'b')];
    const plain = { a: ppo(0.5, 1, false), b: ppo(0.9, 1, false) };
    const first = (worlds: WorldEstimators['configs']) =>
      estimate(groups, plain.a, undefined, undefined, { configs: worlds, normalizePerWorld: true }).map(
        ({ advantages }) => advantages[0],
      );
    expect(first(plain)).toEqual([0.25, 0.81]); // γ² · 1
    expect(first({ a: plain.b, b: plain.a })).toEqual([0.81, 0.25]);
    const turnsApart = groups.map((one) => one.trajectories);
    expect(turnsApart).toHaveLength(2);
    const mixed = { configs, normalizePerWorld: true };
    expect(numbersOf(groups, mixed)).not.toEqual(numbersOf(groups, { ...mixed, configs: swapped }));
  });

  it('by hand: a world of large returns does not drown another, unless one scale is asked for', () => {
    const paying = (reward: number) => ({ turns: [{ reward, value: 0 }] });
    const groups = [
      ...[0, 100].map((reward, n) => inWorld(group([paying(reward)], n), 'a')),
      ...[0, 1].map((reward, n) => inWorld(group([paying(reward)], 2 + n), 'b')),
    ];
    const advantages = (normalizePerWorld: boolean) =>
      estimate(groups, configs.a, undefined, undefined, { configs, normalizePerWorld }).map(
        (one) => one.advantages[0]!,
      );
    for (const [i, value] of advantages(true).entries()) expect(value).toBeCloseTo(i % 2 === 0 ? -1 : 1, 6);
    const [, large, none, one] = advantages(false);
    expect(large).toBeGreaterThan(1.7); // mean 25.25, std 43.2
    expect(one! - none!).toBeCloseTo(1 / 43.16, 3);
  });

  it('a group’s signal is judged by its own world’s discount', () => {
    const grpo = (gamma: number) => estimatorSchema.parse({ algorithm: 'grpo', gamma });
    const lengths = group([{ turns: [{ reward: 1 }] }, { turns: [{}, { reward: 1 }] }], 0);
    const worlds: WorldEstimators = { configs: { a: grpo(1), b: grpo(0.5) }, normalizePerWorld: true };
    const filtering = { estimator: grpo(1), worlds, filterGroups: true };
    expect(isInformative(inWorld(lengths, 'a'), filtering)).toBe(false);
    expect(isInformative(inWorld(lengths, 'b'), filtering)).toBe(true);
    expect([...scores(inWorld(lengths, 'b'), grpo(0.5))]).toEqual([1, 0.5]);
  });

  it('without a list of worlds nothing changes', () => {
    fc.assert(
      fc.property(batch, (groups) => {
        const one: WorldEstimators = { configs: { a: configs.a, b: configs.a }, normalizePerWorld: false };
        const plain = estimate(groups, configs.a).map(({ advantages, returns }) => [[...advantages], [...returns]]);
        expect(numbersOf(groups, one)).toEqual(plain);
      }),
    );
  });
});
