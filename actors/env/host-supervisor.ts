/**
 * Supervisor of the env hosts: starts them, watches them, and ends and replaces those that misbehave. Which episodes are
 * brought back, and which fail, is up to the pool.
 */
import type { ChaosLedger } from '../../src/chaos/chaos-ledger.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import { messageOf } from '../../src/core/errors.ts';
import type { FailureCause } from '../../src/core/failure.ts';
import type { StepBounds } from './check.ts';
import { Dispatch } from './dispatch.ts';
import { type HostVariables, hostEnvironment } from './host-environment.ts';
import { HostProcesses } from './host-processes.ts';
import { HostThreads, type ThreadLimits } from './host-threads.ts';
import type { Host, HostEnd, HostFactory } from './hosts.ts';
import { startInlineHost } from './inline-host.ts';
import type { EnvEvent, EnvSpec } from './protocol.ts';
import {
  awaits,
  deadlineOf,
  judge,
  newSlot,
  type OpenEpisode,
  type Slot,
  startSlot,
  suspects,
  type Verdict,
} from './slot.ts';

/** Milliseconds in which a host loads its envs: an index or a browser takes seconds. */
const START_MS = 30_000;
/** Env hosts replaced in a row, no action answered in between, after which the environment counts as broken. */
const MAX_RESTARTS = 10;
/** Starts that may fail in a row before the pool gives up. */
const MAX_FAILED_STARTS = 3;
/** Looks in time that one which comes late counts for at most: fewer than a deadline has. */
const LATE_LOOKS = 3;
/** Longest delay of an injected slow step, as a share of the deadline. */
const SLOW_SHARE = 0.5;

/** Options of the hosts. */
export interface HostSettings extends Pick<RunConfig['rollout'], 'isolation' | 'stepDeadlineMs' | 'openDeadlineMs'> {
  readonly envs: readonly EnvSpec[];
  /** Hosts, each in a thread or process of its own; one where `isolation` is `inline`. */
  readonly threads: number;
  /** Factory of the hosts in place of that of `isolation`; for tests. */
  readonly hosts?: HostFactory | undefined;
  /** Hosts replaced in a row, no action answered in between, until the pool gives up. Default `MAX_RESTARTS`. */
  readonly maxRestarts?: number | undefined;
  /** False where the policy does not need the list of actions. Default true. */
  readonly listActions?: boolean | undefined;
  readonly resourceLimits?: ThreadLimits;
  /** Environment variables that hosts inherit, or do not, whatever their names look like; inline hosts have all. */
  readonly variables?: HostVariables | undefined;
  readonly clock?: Clock | undefined;
  /** Faults to inject. */
  readonly chaos?: Pick<ChaosLedger, 'spec'> | undefined;
  /**
   * Declares outside work (`ActorSystem.outside`), where the pool is inline in a serial system and its envs wait in
   * real time.
   */
  readonly outside?: (<T>(work: Promise<T>) => Promise<T>) | undefined;
}

/** Listener to the supervisor. */
export interface SupervisorListener {
  /** Called with answers of a slot's present host. */
  onAnswers(slot: Slot, events: readonly EnvEvent[]): void;
  /** Called when a slot's host was ended, before the next one starts: its episodes are to be restored, or to fail. */
  onEnded(slot: Slot, culprits: readonly OpenEpisode[], end: HostEnd): void;
  /** Called when hosts cannot be kept up any more. The listener then closes the supervisor. */
  onBroken(message: string): Promise<void>;
}

/** Supervisor of the hosts of one pool. */
export class HostSupervisor {
  /** Slots; each outlives its hosts. */
  readonly slots: readonly Slot[];
  readonly dispatch: Dispatch;
  /** Ids of worlds whose actions must not be repeated, as the hosts state. */
  readonly unrepeatable = new Set<string>();
  /** Bounds that the worlds state, by id. */
  readonly bounds = new Map<string, StepBounds>();
  readonly #settings: HostSettings;
  readonly #clock: Clock;
  /** Factory of the hosts; absent where they are inline. */
  readonly #factory: HostFactory | undefined;
  readonly #episodes: ReadonlyMap<number, OpenEpisode>;
  readonly #listener: SupervisorListener;
  readonly #pollMs: number;
  #closed = false;
  #cancelPoll: (() => void) | undefined;
  /** Hosts replaced since an action was answered. */
  #replacedInRow = 0;

