/** Traces with a part that cannot be, in every place that reads them: one line that names it; no stack, no 500. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { indexPath } from '../../src/storage/trace-index.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import { viewerApp } from '../../src/viewer/server.ts';
import { trajectoryOf } from '../support/traces.ts';
import { typed } from '../support/typed.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-damaged-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const path = join(dir, '00001.jsonl');
const out = join(dir, 'out.json');

/** Any JSON, to be spoilt. */
// biome-ignore lint/suspicious/noExplicitAny: a test writes where it likes
type Loose = any;

/** Lines of a good trace: header, choices, runs of tokens, credit. */
let lines: string[];
beforeEach(() => {
  rmSync(path, { force: true });
  rmSync(indexPath(path), { force: true });
  rmSync(out, { force: true });
  const files = new TraceFiles({ dir, config: { env: { id: 'toy', options: {} } }, rotateBytes: 1e9, keepBytes: 1e12 });
  const actions = ['look', 'go', 'look'];
  files.episodes([trajectoryOf({ actions }), trajectoryOf({ episode: 1, kind: 'tokens', actions })], 'train', 'easy');
  files.credit(4, [{ group: 0, advantages: [Float32Array.of(1, 2, 3), Float32Array.of(4, 5, 6)] }]);
  files.close();
  lines = readFileSync(path, 'utf8').trimEnd().split('\n');
});

const choices: readonly (readonly [string, (line: Loose) => void])[] = [
  ['an action chosen beyond the list', ({ turns }) => (turns[1].decision.choice = 2)],
  ['an action chosen far beyond the list', ({ turns }) => (turns[1].decision.choice = 2 ** 31)],
  ['a negative choice', ({ turns }) => (turns[0].decision.choice = -1)],
  ['half a choice', ({ turns }) => (turns[0].decision.choice = 0.5)],
  ['a choice that is a text', ({ turns }) => (turns[0].decision.choice = '1')],
  ['no choice', ({ turns }) => (turns[0].decision.choice = null)],
  ['a likely action beyond the list', ({ turns }) => (turns[0].decision.likeliest = [7, 5000])],
  ['a likely action without its share', ({ turns }) => (turns[0].decision.likeliest = [0])],
  ['an action beyond the table', ({ turns }) => (turns[2].actions = [0, 99])],
  ['a negative action', ({ turns }) => (turns[2].actions = [-1])],
  ['a third of an action', ({ turns }) => (turns[2].actions = [1 / 3])],
  ['actions that are no list', ({ turns }) => (turns[2].actions = { length: 2 ** 32 })],
  ['a table with a hole', ({ actionTable }) => (actionTable[1] = null)],
  ['no table', (line) => delete line.actionTable],
  ['a turn that is null', ({ turns }) => (turns[1] = null)],
  ['a turn that is a list', ({ turns }) => (turns[1] = [])],
  ['turns that are null', (line) => (line.turns = null)],
  ['turns by number', (line) => (line.turns = { 1: line.turns[1], 0: line.turns[0] })],
  ['a turn without an observation', ({ turns }) => delete turns[0].observation],
  ['an action that is null', ({ turns }) => (turns[0].action = null)],
  ['a decision of another kind', ({ turns }) => (turns[0].decision.kind = '__proto__')],
  ['a reward that is null', ({ turns }) => (turns[0].reward = null)],
  ['a task that is null', (line) => (line.task = null)],
  ['a negative task', ({ task }) => (task.index = -1)],
  ['half an episode', (line) => (line.episode = 0.5)],
  ['a horizon of 0', (line) => (line.horizon = 0)],
  ['an end that is none', (line) => (line.end = 'toString')],
];
const tokens: typeof choices = [
  ['fewer log-probabilities than tokens', ({ turns }) => turns[0].decision.logprobs.pop()],
  ['a negative token', ({ turns }) => (turns[0].decision.tokens[0] = -1)],
  ['versions of more tokens than there are', ({ turns }) => (turns[0].decision.versions[1] = 2)],
  ['versions of a run without tokens', ({ turns }) => (turns[0].decision.versions = [3, 0, 4, 2])],
];

