/** Episodes as importers read them, and their form as trajectories of an agent's world. Pure. */
import { hash } from 'node:crypto';
import { AGENT, NO_USAGE, printAgentCall, printAgentOutcome, printAgentReply } from '../../core/agent-call.ts';
import type {
  AskedSampling,
  AssistantMessage,
  ConversationMessage,
  ReplyFinish,
  Tool,
  ToolCall,
} from '../../core/model-call.ts';
import type { Decision, Trajectory, Turn } from '../../core/trajectory.ts';
import { CallTree, type TreeCall } from '../../gateway/call-tree.ts';
import type { Losses } from './losses.ts';
import { unwrapJson } from './read-messages.ts';

/** Call of a model with its reply, as it was read. */
export interface ReadCall {
  /** Place of the call that it continues, among the calls of the episode; `null` where it begins a conversation. */
  readonly parent: number | null;
  /** Messages behind the parent's reply, at least one. */
  readonly messages: readonly ConversationMessage[];
  /** Tools, where it begins a conversation. */
  readonly tools?: readonly Tool[] | undefined;
  readonly reply: AssistantMessage;
  readonly facts: CallFacts;
}

/** Facts of a call beside its messages. */
export interface CallFacts {
  readonly finish?: ReplyFinish | undefined;
  readonly promptTokens?: number | undefined;
  readonly completionTokens?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly sampling?: AskedSampling | undefined;
  /** Token ids and log-probabilities, where the source has them. */
  readonly decision?: Decision | undefined;
  /** Reward of this call alone. */
  readonly reward?: number | undefined;
  /** Time of the call, in milliseconds. */
  readonly ms?: number | undefined;
}

