/**
 * An OpenEnv server on loopback that answers as its session does, or misbehaves: `faultOf` names for each message what
 * goes wrong with it.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

export type OpenEnvFault =
  | 'ok'
  | 'slow' // answers after 100 ms
  | 'closed' // closes the connection instead of answering
  | 'cut' // destroys it, after the action was taken
  | 'error' // an error frame: EXECUTION_ERROR
  | 'full' // an error frame: CAPACITY_REACHED
  | 'invalid' // an error frame: VALIDATION_ERROR
  | 'not-json'
  | 'binary'
  | 'not-websocket' // bytes that are no frame
  | 'other-type' // the answer to another question
  | 'twice' // a second answer, unasked
  | 'no-observation'
  | 'text-reward'
  | 'oversized'
  | 'silence'; // never answers

export interface Message {
  readonly type: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Session of the server: one a connection. */
export interface ServedSession {
  /** Answers a message with the `data` of an observation. */
  answer(message: Message): object;
}

export interface OpenEnvServer {
  readonly url: string;
  /** Messages that reached it. */
  readonly log: readonly Message[];
  /** Authorization headers of its connections and requests. */
  readonly authorizations: readonly (string | undefined)[];
  /** Connections open now. */
  readonly connections: number;
  close(): Promise<void>;
}

export async function openEnvServer(options: {
  readonly pages: Readonly<Record<string, unknown>>;
  session(): ServedSession;
  faultOf?(n: number, message: Message): OpenEnvFault;
}): Promise<OpenEnvServer> {
  const log: Message[] = [];
  const authorizations: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    authorizations.push(request.headers.authorization);
    const page = options.pages[request.url ?? ''];
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(typeof page === 'string' ? page : JSON.stringify(page ?? {}));
  });
  const sockets = new WebSocketServer({ server, path: '/ws' });
  sockets.on('connection', (socket, request) => {
    authorizations.push(request.headers.authorization);
    const session = options.session();
    socket.on('error', () => {});
    socket.on('message', (raw) => {
      const message = JSON.parse(raw.toString()) as Message;
      if (message.type === 'close') {
        socket.close();
        return;
      }
      const fault = options.faultOf?.(log.push(message) - 1, message) ?? 'ok';
      misbehave(socket, fault, () => session.answer(message));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log,
    authorizations,
    get connections() {
      return sockets.clients.size;
    },
    close: () =>
      new Promise((resolve) => {
        for (const client of sockets.clients) client.terminate();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function misbehave(socket: WebSocket, fault: OpenEnvFault, answer: () => object): void {
  const send = (value: object) => socket.send(JSON.stringify(value));
  const refuse = (code: string) => send({ type: 'error', data: { code, message: `it is ${code}` } });
  const good = () => send({ type: 'observation', data: answer() });
  switch (fault) {
    case 'ok':
      good();
      break;
    case 'slow':
      setTimeout(good, 100);
      break;
    case 'closed':
      socket.close(1011, 'restarting');
      break;
    case 'cut':
      answer();
      socket.terminate();
      break;
    case 'error':
      refuse('EXECUTION_ERROR');
      break;
    case 'full':
      refuse('CAPACITY_REACHED');
      break;
    case 'invalid':
      refuse('VALIDATION_ERROR');
      break;
    case 'not-json':
      socket.send('<html>upstream error</html>');
      break;
    case 'binary':
      socket.send(Buffer.from([1, 2, 3]));
      break;
    case 'not-websocket':
      (socket as unknown as { readonly _socket: NodeJS.WritableStream })._socket.write(Buffer.alloc(64, 0xff));
      break;
    case 'other-type':
      send({ type: 'state', data: answer() });
      break;
    case 'twice': {
      const data = answer();
      send({ type: 'observation', data });
      send({ type: 'observation', data });
      break;
    }
    case 'no-observation':
      send({ type: 'observation', data: { ...answer(), observation: [] } });
      break;
    case 'text-reward':
      send({ type: 'observation', data: { ...answer(), reward: '1e999' } });
      break;
    case 'oversized':
      socket.send('x'.repeat(17 * 2 ** 20));
      break;
    case 'silence':
      break;
  }
}
