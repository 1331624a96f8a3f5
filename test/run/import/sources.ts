/** One run of an agent as each maker records it. */
import type { ImportFormat } from '../../../src/run/import/import-traces.ts';

const parameters = { type: 'object', properties: { x: { type: 'number' } } };

/** One run of an agent: two parallel calls whose results come in another order, a sub-agent between, an answer. */
export const openAi = {
  tools: [{ type: 'function', function: { name: 'f', parameters } }],
  first: [
    { role: 'system', content: 'S' },
    { role: 'user', content: 'hi' },
  ] as object[],
  calls: {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'b_1', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
      { id: 'a_0', type: 'function', function: { name: 'f', arguments: '{"x":2}' } },
    ],
  },
  results: [
    { role: 'tool', tool_call_id: 'a_0', content: 'two' },
    { role: 'tool', tool_call_id: 'b_1', content: 'one' },
  ] as object[],
  answer: { role: 'assistant', content: 'done' },
};
export const below = [{ role: 'user', content: 'sub task' }];
export const belowAnswer = { role: 'assistant', content: 'sub answer' };
export const turn2 = [...openAi.first, openAi.calls, ...openAi.results];

const anthropicCalls = [
  { type: 'thinking', thinking: 'hm', signature: 's' },
  { type: 'tool_use', id: 'b_1', name: 'f', input: { x: 1 } },
  { type: 'tool_use', id: 'a_0', name: 'f', input: { x: 2 } },
];
const anthropicResults = [
  { type: 'tool_result', tool_use_id: 'a_0', content: [{ type: 'text', text: 'two' }] },
  { type: 'tool_result', tool_use_id: 'b_1', content: 'one' },
];
const anthropicTools = [{ name: 'f', input_schema: parameters }];

const span = (traceId: string, at: number, attributes: Record<string, unknown>, more: object = {}) => ({
  traceId,
  spanId: String(at),
  name: 'x',
  startTimeUnixNano: String(at * 1e9),
  endTimeUnixNano: String(at * 1e9 + 5e8),
  attributes: Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { stringValue: JSON.stringify(value) },
  })),
  ...more,
});
const otlp = (...spans: object[]) => ({ resourceSpans: [{ scopeSpans: [{ spans }] }] });
const part = (content: string) => ({ type: 'text', content });
const otelCalls = [
  { type: 'tool_call', id: 'b_1', name: 'f', arguments: { x: 1 } },
  { type: 'tool_call', id: 'a_0', name: 'f', arguments: { x: 2 } },
];
const otelChat = (input: object[], output: object[]) => ({
  'gen_ai.operation.name': 'chat',
  'gen_ai.system_instructions': [part('S')],
  'gen_ai.input.messages': input,
  'gen_ai.output.messages': [{ role: 'assistant', parts: output, finish_reason: 'stop' }],
});
const otelFirst = [{ role: 'user', parts: [part('hi')] }];
const otelScore = {
  name: 'gen_ai.evaluation.result',
  attributes: [
    { key: 'gen_ai.evaluation.name', value: { stringValue: 'judge' } },
    { key: 'gen_ai.evaluation.score.value', value: { doubleValue: 0.75 } },
  ],
};
const otelSpans = {
  first: span('t', 2, { ...otelChat(otelFirst, otelCalls), 'gen_ai.response.model': 'm' }),
  below: span('t', 3, otelChat([{ role: 'user', parts: [part('sub task')] }], [part('sub answer')])),
  last: span(
    't',
    4,
    otelChat(
      [
        ...otelFirst,
        { role: 'assistant', parts: otelCalls },
        { role: 'tool', parts: [{ type: 'tool_call_response', id: 'a_0', response: 'two' }] },
        { role: 'tool', parts: [{ type: 'tool_call_response', id: 'b_1', response: 'one' }] },
      ],
      [part('done')],
    ),
  ),
  agent: span('t', 1, { 'gen_ai.operation.name': 'invoke_agent' }, { events: [otelScore] }),
};

const langfuse = (id: string, at: number, input: unknown, output: unknown, type = 'GENERATION') => ({
  id,
  trace_id: 't',
  type,
  name: 'n',
  start_time: `2026-01-01 00:00:0${at}.000000`,
  end_time: `2026-01-01 00:00:0${at}.250000`,
  input: JSON.stringify(input),
  output: JSON.stringify(output),
  usage_details: { input: 5, output: 2 },
});
export const langfuseRows = [
  langfuse('1', 1, { messages: openAi.first, tools: openAi.tools }, openAi.calls),
  langfuse('2', 2, below, belowAnswer),
  langfuse('3', 3, { messages: turn2, tools: openAi.tools }, openAi.answer),
  langfuse('0', 0, 'hi', 'done', 'AGENT'),
  { id: 's', trace_id: 't', name: 'judge', value: 0.75, data_type: 'NUMERIC', source: 'API' },
];

