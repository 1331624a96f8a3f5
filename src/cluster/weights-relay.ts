/** Relay of weights, on a worker's machine: fetches what is announced, from the broker or over HTTP, and hands the latter on to others. */
import { Rng } from '../core/rng.ts';
import type { Broker } from './broker.ts';
import type { Announcement } from './identity.ts';
import { fetchWeights, type ServedAt, WeightsServer } from './weights-http.ts';
import { decodeReport } from './worker-report.ts';

/** Workers whose addresses are remembered. */
const MOST_RELAYS = 1000;
/** Versions handed on besides the newest. */
const KEPT = 1;

export class WeightsRelay {
  readonly #broker: Broker;
  readonly #at: ServedAt;
  readonly #rng: Rng;
  /** Addresses of other workers, by name. */
  readonly #others = new Map<string, string>();
  readonly #endReports: () => void;
  readonly #kept: string[] = [];
  readonly #ending = new AbortController();
  #server: WeightsServer | undefined;

  /**
   * @param name of this worker
   * @param at address to hand weights on at; it listens once there are some
   * @param seed of the order in which others are asked
   */
  constructor(broker: Broker, name: string, at: ServedAt, seed: number) {
    this.#broker = broker;
    this.#at = at;
    this.#rng = Rng.fromSeed(seed);
    this.#endReports = broker.onReport((other, bytes) => {
      if (other === name) return;
      const relay = decodeReport(bytes)?.relay;
      if (relay === undefined || !isPlainAddress(relay)) this.#others.delete(other);
      else if (this.#others.size < MOST_RELAYS || this.#others.has(other)) this.#others.set(other, relay);
    });
  }

  /** Address at which weights are handed on; undefined where none are. */
  get url(): string | undefined {
    return this.#server?.url;
  }

  /**
   * Fetches weights that were announced; their digest is the caller's to check.
   * @returns undefined where the broker has them no more
   * @throws {BrokerAway} where they cannot be had now
   */
  async fetch({ where, digest, bytes }: Announcement): Promise<Uint8Array | undefined> {
    if (!where) return this.#broker.weights(digest, bytes);
    this.#server ??= await WeightsServer.open(this.#at);
    if (!this.#kept.includes(digest)) this.#kept.push(digest);
    this.#server.keep(this.#kept.slice(-KEPT - 1));
    return fetchWeights(where, {
      digest,
      bytes,
      rng: this.#rng,
      server: this.#server,
      relays: () => [...this.#others.values()],
      signal: this.#ending.signal,
    });
  }

  async close(): Promise<void> {
    this.#ending.abort();
    this.#endReports();
    await this.#server?.close();
  }
}

/** True for `http://host:port` and nothing more: the rest of a worker's word is not followed. */
function isPlainAddress(text: string): boolean {
  return URL.canParse(text) && /^http:$/.test(new URL(text).protocol) && new URL(text).origin === text;
}
