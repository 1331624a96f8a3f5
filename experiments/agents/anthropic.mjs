/** Agent on the Anthropic SDK: its tool runner calls the tools and asks on until the model has answered. */
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { openLibrary, TOOLS, tasks } from './library.mjs';

export { tasks };

export default async function agent({ task, model, signal }) {
  const library = openLibrary(task);
  const client = new Anthropic({ baseURL: model.root, apiKey: model.apiKey });
  const tools = Object.entries(TOOLS).map(([name, { description, argument }]) =>
    betaTool({
      name,
      description,
      inputSchema: { type: 'object', properties: { [argument]: { type: 'string' } }, required: [argument] },
      run: (input) => JSON.stringify(library.tools[name](input)),
    }),
  );
  const runner = client.beta.messages.toolRunner(
    {
      model: model.name,
      max_tokens: 512,
      system: 'You answer questions about things. Search, read the page, then answer.',
      messages: [{ role: 'user', content: library.question }],
      tools,
      tool_choice: { type: 'any' },
      max_iterations: 12,
    },
    { signal },
  );
  for await (const message of runner) {
    if (message.content.some((block) => block.type === 'tool_use' && block.name === 'answer')) {
      await runner.generateToolResponse(); // its tools run before the next call, which is not made
      break;
    }
  }
  return library.outcome();
}
