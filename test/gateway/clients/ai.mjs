/** AI SDK over any of its providers: `generateText`, `streamText`, agents, structured answers. */
import { generateObject, generateText, Output, pruneMessages, stepCountIs, streamText, ToolLoopAgent, tool } from 'ai';
import { ANSWER, QUESTION, SYSTEM, TOOLS, UNICODE, zodOf } from './quiz.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

function toolsOf(quiz) {
  const entries = Object.entries(TOOLS).map(([name, described]) => {
    const { description } = described;
    return [
      name,
      tool({ description, inputSchema: zodOf(described), execute: async (input) => quiz.run(name, input) }),
    ];
  });
  return Object.fromEntries(entries);
}

/** Streams to the end. @throws what the stream reports */
async function streamAll(settings) {
  let failure;
  const result = streamText({
    ...settings,
    onError: ({ error }) => {
      failure = error;
    },
  });
  await result.consumeStream();
  if (failure) throw failure;
  return { text: await result.text, output: settings.output ? await result.output : undefined };
}

/** Scenarios over a provider. @param modelOf makes the model of a context */
export function scenariosOf(modelOf) {
  const loop = (more = {}, generate = generateText) => {
    return async (context) => {
      const settings = { model: modelOf(context), system: SYSTEM, prompt: QUESTION, tools: toolsOf(context.quiz) };
      return (await generate({ ...settings, stopWhen: stepCountIs(10), ...more })).text;
    };
  };
  const plain = (more = {}, generate = generateText) => {
    return async (context) => (await generate({ model: modelOf(context), prompt: QUESTION, ...more })).text;
  };
  const structured = (more = {}, generate = generateText) => {
    return async (context) => {
      const settings = { model: modelOf(context), prompt: QUESTION, output: Output.object({ schema: ANSWER }) };
      return (await generate({ ...settings, ...more })).output.answer;
    };
  };
  /** Answers by the tool `answer` alone, which ends it. */
  const forced = (toolChoice, generate = generateText) => {
    return async (context) => {
      const { quiz } = context;
      let answer;
      const tools = toolsOf(quiz);
      const { execute } = tools.answer;
      tools.answer.execute = (input) => {
        answer = input.text;
        return execute(input);
      };
      const stopWhen = [() => answer !== undefined, stepCountIs(10)];
      await generate({ model: modelOf(context), prompt: QUESTION, tools, toolChoice, stopWhen });
      return answer;
    };
  };
  const scenarios = {
    plain: plain(),
    'plain-stream': plain({}, streamAll),
    unicode: plain({ prompt: UNICODE }),
    tools: loop(),
    'tools-stream': loop({}, streamAll),
    'tools-params': loop({
      temperature: 0.5,
      topP: 0.9,
      topK: 5,
      frequencyPenalty: 0.1,
      seed: 7,
      maxOutputTokens: 500,
    }),
    reasoning: loop(),
    'reasoning-stream': loop({}, streamAll),
    parallel: loop(),
    'parallel-stream': loop({}, streamAll),
    required: forced('required'),
    'required-stream': forced('required', streamAll),
    'forced-tool': forced({ type: 'tool', toolName: 'answer' }),
    'loop-agent': async (context) => {
      const agent = new ToolLoopAgent({ model: modelOf(context), instructions: SYSTEM, tools: toolsOf(context.quiz) });
      return (await agent.generate({ prompt: QUESTION })).text;
    },
    prune: loop({
      prepareStep: ({ messages }) => ({
        messages: pruneMessages({ messages, toolCalls: 'before-last-2-messages', emptyMessages: 'remove' }),
      }),
    }),
    'generate-object': async (context) => {
      return (await generateObject({ model: modelOf(context), prompt: QUESTION, schema: ANSWER })).object.answer;
    },
    structured: structured(),
    'structured-stream': structured({}, streamAll),
    'structured-tools': async (context) => {
      const more = { system: SYSTEM, tools: toolsOf(context.quiz), stopWhen: stepCountIs(10) };
      return structured(more)(context);
    },
    'subagent-as-tool': async (context) => {
      const researcher = tool({
        description: 'Asks a researcher.',
        inputSchema: zodOf({ argument: 'input' }),
        execute: ({ input }) => loop({ prompt: input })(context),
      });
      const more = {
        system: 'Ask the researcher.',
        prompt: QUESTION,
        tools: { researcher },
        stopWhen: stepCountIs(10),
      };
      return (await generateText({ model: modelOf(context), ...more })).text;
    },
    'two-at-once': async (context) => {
      return (await Promise.all(Array.from({ length: context.width ?? 2 }, () => loop()(context)))).join('|');
    },
    abort: async (context) => {
      const leaving = new AbortController();
      const { fullStream } = streamText({
        model: modelOf(context),
        prompt: QUESTION,
        abortSignal: leaving.signal,
        onError: () => {},
      });
      for await (const part of fullStream) if (part.type === 'text-start') leaving.abort();
      return leaving.signal.aborted ? 'aborted' : 'whole';
    },
    'fault-timeout': (context) => loop({ abortSignal: AbortSignal.timeout(2000) })(context),
    fault: loop(),
    'fault-stream': loop({}, streamAll),
  };
  return scenarios;
}
