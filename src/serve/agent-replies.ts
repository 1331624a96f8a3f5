/**
 * Replies to agents: a language model behind the three dialects, with tools, choices and formats of answers, by the model's own
 * template and tool format. Each request brings its whole conversation; of `responses` the latest replies are kept, for requests
 * that name them.
 */
import { randomBytes, randomInt } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { printAgentCall } from '../core/agent-call.ts';
import { systemClock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { AskedSampling, ModelCall } from '../core/model-call.ts';
import { isRecord } from '../core/record.ts';
import { compactHistory } from '../gateway/compaction.ts';
import { type Dialect, type ParsedRequest, RefusedCall, type ReplyIds } from '../gateway/dialects/dialect.ts';
import { DIALECTS } from '../gateway/dialects/dialects.ts';
import { parseCount } from '../gateway/dialects/messages.ts';
import { errorOf, mintCalls, mintIds, parseBody, printReply } from '../gateway/episode.ts';
import { type DecidedAnswer, Exchange } from '../gateway/exchange.ts';
import { KeptReplies } from '../gateway/items.ts';
import { type HttpAnswer, json } from '../http/app.ts';
import type { AgentCodec } from '../text/reading/agent-codec.ts';
import { type RenderedPrompt, renderPrompt } from '../text/reading/received-transcript.ts';
import type { Decisions } from './decisions.ts';
import { choicesOfSchema } from './schema-choices.ts';

export interface AgentRepliesOptions {
  /** Name of the model; another one is refused. */
  readonly model: string;
  /** Reader of calls; absent where the policy is none that writes replies. */
  readonly codec: AgentCodec | undefined;
  readonly decisions: Decisions;
  /** Longest run of tokens of one reply. */
  readonly maxTokens: number;
  /** Tokens that the model can read. */
  readonly maxPositions: number;
  /** Unix time in milliseconds. */
  readonly unixMs: () => number;
}

/** Answers requests of the three dialects. */
export class AgentReplies {
  readonly #options: AgentRepliesOptions;
  readonly #items = new KeptReplies();
  /** Random part of ids: another client can neither guess a reply's id nor have its conversation read on. */
  readonly #salt = randomBytes(12).toString('hex');
  #arrivals = 0;

  constructor(options: AgentRepliesOptions) {
    this.#options = options;
  }

  /** Answers a request. @param outgoing response of its connection */
  answer(dialect: Dialect, body: Buffer, outgoing: ServerResponse): Promise<HttpAnswer> {
    const n = this.#mintNumber();
    const exchange = new Exchange(outgoing, `req_${n}`, systemClock);
    const gone = new AbortController();
    exchange.onClose(() => gone.abort());
    void this.#decide(dialect, body, n, exchange, gone.signal).then((decided) => exchange.decide(decided));
    return exchange.answer;
  }

  /** Counts the tokens of a request of messages. */
  count(body: Buffer): HttpAnswer {
    try {
      const { model, call } = parseCount(parseBody(body));
      this.#requireModel(model);
      const codec = this.#requireCodec();
      this.#requireFit(call);
      return json({ input_tokens: this.#refusing(() => codec.render(call.messages, call.tools)).length });
    } catch (thrown) {
      return errorOf(DIALECTS.messages, thrown);
    }
  }

  /** Compacts a conversation of the responses dialect. Any name of a model will do: none is asked. */
  compact(body: Buffer): HttpAnswer {
    return compactHistory(body, this.#items, { n: this.#mintNumber(), unixMs: this.#options.unixMs() });
  }

  /** Answer to a request; never rejects. */
  async #decide(
    dialect: Dialect,
    body: Buffer,
    n: string,
    exchange: Exchange,
    gone: AbortSignal,
  ): Promise<DecidedAnswer> {
    try {
      const codec = this.#requireCodec();
      const parsed = parseBody(body);
      const request = dialect.parse(parsed, this.#items);
      this.#requireModel(request.model);
      const { call } = request;
      const { temperature, seed, sampling } = readSampling(call.sampling);
      const { prompt, limited } = this.#read(codec, call);
      exchange.hold(request.stream);
      const { maxTokens } = this.#options;
      const given = { ...prompt, seed, maxTokens: Math.min(maxTokens, call.maxTokens ?? maxTokens), call: limited };
      const acted = await this.#options.decisions
        .decide({ given, actions: [], temperature, sampling }, gone)
        .catch((thrown) => {
          throw new RefusedCall(503, messageOf(thrown));
        });
      const { decision } = acted;
      if (decision?.kind !== 'tokens') throw new RefusedCall(503, 'the policy wrote no tokens');
      const turn = { call: { call: 0, parent: null, ...call }, tools: call.tools };
      const { reply } = codec.readReply([...decision.tokens], turn, prompt.prompt.length + prompt.after.length);
      const minted = mintCalls(reply, { dialect, n });
      const ids = mintIds(dialect, n, Math.floor(this.#options.unixMs() / 1000));
      if (dialect.id === 'responses' && request.store) this.#keep(ids, parsed, request, minted);
      return { status: 200, body: printReply(dialect, minted, request, ids) };
    } catch (thrown) {
      return errorOf(dialect, thrown);
    }
  }

  /** Reads a call as a prompt, and as what limits its reply. @throws {RefusedCall} for one that the model cannot follow */
  #read(codec: AgentCodec, call: ModelCall): { readonly prompt: RenderedPrompt; readonly limited: string | undefined } {
    this.#requireFit(call);
    return this.#refusing(() => {
      const printed = { ...call, call: 0, parent: null };
      const observed = { observation: printAgentCall(printed), actions: new Int32Array(0), newActions: [] };
      const transcript = codec.open(observed);
      if (transcript.refusal) throw new RefusedCall(400, transcript.refusal.message, 'messages', TOO_LONG);
      const limited = transcript.limits && printAgentCall({ ...printed, messages: call.messages.slice(-1) });
      return { prompt: renderPrompt(transcript, []), limited };
    });
  }

  /** Turns a client's mistake in what the template or a schema refuses into a refusal. */
  #refusing<T>(read: () => T): T {
    try {
      return read();
    } catch (thrown) {
      if (thrown instanceof RangeError) throw new RefusedCall(400, messageOf(thrown));
      throw thrown;
    }
  }

  /** @throws {RefusedCall} for texts that cannot fit, before they are rendered */
  #requireFit({ messages, tools }: ModelCall): void {
    const { maxPositions, codec } = this.#options;
    const text = [...messages.map(({ content }) => content), JSON.stringify(tools)].join('\n');
    if (!codec!.exceeds(text, maxPositions)) return;
    const message = `${text.length} characters cannot fit: the maximum context length is ${maxPositions} tokens`;
    throw new RefusedCall(400, message, 'messages', TOO_LONG);
  }

  #requireModel(asked: string): void {
    const { model } = this.#options;
    if (asked === model) return;
    const message = `model: there is no '${asked}' here; this server has '${model}'`;
    throw new RefusedCall(404, message, 'model', 'model_not_found');
  }

  #requireCodec(): AgentCodec {
    const { codec } = this.#options;
    if (codec) return codec;
    const message =
      'this policy writes no replies: it chooses among listed actions, by /v1/chat/completions or /v1/completions';
    throw new RefusedCall(400, message, undefined, 'unsupported_model');
  }

  /** Keeps a reply for requests that name it, behind the one that it continues. */
  #keep(
    ids: ReplyIds,
    parsed: unknown,
    request: ParsedRequest,
    { content, reasoning, calls }: ReturnType<typeof mintCalls>,
  ) {
    const previous = isRecord(parsed) ? parsed.previous_response_id : undefined;
    const before = typeof previous === 'string' ? previous : undefined;
    const context = before === undefined ? [] : (this.#items.response(before) ?? []);
    const answer = {
      ...{ role: 'assistant' as const, content, reasoning },
      calls: calls.length > 0 ? calls : undefined,
    };
    // A compacted history has taken the place of the context.
    const shared = request.instructions + context.length;
    const isContinued = context.length > 0 && request.call.messages[shared - 1] === context.at(-1);
    this.#items.keep(ids, request, answer, isContinued ? before : undefined, isContinued ? shared : 0);
  }

  #mintNumber(): string {
    return `${this.#arrivals++}_${this.#salt}${randomBytes(4).toString('hex')}`;
  }
}

