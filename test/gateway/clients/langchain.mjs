/** LangChain and LangGraph over any of its chat models: ready agents, graphs by hand, middleware. */
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { Annotation, END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import {
  ClearToolUsesEdit,
  contextEditingMiddleware,
  createAgent,
  modelCallLimitMiddleware,
  summarizationMiddleware,
  toolStrategy,
} from 'langchain';
import { z } from 'zod';
import { ANSWER, QUESTION, SYSTEM, TOOLS, UNICODE, zodOf } from './quiz.mjs';

function toolsOf(quiz) {
  return Object.entries(TOOLS).map(([name, described]) =>
    tool((input) => quiz.run(name, input), { name, description: described.description, schema: zodOf(described) }),
  );
}

const textOf = ({ content }) =>
  typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('');

const lastText = ({ messages }) => textOf(messages.at(-1));

const input = { messages: [{ role: 'user', content: QUESTION }] };

/** Streams the messages of an agent. @returns the text of the last one */
async function streamAll(agent) {
  let last = { id: undefined, text: '' };
  for await (const [chunk, { langgraph_node: node }] of await agent.stream(input, { streamMode: 'messages' })) {
    if (node === 'tools') last = { text: '' };
    else last = { text: last.text + textOf(chunk) };
  }
  return last.text;
}

/** Scenarios over a model. @param modelOf makes the model of a context; @param required value that forces a tool */
export function scenariosOf(modelOf, required) {
  const react = (context) => createReactAgent({ llm: modelOf(context), tools: toolsOf(context.quiz), prompt: SYSTEM });
  const agent = (more = () => ({})) => {
    return async (context) => {
      const model = modelOf(context);
      const settings = { model, tools: toolsOf(context.quiz), systemPrompt: SYSTEM, ...more(model) };
      return lastText(await createAgent(settings).invoke(input, { recursionLimit: 60 }));
    };
  };
  /** Graph by hand of the model and its tools. @param choice its choice of tools; it ends with the answer then */
  const graph = (choice) => {
    return async (context) => {
      const tools = toolsOf(context.quiz);
      const model = modelOf(context).bindTools(tools, choice ? { tool_choice: choice } : {});
      let answer;
      const built = new StateGraph(MessagesAnnotation)
        .addNode('ask', async ({ messages }) => ({
          messages: [await model.invoke([new SystemMessage(SYSTEM), ...messages])],
        }))
        .addNode('act', async ({ messages }) => ({
          messages: await Promise.all(
            messages.at(-1).tool_calls.map(async ({ id, name, args }) => {
              if (choice && name === 'answer') answer = args.text;
              const content = await tools.find((one) => one.name === name).invoke(args);
              return new ToolMessage({ tool_call_id: id, name, content });
            }),
          ),
        }))
        .addEdge(START, 'ask')
        .addConditionalEdges('ask', ({ messages }) => (messages.at(-1).tool_calls?.length ? 'act' : END))
        .addConditionalEdges('act', () => (answer === undefined ? 'ask' : END))
        .compile();
      const ended = await built.invoke(input);
      return answer ?? lastText(ended);
    };
  };
  const structured = (settings) => async (context) => {
    return (await modelOf(context).withStructuredOutput(ANSWER, settings).invoke(QUESTION)).answer;
  };
  return {
    plain: async (context) => textOf(await modelOf(context).invoke(QUESTION)),
    'plain-stream': async (context) => {
      let text = '';
      for await (const chunk of await modelOf(context).stream(QUESTION)) text += textOf(chunk);
      return text;
    },
    unicode: async (context) => textOf(await modelOf(context).invoke(UNICODE)),
    react: async (context) => lastText(await react(context).invoke(input)),
    'react-stream': (context) => streamAll(react(context)),
    'hand-graph': graph(),
    'create-agent': agent(),
    'create-agent-tools': agent(),
    'create-agent-structured': async (context) => {
      const settings = { model: modelOf(context), tools: toolsOf(context.quiz), systemPrompt: SYSTEM };
      const made = createAgent({ ...settings, responseFormat: toolStrategy(ANSWER) });
      return (await made.invoke(input)).structuredResponse.answer;
    },
    'model-call-limit': agent(() => ({ middleware: [modelCallLimitMiddleware({ runLimit: 10 })] })),
    'compaction-trim-context': agent(() => {
      const edit = new ClearToolUsesEdit({ trigger: { tokens: 1000 }, keep: { messages: 1 } });
      return { middleware: [contextEditingMiddleware({ edits: [edit], tokenCountMethod: 'approx' })] };
    }),
    'compaction-summarize': agent((model) => {
      const settings = { model, trigger: { tokens: 1000 }, keep: { messages: 2 } };
      return { middleware: [summarizationMiddleware(settings)] };
    }),
    reasoning: async (context) => lastText(await react(context).invoke(input)),
    parallel: async (context) => lastText(await react(context).invoke(input)),
    'parallel-stream': (context) => streamAll(react(context)),
    required: graph(required),
    structured: structured({ name: 'answer_format' }),
    'structured-function': structured({ name: 'extract_answer', method: 'functionCalling' }),
    'subagent-tool': async (context) => {
      const researcher = tool(
        async ({ input, question = input }) => lastText(await react(context).invoke({ messages: question })),
        {
          name: 'researcher',
          description: 'Asks a researcher.',
          schema: z.object({ question: z.string().optional(), input: z.string().optional() }),
        },
      );
      const lead = createReactAgent({ llm: modelOf(context), tools: [researcher], prompt: 'Ask the researcher.' });
      return lastText(await lead.invoke(input));
    },
    'two-at-once': async (context) =>
      (await Promise.all([1, 2].map(() => react(context).invoke(input)))).map(lastText).join('|'),
    branches: async (context) => {
      const State = Annotation.Root({
        drafts: Annotation({ reducer: (a, b) => [...a, ...b], default: () => [] }),
        best: Annotation(),
      });
      const model = modelOf(context);
      const draft = async () => {
        return { drafts: [textOf(await model.invoke([new SystemMessage('Answer.'), new HumanMessage(QUESTION)]))] };
      };
      const built = new StateGraph(State)
        .addNode('one', draft)
        .addNode('other', draft)
        .addNode('pick', async ({ drafts }) => ({
          best: textOf(await model.invoke(`Pick the best:\n${drafts.join('\n')}`)),
        }))
        .addEdge(START, 'one')
        .addEdge(START, 'other')
        .addEdge(['one', 'other'], 'pick')
        .addEdge('pick', END)
        .compile();
      return (await built.invoke({})).best;
    },
    abort: async (context) => {
      const leaving = new AbortController();
      try {
        for await (const _ of await modelOf(context).stream(QUESTION, { signal: leaving.signal })) leaving.abort();
      } catch {}
      return leaving.signal.aborted ? 'aborted' : 'whole';
    },
    'fault-500': async (context) => lastText(await react(context).invoke(input)),
    'fault-timeout': async (context) => lastText(await react({ ...context, isImpatient: true }).invoke(input)),
    fault: async (context) => lastText(await react(context).invoke(input)),
  };
}
