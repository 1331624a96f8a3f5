/**
 * Env pool, the main thread's side of the environments: keeps the open episodes, sends their commands to the hosts, checks
 * the answers, and restores the bystander episodes of a host that was replaced (host-supervisor.ts).
 *
 * An episode stays with its host. When a host must be ended, the one episode at fault is reported as `failed`. Every
 * other one is opened again on the new host and its actions are repeated, so the only visible effect is latency. An
 * episode whose replay shows another observation is not a pure function of its actions, and fails as `protocol`. In a
 * world whose actions must not be repeated (`Env.replay: 'never'`) an episode that has taken one is `lost` instead.
 */
import { type Observable, Subject } from 'rxjs';
import type { ChaosLedger } from '../../src/chaos/chaos-ledger.ts';
import { stepFault } from '../../src/chaos/injector.ts';
import { AGENT } from '../../src/core/agent-call.ts';
import { LongplayError } from '../../src/core/errors.ts';
import { cureOf, type Failure, type FailureCause } from '../../src/core/failure.ts';
import { isWithin } from './check.ts';
import type { Dispatch } from './dispatch.ts';
import { type HostSettings, HostSupervisor } from './host-supervisor.ts';
import type { HostEnd } from './hosts.ts';
import type { EnvCommand, EnvEvent, Observed, Open } from './protocol.ts';
import { newEpisode, type OpenEpisode, type Slot } from './slot.ts';

export interface EnvPoolOptions extends HostSettings {
  /** Faults to inject, and the ledger that counts their outcomes. */
  readonly chaos?: ChaosLedger | undefined;
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

/** Starts the hosts. @throws {LongplayError} ENV_BROKEN when they cannot load the envs */
export async function createEnvPool(options: EnvPoolOptions): Promise<EnvPool> {
  const pool = new Pool(options);
  await pool.start();
  return pool;
}

class Pool implements EnvPool {
  readonly observations$ = new Subject<EnvEvent>();
  readonly #hosts: HostSupervisor;
  readonly #dispatch: Dispatch;
  readonly #chaos: ChaosLedger | undefined;
  readonly #episodes = new Map<number, OpenEpisode>();
  readonly #ids: ReadonlySet<string>;
  readonly #failed: Partial<{ [C in FailureCause]: number }> = {};
  #observed = 0;
  #restored = 0;
  #late = 0;
  #closed = false;

  constructor(options: EnvPoolOptions) {
    this.#ids = new Set(options.envs.map(({ id }) => id));
    this.#chaos = options.chaos;
    this.#hosts = new HostSupervisor(options, this.#episodes, {
      onAnswers: (slot, events) => this.#receive(slot, events),
      onEnded: (slot, culprits, end) => this.#recover(slot, culprits, end),
      onBroken: (message) => this.#giveUp(message),
    });
    this.#dispatch = this.#hosts.dispatch;
  }

  async start(): Promise<void> {
    try {
      await this.#hosts.start();
    } catch (error) {
      await this.close();
      throw error;
    }
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
      hosts: this.#hosts.slots.map(({ where, host, episodes, replaced }) => ({
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
    await this.#hosts.close();
    this.#chaos?.end();
    this.observations$.complete();
  }

  #open(command: Open, known: OpenEpisode | undefined): void {
    if (known) throw new LongplayError('BAD_ARGUMENT', `episode ${command.episode} is open already`);
    if (!this.#ids.has(command.task.env)) {
      throw new LongplayError('BAD_ARGUMENT', `no env '${command.task.env}'; there are ${[...this.#ids].join(', ')}`);
    }
    const slot = this.#hosts.slots.reduce((least, other) =>
      other.episodes.size < least.episodes.size ? other : least,
    );
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

  #receive(slot: Slot, events: readonly EnvEvent[]): void {
    for (const event of events) {
      const record = this.#episodes.get(event.episode);
      if (!record) {
        this.#late++;
        this.#chaos?.late(event.episode);
      } else if (record.slot !== slot || !(record.pending || record.restoring) || !this.#accept(record, event)) {
        const turn = event.type === 'observed' ? ` of turn ${event.turn}` : '';
        const message = `an answer${turn} that episode ${event.episode} did not wait for`;
        const culprits = record && isRepeated(record, event) ? [record] : [];
        this.#hosts.replace(slot, { culprits, shown: false, cause: 'protocol', message });
        return;
      }
    }
  }

  /** @returns false for what cannot be the answer to the command in hand */
  #accept(record: OpenEpisode, event: EnvEvent): boolean {
    const listed = record.restoring ? 0 : record.listed;
    const bounds = this.#hosts.bounds.get(record.open.task.env);
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
      this.#hosts.recordAnswered();
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

  /** Restores the episodes of a host that was ended, and fails the culprits. */
  #recover(slot: Slot, culprits: readonly OpenEpisode[], { cause, message }: HostEnd): void {
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
  }

  /** True for an action that was taken, or may have been, and that bringing the episode back would take again. */
  #mustNotRepeat({ open, actions, pending }: OpenEpisode): boolean {
    return this.#hosts.unrepeatable.has(open.task.env) && (actions.length > 0 || pending === 'step');
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

  async #giveUp(message: string): Promise<void> {
    const env = this.#ids.has(AGENT) ? AGENT : '';
    this.observations$.error(new LongplayError('ENV_BROKEN', `${message}; ${cureOf('exited', env)}`));
    await this.close();
  }
}

/** True for an answer that came before. Any other one that was not waited for may have been forged by another's code. */
function isRepeated({ last }: OpenEpisode, event: EnvEvent): boolean {
  return event.type === 'observed' && event.turn === last?.turn && event.step.observation === last.step.observation;
}
