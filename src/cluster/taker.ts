/**
 * Taker of tickets, on a worker's machine: fetches as many as slots are free, has each played once the weights it names are
 * there, stores the result, and only then lets go of the ticket. Should it die in between, another plays the group.
 */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Failure } from '../core/failure.ts';
import type { GroupTicket } from '../core/ticket.ts';
import { type Trajectory, versionRuns } from '../core/trajectory.ts';
import { WaitingTickets } from '../schedule/waiting-tickets.ts';
import { Bell } from './bell.ts';
import type { Broker, FetchedTicket, UnavailableReason } from './broker.ts';
import { decodeTicket, encodeResult, type GroupResult, MOST_RESULT_BYTES } from './result.ts';
import { Stopped, sayAgain } from './say-again.ts';

export interface TakerOptions {
  readonly broker: Pick<Broker, 'tickets' | 'results'>;
  readonly clock: Clock;
  /** Name of the worker. */
  readonly worker: string;
  /** Groups at once, ≥ 1. */
  readonly slots: number;
  /** Milliseconds after which a ticket that nobody works on goes to others. */
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

/** Milliseconds that a fetch waits, and between two looks for a free slot that nobody has told of. */
const FETCH_MS = 1000;
/** Versions whose digests are remembered: far more than any lag. */
const REMEMBERED = 1000;

export class TicketTaker {
  readonly #of: TakerOptions;
  readonly #held = new Map<number, Held>();
  readonly #waiting = new WaitingTickets();
  readonly #digests = new Map<number, string>();
  /** Rings when a slot is free. */
  readonly #bell: Bell;
  #version = -1;
  /** True while weights that are announced cannot be had. */
  #paused = false;
  #leaving = false;
  #stopped = false;
  /** Groups whose results were stored. */
  finished = 0;
  /** Reason why results have found no place for a while; undefined once one has. */
  stuck: UnavailableReason | undefined;

  constructor(options: TakerOptions) {
    this.#of = options;
    this.#bell = new Bell(options.clock);
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
    for (const loop of [() => this.#fetch(), () => this.#beat()]) {
      loop().catch((thrown) => {
        if (!(thrown instanceof Stopped) && !this.#stopped) this.#of.onError(thrown);
      });
    }
  }

  /** Fetches no more; what is held is finished. */
  leave(): void {
    this.#leaving = true;
    this.#bell.ring();
  }

  /** Gives back what waits for weights, and fetches nothing until some have come: others may have them. */
  pause(): void {
    this.#paused = true;
    for (const { group } of this.#waiting.take(Number.POSITIVE_INFINITY)) {
      this.#held.get(group)?.fetched.nack();
      this.#held.delete(group);
    }
  }

  /** Stops at once, and gives back what is held. */
  stop(): void {
    this.#stopped = true;
    for (const { fetched } of this.#held.values()) fetched.nack();
    this.#held.clear();
    this.#bell.ring();
  }

  /** Takes note of weights that the policy now has: tickets that waited for them are played. */
  loaded(version: number, digest: string): void {
    this.#version = version;
    this.#paused = false;
    this.#bell.ring();
    this.#digests.delete(version);
    this.#digests.set(version, digest);
    if (this.#digests.size > REMEMBERED) this.#digests.delete(this.#digests.keys().next().value!);
    for (const ticket of this.#waiting.take(version)) this.#of.play(ticket);
  }

  /** Takes note of an attempt that failed and is made again. */
  failed(group: number, failure: Failure): void {
    this.#held.get(group)?.failed.push(failure);
  }

  /** Stores the result of a group that it holds. */
  async played(group: number, outcome: Outcome): Promise<void> {
    const held = this.#held.get(group);
    if (!held) return; // given back meanwhile
    const { broker, worker, clock } = this.#of;
    const { ticket, failed, fetched } = held;
    const digests = this.#digestsOf(outcome.trajectories);
    const result: GroupResult = { ticket, worker, delivery: fetched.delivery, digests, failed, ...outcome };
    const bytes = this.#fitting(result);
    try {
      await sayAgain(
        clock,
        () => this.#stopped,
        () => broker.results.put(fetched.name, bytes),
        (text, reason) => {
          this.stuck = reason;
          this.#of.onNotice(`the result of group ${group} cannot be stored: ${text}`);
        },
      );
    } catch (thrown) {
      if (!(thrown instanceof Stopped)) this.#of.onError(thrown);
      return;
    }
    this.stuck = undefined;
    held.fetched.ack();
    if (this.#held.get(group) === held) this.#held.delete(group);
    this.finished++;
    this.#bell.ring();
  }

  /** Result as bytes. One that is larger than the server takes would never get there: its group is given up, and it says why. */
  #fitting(result: GroupResult): Uint8Array {
    const bytes = encodeResult(result);
    const most = Math.min(this.#of.broker.results.maxResultBytes, MOST_RESULT_BYTES);
    if (bytes.length <= most) return bytes;
    const message = `its result has ${bytes.length} bytes, expected at most ${most}: raise max_payload in the server's configuration (8 MB is the most), or lower rollout.groupSize`;
    this.#of.onNotice(`group ${result.ticket.group}: ${message}`);
    const failure: Failure = { cause: 'worker', where: this.#of.worker, message };
    return encodeResult({ ...result, trajectories: [], gaveUp: { failure, attempts: 1 } });
  }

  async #fetch(): Promise<void> {
    const { broker, clock, slots } = this.#of;
    while (!this.#stopped && !this.#leaving) {
      const free = slots - this.#held.size;
      if (free === 0 || this.#paused) {
        await this.#bell.wait(FETCH_MS);
        continue;
      }
      const fetched = await sayAgain(
        clock,
        () => this.#stopped || this.#leaving,
        () => broker.tickets.fetch(free, FETCH_MS),
        (text) => this.#of.onNotice(`no tickets: ${text}`),
      );
      for (const one of fetched) this.#take(one);
    }
  }

  async #beat(): Promise<void> {
    while (!this.#stopped) {
      await this.#sleep(this.#of.leaseMs / 3);
      for (const { fetched } of this.#held.values()) fetched.extendLease();
    }
  }

  #take(fetched: FetchedTicket): void {
    if (this.#stopped || this.#leaving || this.#paused) {
      fetched.nack();
      return;
    }
    let ticket: GroupTicket;
    try {
      ticket = decodeTicket(fetched.bytes);
    } catch (thrown) {
      this.#of.onNotice(`ticket ${fetched.name} cannot be read and is dropped: ${messageOf(thrown)}`);
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
    if (fetched.delivery > this.#of.maxDeliveries) {
      const message = `its ticket was delivered ${fetched.delivery} times, and none of its workers lived to tell`;
      const failure: Failure = { cause: 'worker', where: this.#of.worker, message };
      void this.played(group, { trajectories: [], gaveUp: { failure, attempts: fetched.delivery } });
      return;
    }
    if (ticket.version <= this.#version) this.#of.play(ticket);
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

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#of.clock.after(ms, resolve));
  }
}
