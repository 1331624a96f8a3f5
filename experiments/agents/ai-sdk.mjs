/** Agent on the AI SDK: asks a model with three tools until it has answered. Nothing in it knows who answers. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, hasToolCall, stepCountIs, tool } from 'ai';
import { z } from 'zod';
import { openLibrary, TOOLS, tasks } from './library.mjs';

export { tasks };

export default async function agent({ task, model, signal }) {
  const library = openLibrary(task);
  const provider = createOpenAICompatible({ name: 'longplay', baseURL: model.baseURL, apiKey: model.apiKey });
  const tools = Object.fromEntries(
    Object.entries(TOOLS).map(([name, { description, argument }]) => [
      name,
      tool({
        description,
        inputSchema: z.object({ [argument]: z.string() }),
        execute: async (input) => library.tools[name](input),
      }),
    ]),
  );
  const { steps } = await generateText({
    model: provider(model.name),
    system: 'You answer questions about things. Search, read the page, then answer.',
    prompt: library.question,
    tools,
    toolChoice: 'required',
    stopWhen: [hasToolCall('answer'), stepCountIs(12)],
    abortSignal: signal,
  });
  return { ...library.outcome(), metrics: { steps: steps.length } };
}
