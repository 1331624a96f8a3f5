/**
 * Dispatcher of tickets, on the learner's machine. Invariant: every outstanding ticket is at the broker until its result
 * has come, and every result is delivered exactly once. No decision reads another machine's clock; what the broker lost
 * is dispatched again. Which results count is up to result-check.ts.
 */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { GroupTicket } from '../core/ticket.ts';
import type { Broker, StoredResult } from './broker.ts';
import { encodeTicket, type GroupResult } from './result.ts';
import { ResultCheck, type ResultCheckOptions } from './result-check.ts';
import { retryWhileUnavailable, Stopped } from './retry.ts';
import { WakeSignal } from './wake-signal.ts';

export interface DispatcherOptions extends ResultCheckOptions {
  readonly broker: Pick<Broker, 'prepare' | 'tickets' | 'results'>;
  readonly clock: Clock;
  /** Called with each result that counts. */
  readonly onResult: (result: GroupResult) => void;
  /** Plays a result again and resolves with what is wrong with it. Returns undefined where it is not played again. */
  readonly verify?: ((result: GroupResult) => Promise<string | undefined> | undefined) | undefined;
  /** Called for a ticket whose result is refused; it is played again. */
  readonly onRefused: (ticket: GroupTicket, worker: string | undefined, why: string) => void;
  /** Called with lines for a person. */
  readonly onNotice?: ((text: string) => void) | undefined;
  /** Called with the error that ends it. */
  readonly onError: (error: unknown) => void;
}

/** Counts of a dispatcher. */
export interface DispatchCounts {
  readonly outstanding: number;
  readonly results: number;
  /** Results of groups that were not outstanding any more. */
  readonly duplicates: number;
  /** Tickets that were lost or late, dispatched again. */
  readonly reissued: number;
  /** Results that failed a check. */
  readonly refused: number;
  /** Results that were played again here. */
  readonly verified: number;
}

interface Outstanding {
  readonly ticket: GroupTicket;
  /** Name at the broker: the group's number, and the attempt after one that was refused or late. */
  readonly name: string;
  isSent: boolean;
  /** True when the last search found it nowhere. */
  isMissing: boolean;
  /** True while its result is verified; another result is a duplicate. */
  isVerifying: boolean;
  /** Clock of this machine when it got this name. */
  readonly since: number;
}

/** Milliseconds that a read waits, between two searches for lost tickets, and between two looks for tickets to send. */
const READ_MS = 1000;
const SEARCH_MS = 2000;
const SEND_MS = 1000;
/** Tickets sent at once. */
const SENT_AT_ONCE = 64;
/** Results that were read, their bytes, and milliseconds, before they are removed together. */
export const REMOVED_AT_ONCE = 16;
const REMOVE_BYTES = 2 ** 20;
const REMOVE_MS = 500;
/** A ticket is late after this many milliseconds, and this many times the 99th percentile of groups. */
const LATE_MS = 60_000;
const LATE_FACTOR = 10;
/** Groups whose times are remembered. */
const MAX_TIMES = 200;

