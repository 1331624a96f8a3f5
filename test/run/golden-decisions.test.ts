/** Serial runs decide what they decided when `test/fixtures/golden-decisions.jsonl` was recorded. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { firstDifference, type GoldenRecord, goldenRuns, play } from '../support/golden-runs.ts';

const kept = readFileSync(new URL('../fixtures/golden-decisions.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as GoldenRecord);
const own = (name: string) => kept.filter(({ run }) => run === name);

describe('a serial run decides as it did when it was recorded', () => {
  it.each(goldenRuns.map((run) => [run.name, run] as const))(
    '%s',
    async (name, run) => {
      const { records } = await play(run);
      const difference = firstDifference(own(name), records);
      if (difference) expect.fail(difference); // whole: a matcher would shorten it
    },
    60_000,
  );
});
