/** Wire format between threads: frames are collected during one turn of the event loop and sent as one message. */
import { append } from '../core/extremes.ts';
import type { Down, Message, StopReason, SystemEvent } from './actor.ts';
import type { Wait } from './ask.ts';
import type { Address, Answer, AskTag, ErrorRecord } from './envelope.ts';
import type { Begun } from './message-order.ts';

export type Lane = 'data' | 'control';

export type Frame =
  // To the thread's own actor, within the window it has acknowledged.
  | readonly ['deliver', message: Message, ask: AskTag | undefined]
  | readonly ['handled', data: number, control: number]
  // To any address; the main thread routes.
  | readonly ['tell', path: string, message: Message, ask: AskTag | undefined]
  | readonly ['answer', to: Address, answer: Answer]
  // So many of the messages sent to `path` are in its mailbox now (or dead): the sender may send as many more.
  | readonly ['took', path: string, count: number]
  // Life of the thread's actor.
  | readonly ['ready']
  | readonly ['failed', error: ErrorRecord]
  | readonly ['crashed', lane: Lane | undefined, error: ErrorRecord]
  | readonly ['ended']
  | readonly ['stop', reason: StopReason]
  // Messages begun in the thread, in order, where the order is recorded.
  | readonly ['begun', begun: readonly Begun[]]
  // A sign of life, asked for and given.
  | readonly ['ping']
  | readonly ['pong']
  // Death watch across threads.
  | readonly ['watch', path: string]
  | readonly ['down', down: Down]
  // Waits are known to the main thread.
  | readonly ['chain', id: number, wait: Wait, waitedMs: number]
  | readonly ['chained', id: number, error: ErrorRecord]
  | readonly ['event', event: SystemEvent];

/** The way to another thread. */
export interface Link {
  post(frame: Frame, transfer?: readonly ArrayBuffer[]): void;
}

/** Present in a thread other than the main one. */
export interface ThreadSide {
  /** Path of the one actor this thread was made for; addresses below it are here. */
  readonly root: string;
  /** Leads to every other address. */
  readonly uplink: Link;
}

interface Port {
  postMessage(value: unknown, transfer?: readonly ArrayBuffer[]): void;
}

/** Most frames in one message. */
const MAX_BATCH = 1024;

/** Collects frames until the current turn ends. */
export class Outbox implements Link {
  readonly #port: Port;
  readonly #unsendable: (frame: Frame, error: Error) => void;
  /** Called first in a flush, to add the acknowledgements counted so far. */
  readonly #beforeFlush: (() => void) | undefined;
  #frames: Frame[] = [];
  #transfer: ArrayBuffer[] = [];
  #scheduled = false;

  /** @param unsendable called with a frame that cannot be cloned; the others of its batch are sent */
  constructor(port: Port, unsendable: (frame: Frame, error: Error) => void, beforeFlush?: () => void) {
    this.#port = port;
    this.#unsendable = unsendable;
    this.#beforeFlush = beforeFlush;
  }

  post(frame: Frame, transfer?: readonly ArrayBuffer[]): void {
    this.#frames.push(frame);
    if (transfer) append(this.#transfer, transfer);
    this.schedule();
  }

  schedule(): void {
    if (this.#frames.length >= MAX_BATCH) this.flush();
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Not a microtask: code that awaits between sends would get a message of its own for each.
    setImmediate(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  flush(): void {
    this.#beforeFlush?.();
    if (this.#frames.length === 0) return;
    const frames = this.#frames;
    const transfer = this.#transfer;
    this.#frames = [];
    this.#transfer = [];
    try {
      this.#port.postMessage(frames, transfer);
    } catch {
      // One frame spoils a batch: send them singly. Nothing was transferred, the check comes first.
      for (const frame of frames) {
        try {
          this.#port.postMessage([frame], transferOf(frame, transfer));
        } catch (error) {
          this.#unsendable(frame, error as Error);
        }
      }
    }
  }
}

/** Transfer list: the buffers of `transfer` that a frame mentions, one level of typed arrays deep. */
function transferOf(frame: Frame, transfer: readonly ArrayBuffer[]): ArrayBuffer[] {
  if (transfer.length === 0) return [];
  const found = new Set<ArrayBuffer>();
  const visit = (value: unknown, depth: number): void => {
    if (value instanceof ArrayBuffer) found.add(value);
    else if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
    else if (value && typeof value === 'object' && depth < 6)
      for (const item of Object.values(value)) visit(item, depth + 1);
  };
  visit(frame, 0);
  return transfer.filter((buffer) => found.has(buffer));
}
