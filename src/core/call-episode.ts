/** Episodes of agents and of worlds of tools, read back as conversations: one for each leaf of their tree of calls. */
import { type AgentCall, type AgentReply, createReplyMessage, readAgentCall } from './agent-call.ts';
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

type CallTurn = Pick<Turn, 'observation' | 'action' | 'partial' | 'untrained'>;

/** True for an episode of calls. */
export function isCallEpisode(turns: readonly Pick<Turn, 'observation'>[]): boolean {
  return turns[0]?.observation.startsWith('{"call":') === true;
}

/**
 * Conversations of an episode, one for each call that was answered and that no answered call continues. Replies that reached
 * nobody are left out.
 * @throws {RangeError} for an observation that is no call
 */
export function listConversations(turns: readonly CallTurn[]): CallConversation[] {
  const calls = new Map<number, AnsweredCall>();
  const chooser = new ReplyChooser();
  let open: AnsweredCall | undefined;
  for (const turn of turns) {
    if (turn.observation !== '') {
      const call = readAgentCall(turn.observation);
      const tools = call.tools ?? (call.parent === null ? [] : (calls.get(call.parent)?.tools ?? []));
      open = { call, tools, reply: undefined };
      calls.set(call.call, open);
      chooser.begin({ tools, toolChoice: call.toolChoice ?? 'auto' }, call.messages);
    }
    const reply = chooser.take(turn.action);
    if (open && !turn.untrained) open.reply = reply;
  }
  const continued = new Set([...calls.values()].filter(({ reply }) => reply).map(({ call }) => call.parent));
  return [...calls.values()]
    .filter(({ call, reply }) => reply && !continued.has(call.call))
    .map((leaf) => ({ messages: messagesUpTo(calls, leaf), tools: leaf.tools }));
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
