/** JSON read as Python reads it: ints and floats apart, objects as maps in the order of the text. */
import type { PyValue } from './values.ts';

/** Levels of nesting that are read. */
const MAX_NESTING = 500;
/** Digits of an int; Python refuses longer ones. */
const MAX_DIGITS = 4300;

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS: readonly (readonly [string, PyValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
];

/**
 * Parses JSON as Python's `json.loads`. Of two equal keys the later value holds; half surrogates become U+FFFD.
 * @throws {SyntaxError} for what is no JSON, or nested more than 500 levels deep
 */
export function parsePython(text: string): PyValue {
  const reader = new Reader(text.toWellFormed());
  const value = reader.value(0);
  reader.end();
  return value;
}

/**
 * Parses a list item by item, so that what is dropped of an item need not be kept until the end of a long list.
 * @throws {SyntaxError} as `parsePython`, and for what is no list
 */
export function parseItems(text: string): Generator<PyValue> {
  return new Reader(text.toWellFormed()).items();
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): PyValue {
    if (depth > MAX_NESTING) throw new SyntaxError(`values nested more than ${MAX_NESTING} levels deep`);
    this.#skip();
    const first = this.#text[this.#at];
    if (first === '{') return this.#object(depth);
    if (first === '[') return this.#list(depth);
    if (first === '"') return this.#string();
    const word = WORDS.find(([name]) => this.#text.startsWith(name, this.#at));
    if (word) {
      this.#at += word[0].length;
      return word[1];
    }
    return this.#number();
  }

  *items(): Generator<PyValue> {
    this.#skip();
    if (!this.#take('[')) this.#fail();
    this.#skip();
    if (!this.#take(']')) {
      for (;;) {
        yield this.value(1);
        this.#skip();
        if (this.#take(']')) break;
        if (!this.#take(',')) this.#fail();
      }
    }
    this.end();
  }

  end(): void {
    this.#skip();
    if (this.#at < this.#text.length) this.#fail();
  }

  #object(depth: number): PyValue {
    const entries = new Map<string, PyValue>();
    this.#at++;
    this.#skip();
    if (this.#take('}')) return entries;
    for (;;) {
      this.#skip();
      if (this.#text[this.#at] !== '"') this.#fail();
      const key = this.#string();
      this.#skip();
      if (!this.#take(':')) this.#fail();
      entries.set(key, this.value(depth + 1));
      this.#skip();
      if (this.#take('}')) return entries;
      if (!this.#take(',')) this.#fail();
    }
  }

  #list(depth: number): PyValue {
    const items: PyValue[] = [];
    this.#at++;
    this.#skip();
    if (this.#take(']')) return items;
    for (;;) {
      items.push(this.value(depth + 1));
      this.#skip();
      if (this.#take(']')) return items;
      if (!this.#take(',')) this.#fail();
    }
  }

  #string(): string {
    let end = this.#at + 1;
    let isPlain = true;
    for (; ; end++) {
      const code = this.#text.charCodeAt(end);
      if (code === 0x22) break;
      if (code === 0x5c) {
        isPlain = false;
        end++;
      } else if (!(code >= 0x20)) this.#fail(); // a control, or the end of the text
    }
    const raw = this.#text.slice(this.#at + 1, end);
    const start = this.#at;
    this.#at = end + 1;
    if (isPlain) return raw;
    try {
      return (JSON.parse(this.#text.slice(start, end + 1)) as string).toWellFormed();
    } catch {
      return this.#fail();
    }
  }

  #number(): PyValue {
    NUMBER.lastIndex = this.#at;
    const found = NUMBER.exec(this.#text);
    if (!found) return this.#fail();
    this.#at += found[0].length;
    if (found[1] !== undefined || found[2] !== undefined) return Number(found[0]);
    if (found[0].length > MAX_DIGITS) throw new SyntaxError(`a number of more than ${MAX_DIGITS} digits`);
    return BigInt(found[0]);
  }

  #skip(): void {
    const code = this.#text.charCodeAt(this.#at);
    if (!(code <= 0x20)) return;
    SPACE.lastIndex = this.#at;
    this.#at += SPACE.exec(this.#text)![0].length;
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #fail(): never {
    const found = this.#at < this.#text.length ? JSON.stringify(this.#text.slice(this.#at, this.#at + 10)) : 'its end';
    throw new SyntaxError(`no JSON at ${this.#at}: ${found}`);
  }
}
