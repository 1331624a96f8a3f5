/** Mutated traces of other programs: they are imported, or named as what cannot be read; what is written is a trace. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { episodeLines } from '../../src/console/episode-frame.ts';
import { render } from '../../src/console/text.ts';
import { atifDocument, restoreEpisode } from '../../src/run/atif-episode.ts';
import { chatRecords, conversationRows } from '../../src/run/export-traces.ts';
import { IMPORT_FORMATS, importTraces } from '../../src/run/import/import-traces.ts';
import { traceLine } from '../../src/storage/trace.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { SOURCES } from '../run/import/sources.ts';
import { amount, campaign, orMistake } from './campaign.ts';
import { type Json, mutatedJson, mutatedText } from './mutations.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-attack-imports-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const COUNT = amount(60_000, 300);

it(`${COUNT} mutated sources are imported, or refused in one line`, { timeout: 3_600_000 }, async () => {
  let read = 0;
  await campaign('imports', COUNT, (rng, n) => {
    const from = IMPORT_FORMATS[n % IMPORT_FORMATS.length]!;
    const records = SOURCES[from];
    const struck = rng.int(records.length);
    const lines = records.map((record, at) => {
      const line = JSON.stringify(record);
      if (at !== struck) return line;
      return rng.int(5) === 0 ? mutatedText(line, rng) : mutatedJson(JSON.parse(line) as Json, rng);
    });
    const source = join(dir, 'source.jsonl');
    const out = join(dir, 'out');
    writeFileSync(source, `${lines.join('\n')}\n`);
    const guesses = rng.int(3) === 0;
    const report = orMistake(() => importTraces({ source, out, ...(guesses ? {} : { from }) }));
    expect(existsSync(out)).toBe(report !== undefined);
    if (!report) return;
    const store = TraceStore.open(out);
    expect(store.size).toBe(report.episodes);
    for (const { at } of store.episodes) {
      const episode = store.read(at);
      for (const line of episodeLines(episode, 80)) render(line, true);
      JSON.stringify([chatRecords(episode), conversationRows(episode)]);
      const restored = restoreEpisode(JSON.parse(JSON.stringify(atifDocument(episode, '1.0.0'))))!;
      expect(JSON.parse(traceLine(restored, 'rollout'))).toEqual(JSON.parse(traceLine(episode, 'rollout')));
      read++;
    }
    rmSync(out, { recursive: true });
  });
  expect(read).toBeGreaterThan(COUNT / 3);
});
