/**
 * OpenTelemetry: spans of OTLP as JSON (a line holds a batch), by the GenAI semantic conventions. A trace is an episode, each
 * span of a model's call is one, in the order of time; a sub-agent's calls begin conversations of their own. Pure.
 * @see https://opentelemetry.io/docs/specs/semconv/gen-ai/
 */
import type { AskedSampling } from '../../core/model-call.ts';
import { isRecord, recordOf, recordsOf } from '../../core/record.ts';
import type { Losses } from './losses.ts';
import { countOf, type FoundScore, pickScores, type ReadEpisode, RequestTree, readFinish } from './read-episode.ts';
import { readInstructions, readMessages, readReplyMessage, readTools, unwrapJson } from './read-messages.ts';
import type { KeyedPart } from './records.ts';

type Json = Record<string, unknown>;

/** Operations of a model that answers. */
const ANSWERS = ['chat', 'text_completion', 'generate_content'];
/** Spans that give the tree its form, or repeat what the next call shows. */
const AROUND = ['invoke_agent', 'create_agent', 'invoke_workflow', 'execute_tool'];

/** True for a record of OTLP. */
export function isOtel(value: unknown): boolean {
  return isRecord(value) && (Array.isArray(value.resourceSpans) || Array.isArray(value.resource_spans));
}

/** Spans of a record by their traces. */
export function otelParts(value: unknown): KeyedPart[] {
  if (!isRecord(value)) return [];
  return recordsOf(value.resourceSpans ?? value.resource_spans).flatMap((resource) =>
    recordsOf(resource.scopeSpans ?? resource.scope_spans).flatMap((scope) =>
      recordsOf(scope.spans).flatMap((span) => {
        const key = span.traceId ?? span.trace_id;
        return typeof key === 'string' ? [{ key, part: span }] : [];
      }),
    ),
  );
}

/** Attributes that are read of a call; others are counted as lost. */
const READ = [
  ...['gen_ai.operation.name', 'gen_ai.input.messages', 'gen_ai.output.messages', 'gen_ai.system_instructions'],
  ...['gen_ai.tool.definitions', 'gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens'],
  ...['gen_ai.response.finish_reasons', 'gen_ai.request.max_tokens', 'gen_ai.request.temperature'],
  ...['gen_ai.request.top_p', 'gen_ai.request.top_k', 'gen_ai.request.seed'],
  ...['gen_ai.request.presence_penalty', 'gen_ai.request.frequency_penalty'],
];

/** Reads the spans of a trace. */
export function readOtel(spans: readonly unknown[], losses: Losses): ReadEpisode {
  const tree = new RequestTree();
  const scores: FoundScore[] = [];
  const around: Json[] = [];
  const read = spans.filter(isRecord).map((span) => ({ span, attributes: attributesOf(span.attributes) }));
  for (const { span, attributes } of read.sort((a, b) => compareTimes(startOf(a.span), startOf(b.span)))) {
    readScores(span, scores, losses);
    const operation = operationOf(span, attributes);
    if (operation === undefined || AROUND.includes(operation)) {
      countAround(operation, attributes, losses);
      around.push(attributes);
      continue;
    }
    losses.addOthers(attributes, READ, 'attributes');
    losses.addOthers(recordOf(span.status), ['code'], 'status');
    if (!ANSWERS.includes(operation)) {
      losses.add(`spans (${operation})`);
      continue;
    }
    const named = 'gen_ai.system_instructions';
    const instructions = readInstructions(attributes[named], losses, named);
    const messages = readMessages(attributes['gen_ai.input.messages'], losses, 'gen_ai.input.messages');
    const reply = readReplyMessage(attributes['gen_ai.output.messages'], losses, 'gen_ai.output.messages');
    const asked = [...instructions, ...messages];
    if (!reply || asked.length === 0) {
      losses.add(reply ? 'spans (a call without messages)' : 'spans (a call without an answer)');
      continue;
    }
    const tools = readTools(attributes['gen_ai.tool.definitions'], losses, 'gen_ai.tool.definitions');
    const [written] = recordsOf(unwrapJson(attributes['gen_ai.output.messages']));
    const finish = toList(attributes['gen_ai.response.finish_reasons'])[0] ?? written?.finish_reason;
    tree.add(asked, tools, reply, {
      finish: readFinish(finish),
      promptTokens: countOf(attributes['gen_ai.usage.input_tokens']),
      completionTokens: countOf(attributes['gen_ai.usage.output_tokens']),
      maxTokens: countOf(attributes['gen_ai.request.max_tokens']),
      sampling: samplingOf(attributes),
      ms: millisecondsOf(span),
    });
  }
  for (const attributes of around) {
    for (const name of SHOWN) if (!tree.shows(attributes[name])) losses.add(`attributes.${name} (in no call)`);
  }
  return { calls: tree.calls, rest: [], scores: pickScores(scores, losses) };
}

