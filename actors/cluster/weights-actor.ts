/**
 * Weights actor: stores each version of the weights and announces it, once every result that it was made of is on the disk.
 * Of two learners the one that began later stays: an announcement names the one before it.
 */
import { type Broker, BrokerConflict, type StoredAnnouncement } from '../../src/cluster/broker.ts';
import {
  type Announcement,
  type ClusterIdentity,
  decodeAnnouncement,
  encodeAnnouncement,
} from '../../src/cluster/identity.ts';
import { Stopped, sayAgain } from '../../src/cluster/say-again.ts';
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
  /** Returns once the journal is on the disk. */
  readonly sync: () => void;
  readonly onNotice: (text: string) => void;
  /** True where a generation server has the weights: a version is announced once `served` names its adapter. */
  readonly isServed: boolean;
}

/** Internal: time to see whether the broker still has what was announced. */
type Internal = WeightsCommand | { readonly type: 'look' };

const LOOK_MS = 2000;
/** Versions kept at the broker besides the newest: a worker may be about to fetch one. */
const KEPT = 4;

export function weightsActor(init: WeightsInit): BehaviorFactory<Internal> {
  return async (ctx) => {
    const weights = new AnnouncedWeights(ctx, init);
    await weights.begin();
    ctx.after(LOOK_MS, { type: 'look' });
    return {
      handlers: {
        publish: (publish) => weights.publish(publish),
        shutOut: ({ worker }) => weights.shutOut(worker),
        served: ({ adapter }) => weights.served(adapter),
        look: async () => {
          await weights.look();
          ctx.after(LOOK_MS, { type: 'look' });
        },
      },
      stopped: () => weights.stop(),
    };
  };
}

class AnnouncedWeights {
  readonly #ctx: Context<Internal>;
  readonly #init: WeightsInit;
  /** Digests under which weights lie at the broker, oldest first. */
  readonly #stored: string[] = [];
  #newest: Omit<Publish, 'type'>;
  #life = 1;
  #revision = 0;
  /** Version that an earlier process has announced, and that the learner is about to make again. */
  #ahead = -1;
  readonly #shutOut: string[] = [];
  /** Newest adapter that the policy's server has. */
  #adapter: ServedAdapter | undefined;
  #stopped = false;

  constructor(ctx: Context<Internal>, init: WeightsInit) {
    this.#ctx = ctx;
    this.#init = init;
    this.#newest = init.first;
  }

  /** Announces the run. What an earlier process announced stays, where the journal leads there. */
  async begin(): Promise<void> {
    const { broker, run, digests, first } = this.#init;
    await this.#say(() => broker.prepare());
    const found = await this.#say(() => broker.weights.readAnnouncement());
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
      this.#ahead = before.version;
      await this.#announce({ ...before, life: this.#life, ended: false });
    } else if (!this.#init.isServed) await this.#store(first);
  }

  async served(adapter: ServedAdapter): Promise<void> {
    this.#adapter = adapter;
    const { version } = this.#newest;
    if (version === adapter.version && version > this.#ahead) await this.#quietly(() => this.#store(this.#newest));
  }

  async publish(publish: Publish): Promise<void> {
    this.#init.digests.set(publish.version, publish.digest);
    this.#newest = publish;
    const { version } = publish;
    if (this.#init.isServed && this.#adapter?.version !== version) return; // `served` is on its way
    if (version > this.#ahead) await this.#quietly(() => this.#store(publish));
  }

  async shutOut(worker: string): Promise<void> {
    this.#shutOut.push(worker);
    if (this.#newest.version < this.#ahead || !this.#isThere) return; // the next announcement says so
    await this.#quietly(() => this.#announce(this.#announcement(this.#newest)));
  }

  /** Stores and announces again what a broker has forgotten. */
  async look(): Promise<void> {
    const { broker } = this.#init;
    if (this.#newest.version < this.#ahead || !this.#isThere) return;
    await this.#quietly(async () => {
      if (await this.#say(() => broker.weights.readAnnouncement())) return;
      this.#revision = 0;
      await this.#store(this.#newest);
    });
  }

  /** Announces the end, where the broker is there to hear it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    try {
      await this.#init.broker.weights.announce(
        encodeAnnouncement({ ...this.#announcement(this.#newest), ended: true }),
        this.#revision,
      );
      await this.#init.broker.tickets.clear();
    } catch {
      // It is away, or another learner has the run: workers notice either by themselves.
    }
  }

  async #store({ version, digest, bytes }: Omit<Publish, 'type'>): Promise<void> {
    const { broker, sync } = this.#init;
    sync();
    if (this.#init.isServed) {
      await this.#announce(this.#announcement({ version, digest, bytes }));
      return;
    }
    await this.#say(() => broker.weights.put(digest, bytes));
    await this.#announce(this.#announcement({ version, digest, bytes }));
    this.#stored.push(digest);
    while (this.#stored.length > KEPT) {
      const old = this.#stored.shift()!;
      if (this.#stored.includes(old)) continue;
      await this.#say(() => broker.weights.remove(old));
    }
  }

  #announcement({ version, digest, bytes }: Omit<Publish, 'type'>): Announcement {
    const { identity, config } = this.#init;
    const named = { format: 1, identity, config, life: this.#life, shutOut: this.#shutOut } as const;
    const adapter =
      this.#adapter?.version === version ? { name: this.#adapter.name, folder: this.#adapter.folder } : undefined;
    return { ...named, version, digest, bytes: bytes.length, adapter, ended: false };
  }

  /** True where workers can have the newest weights. */
  get #isThere(): boolean {
    return !this.#init.isServed || this.#adapter?.version === this.#newest.version;
  }

  /** @throws {LongplayError} STALLED where another learner has taken the run over */
  async #announce(announcement: Announcement): Promise<void> {
    const { broker, run } = this.#init;
    const bytes = encodeAnnouncement(announcement);
    for (;;) {
      try {
        this.#revision = await this.#say(() => broker.weights.announce(bytes, this.#revision));
        return;
      } catch (thrown) {
        if (!(thrown instanceof BrokerConflict)) throw thrown;
      }
      const found: StoredAnnouncement | undefined = await this.#say(() => broker.weights.readAnnouncement());
      const other = found && decodeAnnouncement(found.bytes);
      if (other && (other.life > this.#life || (other.life === this.#life && other.version > announcement.version))) {
        throw new LongplayError(
          'STALLED',
          `another process trains run '${run}' at this broker now (its number ${other.life})`,
        );
      }
      // Only now: with the other's revision, `stop` would put the end of this process over what the other has announced.
      this.#revision = found?.revision ?? 0;
      // An answer of ours that was lost, or a broker that has gone back.
      if (other && other.life === this.#life && other.digest === announcement.digest) return;
    }
  }

  #say<T>(say: () => Promise<T>): Promise<T> {
    return sayAgain(
      this.#ctx.clock,
      () => this.#stopped,
      say,
      (text) => this.#init.onNotice(`weights are not announced: ${text}`),
    );
  }

  async #quietly(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (!(thrown instanceof Stopped)) throw thrown;
    }
  }
}
