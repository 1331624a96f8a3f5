/**
 * Fields of requests, one table for each dialect: every key is obeyed, ignored for a reason, or refused by its name. Sources:
 * the request types of openai 7.57 and @anthropic-ai/sdk 1.14, and what recorded agents send.
 *
 * A key of the request that is in no table is refused (`unknown_parameter`), as both APIs refuse it: in training, a setting
 * that is dropped without a word costs more than a message that names it. A key within a message, a part or a tool that is
 * in no table is passed over: clients copy whole objects of earlier replies and their own notes into the history.
 */
import { cutText } from '../../core/describe-value.ts';
import { isRecord } from '../../core/record.ts';
import { type DialectId, RefusedCall } from './dialect.ts';
import { type Fields, isAbsent, refuseValue } from './read-fields.ts';

/** Treatment of a field. */
export type FieldUse =
  | { readonly use: 'obeyed' /** True where its value is free data: a schema, arguments. */; readonly isFree?: true }
  | { readonly use: 'ignored'; readonly why: string }
  | {
      readonly use: 'refused';
      readonly why: string;
      /** True for a value that changes nothing, which is taken. */
      readonly isNeutral?: ((value: unknown) => boolean) | undefined;
      /** Code of the error. Default `unsupported_parameter`. */
      readonly code?: string | undefined;
    };

/** Fields of a dialect. */
export interface FieldTable {
  /** Keys of the request itself. */
  readonly request: ReadonlyMap<string, FieldUse>;
  /** Paths within it, e.g. `messages[].role`. */
  readonly nested: ReadonlyMap<string, FieldUse>;
}

const obeyed: FieldUse = { use: 'obeyed' };
const free: FieldUse = { use: 'obeyed', isFree: true };

function ignored(why: string): FieldUse {
  return { use: 'ignored', why };
}

function refused(why: string, isNeutral?: (value: unknown) => boolean, code?: string): FieldUse {
  return { use: 'refused', why, isNeutral, code };
}

/** Table of fields that are treated alike. */
function all(use: FieldUse, names: string): [string, FieldUse][] {
  return names.split(' ').map((name) => [name, use]);
}

const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;
const isEmptyRecord = (value: unknown) => isRecord(value) && Object.keys(value).length === 0;
const isFalse = (value: unknown) => value === false;
const is = (neutral: unknown) => (value: unknown) => value === neutral;

const accounting = ignored('it serves accounts, caches and filters of the provider');
const effort = ignored('how much a model thinks is learned here');
const hosted = 'this server runs no tools of its own';
const copied = ignored('clients copy it from an earlier reply');
const hint = ignored('a hint for caches and displays');

