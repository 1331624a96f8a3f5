/**
 * Core of a host, without a thread: works through its batches; the same code runs in a worker and, in serial mode, in
 * the caller's thread. Owns the sessions; one slow session does not hold the others up; one that breaks fails alone.
 */
import type { StepFault } from '../../src/chaos/injector.ts';
import { misbehave } from '../../src/chaos/misbehave.ts';
import type { Env, EnvStep, First, MaybePromise, Session } from '../../src/core/env.ts';
import { messageOf } from '../../src/core/errors.ts';
import type { FailureCause } from '../../src/core/failure.ts';
import { BrokenContract, boundsOf, copyActions, copyStep, countPartial, failureOf, type StepBounds } from './check.ts';
import { EventBatcher, type EventBatcherOptions } from './event-batcher.ts';
import type { EnvCommand, EnvEvent, Open, Step } from './protocol.ts';

/** Beacon that shows outside observers where the host is; called before and after every call into an env. */
export interface Beacon {
  /** Enters a call into the env of `episode`. */
  enter(episode: number): void;
  /** Shows that code which `episode` started runs again, without a call: a timer, a promise. */
  show(episode: number): void;
  /** Leaves the call, which has returned (its promise may still be open). */
  leave(): void;
  /** Counts one more command begun. */
  countBegun(): void;
}

export interface HostOptions extends EventBatcherOptions {
  /** The worlds by id; may be filled after the host was made. */
  readonly envs: ReadonlyMap<string, Env>;
  /** True to ask sessions for their actions. */
  readonly listActions: boolean;
  /** Path for failures. */
  readonly where: string;
  readonly beacon?: Beacon;
  /**
   * Tracks a call into the env of `episode`, so that what it starts (timers, promises) can be attributed to the episode
   * later.
   */
  readonly track?: <T>(episode: number, call: () => T) => T;
  /** Called with a command that did not answer at once. */
  readonly onSlow?: (work: Promise<void>, episode: number) => void;
  /** Faults under chaos: which steps are struck. */
  readonly fault?: (episode: number, turn: number) => StepFault | undefined;
  /** Longest delay of a slow step, milliseconds. Default 100. */
  readonly slowMs?: number;
}

interface Episode {
  readonly number: number;
  readonly bounds: StepBounds;
  session: Session | undefined;
  turn: number;
  /** Stages of an action taken since the last whole step. */
  partials: number;
  /** Texts of the action table, and its inverse. */
  readonly texts: string[];
  readonly table: Map<string, number>;
  readonly listActions: boolean;
  /** Command under way that is slow. */
  busy: boolean;
  closed: boolean;
  /** Chaos: true when the next answer is sent twice. */
  twice: boolean;
}

const NONE = new Int32Array(0);
const NO_TEXTS: readonly string[] = [];
const noBeacon: Beacon = { enter() {}, show() {}, leave() {}, countBegun() {} };