export class TicketDispatcher {
  readonly #options: DispatcherOptions;
  readonly #outstanding = new Map<number, Outstanding>();
  readonly #counts = { results: 0, duplicates: 0, reissued: 0, refused: 0, verified: 0 };
  readonly #check: ResultCheck;
  /** Set when there is something to send. */
  readonly #unsent: WakeSignal;
  /** Milliseconds from ticket to result of the last groups, oldest first. */
  readonly #times: number[] = [];
  #attempts = 0;
  #isClearing = false;
  #isStopped = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#check = new ResultCheck(options);
    this.#unsent = new WakeSignal(options.clock);
  }

  get counts(): DispatchCounts {
    return { outstanding: this.#outstanding.size, ...this.#counts };
  }

  has(group: number): boolean {
    return this.#outstanding.has(group);
  }

  dispatch(tickets: readonly GroupTicket[]): void {
    for (const ticket of tickets) this.#add(ticket, String(ticket.group));
  }

  /** Withdraws groups that are not wanted any more: their results are duplicates. */
  withdraw(groups: readonly number[]): void {
    for (const group of groups) this.#outstanding.delete(group);
  }

  /** Clears the broker's queue; outstanding tickets are sent again. */
  clear(): void {
    this.#isClearing = true;
    this.#unsent.set();
  }

  /** Starts its loops; they end with `stop`, or with an error. */
  start(): void {
    for (const loop of [() => this.#sendTickets(), () => this.#readResults(), () => this.#searchLost()]) {
      loop().catch((thrown) => {
        if (!(thrown instanceof Stopped) && !this.#isStopped) this.#options.onError(thrown);
      });
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsent.set();
  }

  #add(ticket: GroupTicket, name: string): void {
    const since = this.#options.clock.now();
    const flags = { isSent: false, isMissing: false, isVerifying: false };
    this.#outstanding.set(ticket.group, { ticket, name, ...flags, since });
    this.#unsent.set();
  }

  /** Adds a ticket under a new name: the old one is taken as long as the ticket or its result is stored. */
  #addAgain(ticket: GroupTicket): void {
    this.#add(ticket, `${ticket.group}-${++this.#attempts}`);
  }

  async #sendTickets(): Promise<void> {
    const { tickets } = this.#options.broker;
    while (!this.#isStopped) {
      if (this.#isClearing) {
        this.#isClearing = false;
        await this.#retry(() => tickets.clear());
        for (const one of this.#outstanding.values()) one.isSent = false;
      }
      const unsent = [...this.#outstanding.values()].filter((one) => !one.isSent);
      for (let at = 0; at < unsent.length; at += SENT_AT_ONCE) await this.#send(unsent.slice(at, at + SENT_AT_ONCE));
      await this.#unsent.wait(SEND_MS);
    }
  }

  /** Sends tickets together, in their order: one after the other would take a round trip each. */
  async #send(batch: readonly Outstanding[]): Promise<void> {
    for (const one of batch) one.isSent = true;
    await this.#retry(async () => {
      const wanted = batch.filter((one) => this.#isCurrent(one));
      const sent = wanted.map((one) => this.#options.broker.tickets.put(one.name, encodeTicket(one.ticket)));
      for (const done of await Promise.allSettled(sent)) if (done.status === 'rejected') throw done.reason;
    });
  }

  async #readResults(): Promise<void> {
    const { broker, clock } = this.#options;
    // Results that were read and are still stored: position of the last, count, bytes, and clock since the first.
    let [last, stored, bytes, since] = [0, 0, 0, 0];
    while (!this.#isStopped) {
      const results = await this.#retry(() => {
        return broker.results.read(READ_MS).catch((thrown) => {
          [last, stored, bytes] = [0, 0, 0]; // they come again, and a restarted server may reuse their positions
          throw thrown;
        });
      });
      if (stored === 0) since = clock.now();
      for (const result of results) {
        this.#handleResult(result);
        last = Math.max(last, result.position);
        stored++;
        bytes += result.bytes.length;
      }
      // At the latest before the reader, which found nothing, starts over with what is stored.
      const isDue = results.length === 0 || clock.now() - since >= REMOVE_MS;
      if (stored === 0 || !(isDue || stored >= REMOVED_AT_ONCE || bytes >= REMOVE_BYTES)) continue;
      const position = last;
      await this.#retry(() => broker.results.removeUpTo(position));
      [last, stored, bytes] = [0, 0, 0];
    }
  }

  /** Searches for outstanding tickets that are nowhere: twice in a row, since a result may be on its way. */
  async #searchLost(): Promise<void> {
    const { broker } = this.#options;
    while (!this.#isStopped) {
      await this.#sleep(SEARCH_MS);
      await this.#retry(() => broker.prepare()); // it may have come back empty
      const before = [...this.#outstanding.values()].filter(({ isSent }) => isSent);
      const names = await this.#retry(() => broker.tickets.list());
      for (const one of before) {
        const isMissing = !names.has(one.name) && this.#isCurrent(one);
        if (isMissing && one.isMissing) {
          one.isSent = false;
          this.#unsent.set();
          this.#counts.reissued++;
        }
        one.isMissing = isMissing && !one.isMissing;
      }
      await this.#reissueLate();
    }
  }

  /**
   * Dispatches late tickets again, under another name. A server that was killed may keep a ticket and deliver it to
   * nobody; a worker may hold one and never finish it. While tickets wait to be fetched, none is late.
   */
  async #reissueLate(): Promise<void> {
    const { clock, broker } = this.#options;
    const times = [...this.#times].sort((a, b) => a - b);
    const boundMs = Math.max(LATE_MS, LATE_FACTOR * (times[Math.floor(0.99 * times.length)] ?? 0));
    const late = [...this.#outstanding.values()].filter(
      (one) => one.isSent && !one.isVerifying && clock.now() - one.since > boundMs,
    );
    if (late.length === 0 || (await this.#retry(() => broker.tickets.count())).queued > 0) return;
    for (const one of late) {
      if (!this.#isCurrent(one)) continue;
      this.#counts.reissued++;
      this.#addAgain(one.ticket);
    }
  }

  #isCurrent(one: Outstanding): boolean {
    return this.#outstanding.get(one.ticket.group) === one;
  }

  #handleResult({ name, bytes }: StoredResult): void {
    const one = this.#outstanding.get(Number.parseInt(name, 10));
    if (!one || one.isVerifying) {
      this.#counts.duplicates++;
      return;
    }
    const checked = this.#check.check(bytes, one.ticket);
    if (!checked.result) {
      this.#refuse(one, checked.worker, checked.why);
      return;
    }
    const verdict = this.#options.verify?.(checked.result);
    if (verdict) this.#awaitVerdict(one, checked.result, verdict);
    else this.#accept(checked.result);
  }

  #accept(result: GroupResult): void {
    const { group } = result.ticket;
    this.#check.recordAccepted(result.worker);
    this.#times.push(this.#options.clock.now() - this.#outstanding.get(group)!.since);
    if (this.#times.length > MAX_TIMES) this.#times.shift();
    this.#outstanding.delete(group);
    this.#counts.results++;
    this.#options.onResult(result);
  }

  /** Holds a result back until it is verified. */
  #awaitVerdict(one: Outstanding, result: GroupResult, verdict: Promise<string | undefined>): void {
    one.isVerifying = true;
    const settle = (why: string | undefined) => {
      if (this.#isStopped || !this.#isCurrent(one)) return; // withdrawn meanwhile
      this.#counts.verified++;
      if (why === undefined) this.#accept(result);
      else this.#refuse(one, result.worker, why);
    };
    verdict.then(settle, (thrown) => settle(`it could not be verified: ${messageOf(thrown)}`));
  }

  #refuse({ ticket }: Outstanding, worker: string | undefined, why: string): void {
    this.#counts.refused++;
    this.#options.onRefused(ticket, worker, why);
    this.#addAgain(ticket);
    if (worker !== undefined) this.#check.recordRefused(worker, why);
  }

  #retry<T>(call: () => Promise<T>): Promise<T> {
    const { clock, onNotice } = this.#options;
    return retryWhileUnavailable(call, { clock, isStopped: () => this.#isStopped, onWaiting: onNotice });
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.setTimer(ms, resolve));
  }
}
