/**
 * Agent calls: model calls of an agent program as the observations and actions of a world. The observation is the next
 * call, written as JSON; the action is the reply, written as JSON. The world prints the first and reads the second; a
 * codec does the reverse.
 */
import { describeValue } from './describe-value.ts';
import { parseJson } from './json-text.ts';
import type {
  AnswerFormat,
  AskedSampling,
  AssistantMessage,
  ConversationMessage,
  JsonSchema,
  ModelReply,
  Tool,
  ToolCall,
  ToolChoice,
} from './model-call.ts';
import { isRecord } from './record.ts';
import { readToolCounts, type ToolCounts } from './tool-counts.ts';

/** Id of the world that a configured agent makes; `options` name the program. */
export const AGENT = 'agent';

/** Call of an agent program, as an observation. */
export interface AgentCall {
  /** Number among the calls of the episode: 0, 1, … in the order in which they are answered. */
  readonly call: number;
  /** Number of the earlier call whose reply it continues; `null` where it begins a conversation. */
  readonly parent: number | null;
  /** Messages behind the parent's reply, at least one; all of the conversation where there is no parent. */
  readonly messages: readonly ConversationMessage[];
  /** Tools of the conversation, given where it begins; those of the parent where absent. */
  readonly tools?: readonly Tool[] | undefined;
  /** Constraint on the use of tools; `auto` where absent. */
  readonly toolChoice?: ToolChoice | undefined;
  /** False where a reply may hold one call at most; true where absent. */
  readonly parallelCalls?: boolean | undefined;
  readonly format?: AnswerFormat | undefined;
  /** Most tokens of the reply, ≥ 1; absent: what the policy allows. */
  readonly maxTokens?: number | undefined;
  /** Texts that end the reply; none where absent. */
  readonly stop?: readonly string[] | undefined;
  /** Sampling settings that the program asked for. A policy in training has its own; a hosted model obeys these. */
  readonly sampling?: AskedSampling | undefined;
  /** Report of a world of tools on the episode so far. It is for metrics: no policy reads it, and `readAgentCall` leaves it out. */
  readonly report?: EpisodeReport | undefined;
}

/** Report: numbers of an episode, as its newest observation carries them. */
export interface EpisodeReport {
  /** Numbers that are averaged over episodes, by name: those of an agent at its end, the parts of a reward. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Counts of the calls of tools so far; absent outside worlds of tools. */
  readonly tools?: ToolCounts | undefined;
}

/** Reply to an agent's call, as an action. Its calls have no ids: the world mints them. */
export interface AgentReply extends Omit<ModelReply, 'calls'> {
  readonly calls: readonly Omit<ToolCall, 'id'>[];
  /** Names of the repairs that reading the calls took, once each time; absent where they were written correctly. */
  readonly repairs?: readonly string[] | undefined;
}

/** Prints a call as the text of an observation. */
export function printAgentCall(call: AgentCall): string {
  const { parent, messages, tools, toolChoice, parallelCalls, format, maxTokens, stop, sampling, report } = call;
  return JSON.stringify({
    call: call.call,
    parent,
    ...(report ? { report } : {}),
    messages,
    ...(tools ? { tools } : {}),
    ...(toolChoice === undefined || toolChoice === 'auto' ? {} : { toolChoice }),
    ...(parallelCalls === false ? { parallelCalls } : {}),
    ...(format ? { format } : {}),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(stop?.length ? { stop } : {}),
    ...(sampling && Object.keys(sampling).length > 0 ? { sampling } : {}),
  });
}

/** True for the text of an observation that is a call, as `printAgentCall` writes it. */
export function isAgentCall(observation: string): boolean {
  return observation.startsWith('{"call":');
}

/**
 * Reads the text of an observation as a call. Fields that it does not know are left out.
 * @throws {RangeError} naming the field that is missing or wrong
 */
