/**
 * Pull of messages from a consumer of NATS JetStream, over one inbox for as long as the connection lives. The client's own `next` and
 * `fetch` subscribe anew for every call and watch over it with timers of their own, which costs more than the messages do.
 *
 * A pull is one request: whatever is there comes at once; where nothing is, the first that comes within the wait. The server says when it
 * is over, so that nothing is on its way afterwards. A pull that is not answered is given up together with its inbox: whatever
 * still comes finds nobody, and is delivered again by the server's own rules.
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';

/** Statuses of an empty message that end a pull: nothing there, its wait is over. Others but the heartbeat refuse it. */
const ENDS: ReadonlySet<number> = new Set([404, 408]);
const HEARTBEAT = 100;
const NS_PER_MS = 1_000_000;
const ACK = '+ACK';
const GIVE_BACK = '-NAK';
const WORKING = '+WPI';

/** Message of a consumer. */
export interface Pulled {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Number of times that it was delivered, this one included. */
  readonly delivery: number;
  /** Position in its stream. */
  readonly position: number;
  /** Number of this delivery among all of its consumer. */
  readonly number: number;
  ack(): void;
  giveBack(): void;
  /** Renews the time in which it has to be acknowledged. */
  working(): void;
}

export interface PullOptions {
  readonly connection: Pick<NatsConnection, 'publish' | 'subscribe'>;
  readonly stream: string;
  readonly consumer: string;
  /** Names an inbox that this connection may hear. */
  readonly newInbox: () => string;
  /** Milliseconds that the server may be silent beyond a pull's own wait. */
  readonly silenceMs: number;
}

interface Open {
  readonly most: number;
  readonly found: Pulled[];
  readonly end: (error?: Error) => void;
}

export class Pull {
  readonly #of: PullOptions;
  #inbox: { readonly name: string; readonly subscription: Subscription } | undefined;
  #open: Open | undefined;

  constructor(options: PullOptions) {
    this.#of = options;
  }

  /**
   * Takes up to `most` messages, waiting up to `waitMs` for the first. One call at a time.
   * @throws {Error} where the server does not answer or refuses, and whatever the client throws
   */
  take(most: number, waitMs: number): Promise<readonly Pulled[]> {
    const { connection, stream, consumer, silenceMs } = this.#of;
    return new Promise((resolve, reject) => {
      const found: Pulled[] = [];
      const timer = setTimeout(() => this.giveUp('it did not answer a pull'), waitMs + silenceMs);
      const end = (error?: Error) => {
        clearTimeout(timer);
        this.#open = undefined;
        if (error) {
          this.#deafen();
          reject(error);
        } else resolve(found);
      };
      this.#open = { most, found, end };
      try {
        const asked = JSON.stringify({ batch: most, no_wait: true, expires: waitMs * NS_PER_MS });
        connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, asked, { reply: this.#listen() });
      } catch (thrown) {
        end(thrown as Error);
      }
    });
  }

  /** Gives up what is being taken, and hears nothing more; the next pull has another inbox. */
  giveUp(why: string): void {
    if (this.#open) this.#open.end(new Error(why));
    else this.#deafen();
  }

  #deafen(): void {
    this.#inbox?.subscription.unsubscribe();
    this.#inbox = undefined;
  }

  #listen(): string {
    const { connection, newInbox } = this.#of;
    if (!this.#inbox) {
      const name = newInbox();
      const subscription = connection.subscribe(name, { callback: (error, message) => this.#heard(error, message) });
      this.#inbox = { name, subscription };
    }
    return this.#inbox.name;
  }

  #heard(error: Error | null, message: Msg): void {
    const open = this.#open;
    if (!open) return;
    if (error) open.end(error);
    else if (message.subject !== this.#inbox?.name) {
      open.found.push(pulled(message));
      if (open.found.length === open.most) open.end();
    } else {
      const { code = 0, description = '' } = message.headers ?? {};
      if (ENDS.has(code)) open.end();
      else if (code !== HEARTBEAT) open.end(new Error(`it refuses a pull: ${code} ${description}`));
    }
  }
}

/**
 * Message with what its answering subject tells: `$JS.ACK.<stream>.<consumer>.<delivery>.<position>.<number>.<time>.<pending>`, since
 * server 2.10 perhaps with a domain and an account before the stream.
 */
function pulled(message: Msg): Pulled {
  const tokens = (message.reply ?? '').split('.');
  const [delivery, position, number] = tokens.slice(tokens.length > 9 ? 6 : 4).map(Number);
  return {
    subject: message.subject,
    data: message.data,
    delivery: delivery!,
    position: position!,
    number: number!,
    ack: () => void message.respond(ACK),
    giveBack: () => void message.respond(GIVE_BACK),
    working: () => void message.respond(WORKING),
  };
}
