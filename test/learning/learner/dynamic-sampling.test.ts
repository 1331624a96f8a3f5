/** DAPO's dynamic sampling in whole runs: updates are full of groups with a signal, and bounded where there are none. */
import { describe, expect, it } from 'vitest';
import type { MetricsRow } from '../../../src/metrics/metric-table.ts';
import { inFolder, type ToyConfig, toyConfig, withToyRun } from '../../support/toy-run.ts';
import type { ToyWorld } from '../../support/toy-worlds.ts';

const GROUPS = 3;

/** Too small to learn: the bandit's groups stay mixed, a third or so without a signal. */
const learningRate = 1e-6;

function run(world: ToyWorld, toy: ToyConfig, mode: 'serial' | 'async' = 'serial'): Promise<MetricsRow[]> {
  const config = toyConfig(world, {
    ...toy,
    rollout: { groupSize: 4, concurrentGroups: 12, ...toy.rollout },
    learner: { groupsPerUpdate: GROUPS, ...toy.learner },
  });
  return inFolder((dir) =>
    withToyRun(
      config,
      dir,
      async ({ run, rows }) => {
        await run.train();
        await run.save(); // the last row is in by then
        return rows;
      },
      { mode },
    ),
  );
}

/** Groups that each update trained on, and left out. */
const counts = (rows: readonly MetricsRow[]) =>
  rows.map(({ trainedGroups, filteredGroups }) => [trainedGroups!, filteredGroups!]);

function expectAccounted(rows: readonly MetricsRow[]): void {
  let [trained, filtered] = [0, 0];
  for (const row of rows) {
    trained += 4 * row.trainedGroups!;
    filtered += 4 * row.filteredGroups!;
    expect(row.trained).toBe(trained);
    expect(row.filtered).toBe(filtered);
    expect(row.launched).toBe(row.trained! + row.stale! + row.filtered! + row.failed! + row.inFlight!);
  }
}

describe('dynamic sampling', () => {
  for (const maxLag of [0, 2]) {
    it(`fills every update with groups that have a signal, maxLag ${maxLag}`, async () => {
      const toy = { stop: { updates: 12 } };
      const plain = await run('bandit', { ...toy, learner: { maxLag, learningRate } });
      expect(plain.some(({ trainedGroups }) => trainedGroups! < GROUPS)).toBe(true); // there is something to replace
      const rows = await run('bandit', { ...toy, learner: { maxLag, learningRate, oversampling: 10 } });
      expect(rows.map(({ trainedGroups }) => trainedGroups)).toEqual(rows.map(() => GROUPS));
      expect(rows.reduce((sum, { filteredGroups }) => sum + filteredGroups!, 0)).toBeGreaterThan(0);
      expect(Math.max(...rows.map(({ lagMax }) => lagMax!))).toBeLessThanOrEqual(maxLag);
      expectAccounted(rows);
      if (maxLag === 0) expect(rows.at(-1)!.stale).toBe(0);
    }, 30_000);
  }

  it('a world in which every group is alike still ends, each update at the bound', async () => {
    // Nothing can be reached in two turns: every group scores 0.
    const horizon = { type: 'fixed', rounds: 2 } as const;
    const rows = await run('long', { horizon, stop: { updates: 4 }, learner: { maxLag: 0, oversampling: 3 } });
    expect(counts(rows)).toEqual(rows.map(() => [0, 3 * GROUPS]));
    expect(rows).toHaveLength(4);
    expectAccounted(rows);
  }, 30_000);

  it('learns, and goes on once everything is solved', async () => {
    const rows = await run('memory', {
      stop: { updates: 40 },
      learner: { oversampling: 4 },
      rollout: { groupSize: 4 },
    });
    expect(rows.at(-1)!.success).toBe(1);
    expect(counts(rows.slice(0, 3))).toEqual(counts(rows.slice(0, 3)).map(([, left]) => [GROUPS, left]));
    expect(counts(rows).at(-1)).toEqual([0, 4 * GROUPS]);
  }, 30_000);

  it('holds with actors in threads', async () => {
    const learner = { maxLag: 1, learningRate, oversampling: 10 };
    const rows = await run('bandit', { stop: { updates: 12 }, learner }, 'async');
    expect(rows.map(({ trainedGroups }) => trainedGroups)).toEqual(rows.map(() => GROUPS));
    expect(Math.max(...rows.map(({ lagMax }) => lagMax!))).toBeLessThanOrEqual(1);
    expectAccounted(rows);
  }, 60_000);
});
