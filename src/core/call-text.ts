/** Texts of calls and replies as a person reads them. */
import type { ToolCall } from './model-call.ts';

/** Describes a call in one line: the tool's name, then its arguments as JSON. `longplay play` reads it. */
export function describeCall({ name, arguments: args }: Omit<ToolCall, 'id'>): string {
  return `${name} ${args.trim() === '' ? '{}' : args}`;
}

/** Describes a reply or a message: its text, then its calls, a line each. */
export function describeReply({
  content,
  calls = [],
}: {
  readonly content: string;
  readonly calls?: readonly Omit<ToolCall, 'id'>[] | undefined;
}): string {
  return [...(content === '' ? [] : [content]), ...calls.map(describeCall)].join('\n');
}
