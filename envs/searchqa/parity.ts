/**
 * Parity with AgentGym's SearchQA and Search-R1: recorded strings, scores, rankings, and exchanges over HTTP, against
 * `fidelity: original`. Kinds of recording are told apart by the fields of their rows; the corpus and questions behind
 * the exchanges are `searchqa/world.jsonl.gz` under `$LONGPLAY_GOLDEN` (default `../shared/golden`).
 *
 * Not compared, because nothing here has them: verl's wording of passages, SkyRL's score, and the query that
 * Search-R1's demonstration script reads out of a text.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { EnvOptions, EnvStep } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type {
  Difference,
  Parity,
  RecordedRequest,
  ServedAnswer,
  ServedWorld,
  ServeWorld,
} from '../../src/core/parity.ts';
import { ANALYZERS } from '../../src/retrieval/analyzer.ts';
import type { Bm25Index } from '../../src/retrieval/bm25-index.ts';
import type { Passage } from '../../src/retrieval/corpus.ts';
import { indexPassages } from '../../src/retrieval/memory-index.ts';
import { type HttpHandler, type HttpRequest, retrieveHandler } from '../../src/retrieval/retrieve-server.ts';
import type { Hit, Retriever } from '../../src/retrieval/retriever.ts';
import { agentgym } from './agentgym.ts';
import { SearchQA, SearchSession } from './env.ts';
import * as grammar from './grammar.ts';
import { readOptions } from './options.ts';
import { strip } from './python-text.ts';
import { AGENTGYM_RUNS, type Question, type Questions, tableOf } from './questions.ts';
import * as scoring from './scoring.ts';
import * as text from './text.ts';

type Json = Record<string, unknown>;

/** Compares, counts and reports. */
class Comparison {
  episodes = 0;
  steps = 0;
  readonly #report: (difference: Difference) => void;

  constructor(report: (difference: Difference) => void) {
    this.#report = report;
  }

  /** Equal as JSON, numbers within 1e-9 (or `within`). */
  check(where: string, what: string, got: unknown, expected: unknown, within = 1e-9): void {
    if (!same(got, expected, within)) this.#report({ where, what, expected, got });
  }
}

function same(a: unknown, b: unknown, within: number): boolean {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b) <= within;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  const [left, right] = [Object.keys(a), Object.keys(b)];
  if (Array.isArray(a) !== Array.isArray(b) || left.length !== right.length) return false;
  return left.every((key) => Object.hasOwn(b, key) && same((a as Json)[key], (b as Json)[key], within));
}

/** A file of any kind. */
export const parity: Parity = async (records, report, file, serve) => {
  const comparison = new Comparison(report);
  const rows = records as readonly Json[];
  const kind = kindOf(rows);
  if (kind === 'bm25') replayRankings(rows, comparison);
  else if (kind === 'world') comparison.episodes++;
  else if (kind === 'split') replaySplit(rows[0]!, comparison);
  else if (kind === 'retrieve') await replayRetrievals(rows, toyWorld(file), comparison);
  else if (kind === 'http') await replayServer(rows, toyWorld(file), serve, comparison);
  else if (kind === 'episodes') await replayEpisodes(rows, toyWorld(file), serve, comparison);
  else for (const [i, row] of rows.entries()) REPLAYS[kind](row, `${kind} ${i + 1}`, comparison);
  return comparison;
};

type Kind = keyof typeof REPLAYS | 'bm25' | 'world' | 'split' | 'retrieve' | 'http' | 'episodes';

function kindOf(rows: readonly Json[]): Kind {
  const has = (...fields: string[]) => rows.length > 0 && fields.every((field) => Object.hasOwn(rows[0]!, field));
  if (has('docs', 'tokens')) return 'bm25';
  if (has('docs', 'questions')) return 'world';
  if (has('input', 'normalized')) return 'normalize';
  if (has('input', 'truncated')) return 'action';
  if (has('input', 'valid')) return 'trajectory';
  if (has('prediction', 'golden')) return 'match';
  if (has('result', 'information_agentgym')) return 'passages';
  if (has('raw_question')) return 'prompt';
  if (has('retriever', 'method', 'path')) return 'retrieve';
  if (has('episode', 'exchanges')) return 'episodes';
  if (has('method', 'path')) return 'http';
  if (has('test')) return 'split';
  throw new UserError(
    'BAD_TRACE',
    'no recording of SearchQA: expected rows of action, normalize, match, trajectory, passages, prompt, bm25, http, episodes, retrieve or world',
  );
}

