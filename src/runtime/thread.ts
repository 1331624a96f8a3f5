/**
 * Threads: actors in worker threads. The mailbox of such an actor stands in the main thread, and at most a window of
 * messages is under way. So capacity and overflow hold, and messages that an incarnation had not begun are not lost
 * with it. Threads form a star: whatever one sends to another passes through the main thread.
 */
import { Worker } from 'node:worker_threads';
import { LongplayError } from '../core/errors.ts';
import type { ModuleSpec, StopReason } from './actor.ts';
import { type BusyMemory, busyMemory, busyMsOf } from './busy-time.ts';
import type { ActorCell, Executor, Launch } from './cell.ts';
import { type Envelope, reviveError } from './envelope.ts';
import { Deque } from './mailbox.ts';
import { workerUrl } from './module-url.ts';
import { addNativeThread } from './native-threads.ts';
import type { SystemPort } from './port.ts';
import type { Router } from './router.ts';
import { type Frame, type Link, Outbox } from './wire.ts';

/** Data that a thread is started with. */
export interface ThreadData {
  readonly path: string;
  readonly url: string;
  readonly init: unknown;
  readonly seed: number;
  readonly incarnation: number;
  readonly control: readonly string[];
  /** True to report every message begun. */
  readonly record: boolean;
  /** The thread keeps its busy time there. */
  readonly busy: BusyMemory;
}

/** Launches the actor a module exports in a thread of its own. */
export function launchThread(port: SystemPort, router: Router, spec: ModuleSpec<unknown>): Launch {
  return async (cell, incarnation, gaveUp) => {
    const executor = new ThreadExecutor(port, router, cell, spec, incarnation);
    gaveUp.addEventListener('abort', () => executor.kill());
    await executor.started;
    return executor;
  };
}

class ThreadExecutor implements Executor, Link {
  readonly placement = 'thread';
  readonly #port: SystemPort;
  readonly #router: Router;
  readonly #cell: ActorCell;
  readonly #worker: Worker;
  readonly #busy = busyMemory();
  /** Busy time that the cell was given. */
  #reportedMs = 0;
  readonly #outbox: Outbox;
  readonly #window: number;
  /** Data messages delivered and not acknowledged. */
  readonly #data = new Deque<Envelope>();
  readonly #control = new Deque<Envelope>();
  readonly #exited: Promise<void>;
  readonly started: Promise<void>;
  #started: { resolve(): void; reject(error: Error): void } | undefined;
  #stopping = false;
  /** End of the incarnation, as the thread announced it before its exit. */
  #end: StopReason | undefined;
  #broke: Error | undefined;
  /** Time of the first `ping` without an answer. */
  #pingedAt: number | undefined;

