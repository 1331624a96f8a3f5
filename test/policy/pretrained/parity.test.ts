import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { recordingsIn, replay } from '../../../experiments/parity/llm.ts';
import { readRecords } from '../../../experiments/parity.ts';
import type { Difference } from '../../../src/core/parity.ts';

const golden = join(process.env.LONGPLAY_GOLDEN ?? resolve(import.meta.dirname, '../../../shared/golden'), 'llm');
const isThere = existsSync(golden);
if (!isThere) console.log(`skipped: no recordings of language models at ${golden} (set LONGPLAY_GOLDEN)`);
const whole = process.env.LONGPLAY_LONG === '1';

async function parity(file: string, change: (text: string) => string = (text) => text) {
  const found: Difference[] = [];
  const records = readRecords(file).map((record): unknown => JSON.parse(change(JSON.stringify(record))));
  const counts = await replay(records, (difference) => found.push(difference), file);
  return { ...counts, differences: found.length, first: found[0] };
}

describe.skipIf(!isThere)('what Hugging Face computed', () => {
  it.each([
    ['tokenizer/strings.jsonl', 500],
    ['tokenizer/id-runs.jsonl', 120],
    ['chat/conversations.jsonl', 101],
    ['models/no-bias/expected.json', 1],
    ...(whole
      ? ([
          ['models/tied-f32/expected.json', 1],
          ['models/untied-bf16-sharded/expected.json', 1],
          ['adapters/tied-f32-lora-all/expected.json', 1],
          ['adapters/untied-lora-qv/expected.json', 1],
        ] as const)
      : []),
  ] as const)('%s: nothing differs', async (name, count) => {
    const { first, differences, episodes } = await parity(join(golden, name));
    expect(first).toBeUndefined();
    expect(differences).toBe(0);
    expect(episodes).toBe(count);
  });

  it('finds every recording of the folder', () => {
    expect(recordingsIn(golden).length).toBe(8);
  });

  it.each([
    ['tokenizer/strings.jsonl', (text: string) => text.replace(/"ids":\[\d+/, '"ids":[0')],
    ['tokenizer/strings.jsonl', (text: string) => text.replace(/"ids_special_split":\[\d+/, '"ids_special_split":[0')],
    ['tokenizer/id-runs.jsonl', (text: string) => text.replace(/"prefixes":\["/, '"prefixes":["x')],
    ['chat/conversations.jsonl', (text: string) => text.replace('"text":"<|im_start|>', '"text":"<|im_begin|>')],
  ])('%s: something else would be seen', async (name, change) => {
    const { differences } = await parity(join(golden, name), change);
    expect(differences).toBeGreaterThan(50);
  });

  it('refuses a recording of nothing that it knows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'longplay-llm-'));
    try {
      expect(() => recordingsIn(folder)).toThrow('expected recordings of models');
      const file = join(folder, 'expected.json');
      writeFileSync(file, '{"what": 1}');
      await expect(parity(file)).rejects.toThrow('expected strings, id runs, conversations');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
