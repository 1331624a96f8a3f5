/** Tools of an MCP server, in memory, with the OpenAI SDK. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import OpenAI from 'openai';
import { QUESTION, SYSTEM, TOOLS, zodOf } from './quiz.mjs';

/** Opens a server with the tools, and a client of it. */
async function connect(quiz) {
  const server = new McpServer({ name: 'quiz', version: '1.0.0' });
  for (const [name, tool] of Object.entries(TOOLS)) {
    const settings = { description: tool.description, inputSchema: zodOf(tool).shape };
    server.registerTool(name, settings, (input) => ({ content: [{ type: 'text', text: quiz.run(name, input) }] }));
  }
  const client = new Client({ name: 'agent', version: '1.0.0' });
  const [one, other] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(one), client.connect(other)]);
  return client;
}

const loop =
  (more = {}, endsByTool = false) =>
  async ({ quiz, model }) => {
    const mcp = await connect(quiz);
    const openai = new OpenAI({ baseURL: model.baseURL, apiKey: model.apiKey });
    const tools = (await mcp.listTools()).tools.map(({ name, description, inputSchema }) => {
      return { type: 'function', function: { name, description, parameters: inputSchema } };
    });
    const messages = [
      { role: 'developer', content: SYSTEM },
      { role: 'user', content: [{ type: 'text', text: QUESTION }] },
    ];
    try {
      for (let turn = 0; turn < 12; turn++) {
        const { choices } = await openai.chat.completions.create({ model: model.name, messages, tools, ...more });
        const { message } = choices[0];
        messages.push(message);
        if (!message.tool_calls?.length) return message.content;
        for (const { id, function: called } of message.tool_calls) {
          const input = JSON.parse(called.arguments);
          const { content } = await mcp.callTool({ name: called.name, arguments: input });
          messages.push({ role: 'tool', tool_call_id: id, content });
          if (endsByTool && called.name === 'answer') return input.text;
        }
      }
    } finally {
      await mcp.close();
    }
    throw new Error('no answer in 12 turns');
  };

export const scenarios = {
  tools: loop(),
  parallel: loop({ parallel_tool_calls: true }),
  required: loop({ tool_choice: 'required' }, true),
  'fault-500': loop(),
};
