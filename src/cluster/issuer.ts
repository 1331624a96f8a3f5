/**
 * Issuer of tickets, on the learner's machine: keeps every outstanding ticket at the broker until its result has come, and
 * hands on each result once. It decides nothing by anyone's clock: what the broker lost is issued again.
 */
import type { Clock } from '../core/clock.ts';
import { LongplayError, messageOf } from '../core/errors.ts';
import type { GroupTicket } from '../core/ticket.ts';
import { Bell } from './bell.ts';
import type { Broker, StoredResult } from './broker.ts';
import type { EpisodeCheck } from './episode-check.ts';
import { decodeResult, encodeTicket, type GroupResult } from './result.ts';
import { Stopped, sayAgain } from './say-again.ts';

export interface IssuerOptions {
  readonly broker: Pick<Broker, 'prepare' | 'tickets' | 'results'>;
  readonly clock: Clock;
  readonly vocabSize: number;
  /** Digest of this run's weights of a version; undefined where it is not known. */
  readonly digestOf: (version: number) => string | undefined;
  /** Called with each result that counts. */
  readonly onResult: (result: GroupResult) => void;
  /** Says what is wrong with the episodes of a result (`episodeCheck`); undefined where nothing is. */
  readonly check?: EpisodeCheck | undefined;
  /** Says what is wrong with a result that looks right, where this one is to be played again here; undefined where it is not. */
  readonly verify?: ((result: GroupResult) => Promise<string | undefined> | undefined) | undefined;
  /** Called with a worker that has sent too many results in a row that cannot be believed: nothing of it is taken any more. */
  readonly onShutOut?: ((worker: string, why: string) => void) | undefined;
  /** Called for a ticket whose result cannot be believed; it is played again. */
  readonly onRefused: (ticket: GroupTicket, worker: string | undefined, why: string) => void;
  /** Called with lines for a person. */
  readonly onNotice?: ((text: string) => void) | undefined;
  /** Called with the error that ends it. */
  readonly onError: (error: unknown) => void;
}

/** Counts of an issuer. */
export interface IssuerCounts {
  readonly outstanding: number;
  readonly results: number;
  /** Results of groups that were not outstanding any more. */
  readonly duplicates: number;
  /** Tickets that the broker had lost, or that were late. */
  readonly issuedAgain: number;
  /** Results that could not be believed. */
  readonly refused: number;
  /** Results that were played again here, to see whether they are true. */
  readonly verified: number;
}

interface Outstanding {
  readonly ticket: GroupTicket;
  /** Name at the broker: the group's number, and which try it is after one that was refused or late. */
  readonly name: string;
  isSent: boolean;
  /** True when the last look found it nowhere. */
  isMissed: boolean;
  /** True while its result is verified; another one is a duplicate. */
  isVerified: boolean;
  /** Clock of this machine when it was issued under this name. */
  readonly since: number;
}

/** Milliseconds that a take waits, between two looks for lost tickets, and between two looks for tickets to send. */
const TAKE_MS = 1000;
const LOOK_MS = 2000;
const SEND_MS = 1000;
/** Tickets sent at once. */
const SENT_AT_ONCE = 64;
/** Results that were taken, their bytes, and milliseconds, before they are removed together. */
export const KEPT_RESULTS = 16;
const KEPT_BYTES = 2 ** 20;
const KEPT_MS = 500;
/** Milliseconds, and times the 99th percentile of groups, after which a ticket that somebody should be playing is issued once more. */
const LATE_MS = 60_000;
const LATE_FACTOR = 10;
/** Groups whose times are remembered. */
const TIMED = 200;
/** Results in a row that cannot be believed, after which nothing of a worker is taken. Names come from outside, hence a bound. */
const MOST_REFUSED = 3;
const MOST_WORKERS = 10_000;

export class TicketIssuer {
  readonly #of: IssuerOptions;
  readonly #outstanding = new Map<number, Outstanding>();
  readonly #counts = { results: 0, duplicates: 0, issuedAgain: 0, refused: 0, verified: 0 };
  /** Results in a row of each worker that could not be believed. */
  readonly #refusedInARow = new Map<string, number>();
  /** Rings when there is something to send. */
  readonly #bell: Bell;
  /** Milliseconds from ticket to result of the last groups, oldest first. */
  readonly #times: number[] = [];
  #tries = 0;
  #isClearing = false;
  #stopped = false;

