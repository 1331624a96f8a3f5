/**
 * Chat bodies: a model call in the form of OpenAI's chat completions, and what a server replied as the reply to it. Agents that
 * are evaluated on a hosted model send their calls so, and so does the gateway in front of one. Pure.
 */
import type { AgentReply } from '../../core/agent-call.ts';
import type {
  AnswerFormat,
  AskedSampling,
  ConversationMessage,
  ModelCall,
  ModelReply,
  Tool,
  ToolChoice,
} from '../../core/model-call.ts';
import { printChatTool } from '../../text/tools/plain-tools.ts';
import type { Completion } from './openai-client.ts';

/** Prints the body of a request. Only what the call states is in it; a reply's length is `max_tokens`. */
export function printChatBody(call: ModelCall, model: string): Record<string, unknown> {
  const { messages, tools, toolChoice, parallelCalls, format, maxTokens, stop, sampling } = call;
  const asksTools = tools.length > 0;
  return {
    model,
    messages: messages.map(printChatMessage),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(asksTools ? { tools: tools.map(printTool), tool_choice: printToolChoice(toolChoice) } : {}),
    ...(asksTools && !parallelCalls ? { parallel_tool_calls: false } : {}),
    ...(format ? { response_format: printFormat(format) } : {}),
    ...(stop.length > 0 ? { stop } : {}),
    ...printSampling(sampling),
  };
}

/** Prints a tool, and whether it is strict: a template never shows that. */
function printTool(tool: Tool) {
  const { type, function: declared } = printChatTool(tool);
  return { type, function: tool.strict ? { ...declared, strict: true } : declared };
}

/** Reads a completion as a reply. */
export function readChatReply(completion: Completion): AgentReply {
  const { text, reasoning, calls = [], finish, promptTokens, completionTokens } = completion;
  return {
    content: reasoning === undefined ? text : text.slice(text.indexOf('</think>') + '</think>'.length).trimStart(),
    reasoning,
    calls: calls.map(({ name, args }) => ({ name, arguments: args })),
    finish: FINISHES[finish] ?? (calls.length > 0 ? 'calls' : 'stop'),
    usage: { promptTokens, completionTokens },
  };
}

/** Reasons of an end, as OpenAI names them. */
const FINISHES: Readonly<Record<string, ModelReply['finish']>> = { length: 'length', content_filter: 'filter' };

/** Prints a message as OpenAI has it. Reasoning goes where open servers look for it, `reasoning_content`. */
export function printChatMessage(message: ConversationMessage): object {
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content: message.content };
  if (message.role !== 'assistant') return { role: message.role, content: message.content };
  const { content, reasoning, calls = [] } = message;
  const thought = reasoning ? { reasoning_content: reasoning } : {};
  if (calls.length === 0) return { role: 'assistant', content, ...thought };
  return {
    role: 'assistant',
    content: content === '' ? null : content,
    ...thought,
    tool_calls: calls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    })),
  };
}

function printToolChoice(choice: ToolChoice): unknown {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } };
}

function printFormat(format: AnswerFormat): object {
  if (format.type === 'json') return { type: 'json_object' };
  const { name, schema } = format;
  return { type: 'json_schema', json_schema: { name, schema, strict: true } };
}

function printSampling(asked: AskedSampling): Record<string, number> {
  const { temperature, topP, topK, minP, repetitionPenalty, presencePenalty, frequencyPenalty, seed } = asked;
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(topK === undefined ? {} : { top_k: topK }),
    ...(minP === undefined ? {} : { min_p: minP }),
    ...(repetitionPenalty === undefined ? {} : { repetition_penalty: repetitionPenalty }),
    ...(presencePenalty === undefined ? {} : { presence_penalty: presencePenalty }),
    ...(frequencyPenalty === undefined ? {} : { frequency_penalty: frequencyPenalty }),
    ...(seed === undefined ? {} : { seed }),
  };
}
