/**
 * Retrieval server, speaking Search-R1's protocol: `POST /retrieve {queries, topk, return_scores}`, one list of
 * passages a query. Bodies are read as FastAPI over pydantic 2 reads them, with its 422 answers.
 *
 * Differs: `return_scores: false` answers lists of bare documents, which is what the original's code means; it takes
 * the answer apart as if it had scores, and fails unless there are exactly two queries. `fidelity: 'original'` does
 * that.
 *
 * @see Search-R1 `search_r1/search/retrieval_server.py`
 */
import type { MaybePromise } from '../core/env.ts';
import { parseJson } from '../core/json-text.ts';
import { type HttpAnswer, type HttpHandler, type HttpRequest, json } from '../http/app.ts';
import type { Passage } from './corpus.ts';
import type { Hit, Retriever } from './retriever.ts';

export type { HttpAnswer, HttpHandler, HttpRequest } from '../http/app.ts';

/** Largest number of passages of a query: a request cannot make the server sort a whole corpus. */
const MAX_TOPK = 1000;

export interface RetrieveServerOptions {
  /** Passages of a query where the request names no number. Default 3. */
  readonly topk?: number;
  /** Fidelity. Default `corrected`. */
  readonly fidelity?: 'corrected' | 'original';
}

interface Complaint {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: unknown;
  readonly ctx?: unknown;
}

interface RetrieveRequest {
  readonly queries: readonly string[];
  readonly topk: number | null;
  readonly scores: boolean;
}

/** Handler that answers requests from a retriever. */
export function retrieveHandler(retriever: Retriever, options: RetrieveServerOptions = {}): HttpHandler {
  const { topk: fallback = 3, fidelity = 'corrected' } = options;
  return (request) => {
    if (request.path !== '/retrieve') return json({ detail: 'Not Found' }, 404);
    if (request.method !== 'POST') return json({ detail: 'Method Not Allowed' }, 405);
    const read = readRequest(request);
    if (Array.isArray(read)) return json({ detail: read }, 422);
    const { queries, topk, scores } = read as RetrieveRequest;
    const k = Math.min(MAX_TOPK, topk || fallback);
    if (k < 1) return createInternalError();
    const found = queries.map((query) => retriever.search(query, k));
    const answer = (lists: readonly (readonly Hit[])[]): HttpAnswer => {
      const texts = lists.map((list) => writeList(list, scores));
      if (scores || fidelity === 'corrected') return { status: 200, body: `{"result":[${texts.join(',')}]}` };
      return texts.length === 2 ? { status: 200, body: `{"result":${texts[0]}}` } : createInternalError();
    };
    return isSettled(found) ? answer(found) : Promise.all(found).then(answer, createInternalError);
  };
}

/** Passages as JSON: retrievers give the same objects again, and writing them took a third of an answer's time. */
const written = new WeakMap<Passage, string>();

function passageText(passage: Passage): string {
  let text = written.get(passage);
  if (text === undefined) written.set(passage, (text = JSON.stringify(passage)));
  return text;
}

/** Hits as JSON, with their scores or as bare passages. */
function writeList(hits: readonly Hit[], scores: boolean): string {
  let text = '';
  for (const { document, score } of hits) {
    if (text !== '') text += ',';
    if (!scores) text += passageText(document);
    else if (score === undefined) text += `{"document":${passageText(document)}}`;
    else text += `{"document":${passageText(document)},"score":${JSON.stringify(score)}}`;
  }
  return `[${text}]`;
}

function isSettled(found: readonly MaybePromise<readonly Hit[]>[]): found is readonly (readonly Hit[])[] {
  return !found.some((list) => list instanceof Promise);
}

function createInternalError(): HttpAnswer {
  return { status: 500, contentType: 'text/plain; charset=utf-8', body: 'Internal Server Error' };
}

function readRequest({ body }: HttpRequest): RetrieveRequest | Complaint[] {
  if (body === '') return [missingField(['body'], null)];
  let given: unknown;
  try {
    given = parseJson(body);
  } catch (thrown) {
    const at = /position (\d+)/.exec(String(thrown))?.[1];
    const msg = 'JSON decode error';
    return [{ type: 'json_invalid', loc: ['body', Number(at ?? 0)], msg, input: {}, ctx: { error: String(thrown) } }];
  }
  if (given === null) return [missingField(['body'], null)];
  if (typeof given !== 'object' || Array.isArray(given)) {
    const msg = 'Input should be a valid dictionary or object to extract fields from';
    return [{ type: 'model_attributes_type', loc: ['body'], msg, input: given }];
  }
  return readFields(given as Record<string, unknown>);
}

function readFields(given: Record<string, unknown>): RetrieveRequest | Complaint[] {
  const complaints: Complaint[] = [];
  const { queries, topk = null, return_scores: asked = false } = given;
  if (queries === undefined) complaints.push(missingField(['body', 'queries'], given));
  else if (!Array.isArray(queries)) {
    complaints.push({
      type: 'list_type',
      loc: ['body', 'queries'],
      msg: 'Input should be a valid list',
      input: queries,
    });
  } else {
    for (let i = 0; i < queries.length; i++) {
      const query: unknown = queries[i];
      if (typeof query === 'string') continue;
      const msg = 'Input should be a valid string';
      complaints.push({ type: 'string_type', loc: ['body', 'queries', i], msg, input: query });
    }
  }
  const k = topk === null ? null : asInteger(topk);
  if (k === undefined) {
    const type = typeof topk === 'string' ? 'int_parsing' : typeof topk === 'number' ? 'int_from_float' : 'int_type';
    complaints.push({ type, loc: ['body', 'topk'], msg: 'Input should be a valid integer', input: topk });
  }
  const scores = asBoolean(asked);
  if (scores === undefined) {
    const type = typeof asked === 'string' ? 'bool_parsing' : 'bool_type';
    complaints.push({ type, loc: ['body', 'return_scores'], msg: 'Input should be a valid boolean', input: asked });
  }
  if (complaints.length > 0) return complaints;
  return { queries: queries as string[], topk: k!, scores: scores! };
}

function missingField(loc: readonly string[], input: unknown): Complaint {
  return { type: 'missing', loc, msg: 'Field required', input };
}

function asInteger(value: unknown): number | undefined {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'string')
    return /^\s*[-+]?\d+(?:_\d+)*\s*$/.test(value) ? Number(value.replaceAll('_', '')) : undefined;
  return Number.isInteger(value) ? (value as number) : undefined;
}

const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true, t: true, yes: true, y: true, on: true, '1': true,
  false: false, f: false, no: false, n: false, off: false, '0': false,
}; // biome-ignore format: a table

function asBoolean(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (value === 0 || value === 1) return value === 1;
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  return Object.hasOwn(BOOLEANS, text) ? BOOLEANS[text] : undefined;
}
