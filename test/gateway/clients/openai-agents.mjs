/** OpenAI Agents SDK, over chat completions and over responses. */
import {
  Agent,
  MemorySession,
  OpenAIProvider,
  OpenAIResponsesCompactionSession,
  Runner,
  setTracingDisabled,
  tool,
} from '@openai/agents';
import OpenAI from 'openai';
import { ANSWER, QUESTION, SYSTEM, TOOLS, UNICODE, zodOf } from './quiz.mjs';

setTracingDisabled(true);

/** Scenarios of an API. */
function scenariosOf(useResponses) {
  const runnerOf = ({ model }) => {
    const { baseURL, apiKey } = model;
    return new Runner({ modelProvider: new OpenAIProvider({ baseURL, apiKey, useResponses }), tracingDisabled: true });
  };
  const agentOf = ({ model, quiz }, { endsByTool, ...more } = {}) => {
    const tools = Object.entries(TOOLS).map(([name, described]) =>
      tool({
        name,
        description: described.description,
        parameters: zodOf(described),
        execute: (input) => {
          const result = quiz.run(name, input);
          return endsByTool && name === 'answer' ? input.text : result;
        },
      }),
    );
    const toolUseBehavior = endsByTool ? { stopAtToolNames: ['answer'] } : 'run_llm_again';
    return new Agent({ name: 'agent', model: model.name, instructions: SYSTEM, tools, toolUseBehavior, ...more });
  };
  const textOf = ({ finalOutput }) => (typeof finalOutput === 'object' ? finalOutput.answer : finalOutput);
  const loop = (more = {}, options = {}) => {
    return async (context) => textOf(await runnerOf(context).run(agentOf(context, more), QUESTION, options));
  };
  const stream = (more = {}) => {
    return async (context) => {
      const result = await runnerOf(context).run(agentOf(context, more), QUESTION, { stream: true });
      for await (const _ of result);
      await result.completed;
      return textOf(result);
    };
  };
  const plain = { instructions: undefined, tools: [] };
  const twoRuns = (optionsOf) => async (context) => {
    const runner = runnerOf(context);
    const agent = agentOf(context);
    const options = optionsOf(context);
    const first = await runner.run(agent, QUESTION, options);
    const more = options.session ? {} : { previousResponseId: first.lastResponseId };
    return textOf(await runner.run(agent, 'Say it again.', { ...options, ...more }));
  };
  return {
    plain: loop(plain),
    'plain-stream': stream(plain),
    unicode: async (context) => textOf(await runnerOf(context).run(agentOf(context, plain), UNICODE)),
    tools: loop(),
    'tools-stream': stream(),
    parallel: loop(),
    'parallel-stream': stream(),
    'required-always': loop({
      modelSettings: { toolChoice: 'required' },
      resetToolChoice: false,
      endsByTool: true,
    }),
    'stop-at-tool': loop({ endsByTool: true }),
    structured: loop({ ...plain, outputType: ANSWER }),
    'subagent-as-tool': async (context) => {
      const researcher = tool({
        name: 'researcher',
        description: 'Asks a researcher.',
        parameters: zodOf({ argument: 'input' }),
        execute: async ({ input }) => textOf(await runnerOf(context).run(agentOf(context), input)),
      });
      return loop({ instructions: 'Ask the researcher.', tools: [researcher] })(context);
    },
    'two-runs-session': twoRuns(() => ({ session: new MemorySession() })),
    'two-at-once': async (context) => (await Promise.all([loop()(context), stream()(context)])).join('|'),
    'compaction-filter': loop(
      {},
      {
        callModelInputFilter: ({ modelData: { input, instructions } }) => {
          const summary = { role: 'user', content: 'Summary so far: d2 says that Canberra is the capital.' };
          return { instructions, input: input.length > 8 ? [input[0], summary, ...input.slice(-2)] : input };
        },
      },
    ),
    abort: async (context) => {
      const leaving = new AbortController();
      const options = { stream: true, signal: leaving.signal };
      const result = await runnerOf(context).run(agentOf(context, plain), QUESTION, options);
      for await (const { type } of result) if (type === 'raw_model_stream_event') leaving.abort();
      await result.completed.catch(() => {});
      return leaving.signal.aborted ? 'aborted' : 'whole';
    },
    'fault-500': loop(),
    'fault-empty': loop({}, { maxTurns: 3 }),
    fault: loop(),
    ...(useResponses
      ? {
          'previous-id': twoRuns(() => ({})),
          'compact-endpoint': (context) => {
            const { baseURL, apiKey } = context.model;
            const client = new OpenAI({ baseURL, apiKey });
            const session = new OpenAIResponsesCompactionSession({ client, model: 'gpt-5' });
            return loop({}, { session })(context);
          },
        }
      : { required: loop({ modelSettings: { toolChoice: 'required' } }) }),
  };
}

export const scenarios = Object.fromEntries(
  ['chat', 'responses'].flatMap((api) =>
    Object.entries(scenariosOf(api === 'responses')).map(([name, play]) => [`${api}-${name}`, play]),
  ),
);
