/**
 * Mutated traces, with and without their indexes: replay, export and viewer read them, or report in one line why not.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { episodeFrame, episodeLines } from '../../src/console/episode-frame.ts';
import { render } from '../../src/console/text.ts';
import { agentTraj, chatRecord } from '../../src/run/export-traces.ts';
import { writeParquet } from '../../src/storage/parquet.ts';
import { readTrace, type TraceLine } from '../../src/storage/trace.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { indexPath } from '../../src/storage/trace-index.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import { viewerApp } from '../../src/viewer/server.ts';
import { trajectoryOf } from '../support/traces.ts';
import { amount, campaign, expectMistake, orMistake } from './campaign.ts';
import { type Json, mutatedJson, mutatedText } from './mutations.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-attack-traces-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const COUNT = amount(100_000, 250);
const path = join(dir, '00001.jsonl');

/** Lines of a good trace, and of its index. */
function good(): { readonly trace: readonly string[]; readonly index: readonly string[] } {
  const files = new TraceFiles({ dir, config: { env: { id: 'toy', options: {} } }, rotateBytes: 1e9, keepBytes: 1e12 });
  const opening = { system: 'be brief', instructions: 'play', listed: true };
  const spoken = trajectoryOf({ episode: 1, kind: 'tokens', actions: ['look', 'go', 'look'] });
  const response = { text: 'Action: look', formatError: 'none', promptTokens: 3, completionTokens: 2 };
  const turns = spoken.turns.map((turn, t) => ({ ...turn, response: t === 0 ? { ...response, opening } : response }));
  files.episodes([trajectoryOf({ success: true }), { ...spoken, turns }], 'train', 'easy');
  files.credit(4, [{ group: 0, advantages: [Float32Array.of(0.5, -0.5), Float32Array.of(1, 2, 3)] }]);
  files.close();
  const lines = (file: string) => readFileSync(file, 'utf8').trimEnd().split('\n');
  return { trace: lines(path), index: lines(indexPath(path)) };
}

/** Everything that is made of an episode. */
function use(episode: TraceLine): void {
  for (const line of episodeLines(episode, 80)) render(line, true);
  for (const turn of [0, episode.turns.length]) episodeFrame(episode, turn, undefined, { width: 80, height: 24 });
  JSON.stringify([agentTraj(episode), chatRecord(episode)]);
}

it(`${COUNT} mutated traces are read, or refused in one line`, { timeout: 3_600_000 }, async () => {
  const { trace, index } = good();
  const values = new Map([...trace, ...index].map((line) => [line, JSON.parse(line) as Json]));
  let read = 0;
  await campaign('traces', COUNT, async (rng, n) => {
    const strike = (lines: readonly string[]) => {
      const at = rng.int(lines.length);
      const line = lines[at]!;
      return lines.with(at, rng.int(5) === 0 ? mutatedText(line, rng) : mutatedJson(values.get(line)!, rng));
    };
    const strikesIndex = rng.int(4) === 0;
    writeFileSync(path, `${(strikesIndex ? trace : strike(trace)).join('\n')}\n`);
    if (strikesIndex) writeFileSync(indexPath(path), `${strike(index).join('\n')}\n`);
    else rmSync(indexPath(path), { force: true });

    orMistake(() => readTrace(path).episodes.forEach(use));
    const episodes = orMistake(() => {
      const store = TraceStore.open(path);
      return Array.from({ length: store.size }, (_, at) => store.read(at));
    });
    episodes?.forEach(use);
    read += episodes?.length ?? 0;
    if (episodes && n % 20 === 0) writeParquet(join(dir, 'out.parquet'), episodes);
    if (n % 10 === 0) await view();
  });
  expect(read).toBeGreaterThan(COUNT / 10); // most changes of one line leave another one whole
});

/** Asks the viewer for everything. */
async function view(): Promise<void> {
  let source: RunSource;
  try {
    source = new RunSource(dir, 0, async () => ({}));
  } catch (thrown) {
    expectMistake(thrown);
    return;
  }
  const app = viewerApp([source]);
  const paths = [
    '/api/runs',
    '/api/runs/0/curves',
    '/api/runs/0/episodes?sort=return',
    '/api/runs/0/episodes/0',
    '/api/runs/0/episodes/1/group',
  ];
  for (const at of paths) {
    const answer = await app.request(at, { headers: { host: '127.0.0.1' } });
    expect([200, 404, 409]).toContain(answer.status);
    if (answer.status !== 200) expect(await answer.text()).not.toMatch(/^\s+at /m);
  }
}