  constructor(port: SystemPort, router: Router, cell: ActorCell, spec: ModuleSpec<unknown>, incarnation: number) {
    this.#port = port;
    this.#router = router;
    this.#cell = cell;
    this.started = new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
    });
    this.#window = Math.max(1, Math.min(1024, cell.mailbox.capacity >> 1));
    const data: ThreadData = {
      path: cell.path,
      url: workerUrl(spec.url).href,
      init: spec.init,
      seed: port.seed,
      incarnation,
      control: cell.options.control ?? [],
      record: port.record !== undefined,
      busy: this.#busy,
    };
    this.#worker = new Worker(workerUrl(new URL('./thread-entry.ts', import.meta.url)), {
      workerData: data,
      name: cell.path,
    });
    this.#outbox = new Outbox(this.#worker, (frame, error) => this.#unsendable(frame, error));
    this.#worker.on('message', (frames: readonly Frame[]) => {
      for (const frame of frames) this.#receive(frame);
    });
    this.#worker.on('error', (error) => {
      this.#broke = error;
    });
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        resolve();
        this.#onExit(code);
      });
    });
    if (cell.options.killable === false) addNativeThread(this.#exited);
    router.addLink(cell.path, this);
  }

  accepts(control: boolean): boolean {
    return !this.#stopping && !this.#end && (control || this.#data.length < this.#window);
  }

  deliver(envelope: Envelope): void {
    const control = this.#cell.isControl(envelope.message);
    (control ? this.#control : this.#data).push(envelope);
    this.#outbox.post(['deliver', envelope.message, envelope.ask], envelope.transfer);
  }

  post(frame: Frame, transfer?: readonly ArrayBuffer[]): void {
    this.#outbox.post(frame, transfer);
  }

  get busyMs(): number {
    return Math.max(0, busyMsOf(this.#busy) - this.#reportedMs);
  }

  get silentMs(): number {
    return this.#pingedAt === undefined ? 0 : this.#port.clock.now() - this.#pingedAt;
  }

  ping(): void {
    if (this.#pingedAt !== undefined) return;
    this.#pingedAt = this.#port.clock.now();
    this.#outbox.post(['ping']);
  }

  listUnhandled(): readonly Envelope[] {
    return [...this.#control.items(), ...this.#data.items()];
  }

  async stop(reason: StopReason): Promise<void> {
    this.#stopping = true;
    this.#outbox.post(['stop', reason]);
    await this.#exited;
  }

  kill(): void | Promise<void> {
    this.#stopping = true;
    if (this.#cell.options.killable === false) {
      this.#outbox.post(['stop', { kind: 'killed' }]);
      return this.#exited;
    }
    void this.#worker.terminate();
  }

  #receive(frame: Frame): void {
    switch (frame[0]) {
      case 'handled': {
        const [, data, control] = frame;
        const busyMs = this.busyMs;
        this.#reportedMs += busyMs;
        for (let i = 0; i < data; i++) this.#data.shift();
        for (let i = 0; i < control; i++) this.#control.shift();
        this.#cell.recordProgress(this, data + control, busyMs);
        return;
      }
      case 'begun':
        for (const begun of frame[1]) this.#port.record?.(this.#cell.path, begun);
        return;
      case 'pong':
        this.#pingedAt = undefined;
        return;
      case 'ready':
        this.#started?.resolve();
        this.#started = undefined;
        return;
      case 'failed':
        this.#started?.reject(reviveError(frame[1]));
        this.#started = undefined;
        return;
      case 'crashed': {
        // The message that killed it is not for the next incarnation.
        if (frame[1]) (frame[1] === 'control' ? this.#control : this.#data).shift();
        this.#ending({ kind: 'crashed', error: reviveError(frame[2]) });
        return;
      }
      case 'ended':
        this.#ending({ kind: 'normal' });
        return;
      default:
        this.#router.receiveFrame(frame, this);
    }
  }

  /** Awaits the exit of a thread whose actor has ended; one that does not exit is terminated. */
  #ending(end: StopReason): void {
    this.#end = end;
    if (this.#cell.options.killable === false) return;
    const cancel = this.#port.clock.setTimer(this.#cell.shutdownMs, () => this.kill());
    void this.#exited.then(cancel);
  }

  #onExit(code: number): void {
    this.#router.removeLink(this.#cell.path, this);
    const { path } = this.#cell;
    const error = this.#broke ?? new LongplayError('ACTOR_STOPPED', `thread of ${path} exited with ${code}`);
    this.#started?.reject(
      this.#stopping ? new LongplayError('ACTOR_STOPPED', `${path} was stopped while it started`) : error,
    );
    if (this.#end) {
      // Everything before the end was acknowledged, so what is left had not been begun.
      this.#cell.handleEnded(this, this.#end, this.listUnhandled());
    } else if (!this.#stopping) {
      for (const envelope of this.listUnhandled()) {
        this.#router.deadLetter(this.#cell.path, envelope, 'lost with its thread');
      }
      this.#cell.handleEnded(this, { kind: 'crashed', error });
    }
  }

  #unsendable(frame: Frame, error: Error): void {
    if (frame[0] === 'deliver') {
      // Never reached the thread: it will not acknowledge it.
      const lane = this.#cell.isControl(frame[1]) ? this.#control : this.#data;
      lane.remove((envelope) => envelope.message === frame[1]);
    }
    this.#router.unsendable(frame, error);
  }
}
