/** OpenAI SDK: own loops over chat completions and responses, its stream helpers, its tool runner. */
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { ANSWER, ANSWER_SCHEMA, QUESTION, SYSTEM, schemaOf, TOOLS, UNICODE } from './quiz.mjs';

const functions = Object.entries(TOOLS).map(([name, tool]) => ({
  name,
  description: tool.description,
  parameters: schemaOf(tool),
}));
const chatTools = functions.map((tool) => ({ type: 'function', function: tool }));
const responsesTools = functions.map((tool) => ({ type: 'function', ...tool, strict: true }));
const user = (content = QUESTION) => [{ role: 'user', content }];

function clientOf({ model, isImpatient }) {
  return new OpenAI({ baseURL: model.baseURL, apiKey: model.apiKey, ...(isImpatient ? { timeout: 1500 } : {}) });
}

/** Makes an agent that asks by `ask` until it has answered by the tool, or by a text alone. */
function chatLoop({ more = {}, ask = askPlain, question = QUESTION, endsByText = false } = {}) {
  return async (context) => {
    const { quiz, model } = context;
    const client = clientOf(context);
    const messages = [{ role: 'system', content: SYSTEM }, ...user(question)];
    for (let turn = 0; turn < 12; turn++) {
      const message = await ask(client, { model: model.name, messages, tools: chatTools, ...more });
      messages.push(message);
      if (!message.tool_calls?.length) return message.content ?? '';
      for (const { id, function: called } of message.tool_calls) {
        const input = JSON.parse(called.arguments);
        messages.push({ role: 'tool', tool_call_id: id, content: quiz.run(called.name, input) });
        if (called.name === 'answer' && !endsByText) return input.text;
      }
    }
    throw new Error('no answer in 12 turns');
  };
}

async function askPlain(client, body) {
  return (await client.chat.completions.create(body)).choices[0].message;
}

async function askByHelper(client, body) {
  return await client.chat.completions.stream(body).finalMessage();
}

/** Folds a stream by hand. */
async function askRaw(client, body) {
  const message = { role: 'assistant', content: '', tool_calls: [] };
  for await (const { choices } of await client.chat.completions.create({ ...body, stream: true })) {
    const delta = choices[0]?.delta;
    message.content += delta?.content ?? '';
    for (const { index, id, type, function: part } of delta?.tool_calls ?? []) {
      const call = (message.tool_calls[index] ??= { id, type, function: { name: '', arguments: '' } });
      call.function.name += part?.name ?? '';
      call.function.arguments += part?.arguments ?? '';
    }
  }
  if (message.tool_calls.length === 0) delete message.tool_calls;
  return message;
}

function responsesLoop({
  ask = (client, body) => client.responses.create(body),
  isStored = false,
  more = {},
  endsByTool = false,
} = {}) {
  return async (context) => {
    const { quiz, model } = context;
    const client = clientOf(context);
    const body = { model: model.name, instructions: SYSTEM, tools: responsesTools, ...more };
    if (isStored) body.store = true;
    let input = user();
    for (let turn = 0; turn < 12; turn++) {
      const response = await ask(client, { ...body, input });
      const calls = response.output.filter(({ type }) => type === 'function_call');
      if (calls.length === 0) return response.output_text;
      const results = calls.map(({ call_id, name, arguments: given }) => {
        return { type: 'function_call_output', call_id, output: quiz.run(name, JSON.parse(given)) };
      });
      const answer = calls.find(({ name }) => name === 'answer');
      if (answer && endsByTool) return JSON.parse(answer.arguments).text;
      if (isStored) body.previous_response_id = response.id;
      input = isStored ? results : [...input, ...response.output, ...results];
    }
    throw new Error('no answer in 12 turns');
  };
}

const runTools = (isStream) => async (context) => {
  const { quiz, model } = context;
  const runner = clientOf(context).chat.completions.runTools({
    model: model.name,
    messages: [{ role: 'system', content: SYSTEM }, ...user()],
    stream: isStream,
    tools: functions.map((tool) => ({
      type: 'function',
      function: { ...tool, parse: JSON.parse, function: (input) => quiz.run(tool.name, input) },
    })),
  });
  return await runner.finalContent();
};