  constructor(options: IssuerOptions) {
    this.#of = options;
    this.#bell = new Bell(options.clock);
  }

  get counts(): IssuerCounts {
    return { outstanding: this.#outstanding.size, ...this.#counts };
  }

  has(group: number): boolean {
    return this.#outstanding.has(group);
  }

  issue(tickets: readonly GroupTicket[]): void {
    for (const ticket of tickets) this.#put(ticket, String(ticket.group));
  }

  /** Withdraws groups that are no longer wanted: their results are duplicates. */
  withdraw(groups: readonly number[]): void {
    for (const group of groups) this.#outstanding.delete(group);
  }

  /** Clears the queue of the broker; what is outstanding is sent again. */
  clear(): void {
    this.#isClearing = true;
    this.#bell.ring();
  }

  /** Starts its loops; they end with `stop`, or with an error. */
  start(): void {
    for (const loop of [() => this.#send(), () => this.#take(), () => this.#look()]) {
      loop().catch((thrown) => {
        if (!(thrown instanceof Stopped) && !this.#stopped) this.#of.onError(thrown);
      });
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#bell.ring();
  }

  #put(ticket: GroupTicket, name: string): void {
    const since = this.#of.clock.now();
    this.#outstanding.set(ticket.group, { ticket, name, isSent: false, isMissed: false, isVerified: false, since });
    this.#bell.ring();
  }

  async #send(): Promise<void> {
    while (!this.#stopped) {
      if (this.#isClearing) {
        this.#isClearing = false;
        await this.#say(() => this.#of.broker.tickets.clear());
        for (const one of this.#outstanding.values()) one.isSent = false;
      }
      const unsent = [...this.#outstanding.values()].filter((one) => !one.isSent);
      for (let at = 0; at < unsent.length; at += SENT_AT_ONCE) await this.#sendAll(unsent.slice(at, at + SENT_AT_ONCE));
      await this.#bell.wait(SEND_MS);
    }
  }

  /** Sends tickets together, in their order: an answer for each is waited for, and one after the other that takes a trip each. */
  async #sendAll(some: readonly Outstanding[]): Promise<void> {
    for (const one of some) one.isSent = true;
    await this.#say(async () => {
      const wanted = some.filter((one) => this.#outstanding.get(one.ticket.group) === one);
      const sent = wanted.map((one) => this.#of.broker.tickets.put(one.name, encodeTicket(one.ticket)));
      for (const done of await Promise.allSettled(sent)) if (done.status === 'rejected') throw done.reason;
    });
  }

  async #take(): Promise<void> {
    const { broker, clock } = this.#of;
    // Last position that was taken; results up to there that are still stored, their bytes, and the clock since which they are.
    let [last, kept, bytes, since] = [0, 0, 0, 0];
    while (!this.#stopped) {
      const results = await this.#say(() => {
        return broker.results.read(TAKE_MS).catch((thrown) => {
          [last, kept, bytes] = [0, 0, 0]; // they come again, and a server that is back may give their positions to others
          throw thrown;
        });
      });
      if (kept === 0) since = clock.now();
      for (const result of results) {
        this.#taken(result);
        last = Math.max(last, result.position);
        kept++;
        bytes += result.bytes.length;
      }
      // Before a reader that found nothing begins anew with what is left; else some together.
      const isDue = results.length === 0 || clock.now() - since >= KEPT_MS;
      if (kept === 0 || !(isDue || kept >= KEPT_RESULTS || bytes >= KEPT_BYTES)) continue;
      const position = last;
      await this.#say(() => broker.results.removeUpTo(position));
      [last, kept, bytes] = [0, 0, 0];
    }
  }

  /** Looks for outstanding tickets that are nowhere: twice in a row, since a result may be on its way. */
  async #look(): Promise<void> {
    while (!this.#stopped) {
      await this.#sleep(LOOK_MS);
      await this.#say(() => this.#of.broker.prepare()); // it may have come back with nothing
      const before = [...this.#outstanding.values()].filter(({ isSent }) => isSent);
      const there = await this.#say(() => this.#of.broker.tickets.list());
      for (const one of before) {
        const isMissing = !there.has(one.name) && this.#outstanding.get(one.ticket.group) === one;
        if (isMissing && one.isMissed) {
          one.isSent = false;
          this.#bell.ring();
          this.#counts.issuedAgain++;
        }
        one.isMissed = isMissing && !one.isMissed;
      }
      await this.#issueLate();
    }
  }

