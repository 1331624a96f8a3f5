/**
 * Gemma's formats: `call:name{key:value,…}` with bare keys and texts between markers. FunctionGemma and Gemma 4 differ in
 * the markers.
 */
import { type Literal, readLiteral, readWhole, skipSpace } from './literal.ts';
import {
  afterReasoning,
  beforeCall,
  joinContent,
  type ParseBody,
  plainReply,
  rejectReply,
  type ToolFormat,
  type WrittenCall,
} from './tool-format.ts';

/** Markers around a call and around a text. */
interface Markers {
  readonly id: string;
  readonly open: string;
  readonly close: string;
  readonly quote: string;
}

const functionGemma = formatOf({
  ...{ id: 'gemma-function', quote: '<escape>' },
  ...{ open: '<start_function_call>', close: '<end_function_call>' },
});
const gemma4 = formatOf({ id: 'gemma4', open: '<|tool_call>', close: '<tool_call|>', quote: '<|"|>' });

/** Gemma's formats by model. */
export const gemma = { functionGemma, gemma4 } as const;

function formatOf(markers: Markers): ToolFormat {
  const { id, open, close, quote } = markers;
  const print = ({ name, arguments: args }: WrittenCall) => {
    return `${open}call:${name}{${printMembers(readWhole(args)?.members ?? new Map(), quote)}}${close}`;
  };
  return {
    id,
    markers: [open, close, quote],
    print: (content, calls) => joinContent(content, calls.map(print).join('')),
    parse: afterReasoning(parseWithin(markers)),
  };
}

function printValue({ text, members, items, json }: Literal, quote: string): string {
  if (text !== undefined) return `${quote}${text}${quote}`;
  if (items) return `[${items.map((item) => printValue(item, quote)).join(',')}]`;
  return members ? `{${printMembers(members, quote)}}` : json;
}

function printMembers(members: ReadonlyMap<string, Literal>, quote: string): string {
  return [...members].map(([key, value]) => `${key}:${printValue(value, quote)}`).join(',');
}

function parseWithin({ open, close, quote }: Markers): ParseBody {
  return (body, _tools, isCut) => {
    const first = body.indexOf(open);
    if (first < 0) return plainReply(body);
    const calls: WrittenCall[] = [];
    let unclosed = false;
    for (let at = first; body.startsWith(open, at) && !unclosed; ) {
      const read = new Reader(body, at + open.length, quote).call();
      const closed = read && body.startsWith(close, read.end);
      if (!closed && isCut) break;
      if (!read || (!closed && read.end !== body.length)) return rejectReply(body, `what follows ${open} is no call`);
      calls.push(read.call);
      unclosed = !closed;
      at = skipSpace(body, read.end + close.length);
    }
    return { content: beforeCall(body.slice(0, first)), calls, repairs: unclosed ? ['close-tag'] : [] };
  };
}

const NAME = /\s*call:([\w.-]+)(?=\{)/y;
const KEY = /[^\s:{}[\],]+/y;
/** Levels of values within values. */
const MAX_LEVELS = 200;

/** Reader of values; each as JSON. */
class Reader {
  readonly #text: string;
  readonly #quote: string;
  #at: number;

  constructor(text: string, at: number, quote: string) {
    this.#text = text;
    this.#at = at;
    this.#quote = quote;
  }

  call(): { readonly call: WrittenCall; readonly end: number } | undefined {
    const name = this.#match(NAME)?.[1];
    const args = name === undefined ? undefined : this.#value(0);
    return args === undefined ? undefined : { call: { name: name!, arguments: args }, end: this.#at };
  }

  #value(level: number): string | undefined {
    if (level > MAX_LEVELS) return undefined;
    this.#at = skipSpace(this.#text, this.#at);
    if (this.#text.startsWith(this.#quote, this.#at)) {
      const start = this.#at + this.#quote.length;
      const end = this.#text.indexOf(this.#quote, start);
      if (end < 0) return undefined;
      this.#at = end + this.#quote.length;
      return JSON.stringify(this.#text.slice(start, end));
    }
    if (this.#take('{')) return this.#rest('}', level, true);
    if (this.#take('[')) return this.#rest(']', level, false);
    const literal = readLiteral(this.#text, this.#at);
    if (literal) this.#at = literal.end;
    return literal?.json;
  }

  /** Reads the members of an object, or the items of a list, up to its end. */
  #rest(end: '}' | ']', level: number, hasKeys: boolean): string | undefined {
    const printed: string[] = [];
    while (!this.#take(end)) {
      if (printed.length > 0 && !this.#take(',')) return undefined;
      this.#at = skipSpace(this.#text, this.#at);
      const key = hasKeys ? this.#match(KEY)?.[0] : undefined;
      if (hasKeys && (key === undefined || !this.#take(':'))) return undefined;
      const value = this.#value(level + 1);
      if (value === undefined) return undefined;
      printed.push(key === undefined ? value : `${JSON.stringify(key)}: ${value}`);
    }
    return hasKeys ? `{${printed.join(', ')}}` : `[${printed.join(', ')}]`;
  }

  #take(char: string): boolean {
    const at = skipSpace(this.#text, this.#at);
    if (this.#text[at] !== char) return false;
    this.#at = at + 1;
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found) this.#at = pattern.lastIndex;
    return found ?? undefined;
  }
}
