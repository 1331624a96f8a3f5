/**
 * Exports of Langfuse and LangSmith: rows of observations (or runs), scores beside them. A trace is an episode; rows of a
 * model's generation are its calls, in the order of time. Pure.
 * @see https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields
 * @see https://docs.langchain.com/langsmith/run-data-format
 */
import type { ConversationMessage, Tool } from '../../core/model-call.ts';
import { isRecord, recordOf, recordsOf } from '../../core/record.ts';
import type { Losses } from './losses.ts';
import { type CallFacts, countOf, type FoundScore, pickScores, type ReadEpisode, RequestTree } from './read-episode.ts';
import { readInstructions, readMessages, readReplyMessage, readTools, unwrapJson } from './read-messages.ts';
import type { KeyedPart } from './records.ts';

type Json = Record<string, unknown>;

const GENERATION = 'GENERATION';
/** Kinds of observations around generations: what they hold stands in the generations, or is the program's own. */
const LANGFUSE_TYPES = ['SPAN', 'EVENT', 'AGENT', 'TOOL', 'CHAIN', 'RETRIEVER', 'EVALUATOR', 'EMBEDDING', 'GUARDRAIL'];

/** True for a record of a Langfuse export: a trace with its observations, a row of observations, of scores or of traces. */
export function isLangfuse(value: unknown): boolean {
  if (!isRecord(value)) return false;
  if (Array.isArray(value.observations)) return true;
  const isRow = typeof (value.traceId ?? value.trace_id) === 'string' && !('run_type' in value);
  return isRow && ([GENERATION, ...LANGFUSE_TYPES].includes(value.type as string) || isScore(value));
}

/** True for a record of a LangSmith export. */
export function isLangSmith(value: unknown): boolean {
  return isRecord(value) && (typeof value.run_type === 'string' || recordsOf(value.runs).some(isLangSmith));
}

function isScore(value: Json): boolean {
  return (
    typeof value.name === 'string' &&
    'value' in value &&
    ('data_type' in value || 'dataType' in value || 'source' in value)
  );
}

/** Rows of a Langfuse record by their traces. */
export function langfuseParts(value: unknown): KeyedPart[] {
  if (!isRecord(value)) return [];
  if (Array.isArray(value.data)) return value.data.flatMap(langfuseParts);
  const { observations, scores, ...trace } = value;
  if (Array.isArray(observations)) {
    const id = value.id ?? value.traceId;
    const key = typeof id === 'string' || typeof id === 'number' ? String(id) : '';
    const rows = [...observations, ...(Array.isArray(scores) ? scores : [])];
    return [{ key, part: { ...trace, isTrace: true } }, ...rows.map((part) => ({ key, part }))];
  }
  const key = value.traceId ?? value.trace_id;
  if (typeof key === 'string') return [{ key, part: value }];
  // A row of the table of traces.
  return typeof value.id === 'string' ? [{ key: value.id, part: { ...value, isTrace: true } }] : [];
}

/** Runs of a LangSmith record by their traces. */
export function langSmithParts(value: unknown): KeyedPart[] {
  if (!isRecord(value)) return [];
  if (Array.isArray(value.runs)) return value.runs.flatMap(langSmithParts);
  const { child_runs: children, ...run } = value;
  const key = run.trace_id ?? run.id;
  if (typeof key !== 'string') return [];
  const below = recordsOf(children).flatMap((child) => langSmithParts({ trace_id: key, ...child }));
  return [{ key, part: run }, ...below];
}

/** Fields of an observation that are read. */
const OBSERVATION = [
  ...['id', 'traceId', 'trace_id', 'type', 'parentObservationId', 'parent_observation_id', 'input', 'output'],
  ...['startTime', 'start_time', 'endTime', 'end_time', 'usage', 'usageDetails', 'usage_details', 'modelParameters'],
  ...['model_parameters', 'projectId', 'project_id', 'createdAt', 'created_at', 'updatedAt', 'updated_at', 'latency'],
];
const SCORE = [
  ...['id', 'traceId', 'trace_id', 'name', 'value', 'dataType', 'data_type', 'source', 'timestamp'],
  ...[
    'projectId',
    'project_id',
    'observationId',
    'observation_id',
    'createdAt',
    'created_at',
    'updatedAt',
    'updated_at',
  ],
];
/** Fields of a trace: its input and output stand in its observations. */
const TRACE = [
  ...['isTrace', 'id', 'input', 'output', 'timestamp', 'htmlPath', 'projectId', 'project_id', 'latency'],
  ...['createdAt', 'created_at', 'updatedAt', 'updated_at', 'start_time', 'end_time', 'trace_id', 'observations'],
];

