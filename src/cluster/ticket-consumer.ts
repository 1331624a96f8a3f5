/**
 * Consumer of tickets, on a worker's machine. It fetches as many as slots are free, has each played once its weights are
 * loaded, stores the result, and only then acknowledges the ticket. If it dies in between, another worker plays the group.
 */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Failure } from '../core/failure.ts';
import type { GroupTicket } from '../core/ticket.ts';
import { type Trajectory, versionRuns } from '../core/trajectory.ts';
import { WaitingTickets } from '../learning/schedule/waiting-tickets.ts';
import type { Broker, FetchedTicket, UnavailableReason } from './broker.ts';
import { decodeTicket, encodeResult, type GroupResult, MAX_RESULT_BYTES } from './result.ts';
import { retryWhileUnavailable, Stopped } from './retry.ts';
import { WakeSignal } from './wake-signal.ts';

export interface ConsumerOptions {
  readonly broker: Pick<Broker, 'tickets' | 'results'>;
  readonly clock: Clock;
  /** Name of the worker. */
  readonly worker: string;
  /** Groups at once, ≥ 1. */
  readonly slots: number;
  /** Milliseconds after which a ticket whose lease is not extended goes to others. */
  readonly leaseMs: number;
  /** Deliveries of a ticket before its group is given up: it may be what ends the workers. */
  readonly maxDeliveries: number;
  readonly play: (ticket: GroupTicket) => void;
  readonly onNotice: (text: string) => void;
  /** Called with the error that ends it. */
  readonly onError: (error: unknown) => void;
}

/** Outcome of a group that was played. */
export interface Outcome {
  readonly trajectories: readonly Trajectory[];
  readonly gaveUp?: { readonly failure: Failure; readonly attempts: number } | undefined;
}

interface Held {
  readonly ticket: GroupTicket;
  fetched: FetchedTicket;
  readonly failed: Failure[];
}

/** Milliseconds that a fetch waits, and between two looks for a free slot. */
const FETCH_MS = 1000;
/** Versions whose digests are remembered: far more than any lag. */
const MAX_DIGESTS = 1000;

export class TicketConsumer {
  readonly #options: ConsumerOptions;
  readonly #held = new Map<number, Held>();
  readonly #waiting = new WaitingTickets();
  readonly #digests = new Map<number, string>();
  /** Set when a slot becomes free. */
  readonly #free: WakeSignal;
  #version = -1;
  /** True while announced weights cannot be loaded. */
  #isPaused = false;
  #isDraining = false;
  #isStopped = false;
  /** Groups whose results were stored. */
  finished = 0;
  /** Reason why results could not be stored for a while; undefined once one was. */
  stuck: UnavailableReason | undefined;

  constructor(options: ConsumerOptions) {
    this.#options = options;
    this.#free = new WakeSignal(options.clock);
  }

  /** Number of tickets that it holds. */
  get size(): number {
    return this.#held.size;
  }

  /** Number of those that wait for their weights. */
  get waiting(): number {
    return this.#waiting.size;
  }

