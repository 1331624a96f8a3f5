/** Mastra 0.24 over its own router of models: chat completions. */
import { Agent } from '@mastra/core/agent';
import { noopLogger } from '@mastra/core/logger';
import { createTool } from '@mastra/core/tools';
import { ANSWER, QUESTION, SYSTEM, TOOLS, UNICODE, zodOf } from './quiz.mjs';

function toolsOf(quiz) {
  const entries = Object.entries(TOOLS).map(([name, described]) => {
    const { description } = described;
    const execute = async ({ context: input }) => quiz.run(name, input);
    return [name, createTool({ id: name, description, inputSchema: zodOf(described), execute })];
  });
  return Object.fromEntries(entries);
}

function agentOf({ model: { baseURL, apiKey, name }, quiz }, more = {}) {
  const model = { id: `longplay/${name}`, url: baseURL, apiKey };
  const agent = new Agent({ name: 'agent', instructions: SYSTEM, model, tools: toolsOf(quiz), ...more });
  agent.__setLogger(noopLogger);
  return agent;
}

const generate =
  (options = {}, more = {}, question = QUESTION) =>
  async (context) => {
    const { text, object, error } = await agentOf(context, more).generate(question, { maxSteps: 10, ...options });
    if (error) throw error;
    return object?.answer ?? text;
  };

const stream =
  (options = {}, more = {}) =>
  async (context) => {
    const output = await agentOf(context, more).stream(QUESTION, { maxSteps: 10, ...options });
    let text = '';
    for await (const part of output.textStream) text += part;
    return text;
  };

const plain = { instructions: 'Answer.', tools: {} };

export const scenarios = {
  plain: generate({}, plain),
  'plain-stream': stream({}, plain),
  unicode: generate({}, plain, UNICODE),
  tools: generate(),
  'tools-stream': stream(),
  'parallel-stream': stream(),
  'reasoning-stream': stream(),
  structured: generate({ structuredOutput: { schema: ANSWER } }, plain),
  'structured-tools': generate({ structuredOutput: { schema: ANSWER } }),
  required: (context) => {
    const stopWhen = () => context.quiz.log.includes('answer');
    return generate({ toolChoice: 'required', stopWhen })(context);
  },
  fault: generate(),
};
