/**
 * Stand-in for a language model: a server of OpenAI's chat protocol that plays TextCraft by the planner, in ReAct's words. Now
 * and then it forgets the form, as small models do. It shows what a conversation looks like, and says nothing about any model.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createOracle } from '../envs/textcraft/index.ts';

interface Message {
  readonly role: string;
  readonly content: string;
}

/** Name under which it is listed. */
export const SCRIPTED_MODEL = 'scripted';

/** Serves it on the loopback address. */
export async function serveScriptedModel(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'GET') {
      response.end(JSON.stringify({ object: 'list', data: [{ id: SCRIPTED_MODEL, object: 'model' }] }));
      return;
    }
    let body = '';
    for await (const part of request) body += part;
    const content = answerTo((JSON.parse(body) as { messages: readonly Message[] }).messages);
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
    const usage = { prompt_tokens: Math.ceil(body.length / 4), completion_tokens: Math.ceil(content.length / 4) };
    response.end(JSON.stringify({ id: 'scripted', object: 'chat.completion', model: SCRIPTED_MODEL, choices, usage }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** Turn whose answer has no action in it. */
const FORGETS = 1;

/** Answer to a conversation: the next step of the plan that its opening leads to. */
function answerTo(messages: readonly Message[]): string {
  const opening = messages.find(({ role, content }) => role === 'user' && content.startsWith('Crafting commands:'));
  const answers = messages.slice(opening === undefined ? 0 : messages.indexOf(opening)).filter(isAnswer);
  const goal = /Goal: craft (.*)\./.exec(opening?.content ?? '')?.[1] ?? 'it';
  if (answers.length === FORGETS) return `To craft ${goal} I should look at what I have, and then collect the rest.`;
  const done = answers.filter(({ content }) => content.includes('Action:')).length;
  const action = planOf(opening?.content ?? '')[done] ?? 'inventory';
  const thought = action.startsWith('get ')
    ? `I need this for ${goal}, and it can be gathered.`
    : `I have everything that this takes.`;
  return `Thought: ${thought}\nAction: ${action}`;
}

function isAnswer({ role }: Message): boolean {
  return role === 'assistant';
}

/** Actions of the planner from an opening; none where it finds no way. */
function planOf(observation: string): string[] {
  const solve = createOracle()({ env: 'textcraft', index: 0, seed: 0 });
  const plan: string[] = [];
  let action = solve({ kind: 'first', observation });
  while (action !== undefined) {
    plan.push(action);
    action = solve({ kind: 'mid', observation: '', reward: 0 });
  }
  return plan;
}
