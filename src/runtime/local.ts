/** An incarnation in this thread: calls the behavior's handlers, one at a time. */
import type { Behavior, BehaviorFactory, Message, ScopedSystem, StopReason } from './actor.ts';
import type { ActorCell, Executor, Launch } from './cell.ts';
import { actorContext, type Life } from './context.ts';
import { type Envelope, toError } from './envelope.ts';
import type { SystemPort } from './port.ts';

/** A life with children: those end before it does, and it crashes when they break beyond repair. */
export interface Parent extends Life {
  readonly cell: ActorCell;
  /** Ends the children; undefined while there are none. */
  stopChildren: (() => Promise<void>) | undefined;
  fail(error: Error): void;
}

/**
 * Launches `factory` here.
 * @param scoped makes the system as one life sees it: what it spawns becomes its child
 */
export function launchLocal<M extends Message>(
  port: SystemPort,
  factory: BehaviorFactory<M>,
  scoped: (parent: Parent) => ScopedSystem,
): Launch {
  return async (cell, incarnation) => {
    const executor = new LocalExecutor<M>(port, cell);
    const ctx = actorContext<M>(port, cell, incarnation, executor, scoped(executor));
    try {
      executor.behavior = await port.dispatcher.track(cell.path, () => factory(ctx));
    } catch (thrown) {
      executor.release();
      throw thrown;
    }
    return executor;
  };
}

class LocalExecutor<M extends Message> implements Executor, Parent {
  readonly placement = 'local';
  behavior: Behavior<M> | undefined;
  readonly cleanups = new Set<() => void>();
  stopChildren: (() => Promise<void>) | undefined;
  readonly cell: ActorCell;
  readonly #port: SystemPort;
  #current: Envelope | undefined;
  /** Clock when its handler began. */
  #began = 0;
  #dead = false;
  #wantsStop = false;
  #idle: (() => void) | undefined;

  constructor(port: SystemPort, cell: ActorCell) {
    this.#port = port;
    this.cell = cell;
  }

  get dead(): boolean {
    return this.#dead;
  }

  accepts(): boolean {
    return this.#current === undefined && !this.#dead;
  }

  get busyMs(): number {
    return this.#current ? this.#port.clock.now() - this.#began : 0;
  }

  listUnhandled(): readonly Envelope[] {
    return this.#current ? [this.#current] : [];
  }

  deliver(envelope: Envelope): void {
    const { message } = envelope;
    const handlers = this.behavior!.handlers as Readonly<Record<string, unknown>>;
    const handler = handlers[message.type];
    if (typeof handler !== 'function') {
      this.#port.reportUnhandled(this.cell.path, envelope);
      this.cell.onHandled?.(this.cell, envelope, 0);
      this.cell.recordProgress(this, 1, 0);
      return;
    }
    this.#current = envelope;
    const began = this.#port.clock.now();
    this.#began = began;
    let result: unknown;
    try {
      result = this.#port.dispatcher.track(`${this.cell.path} ${message.type}`, () => handler.call(handlers, message));
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

  requestStop(): void {
    this.#wantsStop = true;
    if (!this.#current) queueMicrotask(() => this.#endIfWished());
  }

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
    const { clock } = this.#port;
    const busyMs = clock.now() - began;
    this.cell.onHandled?.(this.cell, envelope, busyMs);
    this.cell.recordProgress(this, 1, busyMs);
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
    void this.#end(reason).then(() => this.cell.handleEnded(this, reason));
  }

  #endIfWished(): void {
    if (this.#dead || this.#current) return;
    const reason: StopReason = { kind: 'normal' };
    void this.#end(reason).then(() => this.cell.handleEnded(this, reason));
  }

  async #end(reason: StopReason): Promise<void> {
    if (this.#dead) return;
    this.release();
    await this.stopChildren?.();
    try {
      await this.#port.dispatcher.track(`${this.cell.path} stopped`, () => this.behavior?.stopped?.(reason));
    } catch (thrown) {
      this.#port.emit({
        type: 'dead-letter',
        path: this.cell.path,
        message: 'stopped',
        why: toError(thrown).message,
      });
    }
  }
}
