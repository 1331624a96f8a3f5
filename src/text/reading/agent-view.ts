/**
 * View of agents' calls, for policies that choose: the goal, the last replies and the newest messages, as the default view
 * shows any world.
 */
import { isAgentCall, readAgentCall, readAgentReply } from '../../core/agent-call.ts';
import type { First } from '../../core/env.ts';
import type { ConversationMessage } from '../../core/model-call.ts';
import type { SeenTurn, WindowView } from '../../core/view.ts';
import { defaultView } from './default-view.ts';

/** Window view of agents. */
export const agentView: WindowView = {
  ...defaultView,
  id: 'agent@1',
  render(first, turns) {
    return defaultView.render(showFirst(first), turns.map(showTurn), undefined);
  },
};

function showFirst(first: First): First {
  return { kind: 'first', observation: showCall(first.observation) };
}

const shown = new WeakMap<SeenTurn, SeenTurn>();

/** Turn as texts, which are read once: a window is rendered anew each turn. */
function showTurn(turn: SeenTurn): SeenTurn {
  let text = shown.get(turn);
  if (!text) shown.set(turn, (text = readTurn(turn)));
  return text;
}

/** Turn as texts: what was called in place of the reply, what the messages hold in place of the call. */
function readTurn({ action, observation, partial }: SeenTurn): SeenTurn {
  // A stage shows nothing new; a turn that reached nobody is followed by a call like any other.
  if (partial && observation === '') return { action, observation, partial };
  const { content, calls } = readAgentReply(action);
  const replied = calls.length === 0 ? content : calls.map((call) => `${call.name} ${call.arguments}`).join(' ');
  return { action: replied, observation: showCall(observation) };
}

/** Words of a call's newest messages, those behind our last reply, without the instructions. */
function showCall(observation: string): string {
  if (!isAgentCall(observation)) return observation;
  const { messages } = readAgentCall(observation);
  // A conversation that begins anew (other tools, a summary) brings along what was read before.
  const replied = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages
    .slice(replied + 1)
    .filter(({ role }) => role === 'user' || role === 'tool')
    .map(textOf)
    .join('\n');
}

function textOf({ content }: ConversationMessage): string {
  return content;
}
