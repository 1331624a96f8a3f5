/**
 * Tools as OpenEnv's protocol carries them (RFC 003, `mcp_types.py` of openenv-core 0.3.0): two actions of a `step`, and their
 * observations.
 *
 *     list_tools   {type}                          → {tools: [{name, description, input_schema}]}, no turn is used
 *     call_tool    {type, tool_name, arguments}    → {tool_name, result, error}
 *
 * `result` has the form of an MCP result; its `data` is the text. A tool that failed has no result but an error. Pure.
 */
import { z } from 'zod';
import { type AgentReply, isAgentCall, NO_USAGE, printAgentReply, readAgentCall } from '../core/agent-call.ts';
import type { ConversationMessage, Tool } from '../core/model-call.ts';
import { checkCall } from '../core/tool-counts.ts';

const metadata = z.record(z.string(), z.unknown()).optional();

/** Schema of an action of tools. */
export const toolAction = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('list_tools'), metadata }),
  z.strictObject({
    type: z.literal('call_tool'),
    tool_name: z.string(),
    arguments: z.record(z.string(), z.unknown()).default({}),
    metadata,
  }),
]);

/** Call of a tool, as a client sends it. */
export type CallToolAction = Extract<z.infer<typeof toolAction>, { readonly type: 'call_tool' }>;

/** JSON schema of the actions of a world of tools, as `/schema` answers it. */
export const toolActionSchema = {
  type: 'object',
  description: 'list_tools, call_tool with a tool_name, or a reply as text',
  properties: {
    type: { enum: ['list_tools', 'call_tool'] },
    tool_name: { type: 'string' },
    arguments: { type: 'object' },
    action: { type: 'string', description: 'words to the user, or a whole reply as JSON' },
    metadata: { type: 'object' },
  },
  additionalProperties: false,
};

/** Data of the observation that answers `list_tools`. */
export function listToolsData(tools: readonly Tool[]): object {
  const listed = tools.map(({ name, description = '', parameters }) => ({
    name,
    description,
    input_schema: parameters,
  }));
  return { observation: { tools: listed, metadata: {} }, reward: null, done: false };
}

/** Prints the reply that makes a call, as the action of a world of tools. */
export function printCall(action: CallToolAction): string {
  return printAgentReply({ content: '', calls: [callOf(action)], finish: 'calls', usage: NO_USAGE });
}

function callOf({ tool_name: name, arguments: args }: CallToolAction): AgentReply['calls'][number] {
  return { name, arguments: JSON.stringify(args) };
}

/** Messages of an observation; none of one that is no call. */
export function messagesOf(observation: string): readonly ConversationMessage[] {
  return isAgentCall(observation) ? readAgentCall(observation).messages : [];
}

/** Fields of the observation that answers a call. @param messages those that followed it */
export function callToolFields(
  action: CallToolAction,
  messages: readonly ConversationMessage[],
  tools: readonly Tool[],
): object {
  const { tool_name } = action;
  const found = messages.find((message) => message.role === 'tool');
  const text = found?.content ?? '';
  if (found?.role === 'tool' && found.isError) {
    const kind = checkCall(callOf(action), tools);
    const error_type =
      kind === 'unknownTools' ? 'tool_not_found' : kind === 'valid' ? 'execution_error' : 'invalid_args';
    return { tool_name, result: null, error: { error_type, message: text } };
  }
  const result = { content: [{ type: 'text', text }], structured_content: null, data: text, is_error: false };
  return { tool_name, result, error: null };
}
