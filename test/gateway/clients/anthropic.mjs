/** Anthropic SDK: own loops over messages, plain and streamed, and its tool runner. */
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { ANSWER_SCHEMA, QUESTION, SYSTEM, schemaOf, TOOLS, UNICODE } from './quiz.mjs';

const tools = Object.entries(TOOLS).map(([name, tool]) => ({
  name,
  description: tool.description,
  input_schema: schemaOf(tool),
}));
const user = (content = QUESTION) => [{ role: 'user', content }];
const textOf = ({ content }) => content.map((block) => block.text ?? '').join('');

function clientOf({ model, isImpatient }) {
  return new Anthropic({ baseURL: model.root, apiKey: model.apiKey, ...(isImpatient ? { timeout: 1500 } : {}) });
}

const askPlain = (client, body) => client.messages.create(body);
const askByHelper = (client, body) => client.messages.stream(body).finalMessage();

function loop({ more = {}, ask = askPlain, question = QUESTION, endsByTool = false } = {}) {
  return async (context) => {
    const { quiz, model } = context;
    const client = clientOf(context);
    const messages = user(question);
    const body = { model: model.name, max_tokens: 512, system: SYSTEM, tools, ...more };
    for (let turn = 0; turn < 12; turn++) {
      const message = await ask(client, { ...body, messages });
      const { content } = message;
      const calls = content.filter(({ type }) => type === 'tool_use');
      if (calls.length === 0) return textOf(message);
      const results = calls.map(({ id, name, input }) => {
        return { type: 'tool_result', tool_use_id: id, content: quiz.run(name, input) };
      });
      const answer = calls.find(({ name }) => name === 'answer');
      if (answer && endsByTool) return answer.input.text;
      messages.push({ role: 'assistant', content }, { role: 'user', content: results });
    }
    throw new Error('no answer in 12 turns');
  };
}

/** Marks the newest message for the cache. */
function askCached(client, { messages, system, ...body }) {
  const cache_control = { type: 'ephemeral' };
  const marked = messages.map((message, i) => {
    if (i < messages.length - 1) return message;
    const { content } = message;
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    return {
      ...message,
      content: blocks.map((block, j) => (j < blocks.length - 1 ? block : { ...block, cache_control })),
    };
  });
  return askPlain(client, { ...body, system: [{ type: 'text', text: system, cache_control }], messages: marked });
}

const plain = (ask, question) => async (context) => {
  return textOf(await ask(clientOf(context), { model: context.model.name, max_tokens: 200, messages: user(question) }));
};

/** Its tool runner. @param more settings, e.g. `thread: false` */
const runner =
  (more = {}) =>
  async (context) => {
    const { quiz, model } = context;
    const runnable = Object.entries(TOOLS).map(([name, tool]) =>
      betaTool({
        name,
        description: tool.description,
        inputSchema: schemaOf(tool),
        run: (input) => quiz.run(name, input),
      }),
    );
    const body = { model: model.name, max_tokens: 512, system: SYSTEM, messages: user(), tools: runnable, ...more };
    const run = clientOf(context).beta.messages.toolRunner(body);
    if (more.stream) for await (const stream of run) await stream.finalMessage();
    return textOf(await run.runUntilDone());
  };

async function subAgent(context) {
  const { model } = context;
  const client = clientOf(context);
  const researcher = [
    { name: 'researcher', description: 'Asks a researcher.', input_schema: schemaOf({ argument: 'input' }) },
  ];
  const body = { model: model.name, max_tokens: 512, system: 'Ask the researcher.', tools: researcher };
  const messages = user();
  for (;;) {
    const message = await askPlain(client, { ...body, messages });
    const calls = message.content.filter(({ type }) => type === 'tool_use');
    if (calls.length === 0) return textOf(message);
    const results = [];
    for (const { id, input } of calls) {
      const content = await loop({ question: input.input })(context);
      results.push({ type: 'tool_result', tool_use_id: id, content });
    }
    messages.push({ role: 'assistant', content: message.content }, { role: 'user', content: results });
  }
}

async function abort(context) {
  const stream = clientOf(context).messages.stream({ model: context.model.name, max_tokens: 500, messages: user() });
  stream.on('text', () => stream.abort());
  await stream.done().catch(() => {});
  return stream.aborted ? 'aborted' : 'whole';
}

const required = { endsByTool: true, more: { tool_choice: { type: 'any' } } };

export const scenarios = {
  plain: plain(askPlain),
  'plain-stream': plain(askByHelper),
  unicode: plain(askPlain, UNICODE),
  tools: loop(),
  'tools-stream': loop({ ask: askByHelper }),
  'tools-cache-control': loop({ ask: askCached }),
  parallel: loop(),
  'parallel-stream': loop({ ask: askByHelper }),
  required: loop(required),
  'required-stream': loop({ ...required, ask: askByHelper }),
  'forced-tool': async (context) => {
    const tool_choice = { type: 'tool', name: 'answer', disable_parallel_tool_use: true };
    const body = { model: context.model.name, max_tokens: 100, messages: user(), tools, tool_choice };
    return (await askPlain(clientOf(context), body)).content[0].input.text;
  },
  structured: async (context) => {
    const output_config = { format: { type: 'json_schema', schema: ANSWER_SCHEMA } };
    const body = { model: context.model.name, max_tokens: 200, messages: user(), output_config };
    return JSON.parse(textOf(await askPlain(clientOf(context), body))).answer;
  },
  'tool-runner-threads-refused': runner(),
  'tool-runner-unthreaded': runner({ thread: false }),
  'tool-runner-tools-stream': runner({ stream: true }),
  'subagent-as-tool': subAgent,
  'two-at-once': async (context) => (await Promise.all([1, 2].map(() => loop()(context)))).join('|'),
  abort,
  'fault-timeout': (context) => loop()({ ...context, isImpatient: true }),
  'fault-500': loop(),
  fault: loop(),
  'fault-stream': loop({ ask: askByHelper }),
};
