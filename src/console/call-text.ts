/** Conversations of calls as text for a terminal. Pure. */
import { isAgentCall, readAgentCall } from '../core/agent-call.ts';
import type { ReadTurn } from '../core/call-episode.ts';
import { describeReply } from '../core/call-text.ts';
import type { ConversationMessage } from '../core/model-call.ts';

/** Describes messages, one below the other: the role in square brackets, then the text. */
export function describeMessages(messages: readonly ConversationMessage[]): string {
  return messages
    .map((message) => {
      const name = message.role === 'tool' ? `result${message.isError ? ', an error' : ''}` : message.role;
      const text = message.role === 'assistant' ? describeThought(message) : message.content;
      return [`[${name}]`, ...(text === '' ? [] : [text])].join('\n');
    })
    .join('\n');
}

/** Describes a reply of a turn: its thinking, its text, then its calls, a line each. */
export function describeThought(
  reply: Parameters<typeof describeReply>[0] & { readonly reasoning?: string | undefined },
): string {
  const text = describeReply(reply);
  if (!reply.reasoning) return text;
  return [`(thinks) ${reply.reasoning}`, ...(text === '' ? [] : [text])].join('\n');
}

/** Describes what a turn of an episode of calls has read: its messages, and the tools where they are new. */
export function describeCallRead({ messages, tools }: ReadTurn): string {
  const listed = tools.length > 0 ? [`[tools] ${tools.join(', ')}`] : [];
  return [...listed, ...(messages.length > 0 ? [describeMessages(messages)] : [])].join('\n');
}

/** Describes the last observation of an episode of calls: the messages of a call that nobody answered, or any other text as it is. */
export function describeFinalCall(observation: string): string {
  if (!isAgentCall(observation)) return observation;
  try {
    return describeMessages(readAgentCall(observation).messages);
  } catch {
    return observation; // a trace that was edited
  }
}
