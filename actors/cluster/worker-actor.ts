/** Worker actor: takes tickets, has its rollouts play them, and gives its policy the weights that the learner announces. */
import type { Broker } from '../../src/cluster/broker.ts';
import {
  type Announcement,
  type ClusterIdentity,
  checkIdentity,
  decodeAnnouncement,
} from '../../src/cluster/identity.ts';
import { Stopped, sayAgain } from '../../src/cluster/say-again.ts';
import { TicketTaker } from '../../src/cluster/taker.ts';
import { encodeReport, REPORT_MS } from '../../src/cluster/worker-report.ts';
import { LongplayError } from '../../src/core/errors.ts';
import { decodeWeights, digestOf } from '../../src/learner/weights-file.ts';
import type { ParamSet } from '../../src/model/parameters.ts';
import type { ServedAdapter } from '../../src/policy/served-adapters.ts';
import type { RolloutTotals } from '../../src/record/run-status.ts';
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
  /** Weights that its policy was made with, and what announced them. */
  readonly first: FirstWeights;
  readonly onNotice: (text: string) => void;
  /** Called once the run has ended and what was held is finished. */
  readonly onEnd: () => void;
  readonly paths: { readonly rollout: string; readonly inference: string };
}

/** Weights to begin with, and what announced them; none where a server has them. */
export interface FirstWeights {
  readonly announcement: Announcement;
  readonly params?: ParamSet | undefined;
}

/** Milliseconds between two looks at the announcement, should a hint get lost; and at whether what is held is finished. */
const LOOK_MS = 2000;
const FINISHED_MS = 20;
/** Milliseconds in which announced weights have to be had, before others play what waits for them. */
const LACKING_MS = 60_000;
/** Reports that rates are taken over. */
const RATE_SAMPLES = 6;
/** Deliveries of a ticket that is given up: it may be what ends the workers. */
const MAX_DELIVERIES = 5;

