/**
 * Retriever behind a server: Search-R1's protocol, or the JSON that Elasticsearch and OpenSearch share. Queries of all
 * sessions that arrive within `batchMs` go in one request; answers are cached by query; refused connections, timeouts
 * and 5xx are tried again, 4xx never.
 *
 * A live server may answer otherwise tomorrow, so an episode over it can be played again only where its answers are
 * recorded (recorded-results.ts).
 */
import type { Clock } from '../core/clock.ts';
import { systemClock } from '../core/clock.ts';
import { LongplayError, messageOf } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { Rng, seedFrom } from '../core/rng.ts';
import { attempt } from '../http/attempts.ts';
import { excerpt, HttpClient } from '../http/http-client.ts';
import { RemoteError } from '../http/retry.ts';
import type { RecordedResults } from './recorded-results.ts';
import type { Hit, Retriever } from './retriever.ts';

export interface RemoteRetrieverOptions {
  /**
   * URL. Search-R1: the server, with or without `/retrieve`. Elasticsearch: the server and index, e.g.
   * `http://…:9200/wiki`.
   */
  readonly url: string;
  readonly protocol: 'search-r1' | 'elasticsearch';
  /** Milliseconds of one attempt. Default 30000. */
  readonly timeoutMs?: number;
  /** Further attempts. Default 3. */
  readonly retries?: number;
  /** Milliseconds that a query waits for others. Default 2. */
  readonly batchMs?: number;
  /** Queries of one request at most. Default 64. */
  readonly maxBatch?: number;
  /** Answers kept in memory, least recently used dropped; 0 for none. Default 10000. */
  readonly cache?: number;
  /** Folder of answers kept on disk. */
  readonly recorded?: RecordedResults;
  readonly clock?: Clock;
}

/** Query that waits for its request. */
interface Waiting {
  readonly query: string;
  readonly topk: number;
  resolve(hits: readonly Hit[]): void;
  reject(thrown: unknown): void;
}

/** Wire format: the bodies that a protocol sends and reads. */
interface Wire {
  readonly path: string;
  write(queries: readonly string[], topk: number): string;
  /** @throws {RemoteError} malformed */
  read(body: string, queries: number): Hit[][];
}

export class RemoteRetriever implements Retriever {
  readonly isRepeatable: boolean;
  readonly #options: Required<Omit<RemoteRetrieverOptions, 'recorded'>>;
  readonly #recorded: RecordedResults | undefined;
  readonly #http: HttpClient;
  readonly #wire: Wire;
  readonly #cache = new Map<string, Promise<readonly Hit[]>>();
  #waiting: Waiting[] = [];
  #cancel: (() => void) | undefined;
  #sent = 0;

