/** Agent on the OpenAI SDK: an own loop over chat completions with three tools. */
import OpenAI from 'openai';
import { openLibrary, TOOLS, tasks } from './library.mjs';

export { tasks };

const tools = Object.entries(TOOLS).map(([name, { description, argument }]) => ({
  type: 'function',
  function: {
    name,
    description,
    parameters: { type: 'object', properties: { [argument]: { type: 'string' } }, required: [argument] },
  },
}));

export default async function agent({ task, model, signal }) {
  const library = openLibrary(task);
  const client = new OpenAI({ baseURL: model.baseURL, apiKey: model.apiKey });
  const messages = [
    { role: 'system', content: 'You answer questions about things. Search, read the page, then answer.' },
    { role: 'user', content: library.question },
  ];
  for (let step = 0; step < 12 && library.answer === undefined; step++) {
    const { choices } = await client.chat.completions.create({ model: model.name, messages, tools }, { signal });
    const { message } = choices[0];
    messages.push(message);
    if (!message.tool_calls?.length) break;
    for (const call of message.tool_calls) {
      const result = library.tools[call.function.name]?.(JSON.parse(call.function.arguments));
      messages.push({
        role: 'tool',
        tool_call_id: call.id,
        content: JSON.stringify(result ?? { error: 'no such tool' }),
      });
    }
  }
  return library.outcome();
}
