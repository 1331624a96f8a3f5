/** Imports of what other programs record: calls, parallel results, sub-agents, scores; what was lost; what cannot be read. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readAgentReply } from '../../../src/core/agent-call.ts';
import { listConversations, readCallTurns } from '../../../src/core/call-episode.ts';
import { episodeReturn } from '../../../src/core/trajectory.ts';
import { IMPORT_FORMATS, type ImportFormat, importTraces } from '../../../src/run/import/import-traces.ts';
import { Losses } from '../../../src/run/import/losses.ts';
import { readPairs } from '../../../src/run/import/message-logs.ts';
import { readLangSmith } from '../../../src/run/import/observation-tables.ts';
import { readOtel } from '../../../src/run/import/otel.ts';
import { readDemonstrations } from '../../../src/run/offline/demonstrations.ts';
import { runSources } from '../../../src/run/view-runs.ts';
import { TraceStore } from '../../../src/storage/trace-store.ts';
import { typed } from '../../support/typed.ts';
import { atif, below, belowAnswer, langfuseRows, openAi, openAiPair, SOURCES, turn2 } from './sources.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-import-'));
afterAll(() => rmSync(folder, { recursive: true }));

let made = 0;
/** Writes a source of JSON lines. */
function lines(values: readonly unknown[], name = `${made++}.jsonl`): string {
  const path = join(folder, name);
  writeFileSync(path, values.map((one) => `${typeof one === 'string' ? one : JSON.stringify(one)}\n`).join(''));
  return path;
}
const fresh = () => join(folder, `out-${made++}`);

function imported(source: string, from?: ImportFormat) {
  const out = fresh();
  const report = importTraces({ source, out, from });
  const store = TraceStore.open(out);
  return { out, report, episodes: store.episodes.map(({ at }) => store.read(at)) };
}

describe.each(IMPORT_FORMATS)('%s', (format) => {
  const source = lines(SOURCES[format], `${format}.jsonl`);

  it('is guessed, and becomes one episode: a conversation, and a branch for the sub-agent', () => {
    const { report, episodes } = imported(source);
    expect(report).toMatchObject({
      from: format,
      isGuessed: true,
      episodes: 1,
      turns: 3,
      branches: 1,
      bad: 0,
      unscored: 0,
    });
    const [episode] = episodes;
    expect(episodeReturn(episode!)).toBeCloseTo(0.75);
    expect(episode!.success).toBe(true);
    const conversations = listConversations(episode!.turns).map(({ messages }) =>
      messages.map(({ content }) => content),
    );
    expect(conversations.sort((a, b) => b.length - a.length)).toEqual([
      ['S', 'hi', '', 'two', 'one', 'done'],
      expect.arrayContaining(['sub task', 'sub answer']),
    ]);
  });

  it('puts parallel results beside their calls', () => {
    const { episodes } = imported(source, format);
    const read = readCallTurns(episodes[0]!.turns, episodes[0]!.finalObservation)!;
    const [first] = read.filter(({ reply }) => (reply?.calls.length ?? 0) > 0);
    expect(first!.reply!.calls.map(({ arguments: args, result }) => [JSON.parse(args), result])).toEqual([
      [{ x: 1 }, 'one'],
      [{ x: 2 }, 'two'],
    ]);
    expect(first!.tools).toEqual(format === 'otel' ? [] : ['f']);
  });

  it('is read by sft, view, replay and export', async () => {
    const { out } = imported(source, format);
    const [demonstration] = readDemonstrations(out, () => {}, undefined, true);
    expect(demonstration!.turns.map(({ action }) => readAgentReply(action).content).sort()).toEqual([
      '',
      'done',
      'sub answer',
    ]);
    expect(demonstration!.score).toBeCloseTo(0.75);
    expect(runSources([out])[0]!.info).toMatchObject({ episodes: 1 });
    const replayed = await typed('replay', out);
    expect([replayed.status, replayed.stdout]).toEqual([0, expect.stringContaining('sub answer')]);
    const path = `${out}.jsonl`;
    expect((await typed('export', out, '--out', path)).status).toBe(0);
    expect(readFileSync(path, 'utf8').trim().split('\n')).toHaveLength(2);
  });

  it('names each line that cannot be read, keeps the rest and ends with 1', async () => {
    const broken = lines([...SOURCES[format].slice(0, 1), '{"half": ', ...SOURCES[format].slice(1), { other: 1 }]);
    const out = fresh();
    const { status, stdout, stderr } = await typed('import', broken, '--from', format, '--out', out, '--json');
    expect(status).toBe(1);
    expect(stderr).toMatch(/jsonl:2: it is no JSON/);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ episodes: 1, turns: 3, bad: 2, out });
    expect(report.badRecords[1]).toMatchObject({ line: SOURCES[format].length + 2 });
    expect(JSON.parse(readFileSync(join(out, 'import.json'), 'utf8'))).toMatchObject({ episodes: 1, bad: 2 });
  });
});

