/** Worker actor: consumes tickets, has its rollouts play them, and loads the weights that the learner announces. */
import type { Broker } from '../../src/cluster/broker.ts';
import {
  type Announcement,
  type ClusterIdentity,
  checkIdentity,
  decodeAnnouncement,
} from '../../src/cluster/identity.ts';
import { retryWhileUnavailable, Stopped } from '../../src/cluster/retry.ts';
import { TicketConsumer } from '../../src/cluster/ticket-consumer.ts';
import { WakeSignal } from '../../src/cluster/wake-signal.ts';
import { encodeReport, REPORT_MS } from '../../src/cluster/worker-report.ts';
import type { ParamSet } from '../../src/compute/model/parameters.ts';
import { LongplayError } from '../../src/core/errors.ts';
import { decodeWeights, digestOf } from '../../src/learning/learner/weights-file.ts';
import type { RolloutTotals } from '../../src/metrics/run-status.ts';
import type { ServedAdapter } from '../../src/policy/served-adapters.ts';
import type { BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import type { InferenceCommand } from '../inference/protocol.ts';
import type { Play } from '../rollout/protocol.ts';
import type { Played } from '../scheduler/protocol.ts';
import type { WorkerCommand } from './protocol.ts';

export interface WorkerInit {
  readonly broker: Broker;
  readonly run: string;
  /** Name of this worker. */
  readonly name: string;
  readonly identity: ClusterIdentity;
  /** Groups at once, ≥ 1. */
  readonly slots: number;
  readonly leaseMs: number;
  /** Weights that its policy was created with, and their announcement. */
  readonly first: FirstWeights;
  readonly onNotice: (text: string) => void;
  /** Called once the run has ended and the tickets that it held are finished. */
  readonly onEnd: () => void;
  readonly paths: { readonly rollout: string; readonly inference: string };
}

/** First weights and their announcement; no weights where a generation server has them. */
export interface FirstWeights {
  readonly announcement: Announcement;
  readonly params?: ParamSet | undefined;
}

/** Milliseconds between two reads of the announcement, since notifications get lost; and between two looks while draining. */
const POLL_MS = 2000;
const DRAIN_MS = 20;
/** Milliseconds that tickets wait for announced weights before they are returned to the queue. */
const MAX_WAIT_MS = 60_000;
/** Reports that rates are averaged over. */
const RATE_SAMPLES = 6;
/** Deliveries after which a ticket's group is given up: it may be what ends the workers. */
const MAX_DELIVERIES = 5;

export function workerActor(init: WorkerInit): BehaviorFactory<WorkerCommand> {
  return (ctx) => {
    const worker = new Worker(ctx, init);
    return {
      handlers: {
        played: (played) => worker.played(played),
        progressed: ({ totals }) => worker.progressed(totals),
        captured() {}, // an episode in flight is not saved: another worker plays it from the start
        weights: ({ replyTo }) => ctx.reply(replyTo, worker.weights),
        broke: ({ error }) => {
          throw error;
        },
      },
      stopped: () => worker.stop(),
    };
  };
}

class Worker {
  #params: ParamSet | undefined;
  readonly #ctx: Context<WorkerCommand>;
  readonly #init: WorkerInit;
  readonly #consumer: TicketConsumer;
  readonly #unsubscribe: () => void;
  #announced: Announcement;
  #tokens = 0;
  /** Clock since which announced weights could not be loaded. */
  #missingSince: number | undefined;
  #isStopped = false;
  /** Set when an announcement may have been made. */
  readonly #announcement: WakeSignal;

  constructor(ctx: Context<WorkerCommand>, init: WorkerInit) {
    const { broker, slots, leaseMs, name, first, onNotice } = init;
    this.#ctx = ctx;
    this.#init = init;
    this.#params = first.params;
    this.#announced = first.announcement;
    const onError = (error: unknown) => void ctx.self.tell({ type: 'broke', error });
    this.#consumer = new TicketConsumer({
      broker,
      clock: ctx.clock,
      worker: name,
      slots,
      leaseMs,
      maxDeliveries: MAX_DELIVERIES,
      play: (ticket) => void ctx.resolve<Play>(init.paths.rollout).tell({ type: 'play', groups: [ticket] }),
      onNotice,
      onError,
    });
    this.#consumer.setWeights(first.announcement.version, first.announcement.digest);
    this.#consumer.start();
    this.#announcement = new WakeSignal(ctx.clock);
    this.#unsubscribe = broker.weights.onAnnouncement(() => this.#announcement.set());
    for (const loop of [() => this.#followAnnouncements(), () => this.#publishReports()]) {
      loop().catch((thrown) => {
        if (!(thrown instanceof Stopped) && !this.#isStopped) onError(thrown);
      });
    }
  }

  /** Weights, or the adapter under which a server has them. */
  get weights(): ParamSet | ServedAdapter {
    return this.#params ?? adapterOf(this.#announced)!;
  }

  progressed({ tokens }: RolloutTotals): void {
    this.#tokens = tokens;
  }

  played({ groups, gaveUp, failed, totals }: Played): void {
    this.progressed(totals);
    for (const { group, failure } of failed) this.#consumer.addFailure(group, failure);
    for (const { group, trajectories } of groups) void this.#consumer.storeResult(group, { trajectories });
    for (const { group, failure, attempts } of gaveUp) {
      void this.#consumer.storeResult(group, { trajectories: [], gaveUp: { failure, attempts } });
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#consumer.stop();
    this.#announcement.set();
  }

  async #followAnnouncements(): Promise<void> {
    const { broker } = this.#init;
    while (!this.#isStopped) {
      const found = await this.#retry(() => broker.weights.readAnnouncement());
      if (found) await this.#follow(decodeAnnouncement(found.bytes));
      await this.#announcement.wait(POLL_MS);
    }
  }

  /** Publishes a report once a second. */
  async #publishReports(): Promise<void> {
    const { broker, name, slots } = this.#init;
    const samples: { readonly at: number; readonly finished: number; readonly tokens: number }[] = [];
    while (!this.#isStopped) {
      const { finished, size: held, waiting, stuck } = this.#consumer;
      const now = { at: this.#ctx.clock.now(), finished, tokens: this.#tokens };
      samples.push(now);
      if (samples.length > RATE_SAMPLES) samples.shift();
      const seconds = Math.max(1e-3, now.at - samples[0]!.at) / 1000;
      const groupsPerSecond = (finished - samples[0]!.finished) / seconds;
      const tokensPerSecond = Math.max(0, now.tokens - samples[0]!.tokens) / seconds;
      const { version } = this.#announced;
      const rates = { groupsPerSecond, tokensPerSecond };
      broker.reports.publish(
        name,
        encodeReport({ format: 1, slots, held, waiting, finished, ...rates, version, stuck }),
      );
      await this.#sleep(REPORT_MS);
    }
  }

  /** Follows an announcement: the run's end, a ban, or other weights. @throws {LongplayError} for a run that this worker cannot follow */
  async #follow(announcement: Announcement): Promise<void> {
    const { run, identity, onEnd } = this.#init;
    const before = this.#announced;
    const { life, version, digest } = announcement;
    if (life < before.life) return;
    if (announcement.banned?.includes(this.#init.name)) {
      throw new LongplayError(
        'REMOTE_FAILED',
        `the learner of run '${run}' refused several results of this worker in a row and banned it; the learner's notices name the reason`,
      );
    }
    if (life > before.life) checkIdentity(run, announcement.identity, identity);
    if (announcement.ended) {
      this.#consumer.drain();
      while (this.#consumer.size > 0 && !this.#isStopped) await this.#sleep(DRAIN_MS);
      onEnd();
      throw new Stopped();
    }
    if (version < before.version || (version === before.version && digest !== before.digest)) {
      throw new LongplayError(
        'REMOTE_FAILED',
        `run '${run}' went back from update ${before.version} to ${version}, with other weights; start this worker again`,
      );
    }
    // A learner that was restarted has its adapters under new names.
    const isNew = version > before.version || announcement.adapter?.name !== before.adapter?.name;
    if (isNew && !(await this.#loadWeights(announcement))) {
      this.#returnWaiting(); // or a newer version has replaced it, and its announcement follows
      return;
    }
    this.#missingSince = undefined;
    this.#announced = announcement;
  }

  /** Returns waiting tickets to the queue, once their weights have been missing for a minute. */
  #returnWaiting(): void {
    const now = this.#ctx.clock.now();
    this.#missingSince ??= now;
    if (now - this.#missingSince < MAX_WAIT_MS) return;
    this.#missingSince = now;
    this.#consumer.pause();
    this.#init.onNotice('announced weights could not be loaded for a minute: tickets that wait for them go to others');
  }

  /** Loads announced weights. @returns false where the broker does not have them */
  async #loadWeights(announcement: Announcement): Promise<boolean> {
    const { broker, paths, onNotice } = this.#init;
    const { version, digest, bytes } = announcement;
    const adapter = adapterOf(announcement);
    if (adapter) {
      await this.#ctx.resolve<InferenceCommand>(paths.inference).tell({ type: 'useAdapter', adapter });
      this.#consumer.setWeights(version, digest);
      return true;
    }
    const found = await this.#retry(() => broker.weights.get(digest, bytes), onNotice);
    if (!found || digestOf(found) !== digest) return false;
    this.#params = decodeWeights(found, version, `the weights of update ${version}`);
    // Sent before any ticket that waits for them; it overtakes turns that wait.
    await this.#ctx.resolve<InferenceCommand>(paths.inference).tell({ type: 'loadWeights', params: this.#params });
    this.#consumer.setWeights(version, digest);
    return true;
  }

  #retry<T>(call: () => Promise<T>, onWaiting?: (text: string) => void): Promise<T> {
    return retryWhileUnavailable(call, { clock: this.#ctx.clock, isStopped: () => this.#isStopped, onWaiting });
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#ctx.clock.setTimer(ms, resolve));
  }
}

/** Returns the adapter under which a server has the announced weights; undefined where workers load them. */
export function adapterOf({ version, adapter }: Announcement): ServedAdapter | undefined {
  return adapter && { version, ...adapter };
}
