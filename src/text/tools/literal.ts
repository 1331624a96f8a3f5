/**
 * Literals: JSON values as models write them, read at a place of a text. Python's literals are read too where they are
 * allowed. Numbers stay as they were written, so that `1.0` and large integers keep their digits.
 */
import { parseJson } from '../../core/json-text.ts';

/** Value read from a text. */
export interface Literal {
  readonly kind: 'object' | 'list' | 'string' | 'number' | 'boolean' | 'null';
  /** Value as JSON, with Python's spacing. */
  readonly json: string;
  /** Half-open range of the value in its text, UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** True where something in it is no JSON, but Python. */
  readonly isPython: boolean;
  /** Members of an object, the last one of each name. */
  readonly members?: ReadonlyMap<string, Literal>;
  /** Items of a list. */
  readonly items?: readonly Literal[];
  /** Content of a string. */
  readonly text?: string;
}

/** Levels of values within values. */
const MAX_LEVELS = 200;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[A-Za-z]+/y;
const WORDS: Readonly<Record<string, { readonly json: string; readonly isPython: boolean }>> = {
  true: { json: 'true', isPython: false },
  false: { json: 'false', isPython: false },
  null: { json: 'null', isPython: false },
  True: { json: 'true', isPython: true },
  False: { json: 'false', isPython: true },
  None: { json: 'null', isPython: true },
};

/**
 * Reads the value that begins at a place.
 * @param python true where Python's literals are allowed: single quotes, True, False, None, a comma before the end
 * @returns undefined where no whole value begins there
 */
export function readLiteral(text: string, at: number, python = false): Literal | undefined {
  return new LiteralReader(text, at, python).value(0);
}

/** Skips white space. @returns the next place without any */
export function skipSpace(text: string, at: number): number {
  let next = at;
  while (next < text.length && /\s/.test(text[next]!)) next++;
  return next;
}

/** Prints a value as JSON with Python's spacing: `, ` and `: `, non-ASCII kept, keys in their order. */
export function printJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(printJson).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, one]) => one !== undefined);
  return `{${members.map(([key, one]) => `${printJson(key)}: ${printJson(one)}`).join(', ')}}`;
}

/** Spaces the JSON text of an object as Python does; `{}` for what is no object. */
export function spaceObject(json: string): string {
  const read = readWhole(json);
  return read?.kind === 'object' ? read.json : '{}';
}

/** Reads a text that is one value and nothing else. */
export function readWhole(text: string, python = false): Literal | undefined {
  const read = readLiteral(text, skipSpace(text, 0), python);
  return read && skipSpace(text, read.end) === text.length ? read : undefined;
}

class LiteralReader {
  readonly #text: string;
  readonly #python: boolean;
  #at: number;

  constructor(text: string, at: number, python: boolean) {
    this.#text = text;
    this.#at = at;
    this.#python = python;
  }

  value(level: number): Literal | undefined {
    if (level > MAX_LEVELS) return undefined;
    const start = this.#at;
    const char = this.#text[start];
    if (char === '{') return this.#object(level);
    if (char === '[') return this.#list(level);
    if (char === '"' || (char === "'" && this.#python)) return this.#string();
    const number = this.#match(NUMBER);
    if (number !== undefined) return { kind: 'number', json: number, start, end: this.#at, isPython: false };
    const word = WORDS[this.#match(WORD) ?? ''];
    if (!word || (word.isPython && !this.#python)) return undefined;
    return { kind: word.json === 'null' ? 'null' : 'boolean', ...word, start, end: this.#at };
  }

  #object(level: number): Literal | undefined {
    const start = this.#at++;
    const members = new Map<string, Literal>();
    const printed: string[] = [];
    let isPython = false;
    if (!this.#take('}')) {
      for (;;) {
        this.#skip();
        const key = this.#string();
        if (!key || !this.#take(':')) return undefined;
        this.#skip();
        const value = this.value(level + 1);
        if (!value) return undefined;
        members.set(key.text!, value);
        printed.push(`${key.json}: ${value.json}`);
        isPython ||= key.isPython || value.isPython;
        if (this.#take('}')) break;
        if (!this.#take(',')) return undefined;
        if (this.#python && this.#take('}')) {
          isPython = true;
          break;
        }
      }
    }
    return { kind: 'object', json: `{${printed.join(', ')}}`, start, end: this.#at, isPython, members };
  }

  #list(level: number): Literal | undefined {
    const start = this.#at++;
    const items: Literal[] = [];
    let isPython = false;
    if (!this.#take(']')) {
      for (;;) {
        this.#skip();
        const value = this.value(level + 1);
        if (!value) return undefined;
        items.push(value);
        isPython ||= value.isPython;
        if (this.#take(']')) break;
        if (!this.#take(',')) return undefined;
        if (this.#python && this.#take(']')) {
          isPython = true;
          break;
        }
      }
    }
    const json = `[${items.map((item) => item.json).join(', ')}]`;
    return { kind: 'list', json, start, end: this.#at, isPython, items };
  }

  #string(): Literal | undefined {
    const start = this.#at;
    const quote = this.#text[start];
    if (quote !== '"' && !(quote === "'" && this.#python)) return undefined;
    let end = start + 1;
    while (end < this.#text.length && this.#text[end] !== quote) end += this.#text[end] === '\\' ? 2 : 1;
    if (end >= this.#text.length) return undefined;
    this.#at = end + 1;
    const written = this.#text.slice(start, this.#at);
    const strict = quote === '"' ? parseString(written) : undefined;
    if (strict === undefined && !this.#python) return undefined;
    const text = strict ?? unescapePython(written.slice(1, -1));
    const isPython = strict === undefined;
    return { kind: 'string', json: JSON.stringify(text), start, end: this.#at, isPython, text };
  }

  #skip(): void {
    // JSON's white space alone: arguments are kept as they are written, and have to be JSON.
    while (' \t\n\r'.includes(this.#text[this.#at] ?? '-')) this.#at++;
  }

  #take(char: string): boolean {
    this.#skip();
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }
}

function parseString(written: string): string | undefined {
  try {
    return (parseJson(written) as string).toWellFormed();
  } catch {
    return undefined;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  ...{ n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', a: '\x07', '0': '\0', '\n': '' },
  ...{ '\\': '\\', "'": "'", '"': '"' },
};

/** Content of a Python string; an escape that Python does not know stays as it is written. */
function unescapePython(content: string): string {
  const escapes = /\\(?:u([\da-fA-F]{4})|U([\da-fA-F]{8})|x([\da-fA-F]{2})|([\s\S]))/g;
  return content
    .replace(escapes, (all, u?: string, long?: string, x?: string, char?: string) => {
      if (char !== undefined) return ESCAPES[char] ?? all;
      const code = Number.parseInt((u ?? long ?? x)!, 16);
      return code > 0x10ffff ? all : String.fromCodePoint(code);
    })
    .toWellFormed();
}

/** Prints a value of JSON as a literal of Python; numbers keep their digits. */
export function printPython({ kind, json, text, items, members }: Literal): string {
  if (kind === 'null') return 'None';
  if (kind === 'boolean') return json === 'true' ? 'True' : 'False';
  if (text !== undefined) return printPythonString(text);
  if (items) return `[${items.map(printPython).join(', ')}]`;
  if (!members) return json;
  return `{${[...members].map(([key, value]) => `${printPythonString(key)}: ${printPython(value)}`).join(', ')}}`;
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' };

function printPythonString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(/[\\\p{Cc}]/gu, (char) => {
    return SHORT[char] ?? `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
  return `${quote}${quote === "'" ? escaped.replaceAll("'", "\\'") : escaped}${quote}`;
}
