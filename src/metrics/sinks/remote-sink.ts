/**
 * Remote sink: carries rows and spans to a server that may be away. They are written to an outbox and sent from there, one
 * batch at a time, in order. A server that does not answer is tried again with growing waits and holds nothing up: one
 * notice when it goes, one when it is back. What a server refuses for good is left out, and counted.
 */
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import type { Rng } from '../../core/rng.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import { attempt, sleep } from '../../http/attempts.ts';
import { RemoteError, retryDelayMs } from '../../http/retry.ts';
import type { MetricsRow } from '../metric-table.ts';
import type { Entry, Outbox } from './outbox.ts';
import type { MetricSink, RunEnding } from './sink.ts';

/** Transport of a sink: one request or a few for a batch. */
export interface SinkTransport {
  /** Sends entries of one kind. The same ones may come twice, byte for byte. @throws {RemoteError} */
  send(entries: readonly Entry[], deadlineMs: number): Promise<void>;
  /** Spans of an episode group in the server's form; absent where it takes none. */
  readonly spansOf?:
    | ((trajectories: readonly Trajectory[], purpose: string, at: number) => readonly unknown[])
    | undefined;
  /** Marks the run as ended; called once all is sent. @throws {RemoteError} */
  finish?(ending: RunEnding, deadlineMs: number): Promise<void>;
  /** Gives up requests under way. */
  close(): void;
}

export interface RemoteSinkOptions {
  readonly name: string;
  /** Server, for messages. */
  readonly url: string;
  readonly outbox: Outbox;
  readonly transport: SinkTransport;
  readonly clock: Clock;
  /** Wall clock in milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly rng: Rng;
  readonly onNotice: (line: string) => void;
  readonly timing?: Partial<SinkTiming> | undefined;
}

export interface SinkTiming {
  /** Milliseconds from an entry to its request, in which others join it. */
  readonly lingerMs: number;
  /** Milliseconds of the first and of the longest wait for a server that is away. */
  readonly minMs: number;
  readonly maxMs: number;
  /** Milliseconds of one request. */
  readonly attemptMs: number;
  /** Milliseconds of the last sending, when the run has ended. */
  readonly flushMs: number;
}

const TIMING: SinkTiming = { lingerMs: 1000, minMs: 1000, maxMs: 60_000, attemptMs: 10_000, flushMs: 15_000 };

/** Entries and bytes of one batch. */
const MAX_ENTRIES = 100;
const MAX_BATCH_BYTES = 2 ** 19;

/** Statuses of a request that stays wrong however often it is sent. A wrong key, or address, can be mended meanwhile. */
const REFUSALS = new Set([400, 413, 422]);

/** Opens the sink; what an earlier process has left in the outbox is sent first. */
export function openRemoteSink(options: RemoteSinkOptions): MetricSink {
  return new RemoteSink(options);
}

class RemoteSink implements MetricSink {
  readonly name: string;
  readonly episodes: MetricSink['episodes'];
  readonly #options: RemoteSinkOptions;
  readonly #timing: SinkTiming;
  /** Aborts when the run has ended: waits end, and what is left is sent at once. */
  readonly #ending = new AbortController();
  #sending: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #deadline = Number.POSITIVE_INFINITY;
  /** True while the server is away, and was reported. */
  #isDown = false;
  /** True once the disk has refused the outbox's state, and that was reported; the next row tries again. */
  #isBroken = false;
  #failures = 0;
  #maxEntries = MAX_ENTRIES;
  /** Reason of the newest attempt that failed. */
  #reason = 'there was no time';
  /** Entries that there was no room for, and that the server has refused. */
  #dropped = 0;
  #refused = 0;
  #skipped = 0;

  constructor(options: RemoteSinkOptions) {
    this.name = options.name;
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    const { spansOf } = options.transport;
    this.episodes = spansOf && ((trajectories, purpose) => this.#append(trajectories, purpose, spansOf));
    this.#first = options.outbox.update;
    if (options.outbox.pending > 0) this.#wake();
  }

  /** Largest update that earlier processes have written. */
  readonly #first: number;

  write(row: MetricsRow): void {
    const { outbox, wallClock, onNotice, name } = this.#options;
    // Updates that are made again after a checkpoint was resumed: the server has them, and takes nothing back.
    if (row.update !== undefined && row.update <= this.#first) {
      if (this.#skipped++ === 0) {
        onNotice(`${name}: it has the rows up to update ${this.#first}; they are not sent again`);
      }
      return;
    }
    this.#count(outbox.appendRow(wallClock(), row));
    this.#wake();
  }

  close(ending: RunEnding = 'finished'): Promise<void> {
    this.#closed ??= this.#close(ending);
    return this.#closed;
  }

  #append(trajectories: readonly Trajectory[], purpose: string, spansOf: NonNullable<SinkTransport['spansOf']>): void {
    const { outbox, wallClock } = this.#options;
    const at = wallClock();
    this.#count(outbox.appendSpans(at, spansOf(trajectories, purpose, at)));
    this.#wake();
  }

