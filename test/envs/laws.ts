/** Declares a test for each law of `src/world/conformance`: a family's test file calls it once, with texts of its own world. */
import { describe, expect, it } from 'vitest';
import { checkLaw, formatBroken } from '../../src/world/conformance/check.ts';
import { laws, type Subject } from '../../src/world/conformance/laws.ts';
import { measureLeak } from '../../src/world/conformance/measure.ts';

/** Ten times as much of everything. */
const long = process.env.LONGPLAY_LONG === '1';
const CASES = long ? 10_000 : 1000;
const LEAK_EPISODES = long ? 100_000 : 10_000;
/** One pinned seed, and a fresh one that the test's title names. */
const SEEDS = [1, Math.floor(Math.random() * 2 ** 32)];

/**
 * Declares one test for every law, half of its cases under each seed, and one for leaks.
 * @param share of the cases that are tried, in (0, 1], for worlds whose steps cost more
 * @param leaks false for a world with bounded caches of pages, which tests itself what it keeps
 */
export function testEnvLaws(name: string, subject: Subject, share = 1, leaks = true): void {
  describe.each(SEEDS)(`${name} obeys the env laws, seed %i`, (seed) => {
    for (const law of laws) {
      it(law.name, { timeout: 600_000 }, async () => {
        const result = await checkLaw(law, subject, { cases: Math.ceil((CASES * share) / SEEDS.length), seed });
        expect(formatBroken(result)).toEqual([]);
      });
    }
  });
  if (!leaks) return;
  it(`${name} keeps nothing of finished episodes`, { timeout: 600_000 }, async () => {
    expect(await measureLeak(subject.createEnv, LEAK_EPISODES, 1)).toMatchObject({ ok: true });
  });
}