it('token ids and log-probabilities of ATIF are kept', () => {
  const { report, episodes } = imported(lines([atif]));
  expect(report.tokenTurns).toBe(1);
  const { decision } = episodes[0]!.turns[0]!;
  expect(decision).toMatchObject({ kind: 'tokens' });
  expect(decision?.kind === 'tokens' && [[...decision.context], [...decision.tokens], [...decision.logprobs]]).toEqual([
    [1, 2],
    [3, 4],
    [-1, -2],
  ]);
});

it('nothing is dropped without being counted', () => {
  const image = { type: 'image_url', image_url: { url: 'x' } };
  const conversation = {
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'see' }, image], name: 'n' },
      { role: 'assistant', content: 'a', audio: { id: 1 } },
    ],
    seed: 4,
    parallel_tool_calls: true,
    response: 'b',
  };
  expect(imported(lines([conversation])).report.lost).toEqual({
    'conversation.messages[].audio': 1,
    'conversation.messages[].content[type=image_url]': 1,
    'conversation.messages[].name': 1,
    parallel_tool_calls: 1,
    response: 1,
    seed: 1,
  });
  expect(imported(lines(SOURCES.otel)).report.lost).toEqual({ 'attributes.gen_ai.response.model': 1 });
});

it('a score is chosen by its name; without one the episode counts as 0, and is counted', () => {
  const rows = [
    ...langfuseRows,
    { id: 'u', trace_id: 't', name: 'other', value: 3, data_type: 'NUMERIC', source: 'API' },
  ];
  const source = lines(rows);
  const [none, other] = [undefined, 'other'].map((score) => {
    const out = fresh();
    const report = importTraces({ source, out, score });
    return { report, episode: TraceStore.open(out).read(0) };
  });
  expect([none!.report.unscored, episodeReturn(none!.episode)]).toEqual([1, 0]);
  expect([other!.report.unscored, episodeReturn(other!.episode)]).toEqual([0, 3]);
  expect(JSON.parse(none!.episode.finalObservation).metrics).toEqual({ judge: 0.75, other: 3 });
});

it('sessions of pairs are episodes, and equal openings are one task', () => {
  const pairs = ['a', 'b', 'a'].map((session_id, i) => ({
    ...openAiPair(i === 2 ? turn2 : openAi.first, i === 2 ? openAi.answer : openAi.calls, openAi.tools),
    session_id,
  }));
  const { episodes } = imported(lines(pairs));
  expect(episodes.map(({ turns, task, label }) => [label, turns.length, task.index])).toEqual([
    ['a', 2, 0],
    ['b', 1, 0],
  ]);
});

it('a folder of trials of Harbor has the rewards of its results', () => {
  const job = join(folder, 'job');
  for (const [name, reward] of [
    ['one', 1],
    ['two', 0],
  ] as const) {
    mkdirSync(join(job, name, 'agent'), { recursive: true });
    const { final_metrics: _, ...document } = atif;
    writeFileSync(join(job, name, 'agent', 'trajectory.json'), JSON.stringify(document, null, 2));
    writeFileSync(
      join(job, name, 'result.json'),
      JSON.stringify({ trial_name: name, verifier_result: { rewards: { reward } } }),
    );
  }
  const { report, episodes } = imported(job);
  expect(report).toMatchObject({ from: 'atif', episodes: 2, bad: 0, unscored: 0 });
  expect(episodes.map(episodeReturn)).toEqual([1, 0]);
});

