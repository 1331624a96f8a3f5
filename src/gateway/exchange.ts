/**
 * Exchange: a request whose answer may be long in coming. It is decided whole, then sent. From 60 s on what a client ignores
 * keeps the connection: white space before JSON, comments in a stream. Node's `fetch` gives up after 300 s without a byte.
 */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../core/clock.ts';
import type { HttpAnswer } from '../http/app.ts';

/** Milliseconds until a held answer begins, and between the signs of life from then on. */
export const HOLD_MS = 60_000;

/** Decided answer. */
export interface DecidedAnswer {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Event that states a failure in a stream which has begun. */
  readonly errorEvent?: string | undefined;
}

/** Exchange of one connection. */
export class Exchange {
  /** Answer as the server sends it. */
  readonly answer: Promise<HttpAnswer>;
  readonly #outgoing: ServerResponse;
  readonly #clock: Clock;
  readonly #requestId: string;
  #isStream = false;
  #resolve!: (answer: HttpAnswer) => void;
  #decided: DecidedAnswer | undefined;
  #cancel: (() => void) | undefined;
  /** Wakes an answer that has begun. */
  #wake: (() => void) | undefined;
  #onClose: ((isDelivered: boolean) => void) | undefined;
  #closed: { readonly isDelivered: boolean } | undefined;

  constructor(outgoing: ServerResponse, requestId: string, clock: Clock) {
    this.#clock = clock;
    this.#requestId = requestId;
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#outgoing = outgoing;
    const { socket } = outgoing;
    if (!socket || socket.destroyed) {
      this.#close(false);
      return;
    }
    // Of a socket that is destroyed Node says that all was written, whatever it still held.
    let isWritten = false;
    outgoing.once('finish', () => {
      isWritten = !socket.destroyed;
    });
    outgoing.once('close', () => this.#close(isWritten && this.#decided !== undefined));
  }

  /** Holds the connection until there is an answer. @param isStream true where it will be server-sent events */
  hold(isStream: boolean): void {
    this.#isStream = isStream;
    if (this.#decided || this.#closed) return;
    this.#cancel = this.#clock.setTimer(HOLD_MS, () => {
      this.#cancel = undefined;
      this.#resolve({ status: 200, ...this.#head(isStream), body: this.#sendLate() });
    });
  }

  /** Answers; the first decision counts. */
  decide(decided: DecidedAnswer): void {
    if (this.#decided) return;
    this.#decided = decided;
    this.#cancel?.();
    const { status, body, headers } = decided;
    const head = this.#head(this.#isStream && status === 200);
    this.#resolve({ status, ...head, headers: { ...head.headers, ...headers }, body });
    this.#wake?.();
  }

  /** Calls a function once the connection is done with: with true where the whole answer was written out. */
  onClose(fn: (isDelivered: boolean) => void): void {
    if (this.#closed) fn(this.#closed.isDelivered);
    else this.#onClose = fn;
  }

  #head(isStream: boolean): { contentType: string; headers: Record<string, string> } {
    const headers: Record<string, string> = { 'x-request-id': this.#requestId };
    if (isStream) headers['cache-control'] = 'no-cache';
    return { contentType: isStream ? 'text/event-stream; charset=utf-8' : 'application/json', headers };
  }

  /** Body of an answer that begins before it is decided. It throws after a failure: the socket is destroyed then. */
  async *#sendLate(): AsyncGenerator<string> {
    while (!this.#decided && !this.#closed) {
      yield this.#isStream ? ': keep-alive\n\n' : ' ';
      if (this.#decided || this.#closed) break;
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.setTimer(HOLD_MS, resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
      this.#wake = undefined;
    }
    if (!this.#decided) return;
    const { status, body, errorEvent } = this.#decided;
    if (status === 200) {
      yield body;
      return;
    }
    if (this.#isStream && errorEvent !== undefined) {
      yield errorEvent;
      // The next step destroys the socket, with what it has not written.
      do await setImmediate();
      while (this.#outgoing.writableLength > 0 && !this.#closed);
    }
    throw new Error('the call failed after its answer had begun');
  }

  #close(isDelivered: boolean): void {
    if (this.#closed) return;
    this.#closed = { isDelivered };
    this.#cancel?.();
    this.#resolve({ status: 499, contentType: '', body: '' }); // nobody reads it
    this.#wake?.();
    this.#onClose?.(isDelivered);
    this.#onClose = undefined;
  }
}
