/** Accounts of a run that is resumed. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { countUnaccounted } from '../../../src/core/failure.ts';
import { loadNewest } from '../../../src/storage/checkpoint.ts';
import { inFolder, toyConfig, withToyRun } from '../../support/toy-run.ts';

it(
  'a run that is over accounts for what its checkpoint keeps in flight, and so it does when it goes on',
  () =>
    inFolder(async (dir) => {
      const until = (updates: number) => toyConfig('wage', { learner: { maxLag: 2 }, stop: { updates } });
      const trained = async (updates: number) => {
        const checkpoint = updates === 2 && first ? undefined : loadNewest(join(dir, 'checkpoints'));
        first = false;
        return withToyRun(
          until(updates),
          dir,
          async ({ run }) => {
            const { status } = await run.train();
            expect((await run.save()).ok).toBe(true);
            return status;
          },
          { checkpoint },
        );
      };
      let first = true;
      const accounts = [];
      for (const updates of [2, 2, 3]) {
        const { version, accounting } = await trained(updates);
        expect([version, countUnaccounted(accounting)]).toEqual([updates, 0]);
        accounts.push(accounting);
      }
      expect(accounts[0]!.inFlight).toBeGreaterThan(0);
      expect(accounts[1]).toEqual(accounts[0]);
    }),
  60_000,
);
