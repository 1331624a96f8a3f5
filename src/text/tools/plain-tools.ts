/** Tools in plain messages, for chat templates that know none: Hermes's form, which many models have seen. */
import type { ConversationMessage, Tool } from '../../core/model-call.ts';
import { hermes } from './hermes.ts';
import { printJson } from './literal.ts';

/** Message of a template without tools. */
export interface PlainMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/**
 * Renders a conversation in plain messages: the tools at the end of the system message, calls in the text of the
 * assistant, the results of one turn as one message of the user.
 */
export function renderPlainTools(messages: readonly ConversationMessage[], tools: readonly Tool[]): PlainMessage[] {
  const rendered: PlainMessage[] = [];
  const [first] = messages;
  const system = first?.role === 'system' ? first.content : undefined;
  if (tools.length > 0) {
    const content = [...(system === undefined ? [] : [system]), describeTools(tools)].join('\n\n');
    rendered.push({ role: 'system', content });
  } else if (system !== undefined) rendered.push({ role: 'system', content: system });
  let results: string[] = [];
  const addResults = () => {
    if (results.length > 0) rendered.push({ role: 'user', content: results.join('\n') });
    results = [];
  };
  for (const message of system === undefined ? messages : messages.slice(1)) {
    if (message.role === 'tool') {
      results.push(`<tool_response>\n${message.content}\n</tool_response>`);
      continue;
    }
    addResults();
    const { role, content } = message;
    const written = role === 'assistant' ? hermes.print(content, message.calls ?? []) : content;
    rendered.push({ role, content: written });
  }
  addResults();
  return rendered;
}

/** Prints a tool as OpenAI has it, and as templates expect it. */
export function printChatTool({ name, description, parameters }: Tool) {
  return { type: 'function', function: { name, ...(description === undefined ? {} : { description }), parameters } };
}

function describeTools(tools: readonly Tool[]): string {
  return [
    '# Tools\n\nYou may call functions. These are their signatures:\n<tools>',
    ...tools.map((tool) => printJson(printChatTool(tool))),
    '</tools>\n\nFor each call, write a JSON object with the name of the function and its arguments within tags:',
    '<tool_call>\n{"name": <name>, "arguments": <arguments>}\n</tool_call>',
  ].join('\n');
}