const lc = (name: string, kwargs: object) => ({
  lc: 1,
  type: 'constructor',
  id: ['langchain', 'schema', 'messages', name],
  kwargs,
});
const lcFirst = [lc('SystemMessage', { content: 'S' }), lc('HumanMessage', { content: 'hi' })];
const lcCalls = lc('AIMessage', {
  content: '',
  tool_calls: [
    { id: 'b_1', name: 'f', args: { x: 1 } },
    { id: 'a_0', name: 'f', args: { x: 2 } },
  ],
});
const lcResults = [
  lc('ToolMessage', { content: 'two', tool_call_id: 'a_0' }),
  lc('ToolMessage', { content: 'one', tool_call_id: 'b_1' }),
];
const run = (at: number, messages: object[], message: object, more: object = {}) => ({
  id: `r${at}`,
  trace_id: 't',
  parent_run_id: 'r0',
  run_type: 'llm',
  name: 'ChatModel',
  start_time: `2026-01-01T00:00:0${at}.000`,
  inputs: { messages: [messages] },
  outputs: { generations: [[{ text: '', message }]] },
  ...more,
});
const langSmithRuns = [
  {
    id: 'r0',
    trace_id: 't',
    run_type: 'chain',
    name: 'agent',
    start_time: '2026-01-01T00:00:00',
    inputs: {},
    outputs: {},
    feedback_stats: { judge: { n: 1, avg: 0.75 } },
  },
  run(1, lcFirst, lcCalls, { extra: { invocation_params: { tools: openAi.tools, temperature: 0.5 } } }),
  run(2, [lc('HumanMessage', { content: 'sub task' })], lc('AIMessage', { content: 'sub answer' })),
  run(3, [...lcFirst, lcCalls, ...lcResults], lc('AIMessage', { content: 'done' }), {
    extra: { invocation_params: { tools: openAi.tools } },
  }),
];

export const openAiPair = (messages: object[], message: object, tools: object[] | undefined, finish = 'stop') => ({
  request: { model: 'm', messages, ...(tools ? { tools } : {}) },
  response: {
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: { prompt_tokens: 5, completion_tokens: 2 },
  },
  score: 0.75,
});
const anthropicPair = (messages: object[], content: object[], tools: object[] | undefined) => ({
  request: { model: 'm', max_tokens: 9, system: 'S', messages, ...(tools ? { tools } : {}) },
  response: {
    type: 'message',
    role: 'assistant',
    content,
    stop_reason: 'end_turn',
    usage: { input_tokens: 5, output_tokens: 2 },
  },
  score: 0.75,
});

const atifStep = (step_id: number, more: object) => ({ step_id, ...more });
export const atif = {
  schema_version: 'ATIF-v1.8',
  session_id: 's',
  agent: { name: 'a', version: '1', tool_definitions: openAi.tools },
  steps: [
    atifStep(1, { source: 'system', message: 'S' }),
    atifStep(2, { source: 'user', message: 'hi' }),
    atifStep(3, {
      source: 'agent',
      message: '',
      tool_calls: [
        { tool_call_id: 'b_1', function_name: 'f', arguments: { x: 1 } },
        { tool_call_id: 'a_0', function_name: 'f', arguments: { x: 2 } },
      ],
      observation: {
        results: [
          { source_call_id: 'a_0', content: 'two', subagent_trajectory_ref: [{ trajectory_id: 'below' }] },
          { source_call_id: 'b_1', content: 'one' },
        ],
      },
      metrics: { prompt_token_ids: [1, 2], completion_token_ids: [3, 4], logprobs: [-1, -2] },
    }),
    atifStep(4, { source: 'agent', message: 'done' }),
  ],
  final_metrics: { extra: { reward: 0.75 } },
  subagent_trajectories: [
    {
      schema_version: 'ATIF-v1.8',
      trajectory_id: 'below',
      agent: { name: 'b', version: '1' },
      steps: [
        atifStep(1, { source: 'user', message: 'sub task' }),
        atifStep(2, { source: 'agent', message: 'sub answer' }),
      ],
    },
  ],
};

/** The same run, as each maker records it. Lines of one episode do not stand in the order of time. */
export const SOURCES: Readonly<Record<ImportFormat, readonly unknown[]>> = {
  atif: [atif],
  otel: [otlp(otelSpans.last), otlp(otelSpans.first, otelSpans.below), otlp(otelSpans.agent)],
  langfuse: [...langfuseRows].reverse(),
  langsmith: [...langSmithRuns].reverse(),
  openai: [
    openAiPair(openAi.first, openAi.calls, openAi.tools, 'tool_calls'),
    openAiPair(below, belowAnswer, undefined),
    openAiPair(turn2, openAi.answer, openAi.tools),
  ],
  anthropic: [
    anthropicPair([{ role: 'user', content: 'hi' }], anthropicCalls, anthropicTools),
    anthropicPair(below, [{ type: 'text', text: 'sub answer' }], undefined),
    anthropicPair(
      [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: anthropicCalls },
        { role: 'user', content: anthropicResults },
      ],
      [{ type: 'text', text: 'done' }],
      anthropicTools,
    ),
  ],
};
