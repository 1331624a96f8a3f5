/**
 * OpenTelemetry sink: rows as metrics and episodes as traces, over OTLP/HTTP in its JSON form. Traces follow the semantic
 * conventions for generative AI: an `invoke_agent` span an episode, a `chat` span for each turn of the policy, an
 * `execute_tool` span for each answer of the world. Written by hand: the official SDK and its two exporters are 13
 * packages of 55 MB, for two messages.
 *
 * @see https://opentelemetry.io/docs/specs/otlp/#otlphttp
 * @see https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/
 */
import { createHash } from 'node:crypto';
import { isAgentCall, readAgentReply } from '../../core/agent-call.ts';
import { UserError } from '../../core/errors.ts';
import type { ReplyFinish } from '../../core/model-call.ts';
import { episodeReturn, oldestVersion, type Trajectory, type Turn } from '../../core/trajectory.ts';
import { HttpClient } from '../../http/http-client.ts';
import { points } from '../metrics.ts';
import type { Entry, OutboxState, RowEntry, SpansEntry } from './outbox.ts';
import type { SinkTransport } from './remote-sink.ts';
import { snakeName } from './snake-name.ts';

/** Facts of a run that every metric and span of it shows. */
export interface OtelRun {
  /** Name of the run's folder. */
  readonly name: string;
  /** Id of the run: stays the same when it is resumed. */
  readonly key: string;
  /** Processes that have written it: spans of episodes that are played again are others. */
  readonly session: number;
  /** Milliseconds since 1970 at which it began: totals count from there. */
  readonly created: number;
  /** Model that decides, and its provider as the conventions name it. */
  readonly model: string;
  readonly provider: string;
  /** True where spans carry what was read and written. */
  readonly content: boolean;
}

export interface OtelOptions {
  /** Root of the receiver: `/v1/metrics` and `/v1/traces` lie below it. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly traces: boolean;
  readonly run: OtelRun;
}

/** Opens the way to a receiver. @throws {UserError} BAD_ARGUMENT for an URL that is none */
export function otelTransport({ url, headers, traces, run }: OtelOptions): SinkTransport {
  const client = new HttpClient({ baseUrl: url, headers, maxConnections: 2 });
  return {
    async send(entries, deadlineMs) {
      const isRows = entries[0]?.kind === 'row';
      const body = isRows ? metricsRequest(entries.filter(isRow), run) : tracesRequest(entries.filter(isSpans), run);
      await client.send('POST', isRows ? 'v1/metrics' : 'v1/traces', JSON.stringify(body), deadlineMs);
    },
    spansOf: traces ? (trajectories, purpose, at) => episodeSpans(trajectories, purpose, at, run) : undefined,
    close: () => client.close(),
  };
}

const isRow = (entry: Entry): entry is RowEntry => entry.kind === 'row';
const isSpans = (entry: Entry): entry is SpansEntry => entry.kind === 'spans';

/** Facts of the run, from the outbox's state. */
export function otelRun(
  { key, sessions, created }: OutboxState,
  rest: Omit<OtelRun, 'key' | 'session' | 'created'>,
): OtelRun {
  return { ...rest, key, session: sessions, created };
}

type Value = string | number | boolean | readonly string[];

/** Attribute in OTLP's JSON: whole numbers are texts, as 64-bit ones are there. */
interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

const SCOPE = { name: 'longplay' };

/** Request of rows: `ExportMetricsServiceRequest`. Pure. */
export function metricsRequest(rows: readonly RowEntry[], run: OtelRun) {
  const metrics = new Map<string, { readonly head: object; readonly isTotal: boolean; readonly points: object[] }>();
  for (const { at, row } of rows) {
    for (const { metric, key, value } of points(row)) {
      const isTotal = metric.total === true;
      let found = metrics.get(metric.name);
      if (!found) {
        const head = {
          name: `longplay.${snakeName(metric.name)}`,
          description: metric.meaning,
          unit: unitOf(metric.unit),
        };
        found = { head, isTotal, points: [] };
        metrics.set(metric.name, found);
      }
      found.points.push({
        attributes: attributesOf(key === undefined ? {} : { [metric.by!]: key }),
        startTimeUnixNano: nanos(run.created),
        timeUnixNano: nanos(at),
        asDouble: value,
      });
    }
  }
  return {
    resourceMetrics: [
      {
        resource: resourceOf(run),
        scopeMetrics: [
          {
            scope: SCOPE,
            metrics: [...metrics.values()].map(({ head, isTotal, points: dataPoints }) => ({
              ...head,
              ...(isTotal
                ? { sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } }
                : { gauge: { dataPoints } }),
            })),
          },
        ],
      },
    ],
  };
}