const REPLAYS = {
  normalize: (row: Json, where: string, to: Comparison) => {
    to.episodes++;
    to.check(where, 'normalized', scoring.normalize(row.input as string), row.normalized);
  },
  match: replayMatch,
  action: replayAction,
  trajectory: replayTrajectory,
  passages: replayPassages,
  prompt: replayPrompt,
};

function replayMatch(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const prediction = row.prediction as string;
  const golden = row.golden as scoring.Golden;
  to.check(where, 'em', +scoring.exactMatch(prediction, golden), row.em);
  to.check(where, 'sub_em', +scoring.subMatch(prediction, golden), row.sub_em);
  const { f1, precision, recall } = scoring.tokenOverlap(prediction, golden);
  to.check(where, 'overlap', [f1, precision, recall], [row.f1, row.precision, row.recall]);
}

function replayAction(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const input = row.input as string;
  const command = grammar.parse(input);
  to.check(where, 'action', [command?.type ?? null, command?.content ?? ''], [row.action, row.content]);
  to.check(where, 'truncated', grammar.cutAtAction(input), row.truncated);
  to.check(where, 'extract_agentgym', grammar.extractAnswer(input) ?? null, row.extract_agentgym);
  to.check(where, 'extract_search_r1', grammar.extractAnswer(input, 2) ?? null, row.extract_search_r1);
  const question = { question: '?', answers: row.target as string[] };
  const gym = askedSession('agentgym', question, '"T"\nbody of text');
  const step = gym.session.step(input) as EnvStep;
  const done = step.kind === 'terminated';
  const { reward, observation } = step;
  to.check(
    where,
    'agentgym',
    { observation, reward, done, query: gym.asked.length > 0 ? gym.asked : null },
    row.agentgym,
  );
  const searchR1 = row.search_r1 as Json;
  const isSearch = command?.type === 'search';
  // The recording's search answers a bare text where ours answers passages.
  const said = isSearch ? text.information('search-r1', 'RESULT') : command ? '' : text.invalid('search-r1');
  const flags = { done: +(command !== undefined && !isSearch), valid: +(command !== undefined), is_search: +isSearch };
  to.check(where, 'search_r1', { observation: said, ...flags }, searchR1);
  if (grammar.cutAtAction(input) !== input) return; // recorded without the cut that comes before it
  const r1 = askedSession('search-r1', question, 'RESULT').session.step(input) as EnvStep;
  to.check(where, 'search_r1 done', +(r1.kind === 'terminated'), searchR1.done);
  if (!isSearch) to.check(where, 'search_r1 observation', r1.observation, searchR1.observation);
}

/** A session of the original whose every search finds one passage. */
function askedSession(dialect: text.Dialect, question: Question, contents: string) {
  const asked: string[] = [];
  const retriever: Retriever = {
    isRepeatable: true,
    search(query) {
      asked.push(query);
      return [{ document: { contents } }];
    },
    dispose() {},
  };
  return { session: new SearchSession(readOptions({ fidelity: 'original', dialect }), question, retriever), asked };
}

const WEIGHTS: readonly scoring.FormatWeights[] = [
  {},
  { structure: 0.2, final: 0.1 },
  { structure: 0.2, final: 0.1, retrieval: 0.1 },
  {}, // a format_score, which the original takes and never uses
];

