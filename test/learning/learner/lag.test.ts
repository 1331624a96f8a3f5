/** No token older than maxLag is ever trained on, also right after a resume; K = 0 is synchronous. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { MetricsRow } from '../../../src/metrics/metric-table.ts';
import { loadNewest } from '../../../src/storage/checkpoint.ts';
import { inFolder, toyConfig, withToyRun } from '../../support/toy-run.ts';

const long = process.env.LONGPLAY_LONG === '1';

/** Episodes of 1 to 12 turns, in more groups than an update takes: some are overtaken and grow old. */
function config(maxLag: number, updates: number) {
  return toyConfig('chain', {
    horizon: { type: 'fixed', rounds: 12 },
    stop: { updates },
    rollout: { groupSize: 3, concurrentGroups: 40 },
    learner: { maxLag, groupsPerUpdate: 2, filterGroups: false, entropyCoef: 0.1 },
    checkpoint: { everyUpdates: 6, keep: 1 },
  });
}

async function lags(maxLag: number, mode: 'serial' | 'async', dir: string, resume: boolean, updates: number) {
  const checkpoint = resume ? { checkpoint: loadNewest(join(dir, 'checkpoints')) } : {};
  return withToyRun(
    config(maxLag, updates),
    dir,
    async ({ run, rows }) => {
      await run.train();
      await run.save();
      return rows;
    },
    { mode, ...checkpoint },
  );
}

const largest = (rows: readonly MetricsRow[]) => Math.max(...rows.map(({ lagMax }) => lagMax!));

describe('policy lag', () => {
  for (const maxLag of [0, 1, 2, 4, 8]) {
    it(`maxLag ${maxLag} holds for every trained token, and in the first updates after a resume`, async () => {
      await inFolder(async (dir) => {
        const updates = (long ? 24 : 8) + maxLag;
        const rows = await lags(maxLag, 'serial', dir, false, updates);
        const after = await lags(maxLag, 'serial', dir, true, updates + 2 * maxLag + 2);
        expect(after[0]!.update).toBe(updates + 1);
        expect(largest([...rows, ...after])).toBeLessThanOrEqual(maxLag);
        expect(largest(rows)).toBeGreaterThanOrEqual(Math.min(maxLag, 4)); // what is bounded is there
        if (maxLag > 0) expect(largest(after)).toBeGreaterThan(0);
        for (const row of [...rows, ...after]) {
          const { launched, trained, stale, filtered, failed, inFlight } = row;
          expect(launched).toBe(trained! + stale! + filtered! + failed! + inFlight!);
        }
      });
    }, 60_000);
  }

  it('holds with actors in threads, and admission throws little away', async () => {
    await inFolder(async (dir) => {
      const rows = await lags(2, 'async', dir, false, long ? 200 : 20);
      const after = await lags(2, 'async', dir, true, long ? 220 : 26);
      expect(largest([...rows, ...after])).toBeLessThanOrEqual(2);
      const { trained, stale } = after.at(-1)!;
      expect(stale! / (trained! + stale!)).toBeLessThan(0.25);
    });
  }, 60_000);
});