/** Writes the trace with one line spoilt. @param at 1 or 2, the episode */
function spoil(at: number, how: (line: Loose) => void, indexed: boolean): void {
  const line = JSON.parse(lines[at]!);
  how(line);
  // An index is believed where its places fit, so a spoilt line is as long as the good one was.
  const text = JSON.stringify(line);
  expect(text).not.toBe(lines[at]);
  const padded = indexed ? text.padEnd(lines[at]!.length) : text;
  writeFileSync(path, `${lines.with(at, padded).join('\n')}\n`);
  if (!indexed || padded.length > lines[at]!.length) rmSync(indexPath(path));
}

/** Expects one line that states what is wrong with the trace, and that the file is damaged. */
function expectOneLine(output: string): void {
  expect(output.trimEnd()).not.toContain('\n');
  expect(output).toMatch(/00001\.jsonl: .*is no line of a trace: .+; the file is damaged/);
}

describe.each([
  ['with an index', true],
  ['without an index', false],
])('a trace %s', (_, indexed) => {
  it.each([
    ...choices.map(([what, how]) => [what, 1, how] as const),
    ...tokens.map(([what, how]) => [what, 2, how] as const),
  ])('that has %s is refused in one line by replay, export and viewer', async (_, at, how) => {
    spoil(at, how, indexed);
    const replayed = await typed('replay', path, '--episode', String(at - 1));
    expect(replayed).toMatchObject({ status: 2, stdout: '' });
    expectOneLine(replayed.stderr);

    const exported = await typed('export', path, '--out', out);
    expect(exported).toMatchObject({ status: 2, stdout: '' });
    expectOneLine(exported.stderr);
    expect(existsSync(out)).toBe(false);

    const reported = await typed('view', path, '--out', join(dir, 'report.html'));
    expect(reported).toMatchObject({ status: 2, stdout: '' });
    expectOneLine(reported.stderr);

    let source: RunSource;
    try {
      source = new RunSource(dir, 0, async () => ({}));
    } catch (thrown) {
      expectOneLine((thrown as Error).message); // `longplay view` ends with it
      return;
    }
    const app = viewerApp([source]);
    for (const place of [`/api/runs/0/episodes/${at - 1}`, '/api/runs/0/episodes/0/group']) {
      const answer = await app.request(place, { headers: { host: '127.0.0.1' } });
      expect(answer.status).toBe(409);
      expectOneLine(await answer.text());
    }
    expect((await app.request('/api/runs/0/episodes', { headers: { host: '127.0.0.1' } })).status).toBe(200);
  });
});

describe('an index that lies', () => {
  it.each<readonly [string, (line: Loose[]) => void]>([
    ['places an episode before the file', (line) => (line[0] = -1)],
    ['places an episode behind the file', (line) => (line[0] = 1e15)],
    ['makes an episode longer than the file', (line) => (line[1] = 2 ** 52)],
    ['makes an episode of nothing', (line) => (line[1] = 0)],
    ['makes an episode of half a line', (line) => (line[1] = Math.floor(line[1] / 2))],
    ['has an episode number that is null', (line) => (line[2] = null)],
    ['has an environment that is a number', (line) => (line[4] = 7)],
    ['claims 2^53 turns', (line) => (line[13] = Number.MAX_SAFE_INTEGER)],
  ])('and %s is passed over, or reported in one line', async (_, how) => {
    const index = readFileSync(indexPath(path), 'utf8').trimEnd().split('\n');
    const line = JSON.parse(index[1]!);
    how(line);
    writeFileSync(indexPath(path), `${index.with(1, JSON.stringify(line)).join('\n')}\n`);
    for (const args of [
      ['replay', path, '--episode', '0'],
      ['export', path, '--out', out],
      ['view', path, '--out', join(dir, 'report.html')],
    ]) {
      const { status, stderr } = await typed(...args);
      if (status === 0) expect(stderr.split('\n').length).toBeLessThanOrEqual(3);
      else {
        expect(status).toBe(2);
        expect(stderr.trimEnd()).not.toContain('\n');
        expect(stderr).toMatch(/00001\.jsonl/);
      }
    }
  });
});
