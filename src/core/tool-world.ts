/**
 * Worlds of tools: the policy acts by calling tools. Such a world exports `tools: true`; its observations are model calls and its
 * actions are replies, as JSON (agent-call.ts). So language models read it through their own template and write calls in their
 * own format, hosted models get its tools, and small policies choose a tool and then its arguments.
 *
 * A world writes a `ToolEpisode`; `openToolSession` makes a session of it.
 */
import { type AgentReply, callId, printAgentCall } from './agent-call.ts';
import { ReplyChooser } from './call-stages.ts';
import type { EnvStep, MaybePromise, Session } from './env.ts';
import type { ConversationMessage, Tool, ToolChoice } from './model-call.ts';
import { countReply, NO_TOOL_COUNTS } from './tool-counts.ts';

/** Id of the world that an MCP server makes; `options` name the server. */
export const MCP = 'mcp';

/** True for the id of such a world: `mcp`, or `mcp:` and the path of a file with the options. */
export function isMcpId(id: unknown): id is string {
  return typeof id === 'string' && /^mcp(:|$)/.test(id);
}

/** Result of one call: its text as the policy reads it. */
export interface ToolResult {
  readonly text: string;
  /** True where the tool failed; the text says why. */
  readonly isError?: true;
}

/** Answer of a world to a reply. */
export interface ToolAnswer {
  /** Results of the reply's calls, in their order; one for each. */
  readonly results: readonly ToolResult[];
  /** Message of the user behind the results, or in answer to a reply without calls. */
  readonly user?: string | undefined;
  readonly reward: number;
  /** Numbers of the episode so far, e.g. the parts of its reward: means over episodes are metrics. Those of the last answer count. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
  /** Present where the episode is over. */
  readonly end?: { readonly success: boolean } | undefined;
}

/** Episode of a world of tools. */
export interface ToolEpisode {
  /** Messages before the first reply, at least one: instructions (`system`), the task (`user`). */
  readonly opening: readonly ConversationMessage[];
  /** Tools, the same in the whole episode. */
  readonly tools: readonly Tool[];
  /** Constraint on their use; `auto` where absent. */
  readonly toolChoice?: ToolChoice | undefined;
  /** Values that a choosing policy may always use in arguments, before those that the conversation has shown. */
  readonly values?: readonly string[] | undefined;
  /**
   * Takes a reply: its calls, or its text where it has none. Names and arguments are as they were written; what does not fit a
   * schema is answered in words (`isError`), never thrown.
   */
  take(reply: AgentReply): MaybePromise<ToolAnswer>;
  /** Releases what the episode holds. */
  close?(): MaybePromise<void>;
}

/** Opens a session over an episode of tools. */
export function openToolSession(episode: ToolEpisode): Session {
  return new ToolSession(episode);
}

class ToolSession implements Session {
  readonly first;
  readonly #episode: ToolEpisode;
  readonly #chooser: ReplyChooser;
  #counts = NO_TOOL_COUNTS;
  #isOver = false;

  constructor(episode: ToolEpisode) {
    const { opening, tools, toolChoice = 'auto', values } = episode;
    this.#episode = episode;
    this.#chooser = new ReplyChooser(values);
    this.#chooser.begin({ tools, toolChoice }, opening);
    const observation = printAgentCall({ call: 0, parent: null, messages: opening, tools, toolChoice });
    this.first = { kind: 'first', observation } as const;
  }

  step(action: string): MaybePromise<EnvStep> {
    if (this.#isOver) return { kind: 'terminated', observation: '', reward: 0, success: false };
    const reply = this.#chooser.take(action);
    if (!reply) return { kind: 'mid', observation: '', reward: 0, partial: true };
    const answer = this.#episode.take(reply);
    return 'then' in answer ? answer.then((one) => this.#answer(reply, one)) : this.#answer(reply, answer);
  }

  actions(): readonly string[] {
    return this.#isOver ? [] : this.#chooser.list();
  }

  close(): MaybePromise<void> {
    this.#isOver = true;
    return this.#episode.close?.();
  }

  #answer(reply: AgentReply, { results, user, reward, metrics = {}, end }: ToolAnswer): EnvStep {
    if (results.length !== reply.calls.length) {
      throw new RangeError(`a reply of ${reply.calls.length} calls got ${results.length} results: one for each is due`);
    }
    const { tools, toolChoice = 'auto' } = this.#episode;
    const parent = this.#counts.replies;
    const errors = results.filter(({ isError }) => isError).length;
    this.#counts = countReply(this.#counts, reply, tools, errors);
    const messages: ConversationMessage[] = results.map(({ text, isError }, i) => ({
      role: 'tool',
      callId: callId(parent, i),
      content: text,
      ...(isError ? { isError } : {}),
    }));
    if (user !== undefined) messages.push({ role: 'user', content: user });
    if (messages.length === 0) messages.push({ role: 'user', content: '' });
    this.#chooser.begin({ tools, toolChoice }, messages);
    const report = { metrics, tools: this.#counts };
    const observation = printAgentCall({ call: parent + 1, parent, messages, toolChoice, report });
    if (!end) return { kind: 'mid', observation, reward };
    this.#isOver = true;
    return { kind: 'terminated', observation, reward, success: end.success };
  }
}