export function workerActor(init: WorkerInit): BehaviorFactory<WorkerCommand> {
  return (ctx) => {
    const worker = new Worker(ctx, init);
    return {
      handlers: {
        played: (played) => worker.played(played),
        progressed: ({ totals }) => worker.progressed(totals),
        captured() {}, // nothing of an episode in flight is kept: another plays it anew
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
  readonly #taker: TicketTaker;
  readonly #endHints: () => void;
  #announced: Announcement;
  #tokens = 0;
  /** Clock since which announced weights could not be had. */
  #lackingSince: number | undefined;
  #stopped = false;
  /** Wakes the loop that follows announcements. */
  #wake = () => {};

  constructor(ctx: Context<WorkerCommand>, init: WorkerInit) {
    const { broker, slots, leaseMs, name, first, onNotice } = init;
    this.#ctx = ctx;
    this.#init = init;
    this.#params = first.params;
    this.#announced = first.announcement;
    const onError = (error: unknown) => void ctx.self.tell({ type: 'broke', error });
    this.#taker = new TicketTaker({
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
    this.#taker.loaded(first.announcement.version, first.announcement.digest);
    this.#taker.start();
    this.#endHints = broker.weights.onAnnouncement(() => this.#wake());
    for (const loop of [() => this.#follow(), () => this.#report()]) {
      loop().catch((thrown) => {
        if (!(thrown instanceof Stopped) && !this.#stopped) onError(thrown);
      });
    }
  }

  /** Weights, or the adapter that the server has them by. */
  get weights(): ParamSet | ServedAdapter {
    return this.#params ?? servedBy(this.#announced)!;
  }

  progressed({ tokens }: RolloutTotals): void {
    this.#tokens = tokens;
  }

  played({ groups, gaveUp, failed, totals }: Played): void {
    this.progressed(totals);
    for (const { group, failure } of failed) this.#taker.failed(group, failure);
    for (const { group, trajectories } of groups) void this.#taker.played(group, { trajectories });
    for (const { group, failure, attempts } of gaveUp) {
      void this.#taker.played(group, { trajectories: [], gaveUp: { failure, attempts } });
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#endHints();
    this.#taker.stop();
    this.#wake();
  }

  async #follow(): Promise<void> {
    const { broker } = this.#init;
    while (!this.#stopped) {
      // A hint that comes while this one is followed up wakes it at once the next time.
      const hint = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const found = await this.#say(() => broker.weights.readAnnouncement());
      if (found) await this.#heard(decodeAnnouncement(found.bytes));
      await Promise.race([hint, new Promise<void>((resolve) => this.#ctx.clock.after(LOOK_MS, resolve))]);
    }
  }

  /** Says once a second how this worker is; rates are over the last seconds. */
  async #report(): Promise<void> {
    const { broker, name, slots } = this.#init;
    const samples: { readonly at: number; readonly finished: number; readonly tokens: number }[] = [];
    while (!this.#stopped) {
      const { finished, size: held, waiting, stuck } = this.#taker;
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

  async #heard(announcement: Announcement): Promise<void> {
    const { run, identity, onEnd } = this.#init;
    const before = this.#announced;
    const { life, version, digest } = announcement;
    if (life < before.life) return;
    if (announcement.shutOut?.includes(this.#init.name)) {
      throw new LongplayError(
        'REMOTE_FAILED',
        `the learner of run '${run}' could not believe several results of this worker in a row, and takes no more; its notices say why`,
      );
    }
    if (life > before.life) checkIdentity(run, announcement.identity, identity);
    if (announcement.ended) {
      this.#taker.leave();
      while (this.#taker.size > 0 && !this.#stopped) await this.#sleep(FINISHED_MS);
      onEnd();
      throw new Stopped();
    }
    if (version < before.version || (version === before.version && digest !== before.digest)) {
      throw new LongplayError(
        'REMOTE_FAILED',
        `run '${run}' went back from update ${before.version} to ${version}, on other weights; start this worker again`,
      );
    }
    // A learner that was started again has its adapters under new names.
    const isNew = version > before.version || announcement.adapter?.name !== before.adapter?.name;
    if (isNew && !(await this.#load(announcement))) {
      this.#lack(); // or overtaken: the next is on its way
      return;
    }
    this.#lackingSince = undefined;
    this.#announced = announcement;
  }

  /** Lets others play once weights have been lacking for a while: a worker that only waits would hold its tickets for ever. */
  #lack(): void {
    const now = this.#ctx.clock.now();
    this.#lackingSince ??= now;
    if (now - this.#lackingSince < LACKING_MS) return;
    this.#lackingSince = now;
    this.#taker.pause();
    this.#init.onNotice('announced weights cannot be had for a minute: tickets that wait for them go to others');
  }

  async #load(announcement: Announcement): Promise<boolean> {
    const { broker, paths, onNotice } = this.#init;
    const { version, digest, bytes } = announcement;
    const adapter = servedBy(announcement);
    if (adapter) {
      await this.#ctx.resolve<InferenceCommand>(paths.inference).tell({ type: 'told', adapter });
      this.#taker.loaded(version, digest);
      return true;
    }
    const found = await this.#say(() => broker.weights.get(digest, bytes), onNotice);
    if (!found || digestOf(found) !== digest) return false;
    this.#params = decodeWeights(found, version, `the weights of update ${version}`);
    // Before any ticket that waits for them, and it overtakes turns that wait.
    await this.#ctx.resolve<InferenceCommand>(paths.inference).tell({ type: 'loadWeights', params: this.#params });
    this.#taker.loaded(version, digest);
    return true;
  }

  #say<T>(say: () => Promise<T>, onSilence?: (text: string) => void): Promise<T> {
    return sayAgain(this.#ctx.clock, () => this.#stopped, say, onSilence);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#ctx.clock.after(ms, resolve));
  }
}

/** Adapter by which a server has the announced weights; undefined where workers load them. */
export function servedBy({ version, adapter }: Announcement): ServedAdapter | undefined {
  return adapter && { version, ...adapter };
}