it('a trace of Langfuse as one JSON file, and lines whose file is called .json', () => {
  const path = join(folder, 'trace.json');
  const [score] = langfuseRows.slice(-1);
  writeFileSync(
    path,
    JSON.stringify({ id: 't', name: 'x', observations: langfuseRows.slice(0, -1), scores: [score] }, null, 1),
  );
  expect(imported(path).report).toMatchObject({ from: 'langfuse', episodes: 1, turns: 3 });
  expect(imported(lines(SOURCES.otel, 'lines.json')).report).toMatchObject({ from: 'otel', episodes: 1, turns: 3 });
  const unended = join(folder, 'unended.jsonl');
  writeFileSync(unended, JSON.stringify({ messages: [...below, belowAnswer] }));
  expect(imported(unended).report).toMatchObject({ episodes: 1, bad: 0 });
});

it('a source without an episode leaves nothing behind', async () => {
  const out = fresh();
  const { status, stderr } = await typed('import', lines(['{', '{']), '--from', 'openai', '--out', out);
  expect([status, stderr]).toEqual([
    2,
    expect.stringMatching(/expected episodes of openai, found none; .*:1: it is no JSON/),
  ]);
  expect(existsSync(out)).toBe(false);
});

it('a record whose reading fails is named by its line, and the rest is kept', () => {
  const conversation = (role: unknown) => ({
    messages: [
      { role: 'user', content: 'hi' },
      { role, content: 'done' },
    ],
  });
  const broken = lines(['assistant', { toString: 1 }, 'assistant'].map(conversation));
  const { report } = imported(broken, 'openai');
  expect(report).toMatchObject({ episodes: 2, bad: 1, badRecords: [{ file: broken, line: 2 }] });
  const rows = langfuseRows.map((row) => ({ ...row, trace_id: 'u', traceId: 'u', start_time: { toString: 1 } }));
  const grouped = imported(lines([...rows.slice(0, 2), ...langfuseRows, { observations: [], id: { toString: 1 } }]));
  expect(grouped.report).toMatchObject({ from: 'langfuse', episodes: 1, badRecords: [{ line: 1 }, {}] });
});

it('of several scores of one name that of the whole trace counts, else the first; the others are counted', () => {
  const score = (value: number, observation_id?: string) => ({
    ...{ id: `s${value}`, trace_id: 't', name: 'judge', value, data_type: 'NUMERIC', source: 'API' },
    ...(observation_id && { observation_id }),
  });
  const rows = langfuseRows.slice(0, -1);
  const scoreOf = (scores: readonly object[]) => {
    const { report, episodes } = imported(lines([...rows, ...scores]));
    return [episodeReturn(episodes[0]!), report.lost['scores (several of one name)']];
  };
  expect(scoreOf([score(0.25, '1'), score(0.75), score(0.5, '2')])).toEqual([0.75, 2]);
  expect(scoreOf([score(0.25, '1'), score(0.5, '2')])).toEqual([0.25, 1]);
  expect(scoreOf([score(0.75)])).toEqual([0.75, undefined]);
  const losses = new Losses();
  const stats = (avg: number, parent_run_id: string | null) => ({ parent_run_id, feedback_stats: { judge: { avg } } });
  expect(readLangSmith([stats(0.25, 'r'), stats(0.75, null)], losses).scores).toEqual({ judge: 0.75 });
  const evaluated = (value: number, parentSpanId: string) => {
    const attributes = { 'gen_ai.evaluation.name': 'judge', 'gen_ai.evaluation.score.value': value };
    return { parentSpanId, events: [{ name: 'gen_ai.evaluation.result', attributes }] };
  };
  expect(readOtel([evaluated(0.25, 'ab'), evaluated(0.75, '00')], losses).scores).toEqual({ judge: 0.75 });
  expect(
    readPairs(
      [0.25, 0.75].map((reward) => ({ request: {}, response: {}, reward })),
      losses,
    ).scores,
  ).toEqual({
    reward: 0.75,
  });
  expect(losses.list()['scores (several of one name)']).toBe(3);
});

it.each(['json', 'dpo'])('forms without tools refuse an episode of calls in one line: %s', async (form) => {
  const pair = [1, 0].map((reward) => ({
    reward,
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: `answer ${reward}` },
    ],
  }));
  const { out } = imported(lines(pair), 'openai');
  const path = join(folder, `plain-${form}.${form === 'json' ? 'json' : 'jsonl'}`);
  const flags = form === 'dpo' ? ['--format', 'dpo'] : [];
  const { status, stderr } = await typed('export', out, '--out', path, ...flags);
  expect(status).not.toBe(0);
  expect(stderr.trim().split('\n')).toEqual([
    expect.stringMatching(/has no place for calls of tools.*--format chatml, trl/),
  ]);
  expect(existsSync(path)).toBe(false);
});