export function readAgentCall(text: string): AgentCall {
  let json: unknown;
  try {
    json = parseJson(text);
  } catch {
    return refuse('an observation', 'JSON of a call', text);
  }
  if (!isRecord(json)) return refuse('an observation', 'a JSON object of a call', json);
  const { call, parent, messages, tools, toolChoice, parallelCalls, format, maxTokens, stop, sampling } = json;
  if (!isCount(call)) return refuse('call', 'a number of a call, 0 or more', call);
  if (parent !== null && !(isCount(parent) && parent < call)) {
    return refuse('parent', `the number of a call before ${call}, or null`, parent);
  }
  if (parent === null && tools === undefined) return refuse('tools', 'a list, where a conversation begins', tools);
  if (parallelCalls !== undefined && typeof parallelCalls !== 'boolean') {
    return refuse('parallelCalls', 'true or false', parallelCalls);
  }
  if (maxTokens !== undefined && !(isCount(maxTokens) && maxTokens > 0)) {
    return refuse('maxTokens', 'a whole number, 1 or more', maxTokens);
  }
  const read = listOf(messages, 'messages').map((message, i) => readMessage(message, `messages[${i}]`));
  if (read.length === 0) return refuse('messages', 'one message or more', messages);
  return {
    call,
    parent,
    messages: read,
    ...(tools === undefined ? {} : { tools: listOf(tools, 'tools').map((tool, i) => readTool(tool, `tools[${i}]`)) }),
    ...(toolChoice === undefined ? {} : { toolChoice: readToolChoice(toolChoice) }),
    ...(parallelCalls === undefined ? {} : { parallelCalls }),
    ...(format === undefined ? {} : { format: readFormat(format) }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(stop === undefined ? {} : { stop: listOf(stop, 'stop').map((one, i) => textOf(one, `stop[${i}]`)) }),
    ...(sampling === undefined ? {} : { sampling: readSampling(sampling) }),
  };
}

/** Prints a reply as the text of an action. */
export function printAgentReply({ content, reasoning, calls, finish, usage, repairs }: AgentReply): string {
  return JSON.stringify({
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    calls: calls.map((call) => ({ name: call.name, arguments: call.arguments })),
    finish,
    usage,
    ...(repairs?.length ? { repairs } : {}),
  });
}

/**
 * Reads the text of an action as a reply. A text that is no JSON of a reply is the content of a plain one, as a person
 * or a random policy writes it: it ends with `stop` and counts no tokens.
 */
export function readAgentReply(text: string): AgentReply {
  return parseReply(text) ?? { content: text, calls: [], finish: 'stop', usage: NO_USAGE };
}

/** Id of call i of the reply to call number n. Worlds may choose another beginning. */
export function callId(n: number, i: number): string {
  return `call_${n}_${i}`;
}

/**
 * Creates the turn of the model that a reply is. Its calls get the ids by which the results behind it name them: an id ends in
 * the call's place (see `callId`), and ids of another form are taken in order.
 * @param n number of the call that it answers
 * @param fresh messages behind the reply, which may lack some results or have them in another order
 */
export function createReplyMessage(
  { content, reasoning, calls }: Pick<AgentReply, 'content' | 'reasoning' | 'calls'>,
  n: number,
  fresh: readonly ConversationMessage[],
): AssistantMessage {
  const results: string[] = [];
  for (const message of fresh) {
    if (message.role === 'assistant') break; // what follows answers another turn
    if (message.role === 'tool') results.push(message.callId);
  }
  const named = calls.map((_, i) => results.find((id) => id.endsWith(`_${i}`)));
  const others = results.filter((id) => !named.includes(id));
  return {
    role: 'assistant',
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(calls.length === 0
      ? {}
      : { calls: calls.map((call, i) => ({ id: named[i] ?? others.shift() ?? callId(n, i), ...call })) }),
  };
}

/** Outcome of an agent, as the observation behind its last call. */
export interface AgentOutcome {
  readonly reward: number;
  /** True when the task was solved. */
  readonly success: boolean;
  /** Numbers that are averaged over episodes, by name. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * Reads the outcome that an agent returned or posted, or that a verifier of a world gave.
 * @param owner its giver, for the message
 * @returns undefined for nothing: its reward may come otherwise
 * @throws {TypeError} for anything but `{ reward, success?, metrics? }`
 */
export function readOutcome(value: unknown, owner = 'the agent'): AgentOutcome | undefined {
  if (value === undefined || value === null) return undefined;
  const expected = `expected { reward: number, success?: boolean, metrics?: { [name]: number } } of ${owner}`;
  if (typeof value === 'number') return readOutcome({ reward: value }, owner);
  if (!isRecord(value)) throw new TypeError(`${expected}, got ${describeValue(value)}`);
  const { reward, success = typeof reward === 'number' && reward > 0, metrics = {} } = value;
  if (typeof reward !== 'number' || !Number.isFinite(reward)) {
    throw new TypeError(`${expected}, got reward ${describeValue(reward)}`);
  }
  if (typeof success !== 'boolean') throw new TypeError(`${expected}, got success ${describeValue(success)}`);
  if (!isRecord(metrics) || !Object.values(metrics).every(Number.isFinite)) {
    throw new TypeError(`${expected}, got metrics ${describeValue(metrics)}`);
  }
  return { reward, success, metrics: metrics as Record<string, number> };
}

/** Prints an outcome as the text of an observation. */
export function printAgentOutcome({ reward, success, metrics }: AgentOutcome): string {
  return JSON.stringify({ reward, success, metrics });
}

/** Reads the report of an observation: that of a call, or an outcome's metrics; nothing where it has none. */
export function readReport(observation: string): EpisodeReport {
  if (!/^\{"(?:reward|call)":/.test(observation)) return { metrics: {} };
  try {
    const json = parseJson(observation);
    const report = isRecord(json) && isRecord(json.report) ? json.report : json;
    const { metrics, tools } = isRecord(report) ? report : {};
    const counts = readToolCounts(tools);
    return { metrics: finiteNumbers(metrics), ...(counts ? { tools: counts } : {}) };
  } catch {
    return { metrics: {} }; // the text of some other world
  }
}

function finiteNumbers(metrics: unknown): Record<string, number> {
  const entries = Object.entries(isRecord(metrics) ? metrics : {});
  return Object.fromEntries(entries.filter((entry): entry is [string, number] => Number.isFinite(entry[1])));
}

/** Tokens of a reply that no model has written. */
export const NO_USAGE = { promptTokens: 0, completionTokens: 0 };
const FINISHES: ReadonlySet<unknown> = new Set<ModelReply['finish']>(['stop', 'calls', 'length', 'filter']);

function parseReply(text: string): AgentReply | undefined {
  if (!text.startsWith('{')) return undefined;
  let json: unknown;
  try {
    json = parseJson(text);
  } catch {
    return undefined;
  }
  if (!isRecord(json)) return undefined;
  const { content, reasoning, calls, finish, usage = NO_USAGE, repairs } = json;
  if (typeof content !== 'string' || !Array.isArray(calls) || !FINISHES.has(finish) || !isRecord(usage))
    return undefined;
  if (reasoning !== undefined && typeof reasoning !== 'string') return undefined;
  const isCall = (call: unknown) =>
    isRecord(call) && typeof call.name === 'string' && typeof call.arguments === 'string';
  const { promptTokens, completionTokens } = usage;
  if (!calls.every(isCall) || !isCount(promptTokens) || !isCount(completionTokens)) return undefined;
  if (repairs !== undefined && !(Array.isArray(repairs) && repairs.every((one) => typeof one === 'string'))) {
    return undefined;
  }
  return {
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    calls: calls.map((call: ToolCall) => ({ name: call.name, arguments: call.arguments })),
    finish: finish as ModelReply['finish'],
    usage: { promptTokens, completionTokens },
    ...(repairs === undefined ? {} : { repairs: repairs as string[] }),
  };
}

function readMessage(value: unknown, at: string): ConversationMessage {
  if (!isRecord(value)) return refuse(at, 'an object', value);
  const { role } = value;
  const content = textOf(value.content, `${at}.content`);
  switch (role) {
    case 'system':
    case 'user':
      return { role, content };
    case 'tool': {
      const callId = textOf(value.callId, `${at}.callId`);
      return { role, callId, content, ...(value.isError === true ? { isError: true } : {}) };
    }
    case 'assistant':
      return readAssistant(value, content, at);
    default:
      return refuse(`${at}.role`, 'system, user, assistant or tool', role);
  }
}

function readAssistant({ reasoning, calls }: Record<string, unknown>, content: string, at: string): AssistantMessage {
  return {
    role: 'assistant',
    content,
    ...(reasoning === undefined ? {} : { reasoning: textOf(reasoning, `${at}.reasoning`) }),
    ...(calls === undefined
      ? {}
      : { calls: listOf(calls, `${at}.calls`).map((call, i) => readCall(call, `${at}.calls[${i}]`)) }),
  };
}

function readCall(value: unknown, at: string): ToolCall {
  if (!isRecord(value)) return refuse(at, 'an object', value);
  return {
    id: textOf(value.id, `${at}.id`),
    name: textOf(value.name, `${at}.name`),
    arguments: textOf(value.arguments, `${at}.arguments`),
  };
}

function readTool(value: unknown, at: string): Tool {
  if (!isRecord(value)) return refuse(at, 'an object', value);
  const { description, strict } = value;
  if (strict !== undefined && strict !== true) return refuse(`${at}.strict`, 'true where it is there', strict);
  return {
    name: textOf(value.name, `${at}.name`),
    ...(description === undefined ? {} : { description: textOf(description, `${at}.description`) }),
    parameters: schemaOf(value.parameters, `${at}.parameters`),
    ...(strict ? { strict } : {}),
  };
}

function readToolChoice(value: unknown): ToolChoice {
  if (value === 'auto' || value === 'none' || value === 'required') return value;
  if (isRecord(value)) return { name: textOf(value.name, 'toolChoice.name') };
  return refuse('toolChoice', 'auto, none, required or { name }', value);
}

function readFormat(value: unknown): AnswerFormat {
  if (isRecord(value)) {
    if (value.type === 'json') return { type: 'json' };
    if (value.type === 'json-schema') {
      return {
        type: 'json-schema',
        name: textOf(value.name, 'format.name'),
        schema: schemaOf(value.schema, 'format.schema'),
      };
    }
  }
  return refuse('format', '{ type: json } or { type: json-schema, name, schema }', value);
}

const SAMPLING = [
  ...(['temperature', 'topP', 'topK', 'minP'] as const),
  ...(['repetitionPenalty', 'presencePenalty', 'frequencyPenalty', 'seed'] as const),
];

function readSampling(value: unknown): AskedSampling {
  if (!isRecord(value)) return refuse('sampling', 'an object of settings', value);
  const read: { -readonly [K in keyof AskedSampling]: AskedSampling[K] } = {};
  for (const name of SAMPLING) {
    const setting = value[name];
    if (setting === undefined) continue;
    if (!Number.isFinite(setting)) return refuse(`sampling.${name}`, 'a number', setting);
    read[name] = setting as number;
  }
  return read;
}

function schemaOf(value: unknown, at: string): JsonSchema {
  return isRecord(value) ? value : refuse(at, 'a JSON schema, as an object', value);
}

function textOf(value: unknown, at: string): string {
  return typeof value === 'string' ? value : refuse(at, 'a text', value);
}

function listOf(value: unknown, at: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(at, 'a list', value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function refuse(at: string, expected: string, got: unknown): never {
  throw new RangeError(`agent call: expected ${at} to be ${expected}, got ${describeValue(got)}`);
}
