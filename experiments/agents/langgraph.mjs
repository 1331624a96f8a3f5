/** Agent on LangGraph: a graph of the model and its tools, which ends with the answer. */
import { ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import { openLibrary, TOOLS, tasks } from './library.mjs';

export { tasks };

export default async function agent({ task, model, signal }) {
  const library = openLibrary(task);
  const tools = Object.entries(TOOLS).map(([name, { description, argument }]) =>
    tool(async (input) => JSON.stringify(library.tools[name](input)), {
      name,
      description,
      schema: z.object({ [argument]: z.string() }),
    }),
  );
  const chat = new ChatOpenAI({
    model: model.name,
    apiKey: model.apiKey,
    configuration: { baseURL: model.baseURL },
    streamUsage: false,
  }).bindTools(tools, { tool_choice: 'required' });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('ask', async ({ messages }) => ({ messages: [await chat.invoke(messages, { signal })] }))
    .addNode('act', async ({ messages }) => ({
      messages: await Promise.all(
        messages.at(-1).tool_calls.map(async (call) => {
          const found = tools.find(({ name }) => name === call.name);
          return new ToolMessage({ tool_call_id: call.id, content: await found.invoke(call.args) });
        }),
      ),
    }))
    .addEdge(START, 'ask')
    .addConditionalEdges('ask', ({ messages }) => (messages.at(-1).tool_calls?.length ? 'act' : END))
    .addConditionalEdges('act', () => (library.answer === undefined ? 'ask' : END))
    .compile();
  const system = 'You answer questions about things. Search, read the page, then answer.';
  const messages = [
    { role: 'system', content: system },
    { role: 'user', content: library.question },
  ];
  await graph.invoke({ messages }, { recursionLimit: 25, signal });
  return library.outcome();
}
