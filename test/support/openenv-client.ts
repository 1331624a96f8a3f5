/** OpenEnv client for tests: shows messages as they are, errors among them. */
import { WebSocket } from 'ws';

export interface Received {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly data: any;
}

/** Session of a world on an env server. */
export class OpenEnvClient {
  readonly socket: WebSocket;
  readonly closed: Promise<void>;
  /** Messages that nobody has waited for. */
  readonly #received: Received[] = [];
  #waiting: ((message: Received) => void) | undefined;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data) => {
      const message = JSON.parse(data.toString()) as Received;
      const waiting = this.#waiting;
      this.#waiting = undefined;
      if (waiting) waiting(message);
      else this.#received.push(message);
    });
    this.closed = new Promise((resolve) => void socket.once('close', () => resolve()));
  }

  /** Connects. @param url of the env server */
  static connect(url: string, world: string, headers: Record<string, string> = {}): Promise<OpenEnvClient> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/openenv/${world}/ws`, { headers });
      socket.once('error', reject);
      socket.once('open', () => {
        socket.off('error', reject).on('error', () => {});
        resolve(new OpenEnvClient(socket));
      });
    });
  }

  /** Sends a message (a text as it is) and waits for the next one. */
  ask(message: object | string): Promise<Received> {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
    return this.next();
  }

  /** Waits for the next message. */
  next(): Promise<Received> {
    const received = this.#received.shift();
    if (received) return Promise.resolve(received);
    return new Promise((resolve, reject) => {
      this.#waiting = resolve;
      void this.closed.then(() => reject(new Error('closed')));
    });
  }

  reset(data: object = {}): Promise<Received> {
    return this.ask({ type: 'reset', data });
  }

  step(action: string): Promise<Received> {
    return this.ask({ type: 'step', data: { action } });
  }

  close(): Promise<void> {
    this.socket.close();
    return this.closed;
  }
}
