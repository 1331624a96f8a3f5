/** Recorded requests as the dialects read them, the items of earlier replies at hand. */
import type { ConversationMessage, ModelReply } from '../../../src/core/model-call.ts';
import {
  type DialectId,
  type ParsedRequest,
  RefusedCall,
  type ReplyIds,
  type StoredItem,
  type StoredItems,
} from '../../../src/gateway/dialects/dialect.ts';
import { DIALECTS } from '../../../src/gateway/dialects/dialects.ts';
import { type FoldedReply, foldReply } from '../fold.ts';
import { dialectOf, listWholeReplies, type RecordedExchange, type Recording } from '../recordings.ts';

/** Items kept in a map, as a gateway keeps them for an episode. */
export class KeptItems implements StoredItems {
  readonly #responses = new Map<string, readonly ConversationMessage[]>();
  readonly #items = new Map<string, StoredItem>();

  response(id: string) {
    return this.#responses.get(id);
  }

  item(id: string) {
    return this.#items.get(id);
  }

  keep(request: ParsedRequest, { reply, ids }: FoldedReply): void {
    const context = request.call.messages.slice(request.instructions);
    this.#responses.set(ids.reply, [...context, makeTurn(reply)]);
    if (ids.message !== undefined) this.#items.set(ids.message, { type: 'message', content: reply.content });
    if (ids.reasoning !== undefined) this.#items.set(ids.reasoning, { type: 'reasoning', text: reply.reasoning! });
    for (const [i, { id, name, arguments: given }] of reply.calls.entries()) {
      this.#items.set(ids.callItems[i]!, { type: 'call', callId: id, name, arguments: given });
    }
  }
}

/** Turn of the model that a reply is. */
export function makeTurn(reply: Pick<ModelReply, 'content' | 'reasoning' | 'calls'>): ConversationMessage {
  const { content, reasoning, calls } = reply;
  return { role: 'assistant', content, ...(reasoning ? { reasoning } : {}), ...(calls.length > 0 ? { calls } : {}) };
}

/** Ids as a recorded reply carried them. */
export function makeIds({ ids, created }: FoldedReply): ReplyIds {
  return {
    reply: ids.reply,
    message: ids.message ?? 'msg_none',
    reasoning: ids.reasoning ?? 'rs_none',
    callItem: (i) => ids.callItems[i] ?? `fc_${i}`,
    created: created ?? 1_790_000_000,
  };
}

/** Recorded request. */
export interface ParsedExchange {
  /** File and number, for messages. */
  readonly where: string;
  readonly dialect: DialectId;
  readonly exchange: RecordedExchange;
  /** The request, or why it was refused. */
  readonly request: ParsedRequest | RefusedCall;
  /** Reply, where it came whole. */
  readonly folded: FoldedReply | undefined;
}

/** Reads the requests of one file that ask a model. @throws what a dialect throws beside refusals */
export function parseRecording(recording: Recording): readonly ParsedExchange[] {
  const items = new KeptItems();
  const whole = new Map(listWholeReplies([recording]).map((reply) => [reply.exchange, reply]));
  return recording.exchanges.flatMap((exchange) => {
    const dialect = dialectOf(exchange.request.path);
    if (dialect === undefined) return [];
    let request: ParsedRequest | RefusedCall;
    try {
      request = DIALECTS[dialect].parse(exchange.request.body, items);
    } catch (thrown) {
      if (!(thrown instanceof RefusedCall)) throw thrown;
      request = thrown;
    }
    const reply = whole.get(exchange);
    const folded = reply && foldReply(dialect, reply.text, reply.contentType);
    if (folded && !(request instanceof RefusedCall)) items.keep(request, folded);
    return [{ where: `${recording.name} ${exchange.n}`, dialect, exchange, request, folded }];
  });
}