/** Enumerations of the protocol, by number as its JSON form wants them. */
const CUMULATIVE = 2;
const INTERNAL = 1;
const CLIENT = 3;

/** Unit as UCUM writes it: counts of things in braces. */
function unitOf(unit: string): string {
  if (unit === '') return '1';
  return unit === 's' || unit === '1/s' ? unit : `{${unit}}`;
}

/** Request of spans: `ExportTraceServiceRequest`. Pure. */
export function tracesRequest(entries: readonly SpansEntry[], run: OtelRun) {
  const spans = entries.flatMap((entry) => entry.spans);
  return { resourceSpans: [{ resource: resourceOf(run), scopeSpans: [{ scope: SCOPE, spans }] }] };
}

function resourceOf({ name, key }: OtelRun) {
  return { attributes: attributesOf({ 'service.name': 'longplay', 'service.instance.id': key, 'longplay.run': name }) };
}

/** Span in OTLP's JSON. */
export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
}

/**
 * Spans of the episodes of a group. An episode's times are those that its turns took, one behind the other; its end is set to
 * the moment at which its group was recorded.
 * @param at that moment, in milliseconds since 1970
 */
export function episodeSpans(
  trajectories: readonly Trajectory[],
  purpose: string,
  at: number,
  run: OtelRun,
): OtlpSpan[] {
  return trajectories.flatMap((trajectory) => spansOfEpisode(trajectory, purpose, at, run));
}

/** Characters of a text that a span carries at most. */
const MAX_CHARS = 8192;

function spansOfEpisode(trajectory: Trajectory, purpose: string, at: number, run: OtelRun): OtlpSpan[] {
  const { episode, attempt, turns, task, horizon, group, end, success } = trajectory;
  const traceId = digest([run.key, run.session, purpose, episode, attempt], 32);
  const spans: OtlpSpan[] = [];
  const conversation = `${run.key.slice(0, 16)}-${run.session}-${episode}`;
  let now = at;
  for (const { actMs, envMs } of turns) now -= actMs + envMs;
  const span = (name: string, kind: number, from: number, to: number, values: Record<string, Value | undefined>) => {
    const spanId = digest([traceId, spans.length], 16);
    const parentSpanId = spans[0]?.spanId;
    spans.push({
      traceId,
      spanId,
      ...(parentSpanId === undefined ? {} : { parentSpanId }),
      name,
      kind,
      startTimeUnixNano: nanos(from),
      endTimeUnixNano: nanos(to),
      attributes: attributesOf({ ...values, 'gen_ai.conversation.id': conversation }),
    });
  };
  span(`invoke_agent ${run.name}`, INTERNAL, now, at, {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': run.provider,
    'gen_ai.agent.name': run.name,
    'gen_ai.request.model': run.model,
    'longplay.world': task.env,
    'longplay.task': task.index,
    'longplay.episode': episode,
    'longplay.group': group,
    'longplay.attempt': attempt,
    'longplay.purpose': purpose,
    'longplay.horizon': horizon,
    'longplay.turns': turns.length,
    'longplay.end': end,
    'longplay.success': success,
    'longplay.return': episodeReturn(trajectory),
    'longplay.policy_version': oldestVersion(trajectory),
  });
  turns.forEach((turn, i) => {
    const acted = now + turn.actMs;
    const answered = acted + turn.envMs;
    const observed = turns[i + 1]?.observation ?? trajectory.finalObservation;
    span(`chat ${run.model}`, run.provider === 'openai' ? CLIENT : INTERNAL, now, acted, chatValues(turn, run));
    for (const call of callsOf(turn, i, task.env)) {
      span(`execute_tool ${call.name}`, INTERNAL, acted, answered, {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': call.name,
        'gen_ai.tool.type': call.type,
        'gen_ai.tool.call.id': call.id,
        'longplay.reward': turn.reward,
        ...(run.content
          ? { 'gen_ai.tool.call.arguments': cut(call.arguments), 'gen_ai.tool.call.result': cut(observed) }
          : {}),
      });
    }
    now = answered;
  });
  return spans;
}