  /** @param episodes that are open, by number; the pool's own map */
  constructor(settings: HostSettings, episodes: ReadonlyMap<number, OpenEpisode>, listener: SupervisorListener) {
    this.#settings = settings;
    this.#episodes = episodes;
    this.#listener = listener;
    this.#clock = settings.clock ?? systemClock;
    const inline = settings.isolation === 'inline';
    const { threads, resourceLimits = {} } = settings;
    if (settings.hosts) this.#factory = settings.hosts;
    else if (!inline) {
      const variables = hostEnvironment(process.env, settings.variables);
      this.#factory =
        settings.isolation === 'thread'
          ? new HostThreads(threads, resourceLimits, variables)
          : new HostProcesses(resourceLimits.maxOldGenerationSizeMb, variables);
    }
    this.slots = Array.from({ length: inline ? 1 : threads }, (_, i) => newSlot(`/env-hosts/${i}`));
    this.dispatch = new Dispatch(this.slots, episodes, this.#factory === undefined);
    this.#pollMs = Math.min(250, Math.max(10, Math.min(settings.stepDeadlineMs, settings.openDeadlineMs) / 4));
  }

  /** Starts a host in every slot, and the watch over them. @throws {LongplayError} ENV_BROKEN when one cannot be started */
  async start(): Promise<void> {
    await Promise.all(this.slots.map((slot) => this.#startHost(slot)));
    if (this.#factory) this.#poll();
  }

  /** Records that an action was answered: hosts replaced before are no longer in a row. */
  recordAnswered(): void {
    this.#replacedInRow = 0;
  }

  /** Ends a slot's host and starts another. */
  replace(slot: Slot, { culprits: blamed, shown, cause, message }: Verdict): void {
    const tried = slot.trial?.record;
    // One whose code was not shown is cleared, but not again and again: a beacon that lies would end hosts for ever.
    const cleared = shown && this.#replacedInRow === 0;
    const onTrial = blamed.length === 0 && !cleared && tried && slot.episodes.has(tried);
    const culprits = onTrial ? [tried] : blamed;
    // No suspect, or one blamed in vain: from now on one command at a time, so that the next end has one suspect.
    if (culprits.length === 0 || this.#replacedInRow > 0) slot.careful = 2 * slot.episodes.size + 2;
    slot.trial = undefined;
    slot.queue = [];
    slot.host?.kill();
    slot.host = undefined;
    slot.replaced++;
    slot.sent = 0;
    slot.calling = false;
    slot.outbox = [];
    this.#listener.onEnded(slot, culprits, { cause, message });
    if (++this.#replacedInRow > (this.#settings.maxRestarts ?? MAX_RESTARTS)) {
      const why = `${slot.where} and its siblings were replaced ${this.#replacedInRow} times and answered no action in between`;
      void this.#listener.onBroken(`the environment is broken: ${why} (the last time: ${cause}, ${message})`);
    } else void this.#restart(slot);
  }

  /** Closes all hosts. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelPoll?.();
    await Promise.all(this.slots.map((slot) => slot.host?.close()));
    await this.#factory?.close();
  }

  async #startHost(slot: Slot): Promise<void> {
    const { envs, listActions = true, outside, stepDeadlineMs, chaos } = this.#settings;
    let host: Host | undefined;
    const listener = {
      events: (events: readonly EnvEvent[]) => {
        if (slot.host === host) this.#listener.onAnswers(slot, events);
      },
      onDied: (cause: FailureCause, message: string) => {
        if (slot.host !== host) return;
        // A host that ends by an error has found no episode to blame for it (see `runHost`), and what is no answer may
        // have been sent by any: guessing would be wrong.
        const unknown = cause === 'threw' || cause === 'protocol';
        const found = suspects(unknown ? undefined : host?.beacon(), this.#episodes);
        this.replace(slot, { ...found, cause, message });
      },
    };
    const where = slot.where;
    const faults = chaos && { spec: chaos.spec, slowMs: SLOW_SHARE * stepDeadlineMs };
    const made = { envs, listActions, where, chaos: faults, watchful: slot.careful > 0 };
    if (this.#factory) host = await this.#factory.start(made, listener, START_MS);
    else {
      const deadlineMs = (episode: number) => deadlineOf(this.#episodes.get(episode), this.#settings);
      const clock = this.#clock;
      const starting = startInlineHost({ ...made, clock, deadlineMs, outside }, listener);
      host = await (outside ? outside(starting) : starting);
    }
    if (this.#closed) {
      host.kill();
      return;
    }
    startSlot(slot, host, this.#clock.now());
    for (const { id, replay, bounds } of host.facts) {
      if (replay === 'never') this.unrepeatable.add(id);
      if (bounds) this.bounds.set(id, bounds);
    }
    this.dispatch.sendWaiting(slot);
  }

  async #restart(slot: Slot): Promise<void> {
    while (!this.#closed) {
      try {
        return await this.#startHost(slot);
      } catch (error) {
        if (this.#closed) return;
        if (++slot.failedStarts >= MAX_FAILED_STARTS) {
          const why = `${slot.where} could not be started ${slot.failedStarts} times: ${messageOf(error)}`;
          await this.#listener.onBroken(why);
        }
      }
    }
  }

  /** Asks a host for a sign of life. */
  #ping(slot: Slot, host: Host): void {
    slot.calling = true;
    const restartDeadline = () => {
      if (slot.host !== host) return;
      slot.calling = false;
      slot.responses++;
    };
    if (host.awaitSettled) host.awaitSettled().then(restartDeadline, () => {});
    else restartDeadline();
  }

  #poll(): void {
    const now = this.#clock.now();
    this.dispatch.recount();
    for (const slot of this.slots) {
      const found = slot.host && judge(slot, slot.host, this.#episodes, this.#settings, now, LATE_LOOKS * this.#pollMs);
      if (found) this.replace(slot, found);
      else if (slot.host && !slot.calling && awaits(slot)) this.#ping(slot, slot.host);
    }
    if (!this.#closed) this.#cancelPoll = this.#clock.setTimer(this.#pollMs, () => this.#poll());
  }
}
