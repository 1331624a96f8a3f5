/**
 * A run with a journal, killed at any instant, goes on from what it had taken: each update that it had made is made again
 * with the same weights, and every episode is accounted for.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countUnaccounted } from '../../../src/core/failure.ts';
import { loadNewestOf } from '../../../src/learning/learner/run-checkpoint.ts';
import { loadNewest } from '../../../src/storage/checkpoint.ts';
import { digestsOf, Journal, type JournalEntry, readJournal } from '../../../src/storage/journal.ts';
import { inFolder, inFolderSync, type ToyConfig, toyConfig, withToyRun } from '../../support/toy-run.ts';

const UPDATES = 6;
const long = process.env.LONGPLAY_LONG === '1';

const cases: Readonly<Record<string, ToyConfig>> = {
  'maxLag 2': { learner: { maxLag: 2 } },
  'maxLag 2, learnable tasks, refilling batches': {
    learner: { maxLag: 2, filterGroups: true, oversampling: 3 },
    tasks: { sampling: { type: 'learnable' } },
  },
  'maxLag 0, a critic and a schedule of the learning rate by time': {
    learner: { maxLag: 0, valueCoef: 0.5, decay: 'cosine', finalRate: 0.1 },
    evaluation: { everyUpdates: 2 },
  },
};

function config(toy: ToyConfig, updates: number) {
  return toyConfig('chain', {
    ...toy,
    horizon: { type: 'scaling_inter_stepwise', rounds: [3, 8], steps_scaling_inter: 3 },
    stop: { updates },
    checkpoint: { everyUpdates: 3, keep: 2 },
    rollout: { groupSize: 3, concurrentGroups: 6 },
    learner: { groupsPerUpdate: 2, filterGroups: false, ...toy.learner },
  });
}

/** Trains up to `updates`. @returns the entries that the journal then holds, and the notices */
async function train(toy: ToyConfig, dir: string, updates: number, resume: boolean) {
  const journal = join(dir, 'journal');
  return withToyRun(
    config(toy, updates),
    dir,
    async ({ run, notices }) => {
      if (!resume) expect((await run.save()).ok).toBe(true);
      const { status } = await run.train();
      expect(countUnaccounted(status.accounting)).toBe(0);
      await run.stop();
      return { status, notices };
    },
    {
      journal,
      ...(resume ? { checkpoint: loadNewestOf(dir) } : {}),
      evaluation: {
        plans: ([{ env }]) => [
          {
            name: 'held',
            tasks: [{ env: env.id, index: 0, seed: 1 }],
            episodes: 2,
            horizon: 4,
            temperature: 1,
            seed: 2,
          },
        ],
        onRecord() {},
      },
    },
  );
}

/** All entries of a folder, whatever its checkpoints hold. */
function entriesIn(dir: string): readonly JournalEntry[] {
  const [first = 1] = readdirSync(join(dir, 'journal'))
    .map((name) => Number.parseInt(name, 10))
    .sort((a, b) => a - b);
  return readJournal(join(dir, 'journal'), first - 1).entries;
}

