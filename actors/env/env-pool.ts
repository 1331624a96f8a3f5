/**
 * Env pool, the main thread's side of the environments: owns the hosts, sends them commands in batches, watches them,
 * ends and replaces those that misbehave, and restores the bystander episodes.
 *
 * An episode stays with its host. When a host must be ended, the one episode at fault is reported as `failed`. Every
 * other one is opened again on the new host and its actions are repeated, so the only visible effect is latency. An
 * episode whose replay shows another observation is not a pure function of its actions, and fails as `protocol`. In a
 * world whose actions must not be repeated (`Env.replay: 'never'`) an episode that has taken one is `lost` instead.
 */
import { type Observable, Subject } from 'rxjs';
import type { ChaosLedger } from '../../src/chaos/chaos-ledger.ts';
import { stepFault } from '../../src/chaos/injector.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import { LongplayError, messageOf } from '../../src/core/errors.ts';
import type { Failure, FailureCause } from '../../src/core/failure.ts';
import { isWithin, type StepBounds } from './check.ts';
import { Dispatch } from './dispatch.ts';
import { type HostVariables, hostEnvironment } from './host-environment.ts';
import { HostProcesses } from './host-processes.ts';
import { HostThreads, type ThreadLimits } from './host-threads.ts';
import type { Host, HostFactory } from './hosts.ts';
import { startInlineHost } from './inline-host.ts';
import type { EnvCommand, EnvEvent, EnvSpec, Observed, Open } from './protocol.ts';
import {
  awaits,
  deadlineOf,
  judge,
  newEpisode,
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

export interface EnvPoolOptions extends Pick<RunConfig['rollout'], 'isolation' | 'stepDeadlineMs' | 'openDeadlineMs'> {
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
  /** Faults to inject, and the ledger that counts their outcomes. */
  readonly chaos?: ChaosLedger | undefined;
  /**
   * Declares outside work (`ActorSystem.outside`), where the pool is inline in a serial system and its envs wait in
   * real time.
   */
  readonly outside?: (<T>(work: Promise<T>) => Promise<T>) | undefined;
}

export interface EnvPoolStats {
  readonly open: number;
  /** Episodes that wait for their env; each has a deadline. */
  readonly pending: number;
  /** Answers emitted. */
  readonly observed: number;
  readonly failed: Readonly<Partial<Record<FailureCause, number>>>;
  /** Episodes brought back after the end of their host. */
  readonly restored: number;
  /** Late messages: commands for, and answers of, episodes that were over. */
  readonly late: number;
  readonly hosts: readonly {
    readonly where: string;
    readonly up: boolean;
    readonly episodes: number;
    readonly replaced: number;
  }[];
}

export interface EnvPool {
  /**
   * Sends a command with the others of this turn of the event loop. Steps and closes of an episode that is over are
   * ignored (its `failed` is on the way).
   * @throws {LongplayError} BAD_ARGUMENT for an episode opened twice, a second command before the answer to the
   * first, or an unknown env; ACTOR_STOPPED after `close`
   */
  send(command: EnvCommand): void;
  /** Observations: every answer, in the order it arrived. Errors, once, when hosts cannot be started any more. */
  readonly observations$: Observable<EnvEvent>;
  stats(): EnvPoolStats;
  close(): Promise<void>;
}

/** Starts that may fail in a row before the pool gives up. */
const MAX_FAILED_STARTS = 3;
/** Looks in time that one which comes late counts for at most: fewer than a deadline has. */
const LATE_LOOKS = 3;
/** Longest delay of an injected slow step, as a share of the deadline. */
const SLOW_SHARE = 0.5;

/** Starts the hosts. @throws {LongplayError} ENV_BROKEN when they cannot load the envs */
export async function createEnvPool(options: EnvPoolOptions): Promise<EnvPool> {
  const pool = new Pool(options);
  await pool.start();
  return pool;
}

class Pool implements EnvPool {
  readonly observations$ = new Subject<EnvEvent>();
  readonly #options: EnvPoolOptions;
  readonly #clock: Clock;
  /** Factory of the hosts; absent where they are inline. */
  readonly #factory: HostFactory | undefined;
  readonly #chaos: ChaosLedger | undefined;
  readonly #slots: readonly Slot[];
  readonly #episodes = new Map<number, OpenEpisode>();
  readonly #dispatch: Dispatch;
  readonly #ids: ReadonlySet<string>;
  /** Ids of worlds whose actions must not be repeated. */
  readonly #unrepeatable = new Set<string>();
  /** Bounds that the worlds state. */
  readonly #bounds = new Map<string, StepBounds>();
  readonly #failed: Partial<{ [C in FailureCause]: number }> = {};
  readonly #pollMs: number;
  #observed = 0;
  #restored = 0;
  #late = 0;
  #closed = false;
  #cancelPoll: (() => void) | undefined;
  /** Hosts replaced since an action was answered. */
  #replacedInRow = 0;

  constructor(options: EnvPoolOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#ids = new Set(options.envs.map(({ id }) => id));
    const inline = options.isolation === 'inline';
    const { threads, resourceLimits = {} } = options;
    if (options.hosts) this.#factory = options.hosts;
    else if (!inline) {
      const variables = hostEnvironment(process.env, options.variables);
      this.#factory =
        options.isolation === 'thread'
          ? new HostThreads(threads, resourceLimits, variables)
          : new HostProcesses(resourceLimits.maxOldGenerationSizeMb, variables);
    }
    this.#chaos = options.chaos;
    this.#slots = Array.from({ length: inline ? 1 : threads }, (_, i) => newSlot(`/env-hosts/${i}`));
    this.#dispatch = new Dispatch(this.#slots, this.#episodes, this.#factory === undefined);
    this.#pollMs = Math.min(250, Math.max(10, Math.min(options.stepDeadlineMs, options.openDeadlineMs) / 4));
  }

  async start(): Promise<void> {
    try {
      await Promise.all(this.#slots.map((slot) => this.#startHost(slot)));
    } catch (error) {
      await this.close();
      throw error;
    }
    if (this.#factory) this.#poll();
  }

  send(command: EnvCommand): void {
    if (this.#closed) throw new LongplayError('ACTOR_STOPPED', 'the env pool is closed');
    const record = this.#episodes.get(command.episode);
    if (command.type === 'open') {
      this.#open(command, record);
      return;
    }
    if (!record) {
      this.#late++;
      return;
    }
    if (command.type === 'close') {
      this.#chaos?.recordClosed(command.episode);
      this.#drop(record);
      this.#dispatch.send(record.slot, command);
      return;
    }
    if (record.pending) {
      const message = `episode ${command.episode}: step ${command.turn} before the answer to the last command`;
      throw new LongplayError('BAD_ARGUMENT', message);
    }
    record.pending = 'step';
    record.step = command;
    const fault = this.#chaos && stepFault(this.#chaos.spec, command.episode, command.turn);
    if (fault) this.#chaos!.inject(command.episode, fault.kind);
    // While it is being restored the step waits for the replay.
    if (!record.restoring) this.#dispatch.ask(record, command);
  }

  stats(): EnvPoolStats {
    return {
      open: this.#episodes.size,
      pending: [...this.#episodes.values()].filter(({ pending, restoring }) => pending || restoring).length,
      observed: this.#observed,
      failed: { ...this.#failed },
      restored: this.#restored,
      late: this.#late,
      hosts: this.#slots.map(({ where, host, episodes, replaced }) => ({
        where,
        up: host !== undefined,
        episodes: episodes.size,
        replaced,
      })),
    };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelPoll?.();
    await Promise.all(this.#slots.map((slot) => slot.host?.close()));
    await this.#factory?.close();
    this.#chaos?.end();
    this.observations$.complete();
  }

  #open(command: Open, known: OpenEpisode | undefined): void {
    if (known) throw new LongplayError('BAD_ARGUMENT', `episode ${command.episode} is open already`);
    if (!this.#ids.has(command.task.env)) {
      throw new LongplayError('BAD_ARGUMENT', `no env '${command.task.env}'; there are ${[...this.#ids].join(', ')}`);
    }
    const slot = this.#slots.reduce((least, other) => (other.episodes.size < least.episodes.size ? other : least));
    const record = newEpisode(command, slot);
    this.#episodes.set(command.episode, record);
    slot.episodes.add(record);
    if (this.#mustNotRepeat(record)) {
      const message = `actions of ${command.task.env} must not be taken again, so its episodes cannot be brought back`;
      queueMicrotask(() => {
        if (this.#episodes.get(command.episode) === record)
          this.#fail(record, { cause: 'lost', where: slot.where, message });
      });
      return;
    }
    this.#dispatch.ask(record, command);
  }

  async #startHost(slot: Slot): Promise<void> {
    const { envs, listActions = true, outside, stepDeadlineMs } = this.#options;
    let host: Host | undefined;
    const listener = {
      events: (events: readonly EnvEvent[]) => this.#receive(slot, host, events),
      onDied: (cause: FailureCause, message: string) => {
        if (slot.host !== host) return;
        // A host that ends by an error has found no episode to blame for it (see `runHost`), and what is no answer may
        // have been sent by any: guessing would be wrong.
        const unknown = cause === 'threw' || cause === 'protocol';
        const found = suspects(unknown ? undefined : host?.beacon(), this.#episodes);
        this.#replace(slot, { ...found, cause, message });
      },
    };
    const where = slot.where;
    const faults = this.#chaos && { spec: this.#chaos.spec, slowMs: SLOW_SHARE * stepDeadlineMs };
    const made = { envs, listActions, where, chaos: faults, watchful: slot.careful > 0 };
    if (this.#factory) host = await this.#factory.start(made, listener, START_MS);
    else {
      const deadlineMs = (episode: number) => deadlineOf(this.#episodes.get(episode), this.#options);
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
      if (replay === 'never') this.#unrepeatable.add(id);
      if (bounds) this.#bounds.set(id, bounds);
    }
    this.#dispatch.sendWaiting(slot);
  }

  #receive(slot: Slot, host: Host | undefined, events: readonly EnvEvent[]): void {
    if (slot.host !== host) return;
    for (const event of events) {
      const record = this.#episodes.get(event.episode);
      if (!record) {
        this.#late++;
        this.#chaos?.late(event.episode);
      } else if (record.slot !== slot || !(record.pending || record.restoring) || !this.#accept(record, event)) {
        const turn = event.type === 'observed' ? ` of turn ${event.turn}` : '';
        const message = `an answer${turn} that episode ${event.episode} did not wait for`;
        const culprits = record && isRepeated(record, event) ? [record] : [];
        this.#replace(slot, { culprits, shown: false, cause: 'protocol', message });
        return;
      }
    }
  }

  /** Asks a host for a sign of life. */
  #call(slot: Slot, host: Host): void {
    slot.calling = true;
    const restartDeadline = () => {
      if (slot.host !== host) return;
      slot.calling = false;
      slot.responses++;
    };
    if (host.awaitSettled) host.awaitSettled().then(restartDeadline, () => {});
    else restartDeadline();
  }

  /** @returns false for what cannot be the answer to the command in hand */
  #accept(record: OpenEpisode, event: EnvEvent): boolean {
    const listed = record.restoring ? 0 : record.listed;
    const bounds = this.#bounds.get(record.open.task.env);
    if (event.type === 'observed' && !isWithin(event, listed, bounds)) return false;
    this.#dispatch.countAnswer(record);
    if (event.type === 'failed') {
      this.#fail(record, event.failure);
      return true;
    }
    if (record.restoring) {
      this.#applyReplayed(record, event);
      return true;
    }
    const turn = record.pending === 'open' ? record.actions.length : record.actions.length + 1;
    if (event.turn !== turn) return false;
    if (record.step) {
      record.actions.push(record.step.action);
      this.#replacedInRow = 0;
    }
    record.pending = record.step = undefined;
    record.last = event;
    record.listed += event.newActions.length;
    if (event.turn > 0) this.#chaos?.recordAnswered(event.episode);
    if (event.step.kind === 'terminated') this.#drop(record);
    this.#observed++;
    this.observations$.next(event);
    return true;
  }

  #applyReplayed(record: OpenEpisode, event: Observed): void {
    const { last } = record;
    record.restoring = false;
    if (last && (event.turn !== last.turn || event.step.observation !== last.step.observation)) {
      const message = `the env is not a pure function of its actions: replaying ${record.actions.length} of them gave another observation`;
      this.#fail(record, { cause: 'protocol', where: record.slot.where, message });
      this.#dispatch.send(record.slot, { type: 'close', episode: event.episode });
      return;
    }
    const { step } = record;
    record.pending = step && 'step';
    if (step) this.#dispatch.ask(record, step);
  }

  #fail(record: OpenEpisode, seen: Failure): void {
    const { episode } = record.open;
    this.#drop(record);
    const fault = this.#chaos?.recordFailed(episode, seen.cause);
    const failure: Failure = fault === 'drop' ? { ...seen, cause: 'injected-drop' } : seen;
    this.#failed[failure.cause] = (this.#failed[failure.cause] ?? 0) + 1;
    this.observations$.next({ type: 'failed', episode, failure });
  }

  #drop(record: OpenEpisode): void {
    this.#episodes.delete(record.open.episode);
    record.slot.episodes.delete(record);
    this.#dispatch.settle(record);
  }

  /** Ends a host, starts another, fails the culprits and restores the rest. */
  #replace(slot: Slot, { culprits: blamed, shown, cause, message }: Verdict): void {
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
    // Restored before the failure is emitted: a listener may open the next episode at once.
    const lost: OpenEpisode[] = [];
    for (const record of [...slot.episodes]) {
      if (culprits.includes(record)) continue;
      if (this.#mustNotRepeat(record)) lost.push(record);
      else this.#restore(record);
    }
    for (const culprit of culprits) this.#fail(culprit, { cause, where: slot.where, message });
    for (const record of lost) {
      const why = `its host was ended (${cause}, ${message}), and its actions must not be taken again`;
      this.#fail(record, { cause: 'lost', where: slot.where, message: why });
    }
    if (++this.#replacedInRow > (this.#options.maxRestarts ?? MAX_RESTARTS)) {
      const why = `${slot.where} and its siblings were replaced ${this.#replacedInRow} times and answered no action in between`;
      void this.#giveUp(`the environment is broken: ${why} (the last time: ${cause}, ${message})`);
    } else void this.#restart(slot);
  }

  /** True for an action that was taken, or may have been, and that bringing the episode back would take again. */
  #mustNotRepeat({ open, actions, pending }: OpenEpisode): boolean {
    return this.#unrepeatable.has(open.task.env) && (actions.length > 0 || pending === 'step');
  }

  #restore(record: OpenEpisode): void {
    this.#restored++;
    if (!record.last) {
      this.#dispatch.ask(record, record.open);
      return;
    }
    record.restoring = true;
    this.#dispatch.ask(record, { ...record.open, replay: record.actions });
    // An answer must be awaited even where the policy is still thinking; its step then waits for it.
    record.pending = record.step ? 'step' : undefined;
  }

  async #restart(slot: Slot): Promise<void> {
    while (!this.#closed) {
      try {
        return await this.#startHost(slot);
      } catch (error) {
        if (this.#closed) return;
        if (++slot.failedStarts >= MAX_FAILED_STARTS) {
          await this.#giveUp(`${slot.where} could not be started ${slot.failedStarts} times: ${messageOf(error)}`);
        }
      }
    }
  }

  async #giveUp(message: string): Promise<void> {
    this.observations$.error(new LongplayError('ENV_BROKEN', `${message}; run \`longplay check-env\``));
    await this.close();
  }

  #poll(): void {
    const now = this.#clock.now();
    this.#dispatch.recount();
    for (const slot of this.#slots) {
      const found = slot.host && judge(slot, slot.host, this.#episodes, this.#options, now, LATE_LOOKS * this.#pollMs);
      if (found) this.#replace(slot, found);
      else if (slot.host && !slot.calling && awaits(slot)) this.#call(slot, slot.host);
    }
    if (!this.#closed) this.#cancelPoll = this.#clock.setTimer(this.#pollMs, () => this.#poll());
  }
}

/** True for an answer that came before. Any other one that was not waited for may have been forged by another's code. */
function isRepeated({ last }: OpenEpisode, event: EnvEvent): boolean {
  return event.type === 'observed' && event.turn === last?.turn && event.step.observation === last.step.observation;
}
