/** Mailbox: a bounded FIFO with a declared overflow policy and a control lane that data cannot starve. */
import { LongplayError } from '../core/errors.ts';
import type { Overflow } from './actor.ts';

/** Deque: a FIFO with O(1) push and shift. */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** Items as a copy, oldest first. */
  items(): T[] {
    return this.#items.slice(this.#head) as T[];
  }

  /** Removes the first item that `matches`. */
  remove(matches: (item: T) => boolean): T | undefined {
    const at = this.#items.findIndex((item, i) => i >= this.#head && matches(item as T));
    return at < 0 ? undefined : this.#items.splice(at, 1)[0];
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= 1024 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}

interface Waiter<T> {
  readonly item: T;
  readonly admitted: () => void;
}

/** Waiting senders that are always allowed; more of them means that a sender does not await the promise of `tell`. */
const MAX_WAITING = 4096;

/** Outcome of an offer: queued, or the items dropped for it, or a promise of a place. */
export type Offered<T> = undefined | { readonly dropped: readonly T[] } | Promise<void>;

export class Mailbox<T> {
  readonly capacity: number;
  readonly overflow: Overflow;
  readonly #weigh: (item: T) => number;
  #data = new Deque<T>();
  #control = new Deque<T>();
  #waiting = new Deque<Waiter<T>>();
  /** Weight of the data lane. */
  #weight = 0;

  /**
   * @param capacity weight of the data lane from which on it is full, ≥ 1
   * @param weigh weight of an item, > 0 and the same whenever it is asked; 1 by default, so that capacity counts items
   * @throws {LongplayError} BAD_ARGUMENT for a capacity below 1
   */
  constructor(capacity: number, overflow: Overflow, weigh: (item: T) => number = () => 1) {
    if (!(capacity >= 1)) throw new LongplayError('BAD_ARGUMENT', `mailbox capacity must be ≥ 1, got ${capacity}`);
    this.capacity = capacity;
    this.overflow = overflow;
    this.#weigh = weigh;
  }

  /** Number of items that may be taken, both lanes; those of waiting senders are not counted. */
  get length(): number {
    return this.#data.length + this.#control.length;
  }

  get hasControl(): boolean {
    return this.#control.length > 0;
  }

  /** True while an ordinary send would wait, throw or drop. */
  get full(): boolean {
    return this.#weight >= this.capacity || this.#waiting.length > 0;
  }

  peek(): T | undefined {
    return this.#control.peek() ?? this.#data.peek();
  }

  /** Forces an item past the capacity: control messages, timers, messages that a dead incarnation had not begun. */
  force(item: T, lane: 'data' | 'control'): void {
    if (lane === 'control') this.#control.push(item);
    else this.#push(item);
  }

  /**
   * Offers an item to the data lane.
   * @throws {LongplayError} MAILBOX_FULL by the `reject` policy, and by `wait` when too many sends wait already
   */
  offer(item: T): Offered<T> {
    if (!this.full) {
      this.#push(item);
      return undefined;
    }
    if (this.overflow === 'drop-oldest') {
      const dropped: T[] = [];
      while (this.full) dropped.push(this.#shiftData() as T);
      this.#push(item);
      return { dropped };
    }
    if (this.overflow === 'reject' || this.#waiting.length >= Math.max(this.capacity, MAX_WAITING)) {
      const waiting = this.#waiting.length > 0 ? ` and ${this.#waiting.length} sends wait for a place` : '';
      throw new LongplayError('MAILBOX_FULL', `mailbox holds ${this.#data.length} of ${this.capacity}${waiting}`);
    }
    return new Promise((admitted) => {
      this.#waiting.push({ item, admitted });
    });
  }

  /** Next item, control before data; a waiting sender takes the freed place. */
  shift(): T | undefined {
    if (this.#control.length > 0) return this.#control.shift();
    const item = this.#shiftData();
    this.#admit();
    return item;
  }

  /** True when an item that `matches` may be taken. */
  has(matches: (item: T) => boolean): boolean {
    return this.#control.items().some(matches) || this.#data.items().some(matches);
  }

  /** Takes out the first item that `matches`, from either lane, past those before it. */
  take(matches: (item: T) => boolean): T | undefined {
    const control = this.#control.remove(matches);
    if (control !== undefined) {
      this.#admit();
      return control;
    }
    const item = this.#data.remove(matches);
    if (item !== undefined) this.#weight -= this.#weigh(item);
    this.#admit();
    return item;
  }

  /** Drains all items, those of waiting senders included; those senders go on. */
  drain(): T[] {
    const out: T[] = [];
    for (let item = this.shift(); item !== undefined; item = this.shift()) out.push(item);
    return out;
  }

  /** Puts items back before all others, in their order. */
  unshift(items: readonly T[]): void {
    if (items.length === 0) return;
    const rest = new Deque<T>();
    for (const item of items) {
      rest.push(item);
      this.#weight += this.#weigh(item);
    }
    for (let item = this.#data.shift(); item !== undefined; item = this.#data.shift()) rest.push(item);
    this.#data = rest;
  }

  #push(item: T): void {
    this.#data.push(item);
    this.#weight += this.#weigh(item);
  }

  #shiftData(): T | undefined {
    const item = this.#data.shift();
    if (item !== undefined) this.#weight -= this.#weigh(item);
    return item;
  }

  /** Admits waiting senders into what room there is. */
  #admit(): void {
    while (this.#waiting.length > 0 && this.#weight < this.capacity) {
      const { item, admitted } = this.#waiting.shift()!;
      this.#push(item);
      admitted();
    }
  }
}
