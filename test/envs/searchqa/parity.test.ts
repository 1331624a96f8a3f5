/** Recordings of AgentGym's SearchQA and of Search-R1: no difference, and a planted one is seen. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parity as replay } from '../../../envs/searchqa/parity.ts';
import { parity, readRecords } from '../../../experiments/parity.ts';
import { serveInline } from '../../../src/serve/agentgym/inline-server.ts';

const folder = join(process.env.LONGPLAY_GOLDEN ?? '../shared/golden', 'searchqa');
const recorded = 'action normalize match trajectory passages prompt bm25 retrieve http episodes world';
const files = [...recorded.split(' ').map((name) => join(folder, `${name}.jsonl.gz`)), join(folder, 'split.json')];
const absent = files.filter((file) => !existsSync(file));
if (absent.length > 0) console.log(`skipped: no golden traces (${absent.join(', ')}); set LONGPLAY_GOLDEN`);

describe.skipIf(absent.length > 0)('parity with the originals', () => {
  it('has no difference in any recording', { timeout: 120_000 }, async () => {
    const printed: string[] = [];
    expect(await parity('searchqa', files, (line) => printed.push(line)), printed.join('\n')).toBe(0);
    expect(printed.at(-1)).toMatch(/^episodes [1-9]\d*, steps \d+, differences 0$/);
  });

  /** Differences of one file whose row `i` was changed. */
  const differences = async (name: string, i: number, change: (row: Record<string, unknown>) => void) => {
    const file = join(folder, `${name}.jsonl.gz`);
    const all = structuredClone(readRecords(file)) as Record<string, unknown>[];
    const rows = name === 'bm25' ? [all[0]!, all[i]!] : [all[i]!];
    change(rows.at(-1)!);
    let found = 0;
    await replay(rows, () => void found++, file, serveInline);
    return found;
  };

  it.each([
    ['action', (row: Record<string, unknown>) => (row.content += ' ')],
    ['action', (row: Record<string, unknown>) => (row.truncated += '.')],
    ['normalize', (row: Record<string, unknown>) => (row.normalized += 'x')],
    ['match', (row: Record<string, unknown>) => (row.em = 1 - Number(row.em))],
    ['match', (row: Record<string, unknown>) => (row.f1 = Number(row.f1) + 1e-6)],
    ['trajectory', (row: Record<string, unknown>) => (row.valid = [true, 'no'])],
    ['trajectory', (row: Record<string, unknown>) => (row.format_search_r1 = [0, 0, 0, 0.01])],
    ['passages', (row: Record<string, unknown>) => (row.string += '\n')],
    ['prompt', (row: Record<string, unknown>) => (row.search_r1 += ' ')],
    ['retrieve', (row: Record<string, unknown>) => (row.status = 201)],
    ['episodes', (row: Record<string, unknown>) => ((row.exchanges as { response: string }[])[2]!.response += ' ')],
    ['episodes', (row: Record<string, unknown>) => ((row.rewards as number[])[0]! += 1)],
    [
      'http',
      (row: Record<string, unknown>) => ((row.response as { detail: { loc: string[] }[] }).detail[0]!.loc = ['body']),
    ],
  ])('sees a changed row of %s', async (name, change) => {
    expect(await differences(name, 5, () => {})).toBe(0);
    expect(await differences(name, 5, change)).toBeGreaterThan(0);
  });

  it('sees two hits of a ranking that changed places, and a score that is off by 2e-5', async () => {
    const rows = readRecords(join(folder, 'bm25.jsonl.gz')) as { hits?: [number, number][] }[];
    const i = rows.findIndex(({ hits }) => (hits?.length ?? 0) > 2);
    const hitsOf = (row: Record<string, unknown>) => row.hits as [number, number][];
    expect(await differences('bm25', i, () => {})).toBe(0);
    const swap = (hits: [number, number][]) => ([hits[0], hits[1]] = [hits[1]!, hits[0]!]);
    expect(await differences('bm25', i, (row) => swap(hitsOf(row)))).toBe(2);
    expect(await differences('bm25', i, (row) => (hitsOf(row)[1]![1] += 2e-5))).toBe(2);
  });
});