function replayTrajectory(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const input = row.input as string;
  const target = row.target as scoring.Golden;
  const { valid, reason } = scoring.checkSequence(input);
  to.check(where, 'valid', [valid, reason], row.valid);
  to.check(where, 'information', grammar.contentsOf(input, 'information').map(strip), row.information);
  to.check(where, 'retrieval_correct', scoring.retrievalHolds(input, target, true), row.retrieval_correct);
  for (const [of, least] of [
    ['agentgym', 1],
    ['search_r1', 2],
  ] as const) {
    to.check(where, `extract_${of}`, grammar.extractAnswer(input, least) ?? null, row[`extract_${of}`]);
    const scores = (match: typeof scoring.exactMatch) =>
      [0, 0.1].map((formatScore) => scoring.outcomeScore(input, target, { least, formatScore, match }));
    to.check(where, `em_${of}`, scores(scoring.exactMatch), row[`em_${of}`]);
    to.check(where, `sub_em_${of}`, scores(scoring.subMatch), row[`sub_em_${of}`]);
    const forms = WEIGHTS.map((weights) => scoring.formatScore(input, target, weights, { least, original: true }));
    to.check(where, `format_${of}`, forms, row[`format_${of}`]);
  }
}

function replayPassages(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const contents = (row.result as { document: Passage }[]).map(({ document }) => document.contents);
  const list = text.listPassages(contents);
  to.check(where, 'string', list, row.string);
  to.check(where, 'information_agentgym', text.information('agentgym', list), row.information_agentgym);
  to.check(where, 'information_search_r1', text.information('search-r1', list), row.information_search_r1);
}

function replayPrompt(row: Json, where: string, to: Comparison): void {
  to.episodes++;
  const question = text.asQuestion(row.raw_question as string);
  to.check(where, 'question', question, row.question);
  to.check(where, 'agentgym', text.opening('agentgym', question), row.agentgym);
  to.check(where, 'search_r1', text.opening('search-r1', question), row.search_r1);
}

function replayRankings([corpus, ...queries]: readonly Json[], to: Comparison): void {
  to.episodes++;
  const passages = (corpus!.docs as string[]).map((contents) => ({ contents }));
  const tokens = corpus!.tokens as string[][];
  for (const [i, expected] of tokens.entries()) {
    to.check(`passage ${i}`, 'tokens', ANALYZERS.plain(passages[i]!.contents), expected);
  }
  const indexes = new Map<string, Bm25Index>();
  for (const [i, row] of queries.entries()) {
    to.episodes++;
    const where = `query ${i + 1} ${JSON.stringify(row.query)}`;
    to.check(where, 'tokens', ANALYZERS.plain(row.query as string), row.tokens);
    const { k1, b } = row as { k1: number; b: number };
    for (const [lengths, field] of [
      ['lucene', 'hits'],
      ['exact', 'hits_exact_lengths'],
    ] as const) {
      const key = `${k1} ${b} ${lengths}`;
      const index = indexes.get(key) ?? indexPassages(passages, { k1, b, lengths });
      indexes.set(key, index);
      for (const prune of [true, false]) {
        const hits = index.search(row.query as string, row.k as number, prune);
        const got = hits.map(({ passage, score }) => [passage, score]);
        to.check(where, `${field}${prune ? '' : ', not pruned'}`, got, row[field], 1e-5);
      }
    }
  }
}

/** Corpus and questions behind the recorded exchanges. */
interface ToyWorld {
  readonly docs: readonly Required<Passage>[];
  readonly questions: readonly { readonly question: string; readonly golden_answers: readonly string[] }[];
}

/** @param recording the file replayed; the corpus lies beside it or in the golden folder */
function toyWorld(recording: string): ToyWorld {
  const golden = process.env.LONGPLAY_GOLDEN ?? '../shared/golden';
  const places = [join(golden, 'searchqa/world.jsonl.gz'), join(dirname(recording), 'world.jsonl.gz')];
  const file = places.find((place) => existsSync(place));
  if (file === undefined) {
    throw new UserError(
      'BAD_TRACE',
      `the corpus of the recording is in neither ${places.join(' nor ')}; set LONGPLAY_GOLDEN`,
    );
  }
  return JSON.parse(gunzipSync(readFileSync(file)).toString('utf8')) as ToyWorld;
}

/** Score that FAISS pads with. */
const PADDING = -3.4028234663852886e38;

/**
 * Stand-in for a retriever, as the recordings had one: passages by how many different words of the query they hold.
 * `dense` always finds as many as asked, past the end the last one; `overlap` only what shares a word.
 */
