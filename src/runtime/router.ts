/**
 * Router of messages: to an actor of this thread, over the link to the thread that holds the address, or to the dead
 * letters. Threads form a star: the main thread has a link to each of them, and they have one, to it.
 */
import { LongplayError } from '../core/errors.ts';
import type { Message } from './actor.ts';
import type { AskTable } from './ask.ts';
import type { ActorCell } from './cell.ts';
import { Credits } from './credit.ts';
import {
  type Address,
  type Answer,
  type AskTag,
  type Envelope,
  recordError,
  reviveError,
  toError,
} from './envelope.ts';
import { plainDown } from './plain.ts';
import type { SystemPort } from './port.ts';
import { WaitGraph } from './wait-graph.ts';
import type { Frame, Link, ThreadSide } from './wire.ts';

export class Router {
  /** Cells of this thread's actors, by path. */
  readonly cells = new Map<string, ActorCell>();
  readonly waits: WaitGraph;
  readonly #port: SystemPort;
  readonly #asks: AskTable;
  readonly #thread: ThreadSide | undefined;
  readonly #links = new Map<string, Link>();
  readonly #credits = new Credits();

  constructor(port: SystemPort, asks: AskTable, thread: ThreadSide | undefined) {
    this.#port = port;
    this.#asks = asks;
    this.#thread = thread;
    this.waits = new WaitGraph(port.clock, asks, thread?.uplink, (path) => this.cells.get(path)?.stats());
  }

  /** Routes a message. @returns and throws as `ActorRef.tell` */
  send(
    path: string,
    message: Message,
    transfer: readonly ArrayBuffer[] | undefined,
    ask: AskTag | undefined,
  ): void | Promise<void> {
    const cell = this.cells.get(path);
    if (cell) return cell.receive({ message, ask, transfer, at: this.#port.clock.now() });
    const link = this.linkTo(path);
    if (!link) return this.deadLetter(path, { message, ask, transfer, at: 0 }, 'nobody lives there');
    link.post(['tell', path, message, ask], transfer);
    const gate = this.#credits.spend(path);
    return gate && this.#port.dispatcher.wait(gate);
  }

  answer(to: Address, answer: Answer, transfer?: readonly ArrayBuffer[]): void {
    this.waits.forget(to);
    const link = this.linkTo(to.path);
    if (link) link.post(['answer', { path: to.path, id: to.id }, answer], transfer);
    else if (!this.#asks.settle(to.id, answer)) {
      this.#port.emit({ type: 'dead-letter', path: to.path, message: 'reply', why: 'nobody waits for it any more' });
    }
  }

  deadLetter(path: string, { message, ask, windowed }: Envelope, why: string): void {
    if (windowed) return; // the main thread still holds it
    this.#port.emit({ type: 'dead-letter', path, message: message.type, why });
    if (!ask) return;
    this.cells.get(path)?.pendingAsks.settle(ask);
    const error = new LongplayError('ACTOR_STOPPED', `${message.type} did not reach ${path}: ${why}`);
    this.answer(ask, { ok: false, error: recordError(error) });
  }

  reportUnhandled(path: string, { message, ask }: Envelope): void {
    this.#port.emit({ type: 'unhandled', path, message: message.type });
    if (!ask) return;
    const error = new LongplayError('BAD_ARGUMENT', `${path} has no handler for ${message.type}`);
    this.answer(ask, { ok: false, error: recordError(error) });
  }

  /** Reports a frame that cannot be cloned to its sender or asker. */
  unsendable(frame: Frame, error: Error): void {
    const why = `cannot cross threads: ${error.message}`;
    if (frame[0] === 'tell')
      this.deadLetter(frame[1], { message: frame[2], ask: frame[3], transfer: undefined, at: 0 }, why);
    else if (frame[0] === 'deliver') {
      this.deadLetter('(thread)', { message: frame[1], ask: frame[2], transfer: undefined, at: 0 }, why);
    } else if (frame[0] === 'answer')
      this.answer(frame[1], { ok: false, error: { name: 'Error', message: `the reply ${why}` } });
    else throw error;
  }

  addLink(path: string, link: Link): void {
    this.#links.set(path, link);
  }

  removeLink(path: string, link: Link): void {
    if (this.#links.get(path) === link) this.#links.delete(path);
  }

  /** Handles a frame of another thread that is not about the life of that thread's own actor. */
  receiveFrame(frame: Frame, from: Link): void {
    switch (frame[0]) {
      case 'tell':
        this.#route(frame[1], frame[2], frame[3], from);
        break;
      case 'answer':
        // The proxy of a thread's actor no longer owes what its thread has answered.
        for (const [path, link] of this.#links) {
          if (link === from) this.cells.get(path)?.pendingAsks.settle(frame[1]);
        }
        this.answer(frame[1], frame[2]);
        break;
      case 'took':
        this.#credits.restore(frame[1], frame[2]);
        break;
      case 'watch':
        this.#port.watch(frame[1], (down) => from.post(['down', plainDown(down)]));
        break;
      case 'down':
        this.#port.reportDown(frame[1]);
        break;
      case 'chain': {
        const [, id, wait, waitedMs] = frame;
        from.post(['chained', id, recordError(this.waits.timeoutHere(wait, waitedMs))]);
        break;
      }
      case 'chained':
        this.waits.handleChained(frame[1], reviveError(frame[2]));
        break;
      case 'event':
        // The life of the thread's own actor is reported by its proxy.
        if (frame[1].type === 'dead-letter' || frame[1].type === 'unhandled' || !this.#links.has(frame[1].path)) {
          this.#port.emit(frame[1]);
        }
        break;
      default:
        throw new LongplayError('STALLED', `unexpected frame ${frame[0]}`);
    }
  }

  /** Link to the thread that holds `path`, or undefined when it is this one. */
  linkTo(path: string): Link | undefined {
    if (this.#thread) {
      const { root, uplink } = this.#thread;
      return path === root || path.startsWith(`${root}/`) ? undefined : uplink;
    }
    if (this.#links.size === 0) return undefined;
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const link = this.#links.get(path.slice(0, end));
      if (link) return link;
    }
    return undefined;
  }

  /** Forwards a thread's message, and returns its credit once it has a place. */
  #route(path: string, message: Message, ask: AskTag | undefined, from: Link): void {
    if (ask) this.waits.note(path, message, ask);
    try {
      const waiting = this.send(path, message, undefined, ask);
      if (waiting) void waiting.then(() => this.#credits.countTaken(path, from));
      else this.#credits.countTaken(path, from);
    } catch (thrown) {
      this.deadLetter(path, { message, ask, transfer: undefined, at: 0 }, toError(thrown).message);
      this.#credits.countTaken(path, from);
    }
  }
}
