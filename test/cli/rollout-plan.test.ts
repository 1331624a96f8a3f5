import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Env } from '../../src/core/env.ts';
import { taskKey } from '../../src/run/plan-outcomes.ts';
import { rolloutTasks } from '../../src/run/rollout-plan.ts';

const envOf = (count: number) =>
  ({ id: 'x', tasks: { split: () => [...Array(count).keys()], evalSeed: 7 } }) as unknown as Env;
const tasksOf = (count: number, episodes: number) => rolloutTasks({ episodes, split: 'test', seed: 1 }, envOf(count));
const sizes = [fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 100 })] as const;

describe('the episodes of a rollout', () => {
  it('are as many as requested, and no two are the same', () => {
    fc.assert(
      fc.property(...sizes, (count, episodes) => {
        expect(new Set(tasksOf(count, episodes).map(taskKey)).size).toBe(episodes);
      }),
    );
  });
  it('are spread over the split: no stretch of tasks gets more of the last round than another', () => {
    fc.assert(
      fc.property(...sizes, (count, episodes) => {
        const last = tasksOf(count, episodes).slice(Math.floor((episodes - 1) / count) * count);
        const gaps = last.map(({ index }, i) => (last[i + 1]?.index ?? count) - index);
        expect(last[0]!.index).toBe(0);
        expect(Math.max(...gaps) - Math.min(...gaps)).toBeLessThanOrEqual(1);
      }),
    );
  });
  it('play every task as often as any other, give or take one', () => {
    fc.assert(
      fc.property(...sizes, (count, episodes) => {
        const times = Array<number>(count).fill(0);
        for (const { index } of tasksOf(count, episodes)) times[index]!++;
        expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(1);
      }),
    );
  });
});
