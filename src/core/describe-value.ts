/** Words for a value of somebody's in a message: bounded in length and depth, whatever the value is. */

/** UTF-16 units of a value that a message repeats. */
const REPEATED_CHARS = 120;
/** Levels of nesting that are walked; a deeper one is shown as `…`. */
const MAX_DEPTH = 8;

/**
 * Describes a value as JSON shows it, cut to its beginning; `nothing` for undefined. Walks no further than what is
 * shown, so that neither a deep value nor a large one costs more, and never throws.
 * @param maxChars UTF-16 units
 */
export function describeValue(value: unknown, maxChars: number = REPEATED_CHARS): string {
  if (value === undefined) return 'nothing';
  const pieces = new Pieces(maxChars);
  pieces.add(value, 0);
  return pieces.text();
}

/** Cuts a part of a text to what a message repeats of it. */
export function cutText(text: string): string {
  return text.length > REPEATED_CHARS ? `${text.slice(0, REPEATED_CHARS)}…` : text;
}

/** Pieces of a text until it is longer than what is shown. */
class Pieces {
  readonly #maxChars: number;
  #text = '';

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  get #isFull(): boolean {
    return this.#text.length > this.#maxChars;
  }

  add(value: unknown, depth: number): void {
    if (typeof value === 'string') this.#text += JSON.stringify(value.slice(0, this.#maxChars + 1).toWellFormed());
    else if (typeof value === 'number') this.#text += String(value);
    else if (typeof value !== 'object' || value === null) this.#text += nameOf(value);
    else if (depth >= MAX_DEPTH) this.#text += Array.isArray(value) ? '[…]' : '{…}';
    else if (Array.isArray(value)) this.#addList(value, depth);
    else this.#addRecord(value, depth);
  }

  #addList(values: readonly unknown[], depth: number): void {
    this.#text += '[';
    for (let i = 0; i < values.length && !this.#isFull; i++) {
      if (i > 0) this.#text += ',';
      this.add(values[i] ?? null, depth + 1);
    }
    this.#text += ']';
  }

  #addRecord(record: object, depth: number): void {
    this.#text += '{';
    let isFirst = true;
    for (const key in record) {
      const value: unknown = Object.getOwnPropertyDescriptor(record, key)?.value;
      if (value === undefined) continue;
      if (!isFirst) this.#text += ',';
      isFirst = false;
      this.add(key, depth);
      this.#text += ':';
      this.add(value, depth + 1);
      if (this.#isFull) break;
    }
    this.#text += '}';
  }

  text(): string {
    return this.#isFull ? `${this.#text.slice(0, this.#maxChars)}…` : this.#text;
  }
}

/** Name of a value that JSON has no other form for. */
function nameOf(value: unknown): string {
  return typeof value === 'function' ? 'a function' : String(value);
}