async function abort(context) {
  const leaving = new AbortController();
  const body = { model: context.model.name, messages: user(), stream: true };
  const stream = await clientOf(context).chat.completions.create(body, { signal: leaving.signal });
  for await (const _ of stream) leaving.abort();
  return leaving.signal.aborted ? 'aborted' : 'whole';
}

const byText = { endsByText: true };
const required = { more: { tool_choice: 'required' } };

async function subAgent(context) {
  const { model } = context;
  const client = clientOf(context);
  const parameters = schemaOf({ argument: 'input' });
  const tools = [{ type: 'function', function: { name: 'researcher', description: 'Asks a researcher.', parameters } }];
  const messages = [{ role: 'system', content: 'Ask the researcher.' }, ...user()];
  for (;;) {
    const message = await askPlain(client, { model: model.name, messages, tools });
    messages.push(message);
    if (!message.tool_calls) return message.content;
    for (const { id, function: called } of message.tool_calls) {
      const content = await chatLoop({ ...byText, question: JSON.parse(called.arguments).input })(context);
      messages.push({ role: 'tool', tool_call_id: id, content });
    }
  }
}

export const scenarios = {
  'chat-plain': async (context) =>
    (await askPlain(clientOf(context), { model: context.model.name, messages: user() })).content,
  'chat-plain-stream': async (context) =>
    (await askRaw(clientOf(context), { model: context.model.name, messages: user() })).content,
  'chat-unicode': async (context) =>
    (await askPlain(clientOf(context), { model: context.model.name, messages: user(UNICODE) })).content,
  'chat-tools': chatLoop(),
  'chat-tools-stream': chatLoop({ ask: askByHelper }),
  'chat-raw-stream': chatLoop({ ...byText, ask: askRaw }),
  'chat-parallel': chatLoop({ more: { parallel_tool_calls: true } }),
  'chat-required': chatLoop(required),
  'chat-required-stream': chatLoop({ ...required, ask: askByHelper }),
  'chat-runtools': runTools(false),
  'chat-runtools-stream': runTools(true),
  'chat-forced-tool': async (context) => {
    const body = { model: context.model.name, messages: user(), tools: chatTools };
    const message = await askPlain(clientOf(context), {
      ...body,
      tool_choice: { type: 'function', function: { name: 'answer' } },
    });
    return JSON.parse(message.tool_calls[0].function.arguments).text;
  },
  'chat-structured': async (context) => {
    const body = { model: context.model.name, messages: user(), response_format: zodResponseFormat(ANSWER, 'answer') };
    return (await clientOf(context).chat.completions.parse(body)).choices[0].message.parsed.answer;
  },
  'chat-subagent-as-tool': subAgent,
  'chat-two-at-once': async (context) => (await Promise.all([1, 2].map(() => chatLoop(byText)(context)))).join('|'),
  'chat-abort': abort,
  'chat-fault-500': chatLoop(byText),
  'fault-timeout': (context) => chatLoop()({ ...context, isImpatient: true }),
  'responses-fault-500': responsesLoop(),
  'responses-plain': async (context) =>
    (await clientOf(context).responses.create({ model: context.model.name, input: QUESTION })).output_text,
  'responses-tools': responsesLoop(),
  'responses-tools-stream': responsesLoop({ ask: (client, body) => client.responses.stream(body).finalResponse() }),
  'responses-stored': responsesLoop({ isStored: true }),
  'responses-required': responsesLoop({ ...required, endsByTool: true }),
  'responses-structured': async (context) => {
    const format = { type: 'json_schema', name: 'answer', strict: true, schema: ANSWER_SCHEMA };
    const body = { model: context.model.name, input: QUESTION, text: { format } };
    return (await clientOf(context).responses.parse(body)).output_parsed.answer;
  },
  fault: chatLoop(),
};
