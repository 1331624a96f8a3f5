/**
 * User that is a language model behind an OpenAI-compatible API, with the original's prompt. Roles are flipped: what the agent says is
 * a user's message to it. It never sees the agent's calls and their results; in telecom it has tools of its own.
 */
import type { ChatModel } from '../../src/core/chat-model.ts';
import { LongplayError } from '../../src/core/errors.ts';
import type { ConversationMessage, Tool } from '../../src/core/model-call.ts';
import { seedFrom } from '../../src/core/rng.ts';
import { type Message, readCall } from './orchestrator.ts';
import { dumps } from './python/format.ts';
import type { PyValue } from './python/values.ts';
import { userPrompt } from './scenario.ts';
import type { TauTask } from './tasks.ts';
import type { SimulatedUser, UserMessage } from './users.ts';

/** Requests for one message: a model that writes neither a text nor a call is asked again. */
const MAX_REQUESTS = 3;

/** User of one episode. */
export class ModelUser implements SimulatedUser {
  readonly #model: ChatModel;
  readonly #system: ConversationMessage;
  readonly #tools: readonly Tool[];
  readonly #seed: number;

  /**
   * @param tools of the user; none where the domain gives it none
   * @param seed of the task
   */
  constructor(model: ChatModel, task: TauTask, tools: readonly Tool[], seed: number) {
    this.#model = model;
    this.#system = { role: 'system', content: userPrompt(task, tools.length > 0) };
    this.#tools = tools;
    this.#seed = seed;
  }

  /** @throws {LongplayError} REMOTE_FAILED where the model does not answer, or writes nothing: the episode fails */
  async next(messages: readonly Message[]): Promise<UserMessage> {
    const conversation = [this.#system, ...flipRoles(messages)];
    for (let request = 0; request < MAX_REQUESTS; request++) {
      const seed = seedFrom('tau2 user', this.#seed, messages.length, request);
      const { content, calls } = await this.#model.reply({ messages: conversation, tools: this.#tools, seed });
      if (calls.length === 0 && content.trim() === '') continue;
      return { text: content, calls: calls.map((call) => readCall('', call)) };
    }
    throw new LongplayError('REMOTE_FAILED', `the user ${this.#model.id} wrote nothing, asked ${MAX_REQUESTS} times`);
  }
}

/** Conversation as the user's model reads it: its own messages are the assistant's. */
export function flipRoles(messages: readonly Message[]): ConversationMessage[] {
  return messages.flatMap(({ role, content, calls, answers }): ConversationMessage[] => {
    if (answers) return answers.side === 'user' ? [{ role: 'tool', callId: answers.id, content }] : [];
    if (role !== 'user') return calls.length === 0 ? [{ role: 'user', content }] : [];
    const made = calls.map(({ id, name, args }) => ({ id, name, arguments: dumps(args as Map<string, PyValue>) }));
    return [{ role: 'assistant', content, ...(made.length > 0 ? { calls: made } : {}) }];
  });
}