  #count(isThere: boolean): void {
    const { name, onNotice } = this.#options;
    if (isThere) return;
    if (this.#dropped++ === 0) onNotice(`${name}: its outbox is full; what comes now is left out, and counted`);
  }

  #wake(): void {
    this.#sending ??= this.#send()
      .catch((thrown) => {
        if (this.#isBroken) return;
        this.#isBroken = true;
        this.#options.onNotice(`${this.name}: cannot keep its place in the outbox: ${messageOf(thrown)}`);
      })
      .finally(() => {
        this.#sending = undefined;
      });
  }

  async #send(): Promise<void> {
    const { outbox, clock } = this.#options;
    await sleep(clock, this.#timing.lingerMs, this.#ending.signal);
    while (outbox.pending > 0 && clock.now() < this.#deadline) {
      const waitMs = await this.#sendBatch();
      if (waitMs === undefined) continue;
      // The last sending waits too, in shorter steps.
      if (!this.#ending.signal.aborted) await sleep(clock, waitMs, this.#ending.signal);
      else await sleep(clock, Math.min(waitMs, this.#timing.minMs, this.#deadline - clock.now()), undefined);
    }
  }

  /** Sends one batch. @returns milliseconds to wait before the next attempt; undefined where there is no need */
  async #sendBatch(): Promise<number | undefined> {
    const { outbox, transport, clock, rng } = this.#options;
    const batch = outbox.peek(this.#maxEntries, MAX_BATCH_BYTES);
    try {
      if (batch.entries.length > 0) {
        await transport.send(
          batch.entries,
          Math.max(1, Math.min(this.#timing.attemptMs, this.#deadline - clock.now())),
        );
      }
    } catch (thrown) {
      if (thrown instanceof RemoteError && thrown.status !== undefined && REFUSALS.has(thrown.status)) {
        if (batch.entries.length > 1) {
          this.#maxEntries = Math.ceil(batch.entries.length / 2); // one of them is wrong, or they are too many
          return undefined;
        }
        if (this.#refused++ === 0) {
          this.#options.onNotice(`${this.name}: the server refuses an entry, which is left out: ${messageOf(thrown)}`);
        }
        outbox.drop(batch);
        return undefined;
      }
      this.#reason = messageOf(thrown);
      this.#reportDown();
      this.#failures++;
      const error = thrown instanceof RemoteError ? thrown : new RemoteError('network', messageOf(thrown));
      const { minMs, maxMs } = this.#timing;
      return retryDelayMs({ attempts: 1, minMs, maxMs }, Math.min(this.#failures, 30), error, rng.float());
    }
    outbox.drop(batch);
    this.#maxEntries = Math.min(MAX_ENTRIES, 2 * this.#maxEntries);
    this.#reportUp();
    return undefined;
  }

  #reportDown(): void {
    const { url, onNotice } = this.#options;
    if (this.#isDown || this.#ending.signal.aborted) return; // at the end, what is left is reported
    this.#isDown = true;
    onNotice(`${this.name}: ${url} is away; rows wait in the run's folder, and the run goes on: ${this.#reason}`);
  }

  #reportUp(): void {
    this.#failures = 0;
    if (!this.#isDown) return;
    this.#isDown = false;
    this.#options.onNotice(`${this.name}: ${this.#options.url} is back`);
  }

  /** Marks the run as ended, with attempts until the deadline. */
  async #finish(ending: RunEnding): Promise<void> {
    const { transport, clock, rng, onNotice } = this.#options;
    const { attemptMs, minMs, flushMs } = this.#timing;
    const totalMs = Math.max(1, Math.min(flushMs, this.#deadline - clock.now()));
    const options = { attempts: 10, minMs, maxMs: minMs, attemptMs, totalMs };
    try {
      await attempt(options, { clock, rng }, async (deadlineMs) => transport.finish?.(ending, deadlineMs));
    } catch (thrown) {
      onNotice(`${this.name}: the end of the run could not be sent: ${messageOf(thrown)}`);
    }
  }

  async #close(ending: RunEnding): Promise<void> {
    const { outbox, transport, clock, onNotice } = this.#options;
    this.#deadline = clock.now() + this.#timing.flushMs;
    const cancel = clock.setTimer(this.#timing.flushMs, () => transport.close());
    this.#ending.abort();
    await this.#sending;
    this.#wake();
    await this.#sending;
    if (outbox.pending === 0) await this.#finish(ending);
    cancel();
    transport.close();
    if (outbox.pending > 0) {
      onNotice(
        `${this.name}: ${outbox.pending} entries could not be sent; they lie in the run's folder, and resuming the run sends them: ${this.#reason}`,
      );
    }
    const lost = this.#dropped + this.#refused;
    if (lost > 0) {
      onNotice(
        `${this.name}: ${lost} entries are lost: ${this.#dropped} had no room, ${this.#refused} the server refused; metrics.jsonl has every row`,
      );
    }
  }
}