function chatValues(turn: Turn, { provider, model, content }: OtelRun): Record<string, Value | undefined> {
  const { decision, response, observation, action } = turn;
  const isTokens = decision?.kind === 'tokens';
  const reply = isAgentCall(observation) ? readAgentReply(action) : undefined;
  const text = response?.text ?? action;
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': model,
    'gen_ai.response.finish_reasons': reply && [FINISH[reply.finish]],
    'gen_ai.usage.input_tokens': response?.promptTokens,
    'gen_ai.usage.output_tokens': response?.completionTokens ?? (isTokens ? decision.tokens.length : undefined),
    'longplay.new_input_tokens': decision?.context.length,
    'longplay.policy_version': decision?.version,
    ...(content
      ? {
          'gen_ai.input.messages': messageText('user', observation),
          'gen_ai.output.messages': messageText('assistant', text),
        }
      : {}),
  };
}

/** Reasons why an answer ended, as the conventions name them. */
const FINISH: Readonly<Record<ReplyFinish, string>> = {
  stop: 'stop',
  calls: 'tool_call',
  length: 'length',
  filter: 'content_filter',
};

/** Messages in the conventions' form, as JSON: one of one text. */
function messageText(role: string, text: string): string {
  return JSON.stringify([{ role, parts: [{ type: 'text', content: cut(text) }] }]);
}

interface Call {
  readonly name: string;
  readonly type: 'function' | 'extension';
  readonly id: string | undefined;
  readonly arguments: string;
}

/** Calls of a turn: those of a reply with tools, which its answer holds the results of; else the action, as a call of the world. */
function callsOf({ observation, action }: Turn, turn: number, world: string): Call[] {
  if (!isAgentCall(observation)) return [{ name: world, type: 'extension', id: undefined, arguments: action }];
  return readAgentReply(action).calls.map((call, i) => ({
    name: call.name,
    type: 'function',
    id: `call_${turn}_${i}`,
    arguments: call.arguments,
  }));
}

function cut(text: string): string {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…`.toWellFormed() : text.toWellFormed();
}

function attributesOf(values: Readonly<Record<string, Value | undefined>>): Attribute[] {
  return Object.entries(values).flatMap(([key, value]): Attribute[] => {
    if (value === undefined) return [];
    if (typeof value === 'object') {
      return [{ key, value: { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } } }];
    }
    if (typeof value === 'string') return [{ key, value: { stringValue: value } }];
    if (typeof value === 'boolean') return [{ key, value: { boolValue: value } }];
    if (Number.isSafeInteger(value) && !DOUBLES.has(key)) return [{ key, value: { intValue: String(value) } }];
    return [{ key, value: { doubleValue: value } }];
  });
}

/** Attributes that are no counts: they stay doubles where they are whole by chance. */
const DOUBLES = new Set(['longplay.return', 'longplay.reward']);

/** Hexadecimal digits of a digest of some parts, the same in every process. */
function digest(parts: readonly (string | number)[], digits: number): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, digits);
}

/** Nanoseconds since 1970, as the protocol writes them: a text, since no double holds them. */
function nanos(ms: number): string {
  const whole = Math.floor(ms);
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6)));
}

/**
 * Reads headers as OpenTelemetry writes them into a variable: `name=value,name=value`, values percent-encoded.
 * @throws {UserError} BAD_CONFIG for another form; the message shows no value
 */
export function parseHeaders(text: string, variable: string): Readonly<Record<string, string>> {
  const refuse = (i: number): never => {
    throw new UserError(
      'BAD_CONFIG',
      `${variable}: expected name=value,name=value, and header ${i + 1} is none; set it again`,
    );
  };
  const headers: Record<string, string> = {};
  text
    .split(',')
    .filter((one) => one.trim() !== '')
    .forEach((one, i) => {
      const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/.exec(one) ?? refuse(i);
      try {
        headers[name!.toLowerCase()] = decodeURIComponent(value!);
      } catch {
        refuse(i);
      }
    });
  return headers;
}
