/** Supervisor: starts its children in order, stops them in reverse, restarts them by its strategy. */
import type { Clock } from '../core/clock.ts';
import { LongplayError } from '../core/errors.ts';
import type { Rng } from '../core/rng.ts';
import type { Restart, StopReason, SupervisorOptions, SupervisorRef, SystemEvent } from './actor.ts';
import { admitRestart, backoffMs, defaultSupervision, isHopeless, listAffected, wantsRestart } from './supervision.ts';

/** Child of a supervisor: an actor or another supervisor. */
export interface Child {
  readonly path: string;
  readonly restart: Restart;
  readonly alive: boolean;
  /** Begins an incarnation. @throws what kept it from starting */
  start(): Promise<void>;
  /** Stops the incarnation; the address and the waiting messages stay. */
  stop(reason: StopReason): Promise<void>;
  /** Gives the address up: no incarnation will follow. */
  finish(reason: StopReason): void;
}

interface Surroundings {
  readonly clock: Clock;
  readonly rng: Rng;
  emit(event: SystemEvent): void;
}

export class Supervisor implements Child, SupervisorRef {
  readonly path: string;
  readonly restart = 'permanent';
  alive = true;
  readonly #children: Child[] = [];
  readonly #options: Required<Omit<SupervisorOptions, 'supervisor'>>;
  readonly #around: Surroundings;
  readonly #escalate: (self: Supervisor, reason: StopReason) => void;
  #restarts: number[] = [];
  /** Queue of exits: they are handled one after the other, so a restart under way is never overtaken by the next. */
  #tail: Promise<void> = Promise.resolve();
  #stopping = false;
  #endDelay: (() => void) | undefined;

  /** @param escalate called when the intensity is exceeded; all children are stopped by then */
  constructor(
    path: string,
    options: SupervisorOptions,
    around: Surroundings,
    escalate: (self: Supervisor, reason: StopReason) => void,
  ) {
    this.path = path;
    this.#options = { ...defaultSupervision, ...options };
    this.#around = around;
    this.#escalate = escalate;
  }

  get children(): readonly Child[] {
    return this.#children;
  }

  add(child: Child): void {
    this.#children.push(child);
  }

  remove(child: Child): void {
    const at = this.#children.indexOf(child);
    if (at >= 0) this.#children.splice(at, 1);
  }

  /** Handles the report of a child whose incarnation has ended by itself. */
  handleExited(child: Child, reason: StopReason): void {
    this.#tail = this.#tail.then(() => this.#handleExit(child, reason));
  }

  async start(): Promise<void> {
    this.#stopping = false;
    this.#restarts = [];
    this.alive = true;
    for (const child of this.#children) if (!child.alive) await child.start();
  }

  async stop(reason: StopReason): Promise<void> {
    this.#stopping = true;
    this.#endDelay?.();
    await this.#tail;
    await this.#stopChildren(reason);
    this.alive = false;
  }

  finish(reason: StopReason): void {
    for (const child of this.#children.splice(0).reverse()) child.finish(reason);
  }

  async #stopChildren(reason: StopReason): Promise<void> {
    for (const child of [...this.#children].reverse()) if (child.alive) await child.stop(reason);
  }

  async #handleExit(child: Child, reason: StopReason): Promise<void> {
    const { strategy, intensity, periodMs, backoff } = this.#options;
    let failed = child;
    let why = reason;
    for (;;) {
      const index = this.#children.indexOf(failed);
      // Stopped on purpose meanwhile, or already restarted with a sibling's group.
      if (this.#stopping || index < 0 || failed.alive) return;
      if (!wantsRestart(failed.restart, why)) {
        this.remove(failed);
        failed.finish(why);
        return;
      }
      if (why.kind === 'crashed' && isHopeless(why.error)) return this.#giveUp(why.error);
      const recent = admitRestart(this.#restarts, this.#around.clock.now(), intensity, periodMs);
      if (!recent) return this.#giveUp(this.#createTooOftenError(failed, why));
      this.#restarts = recent;
      const group = listAffected(strategy, this.#children.length, index).map((i) => this.#children[i]!);
      for (const member of [...group].reverse()) if (member.alive) await member.stop({ kind: 'shutdown' });
      // Temporary children are not brought back with their siblings.
      const again = group.filter((member) => member === failed || member.restart !== 'temporary');
      for (const member of group) {
        if (again.includes(member)) continue;
        this.remove(member);
        member.finish({ kind: 'shutdown' });
      }
      const delayMs = backoffMs(recent.length, backoff, this.#around.rng.float());
      for (const member of again) this.#around.emit({ type: 'restarting', path: member.path, delayMs });
      await this.#delay(delayMs);
      if (this.#stopping) return;
      const broken = await this.#startAll(again);
      if (!broken) return;
      failed = broken.child;
      why = { kind: 'crashed', error: broken.error };
    }
  }

  async #startAll(children: readonly Child[]): Promise<{ child: Child; error: Error } | undefined> {
    for (const child of children) {
      try {
        await child.start();
      } catch (thrown) {
        return { child, error: thrown instanceof Error ? thrown : new Error(String(thrown)) };
      }
    }
    return undefined;
  }

  #createTooOftenError(failed: Child, why: StopReason): Error {
    const { intensity, periodMs } = this.#options;
    const cause = why.kind === 'crashed' ? why.error : undefined;
    return new LongplayError(
      'ACTOR_STOPPED',
      `${failed.path} ended more than ${intensity} times within ${periodMs} ms` + (cause ? `: ${cause.message}` : ''),
      { cause },
    );
  }

  async #giveUp(error: Error): Promise<void> {
    this.#around.emit({ type: 'escalated', path: this.path, error });
    await this.#stopChildren({ kind: 'shutdown' });
    this.alive = false;
    this.#escalate(this, { kind: 'crashed', error });
  }

  #delay(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#around.clock.setTimer(ms, resolve);
      this.#endDelay = () => {
        cancel();
        resolve();
      };
    });
  }
}
