/**
 * Channel: a stream of bytes between two processes over a switchboard, which may lose what it carries and is silent when
 * the other end dies. It delivers every byte in order, or it ends as lost: what stood on it is then begun anew elsewhere.
 *
 * - Parts are numbered: one that is missing is seen when the next one comes.
 * - Both ends say once a second that they are there; silence of five seconds is a death. Own seconds are counted, so an end that was
 *   blocked itself accuses nobody.
 * - At most a window of bytes is under way: an end that does not read holds the other one back, and nobody's memory fills. What was read
 *   is said as a sum, and again with every sign of life, so that it does not matter which of these words are lost.
 */
import { Duplex } from 'node:stream';
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';

/** End of a channel: by the other end, which says so in its last words, or because it was lost. */
export type ChannelEnd =
  | { readonly type: 'ended'; readonly words: unknown }
  | { readonly type: 'lost'; readonly why: string };

export interface ChannelOptions {
  readonly clock: Clock;
  /** Sends a message to the other end. */
  readonly say: (bytes: Uint8Array) => void;
  /** Most bytes of a message. */
  readonly mostBytes: number;
  /** Bytes that go along with every sign of life. */
  readonly sign?: () => Uint8Array;
  /** Called with those of the other end. */
  readonly onSign?: (bytes: Uint8Array) => void;
  /** Called once, unless `close` was called before. After an orderly end everything was read. */
  readonly onEnd: (end: ChannelEnd) => void;
}

/** Kinds of messages, their first byte. Those of a call before the channel have lower ones (`host-call.ts`). */
const DATA = 16;
const TAKEN = 17;
const SIGN = 18;
const END = 19;
const BREAK = 20;

/** Bytes before the content of a part and of an end: kind (uint8) and number (uint32), which begins again at 2³². */
const HEAD_BYTES = 5;
const NUMBERS = 2 ** 32;
/** Bytes under way at most, and of a part. */
export const WINDOW_BYTES = 2 ** 22;
const PART_BYTES = 2 ** 18;
/** Milliseconds between two signs of life, and how many of one's own may pass without one of the other's. */
export const SIGN_MS = 1000;
const SILENT_SIGNS = 5;
/** Bytes of last words. */
const MOST_WORDS = 65_536;

/** True for a message of a channel. */
export function isOfChannel(bytes: Uint8Array): boolean {
  return bytes[0]! >= DATA;
}

export class Channel {
  /** Stream; its user handles `error`. */
  readonly stream: Duplex;
  readonly #of: ChannelOptions;
  readonly #partBytes: number;
  /** Numbers of the next part to be sent and to be heard. */
  #sending = 0;
  #hearing = 0;
  /** Bytes sent that were not taken yet; rest of a write that waits for them. */
  #underWay = 0;
  #rest: { readonly bytes: Uint8Array; readonly done: () => void } | undefined;
  /** Bytes that the other end has taken in all, modulo 2³². */
  #taken = 0;
  /** Bytes heard and not read, bytes read of which the other end was not told, and all that it was told of, modulo 2³². */
  #unread = 0;
  #read = 0;
  #told = 0;
  /** Signs of one's own since anything was heard. */
  #silent = 0;
  #heardAt: number;
  #over = false;
  #cancel = () => {};

  constructor(options: ChannelOptions) {
    this.#of = options;
    this.#partBytes = Math.min(PART_BYTES, options.mostBytes - HEAD_BYTES);
    this.#heardAt = options.clock.now();
    this.stream = new Duplex({
      read: () => this.#wasRead(),
      write: (chunk: Uint8Array, _, done) => this.#write(chunk, done),
      writev: (chunks, done) => this.#write(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)), done),
    });
    this.#beat();
  }

  /** Milliseconds since anything was heard of the other end. */
  get silentMs(): number {
    return this.#of.clock.now() - this.#heardAt;
  }

