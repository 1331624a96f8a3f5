/**
 * Pull of messages from a consumer of NATS JetStream, over one inbox for as long as the connection lives. The client's own
 * `next` and `fetch` subscribe anew for every call and watch it with timers, which costs more than the messages do.
 *
 * A pull is one request. Whatever is stored comes at once; where nothing is, the first message within the wait. The server
 * reports the end of a pull, so nothing is in flight afterwards. A pull without an answer is cancelled together with its
 * inbox: late messages reach nobody, and the server delivers them again by its own rules.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';

/** Statuses of an empty message that end a pull: no messages, or its wait is over. Others but the heartbeat refuse it. */
const ENDS: ReadonlySet<number> = new Set([404, 408]);
const HEARTBEAT = 100;
const NS_PER_MS = 1_000_000;
const ACK = '+ACK';
const NACK = '-NAK';
const IN_PROGRESS = '+WPI';

/** Message of a consumer. */
export interface PulledMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Number of times that it was delivered, this one included. */
  readonly delivery: number;
  /** Position in its stream. */
  readonly position: number;
  /** Number of this delivery among all of its consumer. */
  readonly number: number;
  ack(): void;
  nack(): void;
  /** Extends the time in which it has to be acknowledged. */
  extendLease(): void;
}

export interface PullOptions {
  readonly connection: Pick<NatsConnection, 'publish' | 'subscribe'>;
  readonly stream: string;
  readonly consumer: string;
  /** Names an inbox that this connection may subscribe to. */
  readonly newInbox: () => string;
  /** Milliseconds that the server may be silent beyond a pull's own wait. */
  readonly silenceMs: number;
}

/** Request that is being answered. */
interface OpenRequest {
  readonly max: number;
  readonly found: PulledMessage[];
  readonly end: (error?: Error) => void;
}

export class Pull {
  readonly #options: PullOptions;
  #inbox: { readonly name: string; readonly subscription: Subscription } | undefined;
  #open: OpenRequest | undefined;

  constructor(options: PullOptions) {
    this.#options = options;
  }

  /**
   * Fetches messages. One call at a time.
   * @param max messages, ≥ 1
   * @param waitMs milliseconds to wait for the first
   * @throws {Error} where the server does not answer or refuses, and whatever the client throws
   */
  fetch(max: number, waitMs: number): Promise<readonly PulledMessage[]> {
    const { connection, stream, consumer, silenceMs } = this.#options;
    return new Promise((resolve, reject) => {
      const found: PulledMessage[] = [];
      const timer = setTimeout(() => this.cancel('it did not answer a pull'), waitMs + silenceMs);
      const end = (error?: Error) => {
        clearTimeout(timer);
        this.#open = undefined;
        if (error) {
          this.#unsubscribe();
          reject(error);
        } else resolve(found);
      };
      this.#open = { max, found, end };
      try {
        const request = JSON.stringify({ batch: max, no_wait: true, expires: waitMs * NS_PER_MS });
        connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, request, { reply: this.#subscribe() });
      } catch (thrown) {
        end(thrown as Error);
      }
    });
  }

  /** Cancels the pull in flight, which rejects, and closes the inbox; the next pull has another one. */
  cancel(why: string): void {
    if (this.#open) this.#open.end(new Error(why));
    else this.#unsubscribe();
  }

  #unsubscribe(): void {
    this.#inbox?.subscription.unsubscribe();
    this.#inbox = undefined;
  }

  /** Subscribes to an inbox, unless there is one. @returns its name */
  #subscribe(): string {
    const { connection, newInbox } = this.#options;
    if (!this.#inbox) {
      const name = newInbox();
      const callback = (error: Error | null, message: Msg) => this.#onMessage(error, message);
      this.#inbox = { name, subscription: connection.subscribe(name, { callback }) };
    }
    return this.#inbox.name;
  }

  #onMessage(error: Error | null, message: Msg): void {
    const open = this.#open;
    if (!open) return;
    if (error) open.end(error);
    else if (message.subject !== this.#inbox?.name) {
      open.found.push(readMessage(message));
      if (open.found.length === open.max) open.end();
    } else {
      const { code = 0, description = '' } = message.headers ?? {};
      if (ENDS.has(code)) open.end();
      else if (code !== HEARTBEAT) open.end(new Error(`it refuses a pull: ${code} ${description}`));
    }
  }
}

/**
 * Reads a message and its reply subject: `$JS.ACK.<stream>.<consumer>.<delivery>.<position>.<number>.<time>.<pending>`,
 * since server 2.10 perhaps with a domain and an account before the stream.
 */
function readMessage(message: Msg): PulledMessage {
  const tokens = (message.reply ?? '').split('.');
  const [delivery, position, number] = tokens.slice(tokens.length > 9 ? 6 : 4).map(Number);
  return {
    subject: message.subject,
    data: message.data,
    delivery: delivery!,
    position: position!,
    number: number!,
    ack: () => void message.respond(ACK),
    nack: () => void message.respond(NACK),
    extendLease: () => void message.respond(IN_PROGRESS),
  };
}
