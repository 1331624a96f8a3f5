import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { parity as replay } from '../../../envs/babyai/parity.ts';
import { readRecords } from '../../../experiments/parity.ts';
import type { Difference } from '../../../src/core/parity.ts';

const golden = join(process.env.LONGPLAY_GOLDEN ?? resolve(import.meta.dirname, '../../../shared/golden'), 'babyai');
const isThere = existsSync(golden);
if (!isThere) console.log(`skipped: no recorded BabyAI episodes at ${golden} (set LONGPLAY_GOLDEN)`);

async function parity([file]: readonly [string]) {
  const found: Difference[] = [];
  const counts = await replay(readRecords(file), (difference) => found.push(difference), file);
  return { ...counts, differences: found.length, first: found[0] };
}

describe.skipIf(!isThere)('recorded BabyAI episodes', () => {
  it.each([
    ['layouts', 1000, 0],
    ['raw', 240, 18_000],
    ['text', 240, 12_000],
    ['http', 1, 50],
  ])('%s: nothing differs', async (name, episodes, steps) => {
    const report = await parity([join(golden, `${name}.jsonl.gz`)]);
    expect(report.first).toBeUndefined();
    expect(report.differences).toBe(0);
    expect(report.episodes).toBeGreaterThanOrEqual(episodes);
    expect(report.steps).toBeGreaterThanOrEqual(steps);
  });

  it.each([
    ['raw', '"reward": 0.0, "terminated": false', '"reward": 0.5, "terminated": false'],
    ['raw', '"dir": 2', '"dir": 3'],
    ['raw', '"grid_crc": ', '"grid_crc": 1'],
    ['text', '3 steps in front', '2 steps in front'],
    ['text', '"low": [2]', '"low": [2, 2]'],
    ['text', '"pickup grey key 1": [2', '"pickup grey key 1": [1'],
    ['layouts', '"color": "red"', '"color": "blue"'],
    ['layouts', '"max_steps": 64', '"max_steps": 65'],
  ])('%s: one wrong word is found (%s)', async (name, right, wrong) => {
    const lines = gunzipSync(readFileSync(join(golden, `${name}.jsonl.gz`)))
      .toString('utf8')
      .split('\n');
    const line = lines.find((each) => each.includes(right))!;
    const folder = mkdtempSync(join(tmpdir(), 'babyai-'));
    try {
      writeFileSync(join(folder, 'wrong.jsonl'), line.replace(right, wrong));
      expect((await parity([join(folder, 'wrong.jsonl')])).differences).toBeGreaterThan(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
