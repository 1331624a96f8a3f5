/**
 * Dialect of a model API: requests → `ModelCall`, `ModelReply` → a body or the events of a stream, errors in the form that
 * its clients read. Pure; the gateway and `serve-policy` speak through the same three.
 */
import type { ModelCall, ModelReply } from '../../core/model-call.ts';

/** Chat completions and responses of OpenAI, messages of Anthropic. */
export type DialectId = 'chat' | 'responses' | 'messages';

/** Request as a dialect reads it. */
export interface ParsedRequest {
  /** Name of the model that was asked for; it is echoed. */
  readonly model: string;
  readonly call: ModelCall;
  /** True where the reply goes out as server-sent events. */
  readonly stream: boolean;
  /** True where the stream of chat completions ends with a chunk of usage. */
  readonly includeUsage: boolean;
  /** True where the reply's items are kept for later requests (`store` of responses, absent = true). */
  readonly store: boolean;
  /**
   * Messages at the beginning of the call that hold for this request alone: 1 where it brings `instructions` of responses,
   * else 0. A later request that continues this one by its id brings its own, so what is kept begins behind them.
   */
  readonly instructions: 0 | 1;
}

/** Items that earlier replies and requests of the episode left behind, for requests that name them by id. */
export interface StoredItems {
  /** Whole context, reply included and `instructions` left out, behind a response id (`previous_response_id`). */
  response(id: string): ModelCall['messages'] | undefined;
  /** One message, call or reasoning behind an item id (`item_reference`). */
  item(id: string): StoredItem | undefined;
}

/** Item behind an id: a part of an assistant's turn. */
export type StoredItem =
  | { readonly type: 'message'; readonly content: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'call'; readonly callId: string; readonly name: string; readonly arguments: string };

/** Ids of one reply; the gateway mints them. */
export interface ReplyIds {
  /** Id of the whole reply: `chatcmpl-…`, `resp_…`, `msg_…`. */
  readonly reply: string;
  /** Ids of the message, reasoning and call items of a response. */
  readonly message: string;
  readonly reasoning: string;
  callItem(i: number): string;
  /** Unix time in whole seconds. */
  readonly created: number;
}

/** Request that is refused: an HTTP status, and the fields of the dialect's error. */
export class RefusedCall extends Error {
  readonly status: number;
  /** Path of the field that is refused, e.g. `messages[3].role`; its message begins with it. */
  readonly param: string | undefined;
  /** Code that clients compare, e.g. `unsupported_parameter`. */
  readonly code: string | undefined;

  constructor(status: number, message: string, param?: string, code?: string) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

/** Dialect: what a route reads and writes. The calls of a reply carry their ids already. */
export interface Dialect {
  readonly id: DialectId;
  /**
   * Reads a request.
   * @param body parsed JSON
   * @throws {RefusedCall} 400 for a body that is no request, or a field that changes the meaning and cannot be obeyed; 404
   * for an id that nothing is behind
   */
  parse(body: unknown, items: StoredItems): ParsedRequest;
  /** Body of a whole reply. */
  print(reply: ModelReply, request: ParsedRequest, ids: ReplyIds): unknown;
  /** Server-sent events of a reply, the last of them its finish; each is written as it stands. */
  events(reply: ModelReply, request: ParsedRequest, ids: ReplyIds): readonly string[];
  /** Body of an error; its type follows from the status. */
  error(status: number, message: string, param?: string, code?: string): unknown;
  /** Event of an error in the middle of a stream; the socket is destroyed after it. */
  errorEvent(status: number, message: string): string;
}
