/** Executor in this thread: calls the behavior's handlers, one at a time. */
import type { Behavior, BehaviorFactory, Message, StopReason } from './actor.ts';
import type { ActorCell, Executor, Launch } from './cell.ts';
import { type Envelope, toError } from './envelope.ts';
import type { System } from './system.ts';

/** Launches `factory` here. */
export function launchLocal<M extends Message>(system: System, factory: BehaviorFactory<M>): Launch {
  return async (cell, incarnation) => {
    const executor = new LocalExecutor<M>(system, cell);
    const ctx = system.context<M>(cell, incarnation, executor);
    try {
      executor.behavior = await system.track(cell.path, () => factory(ctx));
    } catch (thrown) {
      executor.release();
      throw thrown;
    }
    return executor;
  };
}

export class LocalExecutor<M extends Message> implements Executor {
  readonly placement = 'local';
  behavior: Behavior<M> | undefined;
  /** Cleanups that run when the incarnation ends: timers, watches. */
  readonly cleanups = new Set<() => void>();
  /** Ends the children. */
  stopChildren: (() => Promise<void>) | undefined;
  readonly #system: System;
  readonly #cell: ActorCell;
  #current: Envelope | undefined;
  /** Clock when its handler began. */
  #began = 0;
  #dead = false;
  #wantsStop = false;
  #idle: (() => void) | undefined;

  constructor(system: System, cell: ActorCell) {
    this.#system = system;
    this.#cell = cell;
  }

  get dead(): boolean {
    return this.#dead;
  }

  accepts(): boolean {
    return this.#current === undefined && !this.#dead;
  }

  get busyMs(): number {
    return this.#current ? this.#system.clock.now() - this.#began : 0;
  }

  unhandled(): readonly Envelope[] {
    return this.#current ? [this.#current] : [];
  }

  deliver(envelope: Envelope): void {
    const { message } = envelope;
    const handlers = this.behavior!.handlers as Readonly<Record<string, unknown>>;
    const handler = handlers[message.type];
    if (typeof handler !== 'function') {
      this.#system.router.unhandled(this.#cell.path, envelope);
      this.#cell.onHandled?.(this.#cell, envelope, 0);
      this.#cell.progressed(this, 1, 0);
      return;
    }
    this.#current = envelope;
    const began = this.#system.clock.now();
    this.#began = began;
    let result: unknown;
    try {
      result = this.#system.track(`${this.#cell.path} ${message.type}`, () => handler.call(handlers, message));
    } catch (thrown) {
      this.#crash(thrown);
      return;
    }
    if (result instanceof Promise) {
      result.then(
        () => this.#done(envelope, began),
        (thrown) => this.#crash(thrown),
      );
    } else this.#done(envelope, began);
  }

  /** Stops the actor at its own request. */
  requestStop(): void {
    this.#wantsStop = true;
    if (!this.#current) queueMicrotask(() => this.#endIfWished());
  }

  /** Fails the actor: its children broke beyond repair. */
  fail(error: Error): void {
    this.#crash(error);
  }

  async stop(reason: StopReason): Promise<void> {
    if (this.#current) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    await this.#end(reason);
  }

  kill(): void {
    this.release();
    void this.stopChildren?.();
  }

  /** Releases timers and watches: nothing of this incarnation has effect any more. */
  release(): void {
    this.#dead = true;
    for (const cleanup of this.cleanups) cleanup();
    this.cleanups.clear();
  }

  #done(envelope: Envelope, began: number): void {
    this.#current = undefined;
    if (this.#dead) return;
    const { clock } = this.#system;
    const busyMs = clock.now() - began;
    this.#cell.onHandled?.(this.#cell, envelope, busyMs);
    this.#cell.progressed(this, 1, busyMs);
    if (this.#idle) this.#idle();
    else if (this.#wantsStop) this.#endIfWished();
  }

  #crash(thrown: unknown): void {
    this.#current = undefined;
    if (this.#dead) return;
    const idle = this.#idle;
    if (idle) {
      // It is being stopped anyway.
      idle();
      return;
    }
    const reason: StopReason = { kind: 'crashed', error: toError(thrown) };
    void this.#end(reason).then(() => this.#cell.ended(this, reason));
  }

  #endIfWished(): void {
    if (this.#dead || this.#current) return;
    const reason: StopReason = { kind: 'normal' };
    void this.#end(reason).then(() => this.#cell.ended(this, reason));
  }

  async #end(reason: StopReason): Promise<void> {
    if (this.#dead) return;
    this.release();
    await this.stopChildren?.();
    try {
      await this.#system.track(`${this.#cell.path} stopped`, () => this.behavior?.stopped?.(reason));
    } catch (thrown) {
      this.#system.emit({
        type: 'dead-letter',
        path: this.#cell.path,
        message: 'stopped',
        why: toError(thrown).message,
      });
    }
  }
}
