/**
 * Episode of the gateway: its calls, from their arrival until their replies have reached their clients.
 *
 *     arrival ─► waiting ─► given by `next` ─► answered ─► delivered
 *                   └── refused, or its client gone ◄──┘      └► undelivered: kept for a retry
 *
 * A request is a retry where the client marks it, or where an equal call has lost its client: it joins the call while that
 * waits, and gets the stored reply, byte for byte, once that was made. Every other request is a call of its own.
 */
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { NO_USAGE } from '../core/agent-call.ts';
import type { Clock } from '../core/clock.ts';
import { cutText, describeValue } from '../core/describe-value.ts';
import { messageOf } from '../core/errors.ts';
import { findDuplicateKey, parseJson } from '../core/json-text.ts';
import type { AssistantMessage, ModelReply, ToolCall } from '../core/model-call.ts';
import { isRecord } from '../core/record.ts';
import type { Refusal } from '../http/access.ts';
import { targetOf } from '../http/app.ts';
import { CallTree, type TreeCall } from './call-tree.ts';
import { type Dialect, type ParsedRequest, RefusedCall, type ReplyIds } from './dialects/dialect.ts';
import { dialectOf } from './dialects/dialects.ts';
import type { DecidedAnswer, Exchange } from './exchange.ts';
import type { GatewayEpisode, WaitingCall } from './gateway.ts';
import { KeptReplies } from './items.ts';

/** Text that answers every call after `finish`. Every recorded agent ends by it, without an error. */
export const CLOSING_TEXT = 'The episode is over.';

/** Replies kept for retries, and their characters. */
const MAX_KEPT = 64;
const MAX_KEPT_CHARS = 4 * 1024 * 1024;

/** Settings of an episode. */
export interface EpisodeSettings {
  readonly baseURL: string;
  readonly root: string;
  readonly key: string;
  readonly clock: Clock;
  /** Unix time in milliseconds. */
  readonly unixMs: () => number;
  /** Called once, when the episode is closed. */
  readonly onClose: () => void;
}

/** Call from its arrival on. */
class PendingCall {
  /** Place among the arrivals, of which its ids are made. */
  readonly n: number;
  readonly digest: string;
  readonly dialect: Dialect;
  readonly isStream: boolean;
  readonly node: TreeCall;
  /** Request, until the call is decided. */
  request: ParsedRequest | undefined;
  readonly gone = new AbortController();
  /** Connections that wait for its reply, or take it. */
  readonly exchanges = new Set<Exchange>();
  decided: DecidedAnswer | undefined;
  /** True once the model's reply was made; a closing text is none. */
  isSampled = false;
  isDelivered = false;
  /** Called once its reply has reached a client, or cannot. */
  onArrival: (() => void) | undefined;

  constructor(n: number, digest: string, dialect: Dialect, request: ParsedRequest, node: TreeCall) {
    this.n = n;
    this.digest = digest;
    this.dialect = dialect;
    this.isStream = request.stream;
    this.request = request;
    this.node = node;
  }

  /** True where no client waits for it, and none has its reply. */
  get isLost(): boolean {
    return !this.isDelivered && this.exchanges.size === 0;
  }
}

interface Waiter {
  readonly resolve: (call: WaitingCall) => void;
  readonly reject: (reason: unknown) => void;
}

export class Episode implements GatewayEpisode {
  readonly baseURL: string;
  readonly root: string;
  readonly key: string;
  readonly #settings: EpisodeSettings;
  readonly #tree = new CallTree();
  readonly #items = new KeptReplies();
  #arrivals = 0;
  #given = 0;
  #queue: PendingCall[] = [];
  #waiters: Waiter[] = [];
  /** Calls without a reply, those that were given included. */
  readonly #open = new Set<PendingCall>();
  /** Calls whose reply is on its way. */
  readonly #sending = new Set<PendingCall>();
  /** Calls that a retry may mean, by the digest of their request. */
  readonly #calls = new Map<string, PendingCall[]>();
  /** Answered calls among them, the oldest first. */
  readonly #kept = new Set<PendingCall>();
  #keptChars = 0;
  readonly #undelivered = new Map<TreeCall, PendingCall>();
  #reward: unknown;
  readonly posted: Promise<void>;
  #onPosted!: () => void;
  #isFinished = false;
  #isClosed = false;

  constructor(settings: EpisodeSettings) {
    this.#settings = settings;
    this.posted = new Promise((resolve) => {
      this.#onPosted = resolve;
    });
    this.baseURL = settings.baseURL;
    this.root = settings.root;
    this.key = settings.key;
  }

  /** Requests that came so far, whatever became of them. */
  get arrivals(): number {
    return this.#arrivals;
  }

