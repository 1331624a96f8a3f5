/** Ticket queue over NATS: a work queue stream, and one durable consumer that all workers pull from. */
import type { FetchedTicket, TicketCounts, TicketQueue } from '../broker.ts';
import { WORKERS } from '../roles.ts';
import type { Pull } from './pull.ts';
import { type NatsSession, nameOf } from './session.ts';

/** Tickets that workers may hold in all. */
const MAX_HELD = 10_000;
const NS_PER_MS = 1_000_000;

export class NatsTicketQueue implements TicketQueue {
  readonly #session: NatsSession;
  readonly #leaseMs: number;
  #pull: Pull | undefined;

  /** @param leaseMs milliseconds after which a ticket whose lease is not extended goes to others */
  constructor(session: NatsSession, leaseMs: number) {
    this.#session = session;
    this.#leaseMs = leaseMs;
    session.onDisconnect(() => this.#pull?.cancel('the connection dropped'));
  }

  prepare(): Promise<void> {
    const { admin, js, names } = this.#session;
    const { tickets, subject } = names;
    return this.#session.request(async () => {
      const retention = js.RetentionPolicy.Workqueue;
      await admin.streams.add({ name: tickets, subjects: [subject('ticket', '*')], retention });
      await admin.consumers.add(tickets, {
        durable_name: WORKERS,
        ack_policy: js.AckPolicy.Explicit,
        ack_wait: this.#leaseMs * NS_PER_MS,
        max_ack_pending: MAX_HELD,
      });
    });
  }

  put(name: string, bytes: Uint8Array): Promise<void> {
    return this.#session.putOnce(this.#session.names.subject('ticket', name), bytes);
  }

  list(): Promise<ReadonlySet<string>> {
    const { admin, names } = this.#session;
    return this.#session.request(async () => {
      const { state } = await admin.streams.info(names.tickets, { subjects_filter: names.subject('ticket', '*') });
      return new Set(Object.keys(state.subjects ?? {}).map(nameOf));
    });
  }

  clear(): Promise<void> {
    const { admin, names } = this.#session;
    return this.#session.request(async () => void (await admin.streams.purge(names.tickets)));
  }

  async fetch(max: number, waitMs: number): Promise<readonly FetchedTicket[]> {
    const { client, names } = this.#session;
    try {
      return await this.#session.request(async () => {
        // Looked up by name first: a pull from a consumer that does not exist gets no answer.
        if (!this.#pull) {
          await client.consumers.get(names.tickets, WORKERS);
          this.#pull = this.#session.newPull(names.tickets, WORKERS);
        }
        return (await this.#pull.fetch(max, waitMs)).map((message) => ({
          name: nameOf(message.subject),
          bytes: message.data,
          delivery: message.delivery,
          extendLease: message.extendLease,
          ack: message.ack,
          nack: message.nack,
        }));
      });
    } catch (thrown) {
      this.#pull = undefined;
      throw thrown;
    }
  }

  count(): Promise<TicketCounts> {
    const { admin, names } = this.#session;
    return this.#session.request(async () => {
      const { num_pending: queued, num_ack_pending: held } = await admin.consumers.info(names.tickets, WORKERS);
      return { queued, held };
    });
  }
}