/** Reads the rows of a Langfuse trace. */
export function readLangfuse(rows: readonly unknown[], losses: Losses): ReadEpisode {
  const tree = new RequestTree();
  const around: (readonly [path: string, row: Json])[] = [];
  const scores: FoundScore[] = [];
  for (const row of inTime(rows)) {
    if (row.isTrace === true) {
      losses.addOthers(row, TRACE, 'trace');
      around.push(['trace', row]);
    } else if (isScore(row)) readScore(row, scores, losses);
    else if (row.type !== GENERATION) {
      const path = `observations[type=${String(row.type)}]`;
      losses.addOthers(row, OBSERVATION, path);
      around.push([path, row]);
    } else {
      losses.addOthers(row, OBSERVATION, `observations[type=${GENERATION}]`);
      const { messages, tools } = readAsked(row.input, losses, 'input');
      const reply = readReplyMessage(replyOf(row.output, losses, 'output'), losses, 'output');
      if (!reply || messages.length === 0)
        losses.add(`observations (a generation without ${reply ? 'input' : 'output'})`);
      else tree.add(messages, tools, reply, langfuseFacts(row, losses));
    }
  }
  countHidden(tree, around, ['input', 'output'], losses);
  return { calls: tree.calls, rest: [], scores: pickScores(scores, losses) };
}

/** Counts the inputs and outputs of rows around the calls that no call shows. */
function countHidden(
  tree: RequestTree,
  rows: readonly (readonly [path: string, row: Json])[],
  fields: readonly string[],
  losses: Losses,
): void {
  for (const [path, row] of rows) {
    for (const field of fields) {
      const value = row[field];
      const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
      if (!isEmpty && !tree.shows(value)) losses.add(`${path}.${field} (in no call)`);
    }
  }
}

function readScore(row: Json, scores: FoundScore[], losses: Losses): void {
  losses.addOthers(row, SCORE, 'scores');
  const { value } = row;
  const number = typeof value === 'boolean' ? Number(value) : value;
  const isWhole = (row.observationId ?? row.observation_id ?? '') === '';
  if (typeof number === 'number' && Number.isFinite(number))
    scores.push({ name: String(row.name), value: number, isWhole });
  else losses.add('scores (no number)');
}

function langfuseFacts(row: Json, losses: Losses): CallFacts {
  const usage = recordOf(unwrapJson(row.usageDetails ?? row.usage_details)) ?? recordOf(unwrapJson(row.usage)) ?? {};
  losses.addOthers(usage, ['input', 'output', 'total', 'unit'], 'usage');
  const parameters = recordOf(unwrapJson(row.modelParameters ?? row.model_parameters)) ?? {};
  return {
    promptTokens: countOf(usage.input),
    completionTokens: countOf(usage.output),
    ...readParameters(parameters, losses, 'modelParameters'),
    ms: betweenTimes(row.startTime ?? row.start_time, row.endTime ?? row.end_time),
  };
}

/** Settings by our names, as most makers call them. */
const SETTINGS = {
  temperature: ['temperature'],
  topP: ['top_p', 'topP'],
  topK: ['top_k', 'topK'],
  seed: ['seed'],
  presencePenalty: ['presence_penalty'],
  frequencyPenalty: ['frequency_penalty'],
} as const;
const MAX_TOKENS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxTokens'];

/** Reads what a request asked for beside its messages. */
export function readParameters(
  parameters: Json,
  losses: Losses,
  path: string,
  others: readonly string[] = [],
): CallFacts {
  const settings = Object.entries(SETTINGS).flatMap(([ours, names]) => {
    const value = names.map((name) => parameters[name]).find((one) => one !== undefined && one !== null);
    return Number.isFinite(Number(value)) && value !== undefined ? [[ours, Number(value)] as const] : [];
  });
  const maxTokens = MAX_TOKENS.map((name) => countOf(parameters[name])).find((one) => one !== undefined);
  losses.addOthers(parameters, [...Object.values(SETTINGS).flat(), ...MAX_TOKENS, ...others], path);
  return { maxTokens, ...(settings.length > 0 ? { sampling: Object.fromEntries(settings) } : {}) };
}

/** Fields of a run that are read. */
const RUN = [
  ...['id', 'trace_id', 'parent_run_id', 'parent_run_ids', 'run_type', 'inputs', 'outputs', 'start_time'],
  ...['end_time', 'dotted_order', 'feedback_stats', 'extra', 'prompt_tokens', 'completion_tokens', 'total_tokens'],
  ...['child_run_ids', 'direct_child_run_ids', 'session_id', 'app_path', 'status', 'inputs_preview', 'outputs_preview'],
];

