/** Weights store over NATS: one message a subject, for the announcement and for each part of the weights, read directly. */
import { messageOf } from '../../core/errors.ts';
import { BrokerConflict, type StoredAnnouncement, type WeightsStore } from '../broker.ts';
import { CODES, codeOf, type NatsSession, PART_BYTES } from './session.ts';

export class NatsWeightsStore implements WeightsStore {
  readonly #session: NatsSession;
  readonly #announcement: string;

  constructor(session: NatsSession) {
    this.#session = session;
    this.#announcement = session.names.subject('announced', 'run');
  }

  prepare(): Promise<void> {
    const { admin, names } = this.#session;
    const subjects = [this.#announcement, names.subject('weights', '>')];
    const settings = { name: names.state, subjects, max_msgs_per_subject: 1, allow_direct: true };
    return this.#session.request(async () => void (await admin.streams.add(settings)));
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    for (let at = 0, part = 0; at < bytes.length; at += PART_BYTES, part++) {
      await this.#session.putOnce(this.#partOf(name, part), bytes.subarray(at, at + PART_BYTES));
    }
  }

  get(name: string, size: number): Promise<Uint8Array | undefined> {
    return this.#session.request(async () => {
      const parts = await Promise.all(
        Array.from({ length: Math.ceil(size / PART_BYTES) }, (_, part) => this.#read(this.#partOf(name, part))),
      );
      const whole = Buffer.concat(parts.flatMap((part) => (part ? [part.data] : [])));
      return whole.length === size ? whole : undefined;
    });
  }

  remove(name: string): Promise<void> {
    const { admin, names } = this.#session;
    const filter = names.subject('weights', `${name}.*`);
    return this.#session.request(async () => void (await admin.streams.purge(names.state, { filter })));
  }

  readAnnouncement(): Promise<StoredAnnouncement | undefined> {
    return this.#session.request(async () => {
      const found = await this.#read(this.#announcement);
      return found && { bytes: found.data, revision: found.seq };
    });
  }

  announce(bytes: Uint8Array, revision: number): Promise<number> {
    return this.#session.request(async () => {
      const expect = { lastSubjectSequence: revision };
      try {
        return (await this.#session.client.publish(this.#announcement, bytes, { expect })).seq;
      } catch (thrown) {
        if (codeOf(thrown) !== CODES.wrongSequence) throw thrown;
        throw new BrokerConflict(`another announcement was made: ${messageOf(thrown)}`);
      }
    });
  }

  onAnnouncement(listener: () => void): () => void {
    return this.#session.subscribe(this.#announcement, () => listener());
  }

  #partOf(name: string, part: number): string {
    return this.#session.names.subject('weights', `${name}.${part}`);
  }

  /** Returns the last message of a subject, or undefined where it has none. */
  async #read(subject: string): Promise<{ readonly data: Uint8Array; readonly seq: number } | undefined> {
    const { admin, names } = this.#session;
    try {
      return (await admin.direct.getMessage(names.state, { last_by_subj: subject })) ?? undefined;
    } catch (thrown) {
      if (codeOf(thrown) === CODES.notFound || codeOf(thrown) === 404) return undefined;
      throw thrown;
    }
  }
}