describe('a journal', () => {
  for (const [name, toy] of Object.entries(cases)) {
    it(`makes every update again that a kill at any byte left behind: ${name}`, async () => {
      await inFolder(async (root) => {
        // Nothing is trimmed: the folder of a kill is cut out of the whole run's.
        const whole = join(root, 'whole');
        mkdirSync(whole);
        await train(toy, whole, UPDATES, false);
        const files = readdirSync(join(whole, 'journal')).sort(
          (a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10),
        );
        const original = digestsOf(entriesIn(whole));
        expect(original.size).toBeGreaterThanOrEqual(2);
        let compared = 0;
        for (let n = 0; n < (long ? 24 : 2); n++) {
          const dir = join(root, `kill-${n}`);
          cpSync(whole, dir, { recursive: true });
          // Cut at any byte of the last file: what comes after it did not happen.
          const last = join(dir, 'journal', files.at(-1)!);
          const bytes = readFileSync(last);
          writeFileSync(last, bytes.subarray(0, Math.floor(bytes.length * ((n * 0.37 + 0.55) % 1))));
          rmSync(join(dir, 'checkpoints', String(UPDATES)), { recursive: true, force: true });
          const from = loadNewest(join(dir, 'checkpoints')).update;
          const before = digestsOf(entriesIn(dir));
          const { notices, status } = await train(toy, dir, UPDATES + 2, true);
          expect(notices.join('\n')).not.toMatch(/other weights/);
          expect(status.version).toBe(UPDATES + 2);
          const after = digestsOf(entriesIn(dir));
          for (const [version, digest] of before) {
            if (version <= from) continue;
            expect(after.get(version), `update ${version} after kill ${n}`).toBe(digest);
            expect(original.get(version)).toBe(digest);
            compared++;
          }
        }
        expect(compared).toBeGreaterThan(0);
      });
    }, 120_000);
  }

  it('reports an update made again that has other weights', async () => {
    await inFolder(async (dir) => {
      const toy = cases['maxLag 2']!;
      await train(toy, dir, 3, false);
      const [file] = readdirSync(join(dir, 'journal'));
      const { entries, position } = readJournal(join(dir, 'journal'), 0);
      expect(file).toBe('1.jsonl');
      const journal = new Journal(join(dir, 'journal'), position);
      journal.append({ type: 'updated', version: 1, digest: 'another' });
      journal.close();
      expect(digestsOf(entries).has(1)).toBe(true);
      rmSync(join(dir, 'checkpoints', '3'), { recursive: true, force: true });
      const { notices } = await train(toy, dir, 4, true);
      expect(notices.join('\n')).toMatch(/update 1, made again of the same groups, has other weights than before/);
    });
  }, 60_000);

  it('reads back what was written, whatever is cut off its end, and refuses a flipped bit before', () => {
    const ticket = (group: number) => ({
      group,
      task: { env: 'toy', index: 0, seed: group },
      horizon: 3,
      size: 2,
      purpose: { name: 'train', temperature: 1, seed: 7 },
      version: 0,
    });
    const entry = (n: number): JournalEntry => ({ type: 'launched', tickets: [ticket(n)] });
    let refused = 0;
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.integer({ min: 1, max: 12 })),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.boolean(),
        (count, closes, at, flip) =>
          inFolderSync((dir) => {
            const journal = new Journal(dir, 0);
            for (let n = 1; n <= count; n++) {
              if (closes.includes(n)) journal.close();
              journal.append(entry(n));
            }
            journal.close();
            const names = readdirSync(dir).sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
            const last = join(dir, names.at(-1)!);
            const bytes = readFileSync(last);
            if (flip) {
              const place = Math.floor(bytes.length * at);
              const flipped = Buffer.from(bytes);
              flipped[place]! ^= 1;
              writeFileSync(last, flipped);
              try {
                const { entries } = readJournal(dir, 0);
                // Only the end of the last line can be flipped away: then the line was never finished.
                expect(place).toBe(bytes.length - 1);
                expect(entries).toHaveLength(count - 1);
              } catch (thrown) {
                expect(String(thrown)).toMatch(/line \d+: .*remove the journal's folder/);
                refused++;
              }
              return;
            }
            writeFileSync(last, bytes.subarray(0, Math.floor(bytes.length * at)));
            const { entries, position } = readJournal(dir, 0);
            expect(entries).toEqual(Array.from({ length: entries.length }, (_, i) => entry(i + 1)));
            expect(position).toBe(entries.length);
            expect(entries.length).toBeGreaterThanOrEqual(Number.parseInt(names.at(-1)!, 10) - 1);
            // It goes on where it was cut.
            const again = new Journal(dir, position);
            again.append(entry(position + 1));
            again.close();
            expect(readJournal(dir, 0).entries).toHaveLength(position + 1);
          }),
      ),
      { numRuns: long ? 1000 : 60 },
    );
    expect(refused).toBeGreaterThan(10);
  }, 30_000);
});