export class HostCore {
  readonly #options: HostOptions;
  readonly #beacon: Beacon;
  readonly #events: EventBatcher;
  readonly #episodes = new Map<number, Episode>();
  readonly #bounds = new Map<string, StepBounds>();
  /** Sessions being closed slowly. */
  readonly #closing = new Set<Promise<void>>();
  /** Calls into envs. */
  calls = 0;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#beacon = options.beacon ?? noBeacon;
    this.#events = new EventBatcher(options);
  }

  get episodes(): number {
    return this.#episodes.size;
  }

  /** Handles a batch. Sessions that answer at once have their events in one `emit` at the end. */
  handle(commands: readonly EnvCommand[]): void {
    this.#events.beginBatch();
    for (const command of commands) {
      this.#beacon.countBegun();
      if (command.type === 'step') this.#step(command);
      else if (command.type === 'open') this.#open(command);
      else this.#close(command.episode);
      this.#events.flushIfLong();
    }
    this.#events.endBatch();
  }

  /** Closes all sessions. Resolves when the slow ones are closed too; a call that never ends keeps it waiting. */
  async closeAll(): Promise<void> {
    for (const number of [...this.#episodes.keys()]) this.#close(number);
    await Promise.all(this.#closing);
  }

  /** Fails the episode whose env threw an uncaught error; one that is already over stays as it is. */
  uncaught(number: number, thrown: unknown): void {
    const episode = this.#episodes.get(number);
    if (episode) this.#fail(episode, thrown);
  }

  #open(command: Open): void {
    const { episode: number, task, horizon } = command;
    const env = this.#options.envs.get(task.env);
    if (!env || this.#episodes.has(number)) {
      const message = env ? 'the episode is open already' : `this host has no env '${task.env}'`;
      this.#events.push(this.#createFailure(number, 'protocol', message));
      return;
    }
    let bounds = this.#bounds.get(task.env);
    try {
      if (!bounds) this.#bounds.set(task.env, (bounds = boundsOf(env)));
    } catch (thrown) {
      this.#events.push(this.#createFailure(number, 'protocol', messageOf(thrown)));
      return;
    }
    const episode: Episode = {
      number,
      bounds,
      session: undefined,
      turn: 0,
      partials: 0,
      texts: [],
      table: new Map(),
      listActions: command.listActions ?? this.#options.listActions,
      busy: false,
      closed: false,
      twice: false,
    };
    this.#episodes.set(number, episode);
    const began = this.#options.now();
    this.#guard(episode, () => {
      const { opened, slow } = this.#enter(episode, () => {
        const opened = horizon === undefined ? env.open(task) : env.open(task, { horizon });
        const slow = isPromise(opened);
        return { opened: slow ? Promise.resolve(opened) : opened, slow };
      });
      const replay = command.replay ?? [];
      if (slow || replay.length > 0) return this.#openSlowly(episode, opened, slow, replay, began);
      episode.session = opened as Session;
      this.#observe(
        episode,
        this.#enter(episode, () => copyStep(episode.bounds, (opened as Session).first, true)),
        began,
      );
      return undefined;
    });
  }

  async #openSlowly(
    episode: Episode,
    opened: MaybePromise<Session>,
    slow: boolean,
    replay: readonly string[],
    started: number,
  ): Promise<void> {
    let began = started;
    if (!slow) await undefined;
    const session = slow ? await opened : (opened as Session); // to await one that is there would run its `then` again
    if (episode.closed) {
      this.#shut(episode, session);
      return;
    }
    episode.session = session;
    let step = this.#enter(episode, () => copyStep(episode.bounds, session.first, true));
    let actions = this.#list(episode, step);
    for (const action of replay) {
      began = this.#options.now();
      const stepped = this.#take(episode, () => session.step(action));
      step = isPromise(stepped) ? await stepped : stepped;
      if (episode.closed) return;
      episode.turn++;
      actions = this.#list(episode, step);
    }
    this.#report(episode, step, actions, episode.texts.slice(), began);
  }

  #step({ episode: number, turn, action }: Step): void {
    const episode = this.#episodes.get(number);
    if (!episode) {
      this.#events.push(this.#createFailure(number, 'protocol', `step ${turn} of an episode that is not open here`));
      return;
    }
    const { session } = episode;
    if (!session || episode.busy || turn !== episode.turn + 1) {
      const state = episode.busy ? 'its last command is under way' : `turn ${episode.turn + 1} was expected`;
      this.#fail(episode, new BrokenContract('protocol', `step of turn ${turn}: ${state}`));
      return;
    }
    const fault = this.#options.fault?.(number, turn);
    if (fault?.kind === 'drop') return; // as if it had been lost on the way
    if (fault?.kind === 'duplicate') episode.twice = true;
    const take = () => session.step(action);
    const began = this.#options.now();
    this.#guard(episode, () => {
      const stepped = this.#take(episode, fault ? () => misbehave(fault, take, this.#options.slowMs ?? 100) : take);
      if (isPromise(stepped)) {
        return stepped.then((step) => {
          if (episode.closed) return;
          episode.turn++;
          this.#observe(episode, step, began);
        });
      }
      episode.turn++;
      this.#observe(episode, stepped, began);
      return undefined;
    });
  }

  /** Guards a call that may throw now or reject later; either fails this episode alone. */
  #guard(episode: Episode, work: () => Promise<void> | undefined): void {
    try {
      const slow = work();
      if (!slow) return;
      episode.busy = true;
      this.#options.onSlow?.(slow, episode.number);
      slow.then(
        () => {
          episode.busy = false;
        },
        (thrown) => this.#fail(episode, thrown),
      );
    } catch (thrown) {
      this.#fail(episode, thrown);
    }
  }

  #enter<T>(episode: Episode, call: () => T): T {
    this.calls++;
    this.#beacon.enter(episode.number);
    const { track } = this.#options;
    try {
      return track ? track(episode.number, call) : call();
    } finally {
      this.#beacon.leave();
    }
  }

  /** Takes a step and copies its answer, in the same call: reading it may run the env's code (a getter) too. */
  #take(episode: Episode, call: () => MaybePromise<EnvStep>): MaybePromise<First | EnvStep> {
    return this.#enter(episode, () => {
      const stepped = call();
      if (!isPromise(stepped)) return copyStep(episode.bounds, stepped, false);
      return Promise.resolve(stepped).then((step) => {
        return this.#enter(episode, () => copyStep(episode.bounds, step, false));
      });
    });
  }

  #observe(episode: Episode, step: First | EnvStep, began: number): void {
    const known = episode.texts.length;
    const actions = this.#list(episode, step);
    const newActions = episode.texts.length === known ? NO_TEXTS : episode.texts.slice(known);
    episode.busy = false;
    this.#report(episode, step, actions, newActions, began);
  }

  /** Lists the actions that are possible after a step. @returns their indices @throws {BrokenContract} */
  #list(episode: Episode, step: First | EnvStep): Int32Array {
    episode.partials = countPartial(episode.partials, step);
    if (!episode.listActions || step.kind === 'terminated') return NONE;
    const { table, texts, session } = episode;
    const listed = this.#enter(episode, () => copyActions(session!.actions()));
    if (listed.length === 0) return NONE;
    const indices = new Int32Array(listed.length);
    for (let i = 0; i < listed.length; i++) {
      const text = listed[i]!;
      let index = table.get(text);
      if (index === undefined) {
        table.set(text, (index = texts.length));
        texts.push(text);
      }
      indices[i] = index;
    }
    return indices;
  }

  #report(
    episode: Episode,
    step: First | EnvStep,
    actions: Int32Array,
    newActions: readonly string[],
    began: number,
  ): void {
    const { number, turn } = episode;
    const envMs = this.#events.readClock() - began;
    const observed: EnvEvent = { type: 'observed', episode: number, turn, step, actions, newActions, envMs };
    this.#events.push(observed);
    if (episode.twice) this.#events.push(observed);
    episode.twice = false;
    if (step.kind === 'terminated') this.#release(episode);
  }

  #fail(episode: Episode, thrown: unknown): void {
    if (episode.closed) return;
    const [cause, message] = this.#enter(episode, () => failureOf(thrown)); // making a message may run the env's code
    this.#events.push(this.#createFailure(episode.number, cause, message));
    this.#release(episode);
  }

  #createFailure(episode: number, cause: FailureCause, message: string): EnvEvent {
    return { type: 'failed', episode, failure: { cause, where: this.#options.where, message } };
  }

  #close(number: number): void {
    const episode = this.#episodes.get(number);
    if (episode) this.#release(episode);
  }

  #release(episode: Episode): void {
    episode.closed = true;
    this.#episodes.delete(episode.number);
    const { session } = episode;
    if (session) this.#shut(episode, session);
  }

  /** Closes a session. An error of an env that is let go changes nothing for anybody. */
  #shut(episode: Episode, session: Session): void {
    try {
      const closing = this.#enter(episode, () => {
        const closing = session.close();
        return isPromise(closing) ? Promise.resolve(closing) : undefined;
      });
      if (!closing) return;
      const closed: Promise<void> = closing.catch(() => {}).then(() => void this.#closing.delete(closed));
      this.#closing.add(closed);
    } catch {}
  }
}

/** True for a promise, also of another realm or library. To look may run the env's code (a getter). */
function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
