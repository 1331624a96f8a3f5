/** Worker reports over NATS: plain messages, which the server does not store. */
import type { WorkerReports } from '../broker.ts';
import type { NatsSession } from './session.ts';

export class NatsWorkerReports implements WorkerReports {
  readonly #session: NatsSession;

  constructor(session: NatsSession) {
    this.#session = session;
  }

  publish(name: string, bytes: Uint8Array): void {
    const { connection, names } = this.#session;
    if (!connection.isClosed()) connection.publish(names.subject('worker', name), bytes);
  }

  subscribe(listener: (name: string, bytes: Uint8Array) => void): () => void {
    return this.#session.subscribe(this.#session.names.subject('worker', '*'), listener);
  }
}