  /** @throws {UserError} BAD_ARGUMENT for an URL that is none */
  constructor({ recorded, ...options }: RemoteRetrieverOptions) {
    this.#options = {
      timeoutMs: 30_000,
      retries: 3,
      batchMs: 2,
      maxBatch: 64,
      cache: 10_000,
      clock: systemClock,
      ...options,
    };
    this.#recorded = recorded;
    this.isRepeatable = recorded !== undefined;
    this.#wire = options.protocol === 'search-r1' ? SEARCH_R1 : ELASTICSEARCH;
    this.#http = new HttpClient({ baseUrl: options.url.replace(/\/retrieve\/?$/, ''), maxBytes: 256 * 2 ** 20 });
  }

  search(query: string, topk: number): Promise<readonly Hit[]> {
    const key = `${topk} ${query}`;
    const known = this.#cache.get(key);
    if (known) {
      this.#cache.delete(key); // to the end: used last
      this.#cache.set(key, known);
      return known;
    }
    const found = this.#ask(query, topk);
    if (this.#options.cache > 0) {
      if (this.#cache.size >= this.#options.cache) this.#cache.delete(this.#cache.keys().next().value!);
      this.#cache.set(key, found);
      found.catch(() => this.#cache.delete(key)); // a failure is not remembered
    }
    return found;
  }

  dispose(): void {
    this.#cancel?.();
    for (const { reject } of this.#waiting) reject(new LongplayError('REMOTE_FAILED', 'the retriever was closed'));
    this.#waiting = [];
    this.#http.close();
  }

  async #ask(query: string, topk: number): Promise<readonly Hit[]> {
    const kept = this.#recorded?.get(query, topk);
    if (kept) return kept;
    const hits = await new Promise<readonly Hit[]>((resolve, reject) => {
      this.#waiting.push({ query, topk, resolve, reject });
      if (this.#waiting.length >= this.#options.maxBatch) this.#flush();
      else this.#cancel ??= this.#options.clock.setTimer(this.#options.batchMs, () => this.#flush());
    });
    return this.#recorded ? this.#recorded.keep(query, topk, hits) : hits;
  }

  /** Sends the waiting queries, a request for each topk. */
  #flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const byTopk = groupByTopk(this.#waiting);
    this.#waiting = [];
    for (const [topk, batch] of byTopk) void this.#send(batch, topk);
  }

  async #send(batch: readonly Waiting[], topk: number): Promise<void> {
    const { url, timeoutMs, retries, clock } = this.#options;
    const policy = {
      attempts: retries + 1,
      attemptMs: timeoutMs,
      totalMs: (retries + 1) * (timeoutMs + 10_000),
      minMs: 200,
      maxMs: 10_000,
    };
    const body = this.#wire.write(
      batch.map(({ query }) => query),
      topk,
    );
    const rng = Rng.fromSeed(seedFrom('retriever', this.#sent++)); // only the waits are drawn
    try {
      const lists = await attempt(policy, { clock, rng, closed: this.#http.closed }, async (deadlineMs) => {
        const answer = await this.#http.send('POST', this.#wire.path, body, deadlineMs);
        return this.#wire.read(answer.body, batch.length);
      });
      for (const [i, { resolve }] of batch.entries()) resolve(lists[i]!.slice(0, topk));
    } catch (thrown) {
      const error = new LongplayError('REMOTE_FAILED', `retriever ${url}: ${messageOf(thrown)}`, { cause: thrown });
      for (const { reject } of batch) reject(error);
    }
  }
}

function groupByTopk(waiting: readonly Waiting[]): Map<number, Waiting[]> {
  const groups = new Map<number, Waiting[]>();
  for (const one of waiting) {
    const group = groups.get(one.topk);
    if (group) group.push(one);
    else groups.set(one.topk, [one]);
  }
  return groups;
}

function refuse(what: string, body: string): never {
  throw new RemoteError('malformed', `${what}; it begins: ${excerpt(body, 200)}`);
}

function parse(body: string): unknown {
  try {
    return parseJson(body);
  } catch {
    return refuse('the answer is not JSON', body);
  }
}

/** Hit of a document with `contents`; an id that is a number becomes a text. */
function hitOf(document: unknown, score: unknown, body: string): Hit {
  const { contents, id } = (document ?? {}) as Record<string, unknown>;
  if (typeof contents !== 'string') return refuse('an item of the answer has no text `contents`', body);
  const read = { ...(document as object), contents, ...(id === undefined ? {} : { id: String(id) }) };
  return typeof score === 'number' ? { document: read, score } : { document: read };
}

const SEARCH_R1: Wire = {
  path: 'retrieve',
  write: (queries, topk) => JSON.stringify({ queries, topk, return_scores: true }),
  read(body, queries) {
    const { result } = (parse(body) ?? {}) as { result?: unknown };
    if (!Array.isArray(result) || result.length !== queries) {
      const got = Array.isArray(result) ? result.length : 'none';
      return refuse(`expected ${queries} lists of passages under \`result\`, got ${got}`, body);
    }
    return result.map((list) => {
      if (!Array.isArray(list)) return refuse('expected lists of passages under `result`', body);
      return list.map((item: unknown) => {
        const { document, score } = (item ?? {}) as Record<string, unknown>;
        return document === undefined ? hitOf(item, undefined, body) : hitOf(document, score, body);
      });
    });
  },
};

/** Elasticsearch and OpenSearch: `_msearch` over the field `contents`. */
const ELASTICSEARCH: Wire = {
  path: '_msearch',
  write: (queries, topk) =>
    queries.map((query) => `{}\n${JSON.stringify({ size: topk, query: { match: { contents: query } } })}\n`).join(''),
  read(body, queries) {
    const { responses } = (parse(body) ?? {}) as { responses?: unknown };
    if (!Array.isArray(responses) || responses.length !== queries) {
      return refuse(`expected ${queries} results under \`responses\``, body);
    }
    return responses.map((response: unknown) => {
      const { hits } = ((response as Record<string, unknown> | null)?.hits ?? {}) as { hits?: unknown };
      if (!Array.isArray(hits)) return refuse('a response has no `hits.hits`', JSON.stringify(response));
      return hits.map((hit: unknown) => {
        const { _id, _source, _score } = (hit ?? {}) as Record<string, unknown>;
        return hitOf({ id: _id, ...(_source as object) }, _score, body);
      });
    });
  },
};