/** Reads a count of tokens, which some sources write as a text. @returns undefined for what is no number above 0 */
export function countOf(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

/** Reasons why a reply ended, by the names of all makers. */
const FINISHES: Readonly<Record<string, ReplyFinish>> = {
  ...{ stop: 'stop', end_turn: 'stop', stop_sequence: 'stop' },
  ...{ tool_call: 'calls', tool_calls: 'calls', tool_use: 'calls' },
  ...{ length: 'length', max_tokens: 'length', content_filter: 'filter', refusal: 'filter' },
};

/** Reads why a reply ended. @returns undefined for a reason that no maker gives */
export function readFinish(reason: unknown): ReplyFinish | undefined {
  return typeof reason === 'string' && Object.hasOwn(FINISHES, reason) ? FINISHES[reason] : undefined;
}

/** Episode as it was read. */
export interface ReadEpisode {
  readonly calls: readonly ReadCall[];
  /** Messages behind the last reply. */
  readonly rest: readonly ConversationMessage[];
  /** Scores by name. */
  readonly scores: Readonly<Record<string, number>>;
  /** Id of the episode in its source. */
  readonly id?: string | undefined;
}

/** Name of the score that is the reward where none is chosen. */
const REWARD = 'reward';

/** Picks the reward among scores: the chosen one, else `reward`, else the only one. */
export function pickReward(scores: Readonly<Record<string, number>>, chosen: string | undefined): number | undefined {
  if (chosen !== undefined) return scores[chosen];
  const values = Object.values(scores);
  return scores[REWARD] ?? (values.length === 1 ? values[0] : undefined);
}

/** Score as a source has it. */
export interface FoundScore {
  readonly name: string;
  readonly value: number;
  /** True for a score of the whole trace; one of a part counts where there is none. */
  readonly isWhole: boolean;
}

/** Picks a score of each name: the first of the whole trace, else the first. The others are counted as lost. */
export function pickScores(found: readonly FoundScore[], losses: Losses): Record<string, number> {
  const picked = new Map<string, FoundScore>();
  for (const one of found) {
    const known = picked.get(one.name);
    if (!known || (one.isWhole && !known.isWhole)) picked.set(one.name, one);
  }
  losses.add('scores (several of one name)', found.length - picked.size);
  return Object.fromEntries([...picked].map(([name, { value }]) => [name, value]));
}

/** Opening of an episode: episodes that begin with the same messages are of one task. */
export function digestOpening({ calls }: ReadEpisode): string {
  return hash('sha256', JSON.stringify(calls[0]?.messages ?? []), 'base64');
}

/**
 * Converts an episode to a trajectory of an agent's world.
 * @param score reward of the whole episode; undefined for one without, which counts as 0
 */
export function createTrajectory(
  { calls, rest, scores }: ReadEpisode,
  { episode, index, score }: { readonly episode: number; readonly index: number; readonly score: number | undefined },
): Trajectory {
  let given = 0;
  for (const { facts } of calls) given += facts.reward ?? 0;
  const turns = calls.map(({ parent, messages, tools, reply, facts }, call): Turn => {
    const { finish, maxTokens, sampling, decision, ms = 0 } = facts;
    const { promptTokens = 0, completionTokens = 0 } = facts;
    const made = reply.calls ?? [];
    const action = printAgentReply({
      content: reply.content,
      reasoning: reply.reasoning,
      calls: made,
      finish: finish ?? (made.length > 0 ? 'calls' : 'stop'),
      usage: promptTokens + completionTokens > 0 ? { promptTokens, completionTokens } : NO_USAGE,
    });
    const isLast = call === calls.length - 1;
    return {
      observation: printAgentCall({
        call,
        parent,
        messages,
        ...(parent === null ? { tools: tools ?? [] } : {}),
        maxTokens,
        sampling,
      }),
      actions: new Int32Array(0),
      action,
      ...(decision ? { decision } : {}),
      // What the rewards of single calls leave of the score comes at the end.
      reward: (facts.reward ?? 0) + (isLast && score !== undefined ? score - given : 0),
      actMs: ms,
      envMs: 0,
    };
  });
  const reward = score ?? given;
  const last = calls.length - 1;
  const report = Object.keys(scores).length > 0 ? { report: { metrics: scores } } : {};
  const finalObservation =
    rest.length > 0
      ? printAgentCall({ call: calls.length, parent: last, messages: rest, ...report })
      : printAgentOutcome({ reward, success: reward > 0, metrics: scores });
  return {
    episode,
    group: episode,
    task: { env: AGENT, index, seed: 0 },
    horizon: Math.max(1, turns.length),
    attempt: 1,
    actionTable: [],
    turns,
    finalObservation,
    end: 'terminated',
    success: reward > 0,
  };
}

/** Ids of calls under which their results are known, by the ids of the source. A reply's own come before those before it. */
type Ids = ReadonlyMap<string, string>;

/**
 * Builds the calls of an episode. Ids of calls become those of our traces, by which results are put beside their calls
 * whatever their order.
 */
export class CallBuilder {
  readonly calls: ReadCall[] = [];
  readonly #ids: Ids[] = [];

  /** Adds a call. @param parent place of the call that it continues @returns its place */
  add(
    parent: number | null,
    messages: readonly ConversationMessage[],
    reply: AssistantMessage,
    tools?: readonly Tool[],
    facts: CallFacts = {},
  ): number {
    const n = this.calls.length;
    const own = new Map(parent === null ? [] : this.#ids[parent]);
    for (const [i, { id }] of (reply.calls ?? []).entries()) own.set(id, `call_${n}_${i}`);
    const fresh = messages.map((message) => this.#rename(message, parent === null ? undefined : this.#ids[parent]));
    this.#ids.push(own);
    const call = { parent, messages: fresh, reply: renameCalls(reply, own), facts };
    this.calls.push(parent === null ? { ...call, tools: tools ?? [] } : call);
    return n;
  }

  /** Messages behind the last call, under our ids. */
  end(messages: readonly ConversationMessage[]): ConversationMessage[] {
    return messages.map((message) => this.#rename(message, this.#ids.at(-1)));
  }

  #rename(message: ConversationMessage, ids: Ids | undefined): ConversationMessage {
    if (message.role !== 'tool') return message;
    return { ...message, callId: ids?.get(message.callId) ?? message.callId };
  }
}

function renameCalls(reply: AssistantMessage, ids: Ids): AssistantMessage {
  if (!reply.calls) return reply;
  return { ...reply, calls: reply.calls.map((call): ToolCall => ({ ...call, id: ids.get(call.id) ?? call.id })) };
}

/** Requests to a model and its replies, joined to the tree of an episode: a request continues the reply that it repeats. */
export class RequestTree {
  readonly #tree = new CallTree();
  readonly #builder = new CallBuilder();
  readonly #places = new Map<TreeCall, number>();

  /** Adds a request with its reply, in the order of time. */
  add(
    messages: readonly ConversationMessage[],
    tools: readonly Tool[],
    reply: AssistantMessage,
    facts: CallFacts,
  ): void {
    const node = this.#tree.add({ messages, tools });
    this.#tree.answer(node, reply);
    const fresh = messages.slice(node.parent ? node.shared : 0);
    const known = node.parent ? this.#places.get(node.parent) : undefined;
    // A request that ends with a reply asks to go on with it: our conversations do not.
    const parent = known === undefined || fresh.length === 0 ? null : known;
    const asked = parent === null ? messages : fresh;
    this.#places.set(node, this.#builder.add(parent, asked, reply, tools, facts));
  }

  get calls(): readonly ReadCall[] {
    return this.#builder.calls;
  }

  /** Texts of all messages, and the arguments of all calls as sorted JSON. */
  #texts: ReadonlySet<string> | undefined;

  /**
   * True for a value that some call shows: a text of its is a message's, or it is the arguments of a call. Also for no value.
   * To be asked once all calls are there.
   */
  shows(given: unknown): boolean {
    const value = unwrapJson(given);
    if (value === undefined || value === null || value === '') return true;
    if (!this.#texts) {
      const texts = new Set<string>();
      for (const { messages, reply } of this.calls) {
        for (const { content } of [...messages, reply]) if (content !== '') texts.add(content);
        for (const call of reply.calls ?? []) texts.add(JSON.stringify(unwrapJson(call.arguments)));
      }
      this.#texts = texts;
    }
    const texts = this.#texts;
    const isShown = (one: unknown): boolean => {
      if (typeof one === 'string') return texts.has(one);
      if (typeof one !== 'object' || one === null) return texts.has(String(one));
      return texts.has(JSON.stringify(one)) || Object.values(one).some(isShown);
    };
    return isShown(given) || isShown(value);
  }
}