  /** Takes a message of the other end. */
  heard(message: Uint8Array): void {
    if (this.#over) return;
    this.#silent = 0;
    this.#heardAt = this.#of.clock.now();
    const content = message.subarray(message[0] === DATA || message[0] === END ? HEAD_BYTES : 1);
    if (message[0] === SIGN) this.#of.onSign?.(content);
    else if (message[0] === TAKEN) this.#wasTaken(message);
    else if (message[0] === DATA) this.#part(message, content);
    else if (message[0] === END) this.#lastWords(message, content);
    else if (message[0] === BREAK) {
      this.close();
      this.#of.onEnd({ type: 'ended', words: wordsOf(content) });
    } else this.#lose('the other end sent something that is no message');
  }

  /** Says that this end is there, with what it has to say now. */
  sign(): void {
    const { sign } = this.#of;
    this.#say(SIGN, sign ? sign() : new Uint8Array());
  }

  /** Ends it in order: the other end reads everything that was written, then these words. */
  end(words: unknown): void {
    const last = () => {
      if (this.#over) return;
      this.#numbered(END, wordsAsBytes(words));
      this.close();
    };
    if (this.stream.writableFinished) {
      last();
      return;
    }
    this.stream.once('finish', last);
    if (!this.stream.writableEnded) this.stream.end();
  }

  /** Breaks it off: the other end hears these words at once, whatever it has not read. */
  break(words: unknown): void {
    this.#say(BREAK, wordsAsBytes(words));
    this.close();
  }

  /** Leaves it; `onEnd` is not called any more. */
  close(): void {
    this.#over = true;
    this.#cancel();
    this.#rest = undefined;
    this.stream.destroy();
  }

  #beat(): void {
    if (this.#over) return;
    if (this.#silent++ >= SILENT_SIGNS) {
      this.#lose(`nothing was heard of it for ${(SILENT_SIGNS * SIGN_MS) / 1000} s`);
      return;
    }
    this.sign();
    // Again: a word of this that was lost on the way would leave the other end waiting for room, for ever.
    this.#sayTaken();
    this.#cancel = this.#of.clock.after(SIGN_MS, () => this.#beat());
  }

  #part(message: Uint8Array, bytes: Uint8Array): void {
    if (!this.#isNext(message)) return;
    this.#unread += bytes.length;
    // One that heeds the window never has more under way.
    if (this.#unread + this.#read > WINDOW_BYTES + this.#partBytes) {
      this.#lose('the other end sends more than it was asked for');
      return;
    }
    if (this.stream.push(bytes)) this.#wasRead();
  }

  /** The reader has room: what was heard counts as read. */
  #wasRead(): void {
    this.#read += this.#unread;
    this.#unread = 0;
    if (this.#read >= WINDOW_BYTES / 4 && !this.#over) this.#sayTaken();
  }

  /** Says how much was read in all: what was said before need not have been heard. */
  #sayTaken(): void {
    this.#told = (this.#told + this.#read) % NUMBERS;
    this.#read = 0;
    const content = Buffer.alloc(4);
    content.writeUInt32LE(this.#told, 0);
    this.#say(TAKEN, content);
  }

  #wasTaken(message: Uint8Array): void {
    if (message.length !== 5) {
      this.#lose('the other end sent something that is no message');
      return;
    }
    const taken = numberOf(message);
    this.#underWay -= (taken - this.#taken + NUMBERS) % NUMBERS;
    this.#taken = taken;
    if (this.#underWay < 0) {
      this.#lose('the other end has read more than was sent');
      return;
    }
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest) this.#write(rest.bytes, rest.done);
  }

  #lastWords(message: Uint8Array, bytes: Uint8Array): void {
    if (!this.#isNext(message)) return;
    this.#over = true;
    this.#cancel();
    this.stream.once('end', () => {
      this.stream.destroy();
      this.#of.onEnd({ type: 'ended', words: wordsOf(bytes) });
    });
    this.stream.push(null);
    this.stream.resume();
  }

  /** True for the part that is due. Any other means that one was lost, and that the channel is. */
  #isNext(message: Uint8Array): boolean {
    if (message.length < HEAD_BYTES || numberOf(message) !== this.#hearing) {
      this.#lose('a message to it or from it was lost on the way');
      return false;
    }
    this.#hearing = (this.#hearing + 1) % NUMBERS;
    return true;
  }

  #write(bytes: Uint8Array, done: () => void): void {
    for (let at = 0; at < bytes.length && !this.#over; at += this.#partBytes) {
      if (this.#underWay >= WINDOW_BYTES) {
        this.#rest = { bytes: bytes.subarray(at), done };
        return;
      }
      const part = bytes.subarray(at, at + this.#partBytes);
      this.#underWay += part.length;
      this.#numbered(DATA, part);
    }
    done();
  }

  #numbered(kind: number, content: Uint8Array): void {
    const number = Buffer.alloc(4);
    number.writeUInt32LE(this.#sending, 0);
    this.#sending = (this.#sending + 1) % NUMBERS;
    this.#say(kind, number, content);
  }

  #say(kind: number, ...contents: readonly Uint8Array[]): void {
    if (this.#over) return;
    try {
      this.#of.say(Buffer.concat([Uint8Array.of(kind), ...contents]));
    } catch (thrown) {
      this.#lose(messageOf(thrown));
    }
  }

  #lose(why: string): void {
    if (this.#over) return;
    this.close();
    this.#of.onEnd({ type: 'lost', why });
  }
}

function wordsAsBytes(words: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(words));
}

/** @returns undefined for words that cannot be understood: the other end has ended all the same */
function wordsOf(bytes: Uint8Array): unknown {
  if (bytes.length > MOST_WORDS) return undefined;
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return undefined;
  }
}

function numberOf(message: Uint8Array): number {
  return Buffer.from(message.buffer, message.byteOffset, message.length).readUInt32LE(1);
}
