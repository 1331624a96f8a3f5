/**
 * A chat completion server that answers at once, for measuring its clients. Run as a program it prints its address.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const content = 'Thought:\nI look at what I hold.\n\nAction:\ninventory';
const ANSWER = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 500, completion_tokens: 20, total_tokens: 520 },
});
const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'at-once' }] });

const server = createServer((request, response) => {
  request.on('data', () => {});
  request.on('end', () => {
    const body = request.url?.endsWith('/models') ? MODELS : ANSWER;
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