class ToyRetriever implements Retriever {
  readonly isRepeatable = true;
  readonly #docs: readonly Required<Passage>[];
  readonly #dense: boolean;
  readonly #words: readonly ReadonlySet<string>[];

  constructor(docs: readonly Required<Passage>[], dense: boolean) {
    this.#docs = docs;
    this.#dense = dense;
    this.#words = docs.map(({ contents }) => toyWords(contents));
  }

  search(query: string, topk: number): readonly Hit[] {
    const asked = [...toyWords(query)];
    const scores = this.#words.map((words) => asked.filter((word) => words.has(word)).length);
    const rows = [...scores.keys()].filter((row) => this.#dense || scores[row]! > 0);
    rows.sort((a, b) => scores[b]! - scores[a]! || a - b);
    const hits: Hit[] = rows.slice(0, topk).map((row) => ({ document: this.#docs[row]!, score: scores[row]! }));
    while (this.#dense && hits.length < topk) hits.push({ document: this.#docs.at(-1)!, score: PADDING });
    return hits;
  }

  dispose(): void {}
}

function toyWords(text: string): Set<string> {
  return new Set(text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).match(/[a-z0-9]+/g) ?? []);
}

/** Documents as a Lucene index that stores its text gives them back: no id, title without quotes. */
function asStored({ contents }: Passage): Passage {
  const [title, ...rest] = contents.split('\n');
  return { title: title!.replace(/^"|"$/g, ''), text: rest.join('\n'), contents } as Passage;
}

async function replayRetrievals(rows: readonly Json[], { docs }: ToyWorld, to: Comparison): Promise<void> {
  const dense = new ToyRetriever(docs, true);
  const stored = new ToyRetriever(docs.map(asStored) as Required<Passage>[], false);
  const handlers: Record<string, HttpHandler> = {
    dense: retrieveHandler(dense, { fidelity: 'original' }),
    bm25: retrieveHandler(stored, { fidelity: 'original' }),
  };
  for (const [i, row] of rows.entries()) {
    to.episodes++;
    const where = `exchange ${i + 1} (${row.retriever}) ${row.method} ${row.path} ${JSON.stringify(row.body)}`;
    const handler = handlers[row.retriever as string];
    if (!handler) throw new UserError('BAD_TRACE', `${where}: no retriever is called ${JSON.stringify(row.retriever)}`);
    const { status, contentType = 'application/json', body } = await handler(requestOf(row));
    compareAnswer(where, { status, contentType, body: String(body) }, row, to);
  }
}

function requestOf({ method, path, body }: Json): HttpRequest {
  const raw = (body as { _raw?: string } | null)?._raw;
  const [place, query = ''] = (path as string).split('?');
  return {
    method: method as string,
    path: place!,
    query,
    contentType: body === null ? undefined : 'application/json',
    body: raw ?? (body === null ? '' : JSON.stringify(body)),
    gone: new AbortController().signal,
  };
}

/** AgentGym's numbered items over the toy questions, which take turns within test and train. */
function toyQuestions({ questions }: ToyWorld): Questions {
  const tasks = tableOf(AGENTGYM_RUNS);
  const tests = tasks.split('test').length;
  return {
    tasks,
    longest: 1000,
    at(index) {
      tasks.label(index); // refuses what is outside
      const { question, golden_answers: answers } =
        questions[(index < tests ? index : index - tests) % questions.length]!;
      return { question, answers };
    },
  };
}

function toyServer(toy: ToyWorld, dense: boolean, serve: ServeWorld | undefined): Promise<ServedWorld> {
  if (!serve) throw new UserError('BAD_ARGUMENT', 'recorded exchanges are played through a server, and none was given');
  const retriever = new ToyRetriever(toy.docs, dense);
  const questions = toyQuestions(toy);
  const createEnv = (options: EnvOptions = {}) => new SearchQA(readOptions(options), questions, retriever);
  return serve({ createEnv, agentgym });
}

/** Exchanges with one fresh server, in order. */
async function replayServer(
  rows: readonly Json[],
  toy: ToyWorld,
  serve: ServeWorld | undefined,
  to: Comparison,
): Promise<void> {
  to.episodes++;
  const server = await toyServer(toy, true, serve);
  for (const [i, row] of rows.entries()) {
    if (row.path === '/step' && row.status === 200) to.steps++;
    const where = `exchange ${i + 1}: ${row.method} ${row.path} ${JSON.stringify(row.body)}`;
    compareAnswer(where, await server.handle(recordedRequest(row, (body) => body)), row, to);
  }
  await server.close();
}

/** Whole episodes; the number that a recorded `/create` answered stands for ours in later bodies. */
async function replayEpisodes(
  rows: readonly Json[],
  toy: ToyWorld,
  serve: ServeWorld | undefined,
  to: Comparison,
): Promise<void> {
  const servers = { dense: await toyServer(toy, true, serve), overlap: await toyServer(toy, false, serve) };
  for (const row of rows) {
    to.episodes++;
    const server = servers[row.retriever as keyof typeof servers];
    if (!server) throw new UserError('BAD_TRACE', `no retriever is called ${JSON.stringify(row.retriever)}`);
    const ours = new Map<unknown, unknown>();
    const rewards: unknown[] = [];
    for (const [i, exchange] of (row.exchanges as Json[]).entries()) {
      const where = `episode ${row.episode} (${row.agent}), exchange ${i + 1}: ${exchange.method} ${exchange.path}`;
      const named = (body: Json) => ('env_idx' in body ? { ...body, env_idx: ours.get(body.env_idx) } : body);
      const path = (exchange.path as string).replace(/env_idx=(\d+)/, (_, id) => `env_idx=${ours.get(Number(id))}`);
      const answer = await server.handle(recordedRequest({ ...exchange, path }, named));
      if (exchange.path === '/create') {
        ours.set(exchange.response, JSON.parse(answer.body));
        to.check(where, 'status', answer.status, exchange.status);
        continue;
      }
      if (exchange.path === '/step') {
        to.steps++;
        rewards.push((JSON.parse(answer.body) as Json).reward);
      }
      compareAnswer(where, answer, exchange, to);
    }
    to.check(`episode ${row.episode} (${row.agent})`, 'rewards', rewards, row.rewards);
  }
  for (const server of Object.values(servers)) await server.close();
}

function recordedRequest({ method, path, body }: Json, named: (body: Json) => Json): RecordedRequest {
  const request = { method: method as string, path: path as string };
  if (body === null) return request;
  const raw = (body as Json)._raw as string | undefined;
  if (raw !== undefined)
    return isJson(raw) ? { ...request, body: raw, contentType: 'text/plain' } : { ...request, body: raw };
  const isObject = typeof body === 'object' && !Array.isArray(body);
  return { ...request, body: JSON.stringify(isObject ? named(body as Json) : body) };
}

/** True of a raw body that would have been recorded as JSON, had it been marked so: it was sent as plain text. */
function isJson(raw: string): boolean {
  try {
    JSON.parse(raw);
    return true;
  } catch {
    return false;
  }
}

/** Ids of AgentGym-RL's test file: `set_index`, each in its set's run. */
function replaySplit({ test }: Json, to: Comparison): void {
  to.episodes++;
  const tasks = tableOf(AGENTGYM_RUNS);
  const tests = new Set(tasks.split('test'));
  for (const id of test as string[]) {
    const index = Number(id.slice(id.lastIndexOf('_') + 1));
    to.check(id, 'set', tests.has(index) ? tasks.label(index) : undefined, id.slice(0, id.lastIndexOf('_')));
  }
}

/** Status, type and body; of a 422 only what is complained about. */
function compareAnswer(where: string, answer: ServedAnswer, recorded: Json, to: Comparison): void {
  const { status, contentType = null, body } = answer;
  to.check(where, 'status', status, recorded.status);
  to.check(where, 'content type', contentType, recorded.content_type);
  const got = contentType === 'application/json' ? JSON.parse(body) : { _text: body };
  if (recorded.status === 422 && status === 422) to.check(where, 'loc', placesOf(got), placesOf(recorded.response));
  else to.check(where, 'response', got, recorded.response);
}

function placesOf(body: unknown): unknown {
  return ((body as Json).detail as Json[]).map(({ loc }) => loc);
}
