/**
 * The yardstick of the environment server: an empty `node:http` server in which every request goes to another thread
 * and back, and is answered with a constant of the size of a step's answer. Run as a program it prints its address.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

const ANSWER = JSON.stringify({ observation: 'Inventory: You are not carrying anything.', reward: 0, done: false });

if (!isMainThread) {
  parentPort!.on('message', (id: number) => parentPort!.postMessage(id));
} else {
  const worker = new Worker(new URL(import.meta.url));
  const waiting = new Map<number, () => void>();
  let next = 0;
  worker.on('message', (id: number) => {
    waiting.get(id)!();
    waiting.delete(id);
  });
  const server = createServer((request, response) => {
    request.on('data', () => {});
    request.on('end', () => {
      const id = next++;
      waiting.set(id, () => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length });
        response.end(ANSWER);
      });
      worker.postMessage(id);
    });
  });
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
}