  /** Calls that no `next` has taken yet. */
  get waiting(): number {
    return this.#queue.length;
  }

  get items(): KeptReplies {
    return this.#items;
  }

  /** Counts an arrival, whatever becomes of it. @returns its number */
  countArrival(): number {
    return this.#arrivals++;
  }

  next(signal?: AbortSignal): Promise<WaitingCall> {
    if (this.#isClosed) return Promise.reject(new Error('the episode is closed: no call can come'));
    if (signal?.aborted) return Promise.reject(signal.reason);
    const call = this.#queue.shift();
    if (call) return Promise.resolve(this.#give(call, call.request!));
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(signal!.reason);
      };
      const waiter: Waiter = {
        resolve: (given) => {
          signal?.removeEventListener('abort', stop);
          resolve(given);
        },
        reject: (reason) => {
          signal?.removeEventListener('abort', stop);
          reject(reason);
        },
      };
      signal?.addEventListener('abort', stop, { once: true });
      this.#waiters.push(waiter);
    });
  }

  takeUndelivered(): readonly number[] {
    const numbers: number[] = [];
    for (const [node, call] of this.#undelivered) {
      this.#tree.withdraw(node);
      this.#forget(call);
      numbers.push(node.number!);
    }
    this.#undelivered.clear();
    return numbers.sort((a, b) => a - b);
  }

  finish(): void {
    if (this.#isFinished || this.#isClosed) return;
    this.#isFinished = true;
    this.#queue = [];
    for (const call of this.#open) {
      this.#forget(call);
      this.#decide(call, this.#closing(call, call.request!));
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const call of this.#open) this.#refuse(call, 403, 'the episode is over');
    for (const { reject } of this.#waiters) reject(new Error('the episode was closed'));
    for (const call of this.#sending) call.onArrival!();
    this.#sending.clear();
    this.#waiters = [];
    this.#calls.clear();
    this.#kept.clear();
    this.#settings.onClose();
  }

  /**
   * Takes a request to the model.
   * @param n its number among the arrivals
   * @param isMarked true where the client says that it is a retry
   */
  receive(dialect: Dialect, body: Buffer, isMarked: boolean, n: number, exchange: Exchange): void {
    if (this.#isClosed) {
      exchange.decide(errorOf(dialect, new RefusedCall(403, 'the episode is over')));
      return;
    }
    const digest = hash('sha256', body, 'base64') + dialect.id;
    const same = this.#findSame(digest, isMarked);
    if (same) {
      this.#attach(same, exchange);
      return;
    }
    let request: ParsedRequest;
    let node: TreeCall;
    try {
      request = dialect.parse(parseBody(body), this.#items);
      node = this.#tree.add(request.call);
    } catch (thrown) {
      exchange.decide(errorOf(dialect, thrown));
      return;
    }
    const call = new PendingCall(n, digest, dialect, request, node);
    if (this.#isFinished) {
      exchange.hold(request.stream);
      exchange.decide(this.#closing(call, request));
      return;
    }
    // A reply that somebody builds on did reach its client.
    const parent = node.parent && this.#undelivered.get(node.parent);
    if (parent) this.#markDelivered(parent);
    const equals = this.#calls.get(digest);
    if (equals) equals.push(call);
    else this.#calls.set(digest, [call]);
    this.#open.add(call);
    this.#attach(call, exchange);
    if (call.isLost) {
      this.#drop(call); // its client left meanwhile
      return;
    }
    const waiter = this.#waiters.shift();
    if (waiter) waiter.resolve(this.#give(call, request));
    else this.#queue.push(call);
  }

  postedReward(): unknown {
    return this.#reward;
  }

  /**
   * Takes the reward that the program posted.
   * @returns false where another one was posted before
   */
  post(reward: unknown): boolean {
    this.#reward ??= reward;
    this.#onPosted();
    return isDeepStrictEqual(this.#reward, reward);
  }

  /** Call that a request repeats. */
  #findSame(digest: string, isMarked: boolean): PendingCall | undefined {
    const equals = this.#calls.get(digest);
    return equals?.find((call) => call.isLost) ?? (isMarked ? equals?.at(-1) : undefined);
  }

  #attach(call: PendingCall, exchange: Exchange): void {
    call.exchanges.add(exchange);
    this.#undelivered.delete(call.node);
    exchange.hold(call.isStream);
    exchange.onClose((isDelivered) => this.#detach(call, exchange, isDelivered));
    if (call.decided) exchange.decide(call.decided);
  }

  /** Notes that a connection is done with. */
  #detach(call: PendingCall, exchange: Exchange, isDelivered: boolean): void {
    call.exchanges.delete(exchange);
    if (this.#isClosed) return;
    if (isDelivered && call.decided) this.#markDelivered(call);
    else if (call.isLost) this.#lose(call);
  }

  #markDelivered(call: PendingCall): void {
    call.isDelivered = true;
    this.#undelivered.delete(call.node);
    this.#arrive(call);
  }

  #arrive(call: PendingCall): void {
    if (this.#sending.delete(call)) call.onArrival!();
  }

  /** Notes that no client waits for a call any more. */
  #lose(call: PendingCall): void {
    if (call.decided) {
      if (call.isSampled && !call.node.isWithdrawn) this.#undelivered.set(call.node, call);
      this.#arrive(call);
      return;
    }
    const place = this.#queue.indexOf(call);
    if (place >= 0) {
      this.#queue.splice(place, 1); // nobody has begun with it
      this.#drop(call);
    }
    call.gone.abort();
  }

  #give(call: PendingCall, { model, call: asked }: ParsedRequest): WaitingCall {
    const { node, gone } = call;
    node.number = this.#given++;
    return {
      number: node.number,
      parent: node.parent?.number ?? null,
      model,
      call: asked,
      fresh: asked.messages.slice(node.shared),
      gone: gone.signal,
      callId: (i) => callId(call, i),
      answer: (reply) => this.#answer(call, reply),
      refuse: (status, message, code) => this.#refuse(call, status, message, code),
    };
  }

  #answer(call: PendingCall, reply: ModelReply): Promise<void> {
    const { dialect, request, node } = call;
    if (!request) return Promise.resolve(); // decided
    const minted = mintCalls(reply, call);
    const ids = this.#mint(call);
    let body: string;
    try {
      body = printReply(dialect, minted, request, ids);
    } catch (thrown) {
      this.#refuse(call, 500, messageOf(thrown));
      return Promise.resolve();
    }
    const answer: AssistantMessage = {
      role: 'assistant',
      content: reply.content,
      reasoning: reply.reasoning,
      calls: minted.calls.length > 0 ? minted.calls : undefined,
    };
    call.isSampled = true;
    this.#tree.answer(node, answer);
    this.#keepItems(ids, node, dialect, request, answer);
    this.#decide(call, { status: 200, body });
    this.#keepReply(call, body);
    return new Promise((resolve) => {
      call.onArrival = resolve;
      this.#sending.add(call);
      if (call.isLost) this.#lose(call);
    });
  }

  /** Answer to a call after the end: the closing text, or a refusal where a text cannot be the answer. */
  #closing(call: PendingCall, request: ParsedRequest): DecidedAnswer {
    const { dialect, node } = call;
    const { toolChoice, format } = request.call;
    if (format || toolChoice === 'required' || typeof toolChoice === 'object') {
      this.#tree.withdraw(node);
      const message = 'the episode is over: no call and no structured answer comes any more';
      return errorOf(dialect, new RefusedCall(400, message));
    }
    const ids = this.#mint(call);
    if (dialect.id === 'responses' && request.store) {
      // A later request may name it; the tree keeps their contexts short.
      const answer: AssistantMessage = { role: 'assistant', content: CLOSING_TEXT };
      this.#tree.answer(node, answer);
      this.#keepItems(ids, node, dialect, request, answer);
    } else this.#tree.withdraw(node);
    const reply: ModelReply = { content: CLOSING_TEXT, calls: [], finish: 'stop', usage: NO_USAGE };
    return { status: 200, body: printReply(dialect, reply, request, ids) };
  }

  /** Keeps what later requests may name, behind the reply that the call continues. */
  #keepItems(ids: ReplyIds, node: TreeCall, { id }: Dialect, request: ParsedRequest, answer: AssistantMessage): void {
    if (id !== 'responses' || !request.store) return;
    this.#items.keep(ids, request, answer, node.parent?.replyId, node.shared);
    node.replyId = ids.reply;
  }

  #refuse(call: PendingCall, status: number, message: string, code?: string): void {
    if (call.decided) return;
    this.#drop(call);
    this.#decide(call, errorOf(call.dialect, new RefusedCall(status, message, undefined, code)));
  }

  /** Takes a call out that gets no reply of the model. */
  #drop(call: PendingCall): void {
    this.#tree.withdraw(call.node);
    this.#forget(call);
    this.#open.delete(call);
  }

  #decide(call: PendingCall, decided: DecidedAnswer): void {
    call.decided = decided;
    call.request = undefined;
    this.#open.delete(call);
    for (const exchange of call.exchanges) exchange.decide(decided);
  }

  #keepReply(call: PendingCall, body: string): void {
    this.#kept.add(call);
    this.#keptChars += body.length;
    for (const oldest of this.#kept) {
      if (this.#kept.size <= MAX_KEPT && this.#keptChars <= MAX_KEPT_CHARS) break;
      this.#forget(oldest);
    }
  }

  /** Forgets a call as one that a retry may mean. */
  #forget(call: PendingCall): void {
    const equals = this.#calls.get(call.digest);
    const place = equals?.indexOf(call) ?? -1;
    if (place >= 0) {
      if (equals!.length === 1) this.#calls.delete(call.digest);
      else equals!.splice(place, 1);
    }
    if (this.#kept.delete(call)) {
      this.#keptChars -= call.decided!.body.length;
      call.decided = { status: 200, body: '' };
    }
  }

  #mint({ n, dialect }: PendingCall): ReplyIds {
    const created = Math.floor(this.#settings.unixMs() / 1000);
    return mintIds(dialect, n, created);
  }
}