/** Attributes of spans around the calls that the calls show too, as a rule. */
const SHOWN = [
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.tool.call.arguments',
  'gen_ai.tool.call.result',
];

function operationOf(span: Json, attributes: Json): string | undefined {
  const named = attributes['gen_ai.operation.name'];
  if (typeof named === 'string') return named;
  if (attributes['gen_ai.output.messages'] !== undefined) return 'chat';
  // Many span names begin with the operation.
  const [first] = typeof span.name === 'string' ? span.name.split(' ', 1) : [];
  return first !== undefined && [...ANSWERS, ...AROUND].includes(first) ? first : undefined;
}

/** Counts what a span around the calls has of its own. A tool's arguments and result stand in the calls beside it. */
function countAround(operation: string | undefined, attributes: Json, losses: Losses): void {
  if (operation === undefined) losses.add('spans (not of a model, agent or tool)');
  const named = ['gen_ai.operation.name', 'gen_ai.tool.name', 'gen_ai.tool.call.id'];
  losses.addOthers(attributes, [...named, ...SHOWN], 'attributes');
}

/** Reads scores: events that carry the result of an evaluation. */
function readScores(span: Json, scores: FoundScore[], losses: Losses): void {
  const isWhole = /^0*$/.test(String(span.parentSpanId ?? span.parent_span_id ?? ''));
  for (const event of recordsOf(span.events)) {
    const attributes = attributesOf(event.attributes);
    const { 'gen_ai.evaluation.name': name, 'gen_ai.evaluation.score.value': value } = attributes;
    const isScore = event.name === 'gen_ai.evaluation.result' && typeof name === 'string' && Number.isFinite(value);
    if (!isScore) losses.add(`events (${String(event.name)})`);
    else {
      scores.push({ name, value: value as number, isWhole });
      losses.addOthers(attributes, ['gen_ai.evaluation.name', 'gen_ai.evaluation.score.value'], 'events[].attributes');
    }
  }
}

function samplingOf(attributes: Json): AskedSampling | undefined {
  const of = (name: string) => {
    const value = attributes[`gen_ai.request.${name}`];
    return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  };
  const asked = {
    ...{ temperature: of('temperature'), topP: of('top_p'), topK: of('top_k'), seed: of('seed') },
    ...{ presencePenalty: of('presence_penalty'), frequencyPenalty: of('frequency_penalty') },
  };
  const stated = Object.entries(asked).filter(([, value]) => value !== undefined);
  return stated.length > 0 ? (Object.fromEntries(stated) as AskedSampling) : undefined;
}

/** Attributes of OTLP's JSON as an object; a plain object is taken as it is. */
function attributesOf(value: unknown): Json {
  if (isRecord(value)) return value;
  return Object.fromEntries(recordsOf(value).map((one) => [String(one.key), readAttribute(one.value)]));
}

/** Value of an attribute, of its seven kinds. Whole numbers of 64 bits are texts. */
function readAttribute(value: unknown): unknown {
  if (!isRecord(value)) return value;
  if ('intValue' in value) return Number(value.intValue);
  if ('arrayValue' in value) return toList(recordOf(value.arrayValue)?.values).map(readAttribute);
  if ('kvlistValue' in value) return attributesOf(recordOf(value.kvlistValue)?.values ?? []);
  return value.stringValue ?? value.doubleValue ?? value.boolValue ?? value.bytesValue;
}

function startOf(span: Json): string {
  return String(span.startTimeUnixNano ?? span.start_time_unix_nano ?? '0');
}

/** Compares times in nanoseconds, which are longer than numbers are exact. */
function compareTimes(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

function millisecondsOf(span: Json): number | undefined {
  const nanoseconds = Number(span.endTimeUnixNano ?? span.end_time_unix_nano) - Number(startOf(span));
  return Number.isFinite(nanoseconds) && nanoseconds >= 0 ? nanoseconds / 1e6 : undefined;
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
