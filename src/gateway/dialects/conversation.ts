/** Conversation of a request in its canonical form, as a dialect reads it message by message. */
import type { ConversationMessage, ToolCall } from '../../core/model-call.ts';
import { refuseValue } from './read-fields.ts';

/** Messages read so far, and the calls that results may answer. */
export class Conversation {
  readonly messages: ConversationMessage[] = [];
  readonly #calls = new Set<string>();

  /** Adds messages that are canonical already. */
  addAll(messages: readonly ConversationMessage[]): void {
    for (const message of messages) {
      this.messages.push(message);
      if (message.role === 'assistant') for (const { id } of message.calls ?? []) this.#calls.add(id);
    }
  }

  /** Begins anew with another context. @param kept messages at the beginning that stay */
  restart(kept: number, context: readonly ConversationMessage[]): void {
    this.messages.length = kept;
    this.#calls.clear();
    this.addAll(context);
  }

  /** Adds a text of the program's. */
  addText(role: 'system' | 'user', content: string): void {
    this.messages.push({ role, content });
  }

  /** Adds a turn of the model. @param reasoning empty where there is none */
  addTurn(content: string, reasoning: string, calls: readonly ToolCall[]): void {
    for (const { id } of calls) this.#calls.add(id);
    this.messages.push({
      role: 'assistant',
      content,
      ...(reasoning === '' ? {} : { reasoning }),
      ...(calls.length === 0 ? {} : { calls }),
    });
  }

  /** Adds the result of a call. @param path place of its id @throws {RefusedCall} for one of no earlier call */
  addResult(callId: string, content: string, path: string, isError = false): void {
    if (!this.#calls.has(callId)) throw refuseValue(path, 'the id of a call of an earlier turn', callId);
    this.messages.push({ role: 'tool', callId, content, ...(isError ? { isError } : {}) });
  }
}