const CHAT: FieldTable = {
  request: new Map([
    ...all(obeyed, 'model messages tools tool_choice parallel_tool_calls response_format stop stream stream_options'),
    ...all(obeyed, 'max_tokens max_completion_tokens'),
    ...all(obeyed, 'temperature top_p top_k min_p repetition_penalty presence_penalty frequency_penalty seed'),
    ...all(accounting, 'user metadata store service_tier safety_identifier moderation'),
    ...all(accounting, 'prompt_cache_key prompt_cache_options prompt_cache_retention cache_control betas'),
    ...all(effort, 'reasoning_effort reasoning include_reasoning thinking verbosity'),
    ...all(ignored('log-probabilities of a reply may be null'), 'logprobs top_logprobs'),
    ['prediction', ignored('it saves time alone')],
    ['n', refused('one choice a request; send it again for another', is(1))],
    ['logit_bias', refused('no token is favoured here', isEmptyRecord)],
    ['functions', refused('tools have taken its place', isEmpty)],
    ['function_call', refused('tool_choice has taken its place', is('none'))],
    ['modalities', refused('the model writes text alone', (value) => isTextAlone(value))],
    ['audio', refused('the model writes text alone')],
    ['web_search_options', refused(hosted)],
  ]),
  nested: new Map([
    ...all(obeyed, 'stream_options.include_usage'),
    ...all(hint, 'stream_options.include_obfuscation'),
    ...all(obeyed, 'messages[].role messages[].content messages[].content[].type messages[].content[].text'),
    ...all(obeyed, 'messages[].content[].refusal messages[].tool_call_id'),
    ...all(obeyed, 'messages[].reasoning_content messages[].reasoning messages[].tool_calls'),
    ...all(obeyed, 'messages[].tool_calls[].id messages[].tool_calls[].type messages[].tool_calls[].function'),
    ...all(obeyed, 'messages[].tool_calls[].function.name messages[].tool_calls[].function.arguments'),
    ...all(copied, 'messages[].content[].role messages[].content[].tool_calls messages[].content[].annotations'),
    ...all(copied, 'messages[].refusal messages[].parsed messages[].annotations messages[].id'),
    ...all(copied, 'messages[].tool_calls[].index messages[].tool_calls[].function.parsed_arguments'),
    ...all(hint, 'messages[].name messages[].cache_control messages[].content[].cache_control'),
    ['messages[].function_call', refused('tool_calls have taken its place')],
    ['messages[].audio', refused('the model reads text alone')],
    ...all(
      obeyed,
      'tools[].type tools[].function tools[].function.name tools[].function.description tools[].function.strict',
    ),
    ['tools[].function.parameters', free],
    ...all(hint, 'tools[].cache_control'),
    ...all(obeyed, 'tool_choice.type tool_choice.function tool_choice.function.name tool_choice.allowed_tools'),
    ...all(obeyed, 'tool_choice.allowed_tools.mode tool_choice.allowed_tools.tools'),
    ...all(obeyed, 'tool_choice.allowed_tools.tools[].type tool_choice.allowed_tools.tools[].function'),
    ...all(obeyed, 'tool_choice.allowed_tools.tools[].function.name'),
    ...all(obeyed, 'response_format.type response_format.json_schema response_format.json_schema.name'),
    ['response_format.json_schema.schema', free],
    ['response_format.json_schema.strict', ignored('an answer is written under its schema anyway')],
    ['response_format.json_schema.description', hint],
  ]),
};

const RESPONSES: FieldTable = {
  request: new Map([
    ...all(obeyed, 'model input instructions previous_response_id store tools tool_choice parallel_tool_calls text'),
    ...all(obeyed, 'max_output_tokens stream temperature top_p top_k min_p seed stop'),
    ...all(obeyed, 'repetition_penalty presence_penalty frequency_penalty'),
    ...all(accounting, 'user metadata service_tier safety_identifier moderation access_programs'),
    ...all(accounting, 'prompt_cache_key prompt_cache_options prompt_cache_retention betas'),
    ['reasoning', effort],
    ['include', ignored('what it adds to replies may be absent')],
    ['top_logprobs', ignored('log-probabilities of a reply may be absent')],
    ['stream_options', ignored('a stream has no padding')],
    ['max_tool_calls', ignored(hosted)],
    ['truncation', ignored('a context that is too long is refused')],
    ['context_management', ignored('no context is rewritten here')],
    ['background', refused('a reply is waited for', isFalse)],
    ['conversation', refused('conversations are kept by previous_response_id')],
    ['prompt', refused('no prompts are kept here')],
    ['image', refused('the model writes text alone')],
  ]),
  nested: new Map([
    ...all(obeyed, 'input[].type input[].role input[].content input[].content[].type input[].content[].text'),
    ...all(obeyed, 'input[].content[].refusal input[].id input[].call_id input[].name input[].arguments'),
    ...all(obeyed, 'input[].output input[].output[].type input[].output[].text input[].encrypted_content'),
    ...all(obeyed, 'input[].summary input[].summary[].type input[].summary[].text'),
    ...all(copied, 'input[].status input[].phase input[].parsed_arguments input[].caller'),
    ...all(copied, 'input[].content[].annotations input[].content[].logprobs input[].content[].parsed'),
    ...all(hint, 'input[].content[].prompt_cache_breakpoint input[].output[].prompt_cache_breakpoint'),
    ...all(obeyed, 'tools[].type tools[].name tools[].description tools[].strict'),
    ['tools[].parameters', free],
    ...all(ignored('all tools are rendered'), 'tools[].defer_loading tools[].allowed_callers'),
    ...all(obeyed, 'tool_choice.type tool_choice.name tool_choice.mode tool_choice.tools'),
    ...all(obeyed, 'tool_choice.tools[].type tool_choice.tools[].name'),
    ...all(obeyed, 'text.format text.format.type text.format.name'),
    ['text.format.schema', free],
    ['text.format.strict', ignored('an answer is written under its schema anyway')],
    ['text.format.description', hint],
    ['text.verbosity', effort],
  ]),
};

