/** A whole run, serial, asynchronous, recorded and repeated. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { InferenceCommand } from '../../actors/inference/protocol.ts';
import { listCheckpoints, loadNewest } from '../../src/storage/checkpoint.ts';
import { OrderRecorder, readOrder } from '../../src/storage/order-file.ts';
import { smallRun } from '../support/whole-run.ts';

const long = process.env.LONGPLAY_LONG === '1';
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

describe('a serial run', () => {
  it('repeats a seed: equal weights and traces', async () => {
    const seen = new Set<string>();
    const seeds = Array.from({ length: long ? 20 : 2 }, (_, i) => i + 1);
    for (const seed of seeds) {
      const first = await smallRun([`seed=${seed}`], {});
      const second = await smallRun([`seed=${seed}`], {});
      expect(second.digest).toEqual(first.digest);
      expect(first.unaccounted).toBe(0);
      seen.add(first.digest.weights);
    }
    expect(seen.size).toBe(seeds.length);
  }, 600_000);

  it('repeats its failures too', async () => {
    const chaos = { seed: 2, rates: { throw: 0.05, nan: 0.05, slow: 0.02 } };
    const runs = [await smallRun([], { chaos }), await smallRun([], { chaos })];
    expect(runs[0]!.digest).toEqual(runs[1]!.digest);
    expect(Object.keys(runs[0]!.ended.status.accounting.failed).length).toBeGreaterThan(0);
  }, 60_000);
});

describe('an asynchronous run', () => {
  it.each(long ? [1, 2, 4] : [2])(
    'with %i env threads is accounted for and within its lag',
    async (threads) => {
      const { ended, rows, unaccounted } = await smallRun([`rollout.envThreads=${threads}`], { mode: 'async' });
      expect(ended.why).toBe('updates');
      expect(unaccounted).toBe(0);
      for (const { lagMax } of rows) expect(lagMax).toBeLessThanOrEqual(2);
    },
    60_000,
  );

  it('is repeated bit for bit from the order of its messages, failures included', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'longplay-order-'));
    folders.push(folder);
    const file = join(folder, 'order.jsonl');
    const chaos = { seed: 3, rates: { throw: 0.04, kill: 0.02 } };
    let elsewhere = 0;
    for (const seed of long ? [1, 2, 3, 4, 5] : [1, 2, 3]) {
      const set = [`seed=${seed}`, 'rollout.envThreads=2'];
      const record = new OrderRecorder(file, {});
      const recorded = await smallRun(set, { mode: 'async', record, chaos });
      const replay = readOrder(file);
      const repeated = await smallRun(set, { mode: 'serial', replay });
      expect(repeated.digest).toEqual(recorded.digest);
      expect(repeated.ended.status.accounting).toEqual(recorded.ended.status.accounting);
      expect(Object.keys(recorded.ended.status.accounting.failed).length).toBeGreaterThan(0);
      if ((await smallRun(set, { mode: 'serial' })).digest.weights !== recorded.digest.weights) elsewhere++;
    }
    // The order is what does it: the same run in the order of a seed goes elsewhere, where anything is learnt at all.
    expect(elsewhere).toBeGreaterThan(0);
  }, 120_000);

  it.each([
    ['/learner', { type: 'group', group: null }, /^\/learner crashed: .*of null/],
    ['/scheduler', { type: 'played', groups: [] }, /^\/scheduler crashed: .*failed is not iterable/],
    ['/rollout', { type: 'acted', turns: null }, /^\/rollout crashed: .*heads.* of .*null/],
  ])(
    'ends with the error of %s when it crashes, and its newest checkpoint stands',
    async (path, poison, message) => {
      let kept: number[] = [];
      const set = ['stop.updates=1000000', 'checkpoint.everyUpdates=1'];
      const run = smallRun(set, { mode: 'async' }, async (started, dir) => {
        const wait = () => new Promise((resolve) => setTimeout(resolve, 5));
        while ((await started.status()).version < 3) await wait();
        started.tell(path, poison);
        const asking = async () => {
          for (;;) await started.status().then(wait);
        };
        await expect(asking()).rejects.toThrow(message);
        kept = listCheckpoints(join(dir, 'checkpoints'));
        expect(loadNewest(join(dir, 'checkpoints'))).toMatchObject({ update: kept[0], warnings: [] });
      });
      await expect(run).rejects.toThrow(message);
      expect(kept[0]).toBeGreaterThanOrEqual(2);
    },
    60_000,
  );

  it('goes on with the newest weights after its policy crashed', async () => {
    const { ended, rows } = await smallRun(['stop.updates=12'], { mode: 'async' }, async (run) => {
      while ((await run.status()).version < 5) await new Promise((resolve) => setTimeout(resolve, 5));
      run.tell('/inference', { type: 'act', requests: null } as unknown as InferenceCommand);
    });
    expect(ended.status.version).toBe(12);
    // Turns decided by the weights of the start would all be older than `maxLag`, and no update would follow. What was
    // in flight at the crash may have become too old.
    expect(ended.status.accounting.stale).toBeLessThanOrEqual(4 * 2);
    expect(ended.status.accounting.failed).toEqual({});
    for (const { lagMax } of rows) expect(lagMax).toBeLessThanOrEqual(2);
  }, 60_000);
});
