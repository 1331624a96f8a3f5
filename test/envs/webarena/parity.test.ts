/** Recordings of WebArena and of AgentGym's fork: no difference, and every kind of recording can show one. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parity } from '../../../envs/webarena/parity.ts';
import { readRecords } from '../../../experiments/parity.ts';
import type { Difference } from '../../../src/core/parity.ts';

const folder = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'webarena');
const NAMES = ['observations', 'actions', 'evaluators', 'prompt', 'server'];
const files = [...NAMES.map((name) => `${name}.jsonl.gz`), 'split.json'].map((name) => join(folder, name));
const absent = files.filter((file) => !existsSync(file));
if (absent.length > 0) console.log(`skipped: no golden recordings (${absent.join(', ')}); set LONGPLAY_GOLDEN`);

async function differences(records: readonly unknown[]): Promise<Difference[]> {
  const found: Difference[] = [];
  await parity(records, (difference) => found.push(difference), '');
  return found;
}

describe.skipIf(absent.length > 0)('parity with the original', () => {
  it.each(files)('has no difference in %s', async (file) => {
    expect(await differences(readRecords(file))).toEqual([]);
  });

  it.each([
    ['observations', [3, 'observation'], 'x'],
    ['observations', [0, 'rects', '15', 3], 0],
    ['actions', [0, 'ok', 'id'], '13'],
    ['evaluators', [0, 'ok'], 'Hello'],
    ['evaluators', [281, 'ok'], ''],
    ['prompt', [10, 'parses'], 'yes'],
    ['server', [14, 'result', 1], 0],
    ['server', [7, 'result', 4, 'fail_error'], ''],
  ] as const)('sees a change in %s at %j', async (name, path, value) => {
    const rows = structuredClone(readRecords(files[NAMES.indexOf(name)]!));
    let at = rows as unknown as Record<string | number, unknown>;
    for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
    const last = path.at(-1)!;
    expect(at[last]).not.toEqual(value);
    at[last] = value;
    expect((await differences(rows)).length).toBeGreaterThan(0);
  });

  it('refuses records of a kind it does not know', async () => {
    await expect(differences([{ some: 'thing' }])).rejects.toThrow(/webarena: expected observations/);
  });
});
