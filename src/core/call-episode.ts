/** Episodes of agents and of worlds of tools, read back as conversations: one for each leaf of their tree of calls. */
import { type AgentCall, type AgentReply, createReplyMessage, isAgentCall, readAgentCall } from './agent-call.ts';
import { ReplyChooser } from './call-stages.ts';
import type { ConversationMessage, Tool } from './model-call.ts';
import type { Turn } from './trajectory.ts';

/** Conversation from a root to a leaf, the leaf's reply included. */
export interface CallConversation {
  readonly messages: readonly ConversationMessage[];
  readonly tools: readonly Tool[];
}

/** Call of the episode with the reply that it got. */
interface AnsweredCall {
  readonly call: AgentCall;
  readonly tools: readonly Tool[];
  reply: AgentReply | undefined;
}

/** Turn as far as a conversation is made of it. */
export type CallTurn = Pick<Turn, 'observation' | 'action' | 'partial' | 'untrained'>;

/** True for an episode of calls. */
export function isCallEpisode(turns: readonly Pick<Turn, 'observation'>[]): boolean {
  return isAgentCall(turns[0]?.observation ?? '');
}

/**
 * Conversations of an episode, one for each call that was answered and that no answered call continues. Replies that reached
 * nobody are left out.
 * @throws {RangeError} for an observation that is no call
 */
export function listConversations(turns: readonly CallTurn[]): CallConversation[] {
  const calls = new Map<number, AnsweredCall>();
  for (const { call, tools, reply, turn } of followReplies(turns)) {
    let answered = calls.get(call.call);
    if (!answered) calls.set(call.call, (answered = { call, tools, reply: undefined }));
    if (!turn.untrained) answered.reply = reply;
  }
  const continued = new Set([...calls.values()].filter(({ reply }) => reply).map(({ call }) => call.parent));
  return [...calls.values()]
    .filter(({ call, reply }) => reply && !continued.has(call.call))
    .map((leaf) => ({ messages: messagesUpTo(calls, leaf), tools: leaf.tools }));
}

/** Turn as its call and what it replied. */
export interface FollowedTurn {
  readonly turn: CallTurn;
  readonly call: AgentCall;
  readonly tools: readonly Tool[];
  /** Reply that the turn made; undefined where it chose a part of one. */
  readonly reply: AgentReply | undefined;
}

/** Follows the turns of an episode: which call each answers, and by which reply. @throws {RangeError} as `listConversations` */
export function* followReplies(turns: readonly CallTurn[]): Generator<FollowedTurn> {
  const toolsOf = new Map<number, readonly Tool[]>();
  const chooser = new ReplyChooser();
  let call: AgentCall | undefined;
  let tools: readonly Tool[] = [];
  for (const turn of turns) {
    if (turn.observation !== '') {
      call = readAgentCall(turn.observation);
      tools = call.tools ?? (call.parent === null ? [] : (toolsOf.get(call.parent) ?? []));
      toolsOf.set(call.call, tools);
      chooser.begin({ tools, toolChoice: call.toolChoice ?? 'auto' }, call.messages);
    }
    const reply = chooser.take(turn.action);
    if (call) yield { turn, call, tools, reply };
  }
}

/** Call of a tool in a turn, and its result. */
export interface MadeCall {
  readonly name: string;
  /** Arguments as they were written. */
  readonly arguments: string;
  /** Text of its result; undefined where the episode has none. */
  readonly result: string | undefined;
  readonly isError: boolean;
}

/** Reply of a turn, with what came of it. */
export interface MadeReply {
  readonly content: string;
  readonly reasoning?: string | undefined;
  readonly calls: readonly MadeCall[];
  /** Messages that followed, the results of its calls left out. */
  readonly next: readonly ConversationMessage[];
}

/** Turn of an episode of calls as a person reads it. */
export interface ReadTurn {
  /** Number of the call that it answers. */
  readonly call: number;
  /** Number of the call which that one continues; `null` where it begins a conversation. */
  readonly parent: number | null;
  /** Messages that came with the call; empty behind a stage of the reply to it. */
  readonly messages: readonly ConversationMessage[];
  /** Names of the tools, where the call begins a conversation; empty elsewhere. */
  readonly tools: readonly string[];
  /** Reply of the turn; undefined where it chose a part of one. */
  readonly reply: MadeReply | undefined;
}

/**
 * Reads the turns of an episode of calls, one for one.
 * @returns undefined for an episode of another world, and for one with an observation that is no call
 */
export function readCallTurns(turns: readonly CallTurn[], finalObservation: string): ReadTurn[] | undefined {
  if (!isCallEpisode(turns)) return undefined;
  try {
    const followed = [...followReplies(turns)];
    const nextOf = new Map<number, readonly ConversationMessage[]>();
    const add = ({ parent, messages }: AgentCall) => {
      if (parent !== null && !nextOf.has(parent)) nextOf.set(parent, messages);
    };
    for (const { call } of followed) add(call);
    if (isAgentCall(finalObservation)) add(readAgentCall(finalObservation));
    return followed.map(({ turn, call, reply }) => ({
      call: call.call,
      parent: call.parent,
      messages: turn.observation === '' ? [] : call.messages,
      tools: turn.observation === '' ? [] : (call.tools ?? []).map(({ name }) => name),
      reply: reply && pairResults(reply, call.call, nextOf.get(call.call) ?? []),
    }));
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

/** Puts the results beside the calls of a reply. @param next messages behind it */
function pairResults(reply: AgentReply, n: number, next: readonly ConversationMessage[]): MadeReply {
  const { content, reasoning, calls = [] } = createReplyMessage(reply, n, next);
  const results = new Map(next.map((message) => [message.role === 'tool' ? message.callId : undefined, message]));
  const made = calls.map(({ id, name, arguments: args }) => {
    const result = results.get(id);
    const isError = result?.role === 'tool' && result.isError === true;
    return { name, arguments: args, result: result?.content, isError };
  });
  const paired = new Set(calls.map(({ id }) => id));
  const rest = next.filter((message) => !(message.role === 'tool' && paired.has(message.callId)));
  return { content, ...(reasoning === undefined ? {} : { reasoning }), calls: made, next: rest };
}

function messagesUpTo(calls: ReadonlyMap<number, AnsweredCall>, leaf: AnsweredCall): ConversationMessage[] {
  const chain: AnsweredCall[] = [];
  for (let at: AnsweredCall | undefined = leaf; at; ) {
    chain.unshift(at);
    at = at.call.parent === null ? undefined : calls.get(at.call.parent);
  }
  return chain.flatMap(({ call, reply }, i) => {
    const fresh = chain[i + 1]?.call.messages ?? [];
    return [...call.messages, ...(reply ? [createReplyMessage(reply, call.call, fresh)] : [])];
  });
}
