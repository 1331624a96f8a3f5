/** An OpenEnv server on loopback that counts actions, and misbehaves as `faultOf` asks for each message. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { SLOW_MS } from './misbehaving-server.ts';

export const SOCKET_FAULTS = [
  'slow', // answers after `SLOW_MS`
  'reset', // breaks the connection off instead of answering
  'close', // closes it properly
  'not-json',
  'binary',
  'other', // JSON of another shape
  'no-object', // JSON, but no object
  'wrong', // the answer of another turn
  'twice', // the answer, and once more
  'silence', // never answers
  'error', // a message that reports an error
  'full', // a message that the server is full
  'long', // an answer above every bound
] as const;
export type SocketFault = (typeof SOCKET_FAULTS)[number];

interface Message {
  readonly type: string;
  readonly data: Record<string, unknown>;
}

export interface ToyOptions {
  /** Fault in the answer to the n-th message over all connections, counted from 0. */
  readonly faultOf?: (n: number, message: Message) => SocketFault | undefined;
  /** `GET /schema` and `GET /metadata`; a missing one is a 404. */
  readonly pages?: Readonly<Record<string, unknown>>;
  /** Answer to `reset`, in the place of the toy's own. */
  readonly reset?: object;
  /** Answer to the step, in the place of the toy's own. */
  readonly step?: (action: Record<string, unknown>) => object;
  /** Sent to each connection at once. */
  readonly greeting?: object;
  /** Number of connections after which each answers in another way. */
  readonly forgetsAfter?: number;
}

export interface ToyOpenEnv {
  readonly url: string;
  /** Actions that each connection took, in the order of the connections. */
  readonly taken: Record<string, unknown>[][];
  /** Data of the resets. */
  readonly resets: unknown[];
  close(): Promise<void>;
}

/** Starts the server; its WebSocket is at `/ws` and at `/openenv/toy/ws`. */
export async function toyOpenEnv(options: ToyOptions = {}): Promise<ToyOpenEnv> {
  const { faultOf = () => undefined, pages = {}, greeting } = options;
  const taken: Record<string, unknown>[][] = [];
  const resets: unknown[] = [];
  let received = 0;
  const http = createServer((request, response) => {
    const page = pages[request.url ?? ''];
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(typeof page === 'string' ? page : JSON.stringify(page ?? { detail: 'Not Found' }));
  });
  const sockets = new WebSocketServer({ server: http });
  sockets.on('connection', (socket: WebSocket) => {
    const own: Record<string, unknown>[] = [];
    taken.push(own);
    const connection = taken.length;
    if (greeting) {
      socket.send(JSON.stringify(greeting));
      socket.close(1013);
    }
    socket.on('message', (raw) => {
      const message = JSON.parse(raw.toString()) as Message;
      if (message.type === 'close') return socket.close();
      const fault = faultOf(received++, message);
      if (message.type === 'reset') resets.push(message.data);
      else own.push(message.data);
      const forgets = options.forgetsAfter !== undefined && connection > options.forgetsAfter ? ' again' : '';
      const answer = (turn: number) => ({
        type: 'observation',
        data: {
          observation: {
            text: `${turn === 0 ? 'begin' : `step ${turn}`}${forgets}`,
            ...{ actions: ['a', 'b'], turn, success: null, metadata: { longplay: { partial: false } } },
          },
          reward: turn === 0 ? null : 0.25,
          done: false,
        },
      });
      const given = message.type === 'reset' ? options.reset : options.step?.(message.data);
      const good = JSON.stringify(given ?? answer(own.length));
      switch (fault) {
        case 'slow':
          setTimeout(() => socket.send(good), SLOW_MS);
          return;
        case 'reset':
          return socket.terminate();
        case 'close':
          return socket.close(1011, 'going down');
        case 'not-json':
          return socket.send('<html>');
        case 'binary':
          return socket.send(Buffer.from(good));
        case 'other':
          return socket.send('{"type":"observation","data":{"observation":"text"}}');
        case 'no-object':
          return socket.send('[null]');
        case 'wrong':
          return socket.send(JSON.stringify(answer(17)));
        case 'silence':
          return;
        case 'error':
          return socket.send('{"type":"error","data":{"message":"boom","code":"EXECUTION_ERROR"}}');
        case 'full':
          return socket.send('{"type":"error","data":{"message":"no room","code":"CAPACITY_REACHED"}}');
        case 'long':
          return socket.send(JSON.stringify({ ...answer(own.length), more: 'x'.repeat(17 * 2 ** 20) }));
        case 'twice':
          socket.send(good);
      }
      socket.send(good);
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    taken,
    resets,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets.clients) socket.terminate();
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}
