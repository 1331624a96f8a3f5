/**
 * Published episodes play again without a difference: the authors' gold sequences as 1.3.0 answers them, their texts of
 * 2022, and episodes on AgentGym's server. Of the many, some unless LONGPLAY_LONG=1.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parity as replay } from '../../../envs/sciworld/parity.ts';
import { readRecords } from '../../../experiments/parity.ts';
import type { Difference } from '../../../src/core/parity.ts';
import { serveInline } from '../../../src/serve/agentgym/inline-server.ts';

const folder = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'real');

type Steps = (readonly unknown[])[];

async function play(records: readonly unknown[]) {
  const found: Difference[] = [];
  const counts = await replay(records, (difference) => found.push(difference), 'sciworld', serveInline);
  return { found, counts };
}

it.each([
  { name: 'sciworld_authors_exact.jsonl.gz', every: 7, episodes: 1743, columns: 8 },
  { name: 'sciworld_authors2022.jsonl.gz', every: 3, episodes: 503, columns: 3 },
  { name: 'sciworld_agentgym.jsonl.gz', every: 1, episodes: 9, columns: 2 },
])('$name', { timeout: 600_000 }, async ({ name, every, episodes, columns }) => {
  const file = join(folder, name);
  if (!existsSync(file)) {
    console.log(`skipped: no ${file}; set LONGPLAY_GOLDEN`);
    return;
  }
  const records = readRecords(file) as { steps: Steps }[];
  expect(records).toHaveLength(episodes);
  const chosen = process.env.LONGPLAY_LONG === '1' ? records : records.filter((_, i) => i % every === 0);
  const { found, counts } = await play(chosen);
  expect(found.slice(0, 3)).toEqual([]);
  expect(counts).toEqual({
    episodes: chosen.length,
    steps: chosen.reduce((sum, { steps }) => sum + steps.length, 0),
  });
  // One changed column of one step is one difference.
  for (let column = 1; column < columns; column++) {
    const planted = structuredClone(records[0]!);
    const step = planted.steps[1] as unknown[];
    step[column] = typeof step[column] === 'string' ? `${step[column]}x` : typeof step[column] === 'number' ? -7 : null;
    expect((await play([planted])).found, `column ${column}`).toHaveLength(1);
  }
});
