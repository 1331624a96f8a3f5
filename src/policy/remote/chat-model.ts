/** Models behind an OpenAI-compatible API, for worlds and programs that talk to one: users, judges. */
import type { AgentReply } from '../../core/agent-call.ts';
import type { ChatModel, ChatModelOptions, ChatRequest } from '../../core/chat-model.ts';
import { readChatModelOptions } from '../../core/chat-model.ts';
import { systemClock } from '../../core/clock.ts';
import { LongplayError, messageOf, UserError } from '../../core/errors.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import { readApiKey } from '../../http/api-key.ts';
import { attempt } from '../../http/attempts.ts';
import { AdaptingClient } from './adapting-client.ts';
import { printChatBody, readChatReply } from './chat-body.ts';
import { OpenAIClient } from './openai-client.ts';

const KEY = 'OPENAI_API_KEY';
/** Bound of `concurrency`. */
const MAX_CONNECTIONS = 1024;

/**
 * Opens a model. Faults that pass are tried again; a key of a request that the server refuses is left out.
 * @throws {UserError} BAD_CONFIG for options that it does not have, and for a key that is named and not set
 */
export function openChatModel(options: ChatModelOptions): ChatModel {
  return new RemoteChatModel(readChatModelOptions(options, 'model'));
}

class RemoteChatModel implements ChatModel {
  readonly id: string;
  readonly #options: ChatModelOptions;
  readonly #client: OpenAIClient;
  readonly #adapting: AdaptingClient;
  readonly #places: Places;
  #sent = 0;

  constructor(options: ChatModelOptions) {
    const { url, model, apiKeyEnv, temperature = 0, maxTokens, body, concurrency = 16 } = options;
    const key = readApiKey(apiKeyEnv ?? KEY);
    if (apiKeyEnv !== undefined && key === undefined) {
      const cure =
        'set it; hosts of environments get it where rollout.hostVariables or serve-env --host-variable names it';
      throw new UserError('BAD_CONFIG', `model ${model}: expected a key in ${apiKeyEnv}, which is not set: ${cure}`);
    }
    this.id = `${model} at ${url} ${JSON.stringify({ temperature, maxTokens, body })}`;
    this.#options = options;
    const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
    // As many connections as places: a request that waited for one would wait within its deadline.
    this.#client = new OpenAIClient({ baseUrl: url, headers, maxConnections: MAX_CONNECTIONS });
    this.#adapting = new AdaptingClient(this.#client);
    this.#places = new Places(concurrency);
  }

  async reply({ messages, tools = [], seed }: ChatRequest): Promise<AgentReply> {
    const { url, model, temperature = 0, maxTokens, timeoutMs = 60_000, attempts = 4, body } = this.#options;
    const sampling = { temperature, ...(seed === undefined ? {} : { seed }) };
    const call = { messages, tools, toolChoice: 'auto', parallelCalls: true, maxTokens, stop: [], sampling } as const;
    const request = { ...printChatBody(call, model), ...body };
    const limits = {
      attempts,
      attemptMs: timeoutMs,
      totalMs: attempts * (timeoutMs + 10_000),
      minMs: 500,
      maxMs: 10_000,
    };
    const rng = Rng.fromSeed(seedFrom('chat-model', this.#sent++)); // only the waits are drawn
    const { closed } = this.#client;
    await this.#places.take();
    try {
      const completion = await attempt(limits, { clock: systemClock, rng, closed }, (deadlineMs) =>
        this.#adapting.complete({ api: 'chat', body: request }, deadlineMs),
      );
      return readChatReply(completion);
    } catch (thrown) {
      throw new LongplayError('REMOTE_FAILED', `model ${model} at ${url}: ${messageOf(thrown)}`, { cause: thrown });
    } finally {
      this.#places.leave();
    }
  }

  close(): void {
    this.#client.close();
  }
}

/** Places among the requests in flight, given in order of asking. A wait for one counts towards no deadline. */
class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  take(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}