  /**
   * Issues what is late once more, under another name: a server that was killed may keep a ticket and give it to nobody, and a worker may
   * hold one, alive, and never finish it. As long as tickets wait to be fetched, time says nothing.
   */
  async #issueLate(): Promise<void> {
    const { clock, broker } = this.#of;
    const times = [...this.#times].sort((a, b) => a - b);
    const bound = Math.max(LATE_MS, LATE_FACTOR * (times[Math.floor(0.99 * times.length)] ?? 0));
    const late = [...this.#outstanding.values()].filter(
      (one) => one.isSent && !one.isVerified && clock.now() - one.since > bound,
    );
    if (late.length === 0 || (await this.#say(() => broker.tickets.count())).queued > 0) return;
    for (const one of late) {
      if (this.#outstanding.get(one.ticket.group) !== one) continue;
      this.#counts.issuedAgain++;
      this.#put(one.ticket, `${one.ticket.group}-${++this.#tries}`);
    }
  }

  #taken({ name, bytes }: StoredResult): void {
    const one = this.#outstanding.get(Number.parseInt(name, 10));
    if (!one || one.isVerified) {
      this.#counts.duplicates++;
      return;
    }
    let worker: string | undefined;
    try {
      const result = decodeResult(bytes, one.ticket, this.#of.vocabSize);
      worker = result.worker;
      this.#checkWorker(worker);
      this.#checkLineage(result);
      const why = this.#of.check?.(result.trajectories, one.ticket.purpose.name === 'train');
      if (why !== undefined) throw new LongplayError('REMOTE_FAILED', why);
      const verdict = this.#of.verify?.(result);
      if (verdict) this.#verified(one, result, verdict);
      else this.#accept(result);
    } catch (thrown) {
      if (!(thrown instanceof LongplayError)) throw thrown;
      this.#refused(one, worker, messageOf(thrown));
    }
  }

  #accept(result: GroupResult): void {
    const { group } = result.ticket;
    this.#refusedInARow.delete(result.worker);
    this.#times.push(this.#of.clock.now() - this.#outstanding.get(group)!.since);
    if (this.#times.length > TIMED) this.#times.shift();
    this.#outstanding.delete(group);
    this.#counts.results++;
    this.#of.onResult(result);
  }

  /** Holds a result back until it is known to be true. */
  #verified(one: Outstanding, result: GroupResult, verdict: Promise<string | undefined>): void {
    one.isVerified = true;
    const settle = (why: string | undefined) => {
      if (this.#stopped || this.#outstanding.get(one.ticket.group) !== one) return; // withdrawn meanwhile
      this.#counts.verified++;
      if (why === undefined) this.#accept(result);
      else this.#refused(one, result.worker, why);
    };
    verdict.then(settle, (thrown) => settle(`it could not be verified: ${messageOf(thrown)}`));
  }

  #refused({ ticket }: Outstanding, worker: string | undefined, why: string): void {
    this.#counts.refused++;
    this.#of.onRefused(ticket, worker, why);
    this.#put(ticket, `${ticket.group}-${++this.#tries}`); // the name is taken as long as the result is stored
    if (worker === undefined || this.#refusedInARow.size >= MOST_WORKERS) return;
    const inARow = (this.#refusedInARow.get(worker) ?? 0) + 1;
    this.#refusedInARow.set(worker, inARow);
    if (inARow === MOST_REFUSED) this.#of.onShutOut?.(worker, why);
  }

  #checkWorker(worker: string): void {
    const inARow = this.#refusedInARow.get(worker) ?? 0;
    if (inARow >= MOST_REFUSED) {
      throw new LongplayError('REMOTE_FAILED', `${inARow} of its results in a row could not be believed`);
    }
  }

  /** Refuses decisions of weights that this run never had: a learner was restored without its journal. */
  #checkLineage({ digests }: GroupResult): void {
    for (const [version, digest] of Object.entries(digests)) {
      const own = this.#of.digestOf(Number(version));
      if (own !== undefined && own !== digest) {
        throw new LongplayError('REMOTE_FAILED', `decided by other weights of version ${version} than this run's`);
      }
    }
  }

  #say<T>(say: () => Promise<T>): Promise<T> {
    return sayAgain(
      this.#of.clock,
      () => this.#stopped,
      say,
      (text) => this.#of.onNotice?.(text),
    );
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#of.clock.after(ms, resolve));
  }
}
