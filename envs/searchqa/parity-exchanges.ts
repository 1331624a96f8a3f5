/**
 * Recorded exchanges over HTTP, re-played: with Search-R1's retriever, with AgentGym's server in order, and whole
 * episodes. Corpus and questions behind them are `searchqa/world.jsonl.gz` under `$LONGPLAY_GOLDEN` (default
 * `../shared/golden`), or beside the recording.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { MAX_DATA_BYTES, readBounded } from '../../src/core/bounded-file.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type { RecordedRequest, ServedAnswer, ServedWorld, ServeWorld } from '../../src/core/parity.ts';
import type { Passage } from '../../src/retrieval/corpus.ts';
import { type HttpHandler, type HttpRequest, retrieveHandler } from '../../src/retrieval/retrieve-server.ts';
import type { Hit, Retriever } from '../../src/retrieval/retriever.ts';
import { agentgym } from './agentgym.ts';
import type { Comparison, Json } from './comparison.ts';
import { SearchQA } from './env.ts';
import { readOptions } from './options.ts';
import { AGENTGYM_RUNS, type Questions, tableOf } from './questions.ts';

/**
 * Sends the recorded requests and compares the answers.
 * @param file the file re-played
 * @param serve needed by exchanges with AgentGym's server
 */
export async function replayExchanges(
  kind: 'retrieve' | 'http' | 'episodes',
  rows: readonly Json[],
  file: string,
  serve: ServeWorld | undefined,
  to: Comparison,
): Promise<void> {
  const toy = toyWorld(file);
  if (kind === 'retrieve') await replayRetrievals(rows, toy, to);
  else if (kind === 'http') await replayServer(rows, toy, serve, to);
  else await replayEpisodes(rows, toy, serve, to);
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
  return JSON.parse(gunzipSync(readBounded(file, MAX_DATA_BYTES)).toString('utf8')) as ToyWorld;
}

/** Score that FAISS pads with. */
const PADDING = -3.4028234663852886e38;

/**
 * Stand-in for a retriever, as the recordings had one: passages by how many different words of the query they hold.
 * `dense` always finds as many as requested, past the end the last one; `overlap` only what shares a word.
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
    const queryWords = [...toyWords(query)];
    const scores = this.#words.map((words) => queryWords.filter((word) => words.has(word)).length);
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
    compareAnswer(where, await server.handle(createRecordedRequest(row, (body) => body)), row, to);
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
      const renameIndices = (body: Json) => ('env_idx' in body ? { ...body, env_idx: ours.get(body.env_idx) } : body);
      const path = (exchange.path as string).replace(/env_idx=(\d+)/, (_, id) => `env_idx=${ours.get(Number(id))}`);
      const answer = await server.handle(createRecordedRequest({ ...exchange, path }, renameIndices));
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

function createRecordedRequest({ method, path, body }: Json, named: (body: Json) => Json): RecordedRequest {
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
