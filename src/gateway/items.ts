/**
 * Replies of an episode that later requests of the responses dialect name by id: whole contexts (`previous_response_id`) and
 * parts of a reply (`item_reference`). Contexts share what they have in common, as their calls do in the tree; the oldest
 * replies are forgotten first.
 */
import type { AssistantMessage, ConversationMessage } from '../core/model-call.ts';
import type { ParsedRequest, ReplyIds, StoredItem, StoredItems } from './dialects/dialect.ts';

/** Replies that are kept, and the characters of their contexts. */
const MAX_REPLIES = 4096;
const MAX_CHARS = 64 * 2 ** 20;

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
  /** Characters of what it adds to the context that it continues. */
  readonly chars: number;
}

/** Replies kept for one episode. */
export class KeptReplies implements StoredItems {
  readonly #max: number;
  readonly #maxChars: number;
  #chars = 0;
  /** Replies by their ids, the oldest first. */
  readonly #replies = new Map<string, Kept>();
  readonly #items = new Map<string, StoredItem>();

  /** @param max replies that are kept @param maxChars characters of their contexts; the newest may have any number */
  constructor(max = MAX_REPLIES, maxChars = MAX_CHARS) {
    this.#max = max;
    this.#maxChars = maxChars;
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
    const chars = context.messages.reduce((sum, message) => sum + charsOf(message), 0);
    this.#replies.set(ids.reply, { itemIds: items.map(([id]) => id), context, instructions, chars });
    this.#chars += chars;
    while (this.#replies.size > this.#max || (this.#chars > this.#maxChars && this.#replies.size > 1)) {
      this.#forget(this.#replies.keys().next().value!);
    }
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
    const { itemIds, chars } = this.#replies.get(id)!;
    for (const item of itemIds) this.#items.delete(item);
    this.#chars -= chars;
    this.#replies.delete(id);
  }
}

function charsOf(message: ConversationMessage): number {
  if (message.role !== 'assistant') return message.content.length;
  const calls = message.calls ?? [];
  const written = message.content.length + (message.reasoning?.length ?? 0);
  return calls.reduce((sum, call) => sum + call.name.length + call.arguments.length, written);
}
