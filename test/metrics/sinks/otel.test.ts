/** OpenTelemetry sink: requests by the protocol's own definitions, where they are installed, and by a reader of their schema. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { printAgentCall, printAgentReply } from '../../../src/core/agent-call.ts';
import type { Trajectory } from '../../../src/core/trajectory.ts';
import { metricTable } from '../../../src/metrics/metric-table.ts';
import {
  episodeSpans,
  metricsRequest,
  type OtelRun,
  type OtlpSpan,
  parseHeaders,
  tracesRequest,
} from '../../../src/metrics/sinks/otel.ts';
import type { RowEntry } from '../../../src/metrics/sinks/outbox.ts';

const AT = 1_700_000_000_123.5;
const run: OtelRun = {
  name: 'my-run',
  key: 'ab'.repeat(16),
  session: 1,
  created: 1_700_000_000_000,
  model: 'local',
  provider: 'longplay',
  content: false,
};
const rows: RowEntry[] = [
  {
    kind: 'row',
    at: AT,
    number: 1,
    row: { update: 1, success: 0.25, envSteps: 40, successByLabel: { 'depth 1': 0.5 } },
  },
  { kind: 'row', at: AT + 1000, number: 2, row: { update: 2, success: 0.5, loss: Number.NaN } },
];

const plain: Trajectory = {
  episode: 7,
  group: 2,
  task: { env: 'babyai', index: 3, seed: 9 },
  horizon: 4,
  attempt: 1,
  actionTable: ['go', 'stay'],
  turns: [
    {
      observation: 'a door',
      actions: Int32Array.of(0, 1),
      action: 'go',
      decision: { kind: 'choice', choice: 0, logprob: -1, version: 5, value: 0, context: Int32Array.of(1, 2, 3) },
      reward: 0,
      actMs: 10,
      envMs: 5,
    },
    {
      observation: 'a key',
      actions: Int32Array.of(0, 1),
      action: 'stay',
      decision: {
        kind: 'tokens',
        tokens: Int32Array.of(4, 5),
        logprobs: Float32Array.of(-1, -1),
        masked: false,
        version: 6,
        value: 0,
        context: Int32Array.of(1),
      },
      reward: 1,
      actMs: 20,
      envMs: 0.25,
    },
  ],
  finalObservation: 'solved 🔑',
  end: 'terminated',
  success: true,
};

const calling: Trajectory = {
  ...plain,
  episode: 8,
  task: { env: 'agent', index: 0, seed: 1 },
  turns: [
    {
      observation: printAgentCall({
        call: 0,
        parent: null,
        messages: [{ role: 'user', content: 'weather?' }],
        tools: [{ name: 'weather', parameters: { type: 'object' } }],
      }),
      actions: new Int32Array(0),
      action: printAgentReply({
        content: '',
        calls: [
          { name: 'weather', arguments: '{"place":"Paris"}' },
          { name: 'weather', arguments: '{"place":"Rome"}' },
        ],
        finish: 'calls',
        usage: { promptTokens: 5, completionTokens: 3 },
      }),
      response: { text: 'two calls', promptTokens: 5, completionTokens: 3 },
      reward: 0,
      actMs: 30,
      envMs: 10,
    },
  ],
};

const attributeOf = (span: OtlpSpan, key: string) => span.attributes.find((one) => one.key === key)?.value;

describe('metrics', () => {
  const body = metricsRequest(rows, run);
  const metrics = body.resourceMetrics[0]!.scopeMetrics[0]!.metrics as readonly Record<string, unknown>[];
  const named = (name: string) => metrics.find((one) => one.name === name) as never;

  it('have the name, unit and meaning of the table; totals are sums that only grow', () => {
    const time = { startTimeUnixNano: '1700000000000000000', timeUnixNano: '1700000000123500000' };
    expect(named('longplay.success')).toEqual({
      name: 'longplay.success',
      unit: '1',
      description: metricTable.find(({ name }) => name === 'success')!.meaning,
      gauge: {
        dataPoints: [
          { attributes: [], ...time, asDouble: 0.25 },
          { attributes: [], ...time, timeUnixNano: '1700000001123500000', asDouble: 0.5 },
        ],
      },
    });
    expect(named('longplay.env_steps')).toMatchObject({
      unit: '{steps}',
      sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [{ asDouble: 40 }] },
    });
    expect(named('longplay.success_by_label')).toMatchObject({
      gauge: { dataPoints: [{ attributes: [{ key: 'label', value: { stringValue: 'depth 1' } }] }] },
    });
    expect(named('longplay.loss')).toBeUndefined();
  });
});

describe('traces', () => {
  it('are an invoke_agent span an episode, with a chat and an execute_tool span for each turn', () => {
    const [root, ...rest] = episodeSpans([plain], 'train', AT, run);
    expect(root!.name).toBe('invoke_agent my-run');
    expect(root!.parentSpanId).toBeUndefined();
    expect(root!.endTimeUnixNano).toBe('1700000000123500000');
    expect(root!.startTimeUnixNano).toBe('1700000000088250000');
    expect(attributeOf(root!, 'gen_ai.operation.name')).toEqual({ stringValue: 'invoke_agent' });
    expect(attributeOf(root!, 'longplay.success')).toEqual({ boolValue: true });
    expect(attributeOf(root!, 'longplay.return')).toEqual({ doubleValue: 1 });
    expect(attributeOf(root!, 'longplay.policy_version')).toEqual({ intValue: '5' });
    expect(rest.map(({ name }) => name)).toEqual([
      'chat local',
      'execute_tool babyai',
      'chat local',
      'execute_tool babyai',
    ]);
    for (const span of rest) {
      expect(span).toMatchObject({ traceId: root!.traceId, parentSpanId: root!.spanId });
      expect(BigInt(span.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(root!.startTimeUnixNano));
      expect(BigInt(span.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(root!.endTimeUnixNano));
    }
    expect(attributeOf(rest[2]!, 'gen_ai.usage.output_tokens')).toEqual({ intValue: '2' });
    expect(new Set([root!, ...rest].map(({ spanId }) => spanId)).size).toBe(5);
    expect(root!.traceId).toMatch(/^[\da-f]{32}$/);
  });

  it('name the tools that a reply calls', () => {
    const spans = episodeSpans([calling], 'train', AT, { ...run, content: true });
    expect(spans.map(({ name }) => name)).toEqual([
      'invoke_agent my-run',
      'chat local',
      'execute_tool weather',
      'execute_tool weather',
    ]);
    expect(attributeOf(spans[1]!, 'gen_ai.response.finish_reasons')).toEqual({
      arrayValue: { values: [{ stringValue: 'tool_call' }] },
    });
    expect(attributeOf(spans[1]!, 'gen_ai.usage.input_tokens')).toEqual({ intValue: '5' });
    expect(attributeOf(spans[3]!, 'gen_ai.tool.call.id')).toEqual({ stringValue: 'call_0_1' });
    expect(attributeOf(spans[3]!, 'gen_ai.tool.call.arguments')).toEqual({ stringValue: '{"place":"Rome"}' });
  });

  it('show what was read and written on demand alone', () => {
    const texts = /a door|a key|solved|"stay"|Paris/;
    expect(JSON.stringify(episodeSpans([plain, calling], 'train', AT, run))).not.toMatch(texts);
    const shown = episodeSpans([plain], 'train', AT, { ...run, content: true });
    expect(attributeOf(shown[1]!, 'gen_ai.input.messages')).toEqual({
      stringValue: '[{"role":"user","parts":[{"type":"text","content":"a door"}]}]',
    });
    expect(attributeOf(shown[4]!, 'gen_ai.tool.call.result')).toEqual({ stringValue: 'solved 🔑' });
  });

  it('have other ids when an episode is played again by another process, attempt or evaluation', () => {
    const ids = [
      episodeSpans([plain], 'train', AT, run),
      episodeSpans([plain], 'train', AT, { ...run, session: 2 }),
      episodeSpans([{ ...plain, attempt: 2 }], 'train', AT, run),
      episodeSpans([plain], 'test h4', AT, run),
    ].map(([root]) => root!.traceId);
    expect(new Set(ids).size).toBe(4);
    expect(episodeSpans([plain], 'train', AT + 5, run)[0]!.traceId).toBe(ids[0]); // the same one, sent again
  });
});

describe('headers', () => {
  it('are read as OpenTelemetry writes them', () => {
    expect(parseHeaders('Authorization=Basic%20YQ==, x-team = red,', 'V')).toEqual({
      authorization: 'Basic YQ==',
      'x-team': 'red',
    });
    expect(parseHeaders('', 'V')).toEqual({});
  });
  it.each(['secret-value', 'a=1,=secret-value', 'a=%secret-value'])('refuse %s without showing it', (text) => {
    expect(() => parseHeaders(text, 'MY_HEADERS')).toThrow(
      /^MY_HEADERS: expected name=value,name=value, and header \d/,
    );
    expect(() => parseHeaders(text, 'MY_HEADERS')).not.toThrow(/secret-value/);
  });
});

const python = process.env.LONGPLAY_PYTHON ?? 'python3';
const reader = [
  'import sys, json',
  'from google.protobuf.json_format import Parse, MessageToDict',
  'from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest as M',
  'from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as T',
].join('\n');
const has = spawnSync(python, ['-c', reader]).status === 0;
if (!has) console.log(`skipped: ${python} has no opentelemetry-proto, so its definitions read nothing`);

describe.skipIf(!has)('the protocol’s own definitions', () => {
  const parse = (kind: 'M' | 'T', body: unknown, result: string) => {
    const script = `${reader}\nr = Parse(sys.stdin.read(), ${kind}())\nprint(json.dumps(${result}))`;
    const { stdout, stderr } = spawnSync(python, ['-c', script], { input: JSON.stringify(body), encoding: 'utf8' });
    expect(stderr).toBe('');
    return JSON.parse(stdout);
  };

  it('read the metrics, with no field that they do not know', () => {
    const all = Object.fromEntries(metricTable.map((metric) => [metric.name, 'by' in metric ? { key: 1 } : 1]));
    const body = metricsRequest([...rows, { kind: 'row', at: AT, number: 3, row: all }], run);
    const list = '[[m.name, m.unit, m.WhichOneof("data")] for m in r.resource_metrics[0].scope_metrics[0].metrics]';
    const read = parse('M', body, list);
    expect(read).toHaveLength(metricTable.length);
    expect(read).toContainEqual(['longplay.env_steps', '{steps}', 'sum']);
  });

  it('read the traces', () => {
    const spans = episodeSpans([plain, calling], 'train', AT, { ...run, content: true });
    const body = tracesRequest([{ kind: 'spans', at: AT, spans }], run);
    const list =
      '[[s.name, s.kind, s.end_time_unix_nano - s.start_time_unix_nano] for s in r.resource_spans[0].scope_spans[0].spans]';
    expect(parse('T', body, list)).toEqual([
      ['invoke_agent my-run', 1, 35_250_000],
      ['chat local', 1, 10_000_000],
      ['execute_tool babyai', 1, 5_000_000],
      ['chat local', 1, 20_000_000],
      ['execute_tool babyai', 1, 250_000],
      ['invoke_agent my-run', 1, 40_000_000],
      ['chat local', 1, 30_000_000],
      ['execute_tool weather', 1, 10_000_000],
      ['execute_tool weather', 1, 10_000_000],
    ]);
  });
});