  start(): void {
    for (const loop of [() => this.#fetchTickets(), () => this.#extendLeases()]) {
      loop().catch((thrown) => {
        if (!(thrown instanceof Stopped) && !this.#isStopped) this.#options.onError(thrown);
      });
    }
  }

  /** Stops fetching; tickets that it holds are finished. */
  drain(): void {
    this.#isDraining = true;
    this.#free.set();
  }

  /** Returns the tickets that wait for weights to the queue, and fetches none until weights are loaded. */
  pause(): void {
    this.#isPaused = true;
    for (const { group } of this.#waiting.take(Number.POSITIVE_INFINITY)) {
      this.#held.get(group)?.fetched.nack();
      this.#held.delete(group);
    }
  }

  /** Stops at once, and returns what it holds to the queue. */
  stop(): void {
    this.#isStopped = true;
    for (const { fetched } of this.#held.values()) fetched.nack();
    this.#held.clear();
    this.#free.set();
  }

  /** Plays the tickets that waited for these weights. @param version that the policy has loaded */
  setWeights(version: number, digest: string): void {
    this.#version = version;
    this.#isPaused = false;
    this.#free.set();
    this.#digests.delete(version);
    this.#digests.set(version, digest);
    if (this.#digests.size > MAX_DIGESTS) this.#digests.delete(this.#digests.keys().next().value!);
    for (const ticket of this.#waiting.take(version)) this.#options.play(ticket);
  }

  /** Adds an attempt that failed and is made again to the group's result. */
  addFailure(group: number, failure: Failure): void {
    this.#held.get(group)?.failed.push(failure);
  }

  /** Stores the result of a group that it holds, and acknowledges the ticket. */
  async storeResult(group: number, outcome: Outcome): Promise<void> {
    const held = this.#held.get(group);
    if (!held) return; // returned to the queue meanwhile
    const { broker, worker } = this.#options;
    const { ticket, failed, fetched } = held;
    const digests = this.#digestsOf(outcome.trajectories);
    const bytes = this.#encode({ ticket, worker, delivery: fetched.delivery, digests, failed, ...outcome });
    try {
      await this.#retry(
        () => broker.results.put(fetched.name, bytes),
        () => this.#isStopped,
        (text, reason) => {
          this.stuck = reason;
          this.#options.onNotice(`the result of group ${group} cannot be stored: ${text}`);
        },
      );
    } catch (thrown) {
      if (!(thrown instanceof Stopped)) this.#options.onError(thrown);
      return;
    }
    this.stuck = undefined;
    held.fetched.ack();
    if (this.#held.get(group) === held) this.#held.delete(group);
    this.finished++;
    this.#free.set();
  }

  /** Encodes a result. One that is larger than the server takes could never be stored: its group is given up, with the reason. */
  #encode(result: GroupResult): Uint8Array {
    const { broker, onNotice, worker } = this.#options;
    const bytes = encodeResult(result);
    const max = Math.min(broker.results.maxResultBytes, MAX_RESULT_BYTES);
    if (bytes.length <= max) return bytes;
    const message = `its result has ${bytes.length} bytes, expected at most ${max}: raise max_payload in the server's configuration (up to 8 MB), or lower rollout.groupSize`;
    onNotice(`group ${result.ticket.group}: ${message}`);
    const failure: Failure = { cause: 'worker', where: worker, message };
    return encodeResult({ ...result, trajectories: [], gaveUp: { failure, attempts: 1 } });
  }

  async #fetchTickets(): Promise<void> {
    const { broker, slots, onNotice } = this.#options;
    while (!this.#isStopped && !this.#isDraining) {
      const free = slots - this.#held.size;
      if (free === 0 || this.#isPaused) {
        await this.#free.wait(FETCH_MS);
        continue;
      }
      const fetched = await this.#retry(
        () => broker.tickets.fetch(free, FETCH_MS),
        () => this.#isStopped || this.#isDraining,
        (text) => onNotice(`no tickets: ${text}`),
      );
      for (const one of fetched) this.#accept(one);
    }
  }

  async #extendLeases(): Promise<void> {
    while (!this.#isStopped) {
      await this.#sleep(this.#options.leaseMs / 3);
      for (const { fetched } of this.#held.values()) fetched.extendLease();
    }
  }

  #accept(fetched: FetchedTicket): void {
    const { maxDeliveries, onNotice, play, worker } = this.#options;
    if (this.#isStopped || this.#isDraining || this.#isPaused) {
      fetched.nack();
      return;
    }
    let ticket: GroupTicket;
    try {
      ticket = decodeTicket(fetched.bytes);
    } catch (thrown) {
      onNotice(`ticket ${fetched.name} is invalid and is dropped: ${messageOf(thrown)}`);
      fetched.ack();
      return;
    }
    const { group } = ticket;
    const known = this.#held.get(group);
    if (known) {
      known.fetched = fetched; // delivered again while it is played here
      return;
    }
    this.#held.set(group, { ticket, fetched, failed: [] });
    if (fetched.delivery > maxDeliveries) {
      const message = `its ticket was delivered ${fetched.delivery} times, and every worker ended before its result`;
      const failure: Failure = { cause: 'worker', where: worker, message };
      void this.storeResult(group, { trajectories: [], gaveUp: { failure, attempts: fetched.delivery } });
      return;
    }
    if (ticket.version <= this.#version) play(ticket);
    else this.#waiting.add(ticket);
  }

  #digestsOf(trajectories: readonly Trajectory[]): Record<string, string> {
    const digests: Record<string, string> = {};
    for (const { turns } of trajectories) {
      for (const { decision } of turns) {
        for (const { version } of decision ? versionRuns(decision) : []) {
          const digest = this.#digests.get(version);
          if (digest !== undefined) digests[version] = digest;
        }
      }
    }
    return digests;
  }

  #retry<T>(
    call: () => Promise<T>,
    isStopped: () => boolean,
    onWaiting: (text: string, reason: UnavailableReason) => void,
  ): Promise<T> {
    return retryWhileUnavailable(call, { clock: this.#options.clock, isStopped, onWaiting });
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.setTimer(ms, resolve));
  }
}
