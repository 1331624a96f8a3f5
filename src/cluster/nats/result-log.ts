/**
 * Result log over NATS: a stream that refuses new results when it is full, and a consumer of the learner's own.
 *
 * Results are pulled, not consumed: a pull ends and another begins, where an endless consumer may fall silent for good
 * after the server was restarted.
 */
import type { ResultCounts, ResultLog, StoredResult } from '../broker.ts';
import type { Pull } from './pull.ts';
import { CODES, type Consumer, codeOf, type NatsSession, nameOf, PART_BYTES } from './session.ts';

/** Results read at once. */
const READ_AT_ONCE = 64;
/** Bytes of results that a server must have room for. */
const MIN_STREAM_BYTES = 2 ** 22;

/** Reader of the log. */
interface Reader {
  readonly consumer: Consumer;
  readonly pull: Pull;
  /** Number of its last message. A gap before the next one means that something was lost. */
  number: number;
}

export class NatsResultLog implements ResultLog {
  readonly #session: NatsSession;
  readonly #maxStreamBytes: number;
  #reader: Reader | undefined;
  /** Position of the last result that was read; 0 to start with the first one stored. */
  #position = 0;

  /** @param maxStreamBytes bytes of all results that may be stored; workers wait beyond that */
  constructor(session: NatsSession, maxStreamBytes: number) {
    this.#session = session;
    this.#maxStreamBytes = maxStreamBytes;
    session.onDisconnect(() => this.#reader?.pull.cancel('the connection dropped'));
  }

  get maxResultBytes(): number {
    return this.#session.connection.info?.max_payload ?? PART_BYTES;
  }

  prepare(): Promise<void> {
    const { admin, js, names } = this.#session;
    const settings = {
      name: names.results,
      subjects: [names.subject('result', '*')],
      retention: js.RetentionPolicy.Limits,
      discard: js.DiscardPolicy.New,
    };
    return this.#session.request(async () => {
      // The server reserves the room. Where it has less, a quarter is tried, and so on.
      for (let bytes = this.#maxStreamBytes; ; bytes = Math.ceil(bytes / 4)) {
        const added = admin.streams.add({ ...settings, max_bytes: bytes });
        const exists = await added.catch((thrown) => {
          if (codeOf(thrown) === CODES.otherSettings) return true; // made before, when there was less room
          if (codeOf(thrown) !== CODES.noRoom || bytes / 4 < MIN_STREAM_BYTES) throw thrown;
        });
        if (exists) return;
      }
    });
  }

  put(name: string, bytes: Uint8Array): Promise<void> {
    return this.#session.putOnce(this.#session.names.subject('result', name), bytes);
  }

  async read(waitMs: number): Promise<readonly StoredResult[]> {
    try {
      return await this.#session.request(async () => {
        this.#reader ??= await this.#openReader();
        const reader = this.#reader;
        const found = await reader.pull.fetch(READ_AT_ONCE, waitMs);
        for (const { number, position } of found) {
          if (number !== ++reader.number) throw new Error('results were lost on the way');
          this.#position = position;
        }
        // A server that forgot everything counts from 1 again without an error.
        if (found.length === 0) this.#restart();
        return found.map(({ position, subject, data }) => ({ position, name: nameOf(subject), bytes: data }));
      });
    } catch (thrown) {
      this.#restart();
      throw thrown;
    }
  }

  removeUpTo(position: number): Promise<void> {
    const { admin, names } = this.#session;
    const seq = position + 1; // purges up to, but not including
    return this.#session.request(async () => void (await admin.streams.purge(names.results, { seq })));
  }

  count(): Promise<ResultCounts> {
    const { admin, names } = this.#session;
    return this.#session.request(async () => {
      const { messages, bytes } = (await admin.streams.info(names.results)).state;
      return { results: messages, bytes };
    });
  }

  /** Opens a reader of the results that were not read yet. */
  async #openReader(): Promise<Reader> {
    const { client, js, names } = this.#session;
    const consumer = await client.consumers.get(
      names.results,
      this.#position > 0
        ? { deliver_policy: js.DeliverPolicy.StartSequence, opt_start_seq: this.#position + 1 }
        : { deliver_policy: js.DeliverPolicy.All },
    );
    const { name } = await consumer.info(true);
    return { consumer, pull: this.#session.newPull(names.results, name), number: 0 };
  }

  /** Starts over with what is stored: results that were read are removed, and a restarted server may reuse a position. */
  #restart(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    this.#position = 0;
    reader?.pull.cancel('the reader starts over');
    reader?.consumer.delete().catch(() => {}); // else the server deletes it by itself, in minutes
  }
}
