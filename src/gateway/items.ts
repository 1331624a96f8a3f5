/**
 * Replies of an episode that later requests of the responses dialect name by id: whole contexts (`previous_response_id`) and
 * parts of a reply (`item_reference`). Contexts share what they have in common, as their calls do in the tree; the oldest
 * replies are forgotten first.
 */
import type { AssistantMessage, ConversationMessage } from '../core/model-call.ts';
import type { ParsedRequest, ReplyIds, StoredItem, StoredItems } from './dialects/dialect.ts';

/** Replies that are kept. */
const MAX_REPLIES = 4096;

/** Context of a reply: what it adds to the context that it continues. */
interface Context {
  readonly before: Context | undefined;
  readonly messages: readonly ConversationMessage[];
}

/** Reply that is kept. */
interface Kept {
  readonly itemIds: readonly string[];
  readonly context: Context;
  /** Messages at the beginning of its request that hold for that request alone. */
  readonly instructions: number;
}

/** Replies kept for one episode. */
export class KeptReplies implements StoredItems {
  readonly #max: number;
  /** Replies by their ids, the oldest first. */
  readonly #replies = new Map<string, Kept>();
  readonly #items = new Map<string, StoredItem>();

  /** @param max replies that are kept */
  constructor(max = MAX_REPLIES) {
    this.#max = max;
  }

  /**
   * Keeps a reply.
   * @param before id of the reply that it continues
   * @param shared messages of the request up to and including that reply
   */
  keep(
    ids: ReplyIds,
    { call: { messages }, instructions }: ParsedRequest,
    answer: AssistantMessage,
    before?: string | undefined,
    shared = 0,
  ): void {
    const calls = answer.calls ?? [];
    const items: [string, StoredItem][] = calls.map(({ id, name, arguments: text }, i) => [
      ids.callItem(i),
      { type: 'call', callId: id, name, arguments: text },
    ]);
    if (answer.content !== '') items.push([ids.message, { type: 'message', content: answer.content }]);
    if (answer.reasoning) items.push([ids.reasoning, { type: 'reasoning', text: answer.reasoning }]);
    for (const [id, item] of items) this.#items.set(id, item);
    const known = before === undefined ? undefined : this.#replies.get(before);
    const continued = known?.instructions === instructions ? known.context : undefined;
    const fresh = messages.slice(continued ? shared : instructions);
    const context = { before: continued, messages: [...fresh, answer] };
    this.#replies.set(ids.reply, { itemIds: items.map(([id]) => id), context, instructions });
    if (this.#replies.size > this.#max) this.#forget(this.#replies.keys().next().value!);
  }

  response(id: string): readonly ConversationMessage[] | undefined {
    const kept = this.#replies.get(id);
    if (!kept) return undefined;
    const parts: (readonly ConversationMessage[])[] = [];
    for (let context: Context | undefined = kept.context; context; context = context.before)
      parts.push(context.messages);
    return parts.reverse().flat();
  }

  item(id: string): StoredItem | undefined {
    return this.#items.get(id);
  }

  #forget(id: string): void {
    for (const item of this.#replies.get(id)!.itemIds) this.#items.delete(item);
    this.#replies.delete(id);
  }
}