/** Code of a conversation that the model cannot hold, which clients compare. */
const TOO_LONG = 'context_length_exceeded';

/** Reads sampling settings. */
function readSampling({ temperature, seed, ...sampling }: AskedSampling) {
  // Seeds are uint32 here; a longer one keeps its low bits.
  const drawn = seed === undefined ? randomInt(2 ** 32) : Number(BigInt.asUintN(32, BigInt(seed)));
  return { temperature: temperature ?? 1, seed: drawn, sampling };
}

/** Texts of a chat without which it cannot be an agent's: most chats are not parsed twice. */
const AGENT_KEYS = /"(?:tools|tool_calls|response_format|tool_call_id)"/;

/**
 * True for a chat that brings tools, calls or results, or asks for JSON that is no list of choices. Others are answered as
 * conversations, with choices and log-probabilities.
 */
export function isAgentChat(text: string): boolean {
  if (!AGENT_KEYS.test(text)) return false;
  let body: unknown;
  try {
    body = parseJson(text);
  } catch {
    return false;
  }
  if (!isRecord(body)) return false;
  const { tools, messages, response_format: format } = body;
  if (Array.isArray(tools) && tools.length > 0) return true;
  if (isRecord(format) && (format.type === 'json_object' || isFreeSchema(format))) return true;
  const list: readonly unknown[] = Array.isArray(messages) ? messages : [];
  return list.some((one) => isRecord(one) && (one.role === 'tool' || (one.tool_calls as unknown[] | null)?.length));
}

function isFreeSchema({ type, json_schema: given }: Readonly<Record<string, unknown>>): boolean {
  return type === 'json_schema' && isRecord(given) && choicesOfSchema(given.schema) === undefined;
}