/** Reads the runs of a LangSmith trace. */
export function readLangSmith(runs: readonly unknown[], losses: Losses): ReadEpisode {
  const tree = new RequestTree();
  const around: (readonly [path: string, row: Json])[] = [];
  const scores: FoundScore[] = [];
  for (const run of inTime(runs)) {
    readFeedback(run, scores, losses);
    const isModel = run.run_type === 'llm';
    losses.addOthers(run, RUN, `runs[run_type=${String(run.run_type)}]`);
    if (!isModel) {
      around.push([`runs[run_type=${String(run.run_type)}]`, run]);
      losses.addOthers(unwrapJson(run.extra), [], 'extra');
      continue;
    }
    const extra = recordOf(unwrapJson(run.extra)) ?? {};
    const parameters = recordOf(extra.invocation_params) ?? {};
    losses.addOthers(extra, ['invocation_params'], 'extra');
    const asked = readAsked(run.inputs, losses, 'inputs');
    const tools = asked.tools.length > 0 ? asked.tools : readTools(parameters.tools, losses, 'invocation_params.tools');
    const reply = readReplyMessage(replyOf(run.outputs, losses, 'outputs'), losses, 'outputs');
    if (!reply || asked.messages.length === 0) {
      losses.add(`runs (a model's without ${reply ? 'inputs' : 'outputs'})`);
      continue;
    }
    tree.add(asked.messages, tools, reply, {
      promptTokens: countOf(run.prompt_tokens),
      completionTokens: countOf(run.completion_tokens),
      ...readParameters(parameters, losses, 'invocation_params', ['tools', '_type', 'stream']),
      ms: betweenTimes(run.start_time, run.end_time),
    });
  }
  countHidden(tree, around, ['inputs', 'outputs'], losses);
  return { calls: tree.calls, rest: [], scores: pickScores(scores, losses) };
}

/** Reads aggregated feedback: the mean of each key. */
function readFeedback(run: Json, scores: FoundScore[], losses: Losses): void {
  const isWhole = (run.parent_run_id ?? '') === '';
  for (const [key, stats] of Object.entries(recordOf(unwrapJson(run.feedback_stats)) ?? {})) {
    const mean = recordOf(stats)?.avg ?? (typeof stats === 'number' ? stats : undefined);
    if (typeof mean === 'number' && Number.isFinite(mean)) scores.push({ name: key, value: mean, isWhole });
    else losses.add('feedback_stats (no mean)');
  }
}

/** Reads what a model was asked: messages, or an object that holds them beside the tools. */
export function readAsked(
  given: unknown,
  losses: Losses,
  path: string,
): { readonly messages: ConversationMessage[]; readonly tools: Tool[] } {
  const value = unwrapJson(given);
  if (!isRecord(value) || 'role' in value || 'lc' in value)
    return { messages: readMessages(value, losses, path), tools: [] };
  const { messages, input, prompt, prompts, system, instructions, tools, ...others } = value;
  losses.addOthers(others, [], path);
  const own = readMessages(messages ?? input ?? prompt ?? prompts, losses, `${path}.messages`);
  const before = readInstructions(system ?? instructions, losses, `${path}.system`);
  return { messages: [...before, ...own], tools: readTools(tools, losses, `${path}.tools`) };
}

/** Finds the message within what a model returned; the other fields around it are counted as lost. */
export function replyOf(given: unknown, losses: Losses, path: string): unknown {
  const value = unwrapJson(given);
  if (!isRecord(value)) return value;
  const [choice, ...choices] = recordsOf(value.choices);
  if (choice) {
    losses.add(`${path}.choices[] (other choices)`, choices.length);
    losses.addOthers(choice, ['index', 'message', 'text', 'finish_reason'], `${path}.choices[]`);
    return choice.message ?? choice.text;
  }
  const [generation, ...generations] = recordsOf(Array.isArray(value.generations) ? value.generations.flat() : []);
  if (generation) {
    losses.add(`${path}.generations[] (other choices)`, generations.length);
    losses.addOthers(value, ['generations', 'run'], path);
    losses.addOthers(generation, ['message', 'text', 'type'], `${path}.generations[]`);
    return generation.message ?? generation.text;
  }
  if (Array.isArray(value.output) || isRecord(value.output) || typeof value.output === 'string') return value.output;
  if (isRecord(value.message)) return value.message;
  return Array.isArray(value.messages) ? value.messages.slice(-1) : value;
}

/** Rows in the order in which they began. */
function inTime(rows: readonly unknown[]): Json[] {
  const begin = (row: Json) => String(row.startTime ?? row.start_time ?? '');
  return rows.filter(isRecord).sort((a, b) => (begin(a) < begin(b) ? -1 : begin(a) > begin(b) ? 1 : 0));
}

function betweenTimes(from: unknown, to: unknown): number | undefined {
  const ms = new Date(to as string).getTime() - new Date(from as string).getTime();
  return Number.isFinite(ms) && ms >= 0 ? ms : undefined;
}