/** Id of the i-th call of a reply. */
function callId({ dialect, n }: { readonly dialect: Dialect; readonly n: number | string }, i: number): string {
  return `${dialect.id === 'messages' ? 'toolu' : 'call'}_${n}_${i}`;
}

/** Reply whose calls have ids. Clients throw on arguments that are no text at all. */
export function mintCalls(
  reply: Omit<ModelReply, 'calls'> & { readonly calls: readonly Omit<ToolCall, 'id'>[] },
  call: Parameters<typeof callId>[0],
): ModelReply {
  const calls = reply.calls.map(({ name, arguments: given }, i) => ({
    id: callId(call, i),
    name,
    arguments: given.trim() === '' ? '{}' : given,
  }));
  return { ...reply, calls };
}

/** Mints the ids of a reply. @param n number of its call among the arrivals, or another text that no other reply has */
export function mintIds({ id }: Dialect, n: number | string, created: number): ReplyIds {
  const prefix = id === 'chat' ? 'chatcmpl-' : id === 'responses' ? 'resp_' : 'msg_';
  return {
    reply: `${prefix}${n}`,
    message: `msg_${n}`,
    reasoning: `rs_${n}`,
    callItem: (i) => `fc_${n}_${i}`,
    created,
  };
}

/** Prints a reply: a whole body, or all events of a stream. */
export function printReply(dialect: Dialect, reply: ModelReply, request: ParsedRequest, ids: ReplyIds): string {
  if (request.stream) return dialect.events(reply, request, ids).join('');
  return JSON.stringify(dialect.print(reply, request, ids));
}

