/** Texts of calls, replies and tools as a person reads them in a terminal. Pure. */
import { type AgentReply, readAgentCall } from '../core/agent-call.ts';
import type { ReadTurn } from '../core/call-episode.ts';
import type { ConversationMessage } from '../core/model-call.ts';

/** Describes messages, one below the other: the role in square brackets, then the text. */
export function describeMessages(messages: readonly ConversationMessage[]): string {
  return messages
    .map((message) => {
      const name = message.role === 'tool' ? `result${message.isError ? ', an error' : ''}` : message.role;
      const calls = message.role === 'assistant' ? (message.calls ?? []).map(describeCall) : [];
      const reasoning = message.role === 'assistant' && message.reasoning ? [`(thinks) ${message.reasoning}`] : [];
      return [`[${name}]`, ...reasoning, ...(message.content === '' ? [] : [message.content]), ...calls].join('\n');
    })
    .join('\n');
}

/** Describes a call in one line: the tool's name, then its arguments as JSON. `longplay play` reads it. */
export function describeCall({ name, arguments: args }: AgentReply['calls'][number]): string {
  return `${name} ${args.trim() === '' ? '{}' : args}`;
}

/** Describes a reply: its thinking and its text, then its calls, a line each. */
export function describeReply({
  content,
  reasoning,
  calls,
}: Pick<AgentReply, 'content' | 'reasoning' | 'calls'>): string {
  const texts = [reasoning ? `(thinks) ${reasoning}` : '', content].filter((text) => text !== '');
  return [...texts, ...calls.map(describeCall)].join('\n');
}

/** Describes what a turn of an episode of calls has read: its messages, and the tools where they are new. */
export function describeCallRead({ messages, tools }: ReadTurn): string {
  const listed = tools.length > 0 ? [`[tools] ${tools.join(', ')}`] : [];
  return [...listed, ...(messages.length > 0 ? [describeMessages(messages)] : [])].join('\n');
}

/** Describes the last observation of an episode of calls: the messages of a call that nobody answered, or any other text as it is. */
export function describeFinalCall(observation: string): string {
  if (!observation.startsWith('{"call":')) return observation;
  try {
    return describeMessages(readAgentCall(observation).messages);
  } catch {
    return observation; // a trace that was edited
  }
}
