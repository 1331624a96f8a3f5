/**
 * Weights actor: stores and announces each version of the weights, once every result that it was made of is on the disk.
 * Of two learners the one that started later stays: announcements are compare-and-set.
 */
import { type Broker, BrokerConflict, type StoredAnnouncement } from '../../src/cluster/broker.ts';
import {
  type Announcement,
  type ClusterIdentity,
  decodeAnnouncement,
  encodeAnnouncement,
} from '../../src/cluster/identity.ts';
import { retryWhileUnavailable, Stopped } from '../../src/cluster/retry.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { LongplayError, UserError } from '../../src/core/errors.ts';
import type { ServedAdapter } from '../../src/policy/served-adapters.ts';
import type { BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import type { Publish, WeightsCommand } from './protocol.ts';

export interface WeightsInit {
  readonly broker: Broker;
  readonly run: string;
  readonly identity: ClusterIdentity;
  readonly config: RunConfig;
  /** Weights that the run starts with. */
  readonly first: Omit<Publish, 'type'>;
  /** Digests of this run's weights, by version: the journal's, and from now on all that come. */
  readonly digests: Map<number, string>;
  /** Writes the journal to the disk. */
  readonly sync: () => void;
  readonly onNotice: (text: string) => void;
  /** True where a generation server samples: a version is announced once `served` names its adapter. */
  readonly isServed: boolean;
}

/** Internal: time to check that the broker still has the announcement. */
type Internal = WeightsCommand | { readonly type: 'check' };

/** Milliseconds between two checks. */
const CHECK_MS = 2000;
/** Versions kept at the broker: a worker may be about to read one of them. */
const MAX_STORED = 4;

export function weightsActor(init: WeightsInit): BehaviorFactory<Internal> {
  return async (ctx) => {
    const weights = new WeightsPublisher(ctx, init);
    await weights.begin();
    ctx.sendAfter(CHECK_MS, { type: 'check' });
    return {
      handlers: {
        publish: (publish) => weights.publish(publish),
        ban: ({ worker }) => weights.ban(worker),
        served: ({ adapter }) => weights.served(adapter),
        check: async () => {
          await weights.restoreAnnouncement();
          ctx.sendAfter(CHECK_MS, { type: 'check' });
        },
      },
      stopped: () => weights.stop(),
    };
  };
}

class WeightsPublisher {
  readonly #ctx: Context<Internal>;
  readonly #init: WeightsInit;
  /** Digests of the weights that are stored, oldest first. */
  readonly #stored: string[] = [];
  #newest: Omit<Publish, 'type'>;
  #life = 1;
  #revision = 0;
  /** Version that an earlier process announced, and that the replayed journal leads to. Nothing is announced before it. */
  #replayedVersion = -1;
  readonly #banned: string[] = [];
  /** Newest adapter that the policy's server has. */
  #adapter: ServedAdapter | undefined;
  #isStopped = false;

  constructor(ctx: Context<Internal>, init: WeightsInit) {
    this.#ctx = ctx;
    this.#init = init;
    this.#newest = init.first;
  }

  /** Announces the run. The announcement of an earlier process stays, where the journal leads to it. */
  async begin(): Promise<void> {
    const { broker, run, digests, first } = this.#init;
    await this.#retry(() => broker.prepare());
    const found = await this.#retry(() => broker.weights.readAnnouncement());
    const before = found && decodeAnnouncement(found.bytes);
    this.#revision = found?.revision ?? 0;
    this.#life = (before?.life ?? 0) + 1;
    digests.set(first.version, first.digest);
    if (before && !before.ended && before.version >= first.version && digests.get(before.version) !== before.digest) {
      throw new UserError(
        'RUN_EXISTS',
        `run '${run}' is announced at this broker at update ${before.version}, by weights that this folder does not lead to: another learner trains it, or this is an older copy of its folder; give the run another name (--name, or rename the folder)`,
      );
    }
    if (before && before.version > first.version && digests.get(before.version) === before.digest) {
      this.#replayedVersion = before.version;
      await this.#announce({ ...before, life: this.#life, ended: false });
    } else if (!this.#init.isServed) await this.#store(first);
  }

  async served(adapter: ServedAdapter): Promise<void> {
    this.#adapter = adapter;
    const { version } = this.#newest;
    if (version === adapter.version && version > this.#replayedVersion)
      await this.#unlessStopped(() => this.#store(this.#newest));
  }

  async publish(publish: Publish): Promise<void> {
    this.#init.digests.set(publish.version, publish.digest);
    this.#newest = publish;
    const { version } = publish;
    if (this.#init.isServed && this.#adapter?.version !== version) return; // `served` is on its way
    if (version > this.#replayedVersion) await this.#unlessStopped(() => this.#store(publish));
  }

  async ban(worker: string): Promise<void> {
    this.#banned.push(worker);
    if (this.#newest.version < this.#replayedVersion || !this.#isAvailable) return; // the next announcement has it
    await this.#unlessStopped(() => this.#announce(this.#announcement(this.#newest)));
  }

  /** Stores and announces the newest weights again, where the broker has lost them. */
  async restoreAnnouncement(): Promise<void> {
    const { broker } = this.#init;
    if (this.#newest.version < this.#replayedVersion || !this.#isAvailable) return;
    await this.#unlessStopped(async () => {
      if (await this.#retry(() => broker.weights.readAnnouncement())) return;
      this.#revision = 0;
      await this.#store(this.#newest);
    });
  }

  /** Announces the end, where the broker is available. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    try {
      await this.#init.broker.weights.announce(
        encodeAnnouncement({ ...this.#announcement(this.#newest), ended: true }),
        this.#revision,
      );
      await this.#init.broker.tickets.clear();
    } catch {
      // The broker is unavailable, or another learner has the run: workers notice both by themselves.
    }
  }

  async #store({ version, digest, bytes }: Omit<Publish, 'type'>): Promise<void> {
    const { broker, sync } = this.#init;
    sync();
    if (this.#init.isServed) {
      await this.#announce(this.#announcement({ version, digest, bytes }));
      return;
    }
    await this.#retry(() => broker.weights.put(digest, bytes));
    await this.#announce(this.#announcement({ version, digest, bytes }));
    this.#stored.push(digest);
    while (this.#stored.length > MAX_STORED) {
      const old = this.#stored.shift()!;
      if (this.#stored.includes(old)) continue;
      await this.#retry(() => broker.weights.remove(old));
    }
  }

  #announcement({ version, digest, bytes }: Omit<Publish, 'type'>): Announcement {
    const { identity, config } = this.#init;
    const named = { format: 1, identity, config, life: this.#life, banned: this.#banned } as const;
    const adapter =
      this.#adapter?.version === version ? { name: this.#adapter.name, folder: this.#adapter.folder } : undefined;
    return { ...named, version, digest, bytes: bytes.length, adapter, ended: false };
  }

  /** True where workers can load the newest weights. */
  get #isAvailable(): boolean {
    return !this.#init.isServed || this.#adapter?.version === this.#newest.version;
  }

  /** @throws {LongplayError} STALLED where another learner has taken the run over */
  async #announce(announcement: Announcement): Promise<void> {
    const { broker, run } = this.#init;
    const bytes = encodeAnnouncement(announcement);
    for (;;) {
      try {
        this.#revision = await this.#retry(() => broker.weights.announce(bytes, this.#revision));
        return;
      } catch (thrown) {
        if (!(thrown instanceof BrokerConflict)) throw thrown;
      }
      const found: StoredAnnouncement | undefined = await this.#retry(() => broker.weights.readAnnouncement());
      const other = found && decodeAnnouncement(found.bytes);
      if (other && (other.life > this.#life || (other.life === this.#life && other.version > announcement.version))) {
        throw new LongplayError(
          'STALLED',
          `another process trains run '${run}' at this broker now (its number ${other.life})`,
        );
      }
      // Only now: with the other's revision, `stop` would overwrite the other learner's announcement.
      this.#revision = found?.revision ?? 0;
      // The answer to our own announcement was lost, or the broker came back with an older state.
      if (other && other.life === this.#life && other.digest === announcement.digest) return;
    }
  }

  #retry<T>(call: () => Promise<T>): Promise<T> {
    return retryWhileUnavailable(call, {
      clock: this.#ctx.clock,
      isStopped: () => this.#isStopped,
      onWaiting: (text) => this.#init.onNotice(`weights are not announced: ${text}`),
    });
  }

  async #unlessStopped(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (!(thrown instanceof Stopped)) throw thrown;
    }
  }
}