/** Answer that refuses, in the form of a dialect. */
export function errorOf(dialect: Dialect, thrown: unknown): DecidedAnswer {
  const { status, message, param, code } =
    thrown instanceof RefusedCall
      ? thrown
      : { status: 500, message: messageOf(thrown), param: undefined, code: undefined };
  return {
    status,
    body: JSON.stringify(dialect.error(status, message, param, code)),
    ...(status === 503 || status === 429 ? { headers: { 'retry-after': '1' } } : {}),
    errorEvent: dialect.errorEvent(status, message),
  };
}

/** Prints a refusal in the form of the dialect that a request's path belongs to, as a server of dialects answers it. */
export function printRefusalOf({ url = '/' }: IncomingMessage, { status, message }: Refusal): string {
  const [path] = targetOf(url).split('?', 1);
  return errorOf(dialectOf(path!), new RefusedCall(status, message)).body;
}

/**
 * Entries of the lists of a request, at most. No client sends so many, and no context holds them: they bound the time in which
 * nothing else is answered.
 */
const MAX_ENTRIES: Readonly<Record<string, number>> = { messages: 16_384, input: 16_384, tools: 2048 };

function requireFew(body: unknown): void {
  if (!isRecord(body)) return;
  for (const [name, max] of Object.entries(MAX_ENTRIES)) {
    const list = body[name];
    if (!Array.isArray(list) || list.length <= max) continue;
    const message = `${name}: expected at most ${max} of them, got ${list.length}; shorten the conversation or its tools`;
    throw new RefusedCall(400, message, name, 'context_length_exceeded');
  }
}

/** Reads the body of a request. @throws {RefusedCall} for one that is no JSON, has a name twice, or too many messages */
export function parseBody(body: Buffer): unknown {
  const text = body.toString('utf8');
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (thrown) {
    throw new RefusedCall(400, `expected JSON: ${messageOf(thrown)}`);
  }
  requireFew(value);
  const twice = findDuplicateKey(text);
  if (twice === undefined) return value;
  const name = cutText(twice);
  throw new RefusedCall(400, `${name}: expected a field once, got it twice in one object`, name);
}

/** Reads the body of a request as an object. @throws {RefusedCall} for another value, and as `parseBody` */
export function parseRecord(body: Buffer): Readonly<Record<string, unknown>> {
  const value = parseBody(body);
  if (isRecord(value)) return value;
  throw new RefusedCall(400, `expected a JSON object, got ${describeValue(value)}`);
}
