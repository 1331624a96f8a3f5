/** Episode on an MCP server: the reply's calls reach the server one after another, and the end state gives the reward. */
import { type AgentOutcome, type AgentReply, callId, createReplyMessage } from '../../core/agent-call.ts';
import { messageOf } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import type { ConversationMessage, Tool } from '../../core/model-call.ts';
import { isRecord } from '../../core/record.ts';
import type { ToolAnswer, ToolEpisode, ToolResult } from '../../core/tool-world.ts';
import type { McpOptions, McpTask } from './options.ts';
import type { McpServer, McpServers, ServerRequest } from './servers.ts';
import type { VerifyRequest } from './verify.ts';

/** Replies' share of `callTimeoutMs`: all calls of one reply together have so many times as long. */
const REPLY_SHARE = 5;

/** Episode to play. */
export interface McpEpisodeOptions {
  readonly options: McpOptions;
  readonly servers: McpServers;
  readonly request: ServerRequest;
  /** Replies that the episode may take; absent: any number. */
  readonly horizon: number | undefined;
  /** Gives the reward of the end state. */
  verify(request: VerifyRequest): Promise<AgentOutcome>;
}

/** Episode over a server of its own, or one that was reset. */
export class McpEpisode implements ToolEpisode {
  readonly opening: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
  readonly #episode: McpEpisodeOptions;
  readonly #server: McpServer;
  readonly #ending: AbortController;
  readonly #transcript: ConversationMessage[];
  #replies = 0;
  #calls = 0;
  #isReleased = false;
  #isAtWork = false;

  private constructor(episode: McpEpisodeOptions, server: McpServer, ending: AbortController) {
    const { options, request } = episode;
    this.#episode = episode;
    this.#server = server;
    this.#ending = ending;
    this.tools = server.offered;
    this.opening = openingOf(options, request.task, server.connection.instructions);
    this.#transcript = [...this.opening];
  }

  /** Takes a server. @throws {Error} where none can be had */
  static async open(episode: McpEpisodeOptions): Promise<McpEpisode> {
    const ending = new AbortController();
    const server = await episode.servers.take(episode.request, ending.signal);
    return new McpEpisode(episode, server, ending);
  }

  async take(reply: AgentReply): Promise<ToolAnswer> {
    this.#isAtWork = true;
    const answer = await this.#take(reply);
    this.#isAtWork = false;
    return answer;
  }

  /** Gives the server back; during a call it ends. */
  async close(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#ending.abort();
    const { connection } = this.#server;
    await this.#episode.servers.release(this.#server, !this.#isAtWork && !connection.isBusy);
  }

  async #take(reply: AgentReply): Promise<ToolAnswer> {
    const { options, horizon } = this.#episode;
    const results = await this.#callAll(reply);
    this.#record(reply, results);
    this.#replies++;
    const isLast = reply.calls.length === 0;
    const isPaid = isLast || (this.#replies === horizon && options.rewardAtHorizon !== 'drop');
    if (!isPaid && options.until !== 'verified') return this.#answer(results);
    const outcome = await this.#verify(reply.content);
    const { success } = outcome;
    if (isLast || (success && options.until === 'verified')) {
      return { ...this.#answer(results, outcome), end: { success } };
    }
    return this.#answer(results, isPaid ? outcome : undefined);
  }

  async #callAll({ calls }: AgentReply): Promise<readonly ToolResult[]> {
    const { callTimeoutMs } = this.#episode.options;
    const until = performance.now() + REPLY_SHARE * callTimeoutMs;
    const results: ToolResult[] = [];
    for (const call of calls) {
      const leftMs = until - performance.now();
      const result =
        leftMs < 1
          ? refuse('not called: the reply has no time left')
          : await this.#call(call, Math.min(leftMs, callTimeoutMs));
      results.push(result);
    }
    return results;
  }

  async #call(call: { readonly name: string; readonly arguments: string }, timeoutMs: number): Promise<ToolResult> {
    const { maxCalls, maxResultChars } = this.#episode.options;
    if (!this.tools.some(({ name }) => name === call.name))
      return refuse(`there is no tool '${call.name.slice(0, 100)}'`);
    const args = readArguments(call.arguments);
    if (typeof args === 'string') return refuse(args);
    if (this.#calls >= maxCalls) return refuse(`not called: an episode may make ${maxCalls} calls`);
    this.#calls++;
    const { signal } = this.#ending;
    const { text, isError } = await this.#server.connection.call(call.name, args, {
      timeoutMs: Math.ceil(timeoutMs),
      signal,
    });
    return { text: cutResult(text, maxResultChars), ...(isError ? { isError } : {}) };
  }

  #record(reply: AgentReply, results: readonly ToolResult[]): void {
    const n = this.#replies;
    const messages = results.map(
      ({ text, isError }, i): ConversationMessage => ({
        role: 'tool',
        callId: callId(n, i),
        content: text,
        ...(isError ? { isError } : {}),
      }),
    );
    for (const message of [createReplyMessage(reply, n, messages), ...messages]) this.#transcript.push(message);
  }

  #verify(answer: string): Promise<AgentOutcome> {
    const { request, verify, options } = this.#episode;
    const { connection, folder } = this.#server;
    const limits = { timeoutMs: options.callTimeoutMs, signal: this.#ending.signal };
    return verify({
      ...request,
      answer,
      transcript: [...this.#transcript],
      folder,
      call: async (name, args = {}) => {
        const output = await connection.call(name, args, limits);
        if (output.isLate) throw new Error(`verify: ${name}: ${output.text}`);
        return output;
      },
    });
  }

  #answer(results: readonly ToolResult[], outcome?: AgentOutcome): ToolAnswer {
    const hasChanged = this.#server.connection.hasChanged || this.#server.hash !== this.#episode.servers.hash;
    const metrics = { changed_tools: Number(hasChanged), ...outcome?.metrics };
    return { results, reward: outcome?.reward ?? 0, metrics };
  }
}

/** Messages before the first reply: instructions of the options, the task and the server, then the task's prompt. */
function openingOf(options: McpOptions, task: McpTask, instructions: string): readonly ConversationMessage[] {
  const system = [task.system ?? options.system ?? '', instructions.toWellFormed()].filter(
    (text) => text.trim() !== '',
  );
  return [
    ...(system.length === 0 ? [] : [{ role: 'system' as const, content: system.join('\n\n') }]),
    { role: 'user', content: task.prompt },
  ];
}

/** Reads the arguments of a call. @returns a text that describes the mistake, for what is no JSON of an object */
function readArguments(text: string): Readonly<Record<string, unknown>> | string {
  try {
    const args = text.trim() === '' ? {} : parseJson(text);
    return isRecord(args) ? args : 'the arguments must be a JSON object';
  } catch (thrown) {
    return `the arguments are no JSON: ${messageOf(thrown).slice(0, 200)}`;
  }
}

function refuse(why: string): ToolResult {
  return { text: `Error: ${why}`, isError: true };
}

/** Cuts a result to `max` UTF-16 units, with a mark where it was cut. */
function cutResult(text: string, max: number): string {
  if (text.length <= max) return text;
  return `${text.slice(0, max).toWellFormed()}\n[cut: ${text.length - max} more characters]`;
}