const MESSAGES: FieldTable = {
  request: new Map([
    ...all(obeyed, 'model messages system tools tool_choice max_tokens stop_sequences stream'),
    ...all(
      obeyed,
      'temperature top_p top_k min_p repetition_penalty presence_penalty frequency_penalty output_config output_format',
    ),
    ...all(accounting, 'metadata service_tier cache_control betas user_profile_id workspace_id inference_geo speed'),
    ...all(accounting, 'billing_policy diagnostics fallbacks fallback_credit_token'),
    ['thinking', effort],
    ['context_management', ignored('no context is rewritten here')],
    ['thread', refused('message threads are not supported here', undefined, 'thread_unsupported_request')],
    ['compaction', refused('no context is rewritten here')],
    ['container', refused(hosted)],
    ['mcp_servers', refused(hosted, isEmpty)],
  ]),
  nested: new Map([
    ...all(obeyed, 'system[].type system[].text'),
    ...all(hint, 'system[].cache_control system[].citations'),
    ...all(obeyed, 'messages[].role messages[].content messages[].content[].type messages[].content[].text'),
    ...all(obeyed, 'messages[].content[].id messages[].content[].name messages[].content[].tool_use_id'),
    ...all(obeyed, 'messages[].content[].is_error messages[].content[].content messages[].content[].thinking'),
    ...all(obeyed, 'messages[].content[].content[].type messages[].content[].content[].text'),
    ['messages[].content[].input', free],
    ...all(copied, 'messages[].content[].signature messages[].content[].data messages[].content[].citations'),
    ...all(copied, 'messages[].content[].caller messages[].id messages[].type messages[].model'),
    ...all(copied, 'messages[].stop_reason messages[].stop_sequence messages[].usage'),
    ...all(hint, 'messages[].content[].cache_control messages[].content[].content[].cache_control'),
    ...all(obeyed, 'tools[].type tools[].name tools[].description tools[].strict'),
    ['tools[].input_schema', free],
    ...all(ignored('all tools are rendered'), 'tools[].defer_loading tools[].allowed_callers'),
    ...all(hint, 'tools[].cache_control tools[].eager_input_streaming tools[].input_examples'),
    ...all(obeyed, 'tool_choice.type tool_choice.name tool_choice.disable_parallel_tool_use'),
    ...all(obeyed, 'output_config.format output_config.format.type output_format.type'),
    ...all(free, 'output_config.format.schema output_format.schema'),
    ...all(effort, 'output_config.effort output_config.task_budget'),
  ]),
};

/** Fields of each dialect. */
export const FIELDS: Readonly<Record<DialectId, FieldTable>> = { chat: CHAT, responses: RESPONSES, messages: MESSAGES };

function isTextAlone(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => one === 'text');
}

/**
 * Reads a request as an object whose keys are all known and not refused.
 * @param table keys of its dialect
 * @throws {RefusedCall} that names the key
 */
export function readRequest(body: unknown, table: FieldTable): Fields {
  if (!isRecord(body)) throw refuseValue('body', 'a JSON object', body);
  for (const key of Object.keys(body)) {
    const field = table.request.get(key);
    if (field?.use === 'obeyed' || field?.use === 'ignored') continue;
    const value = body[key];
    if (isAbsent(value) || field?.isNeutral?.(value)) continue;
    const param = cutText(key);
    if (field === undefined) {
      const message = `${param}: this server does not know the field and drops none without a word; leave it out`;
      throw new RefusedCall(400, message, param, 'unknown_parameter');
    }
    throw new RefusedCall(400, `${param}: ${field.why}; leave it out`, param, field.code ?? 'unsupported_parameter');
  }
  return body;
}

/** Refuses the keys of an object within a request that its table refuses. @param prefix of the table, e.g. `messages[].` */
export function refuseNested(fields: Fields, table: FieldTable, prefix: string, path: string): void {
  for (const key of Object.keys(fields)) {
    const field = table.nested.get(prefix + key);
    if (field?.use !== 'refused' || isAbsent(fields[key])) continue;
    throw new RefusedCall(400, `${path}.${key}: ${field.why}`, `${path}.${key}`, 'unsupported_parameter');
  }
}
