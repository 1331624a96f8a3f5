/**
 * Pythonic formats: a list of Python calls with keyword arguments and literals. Llama 3.2 and 4, ToolACE, OLMo 3, LFM2;
 * they differ in what stands around the list.
 */
import { type Literal, printPython, readLiteral, readWhole, skipSpace } from './literal.ts';
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

/** Frame of the calls. */
interface Frame {
  readonly id: string;
  /** Texts before and behind the calls; empty where there are none. */
  readonly open: string;
  readonly close: string;
  /** True where the calls are a list in brackets; false where each has a line. */
  readonly isList: boolean;
}

const bare = formatOf({ id: 'pythonic', open: '', close: '', isList: true });
const llama4 = formatOf({ id: 'pythonic-llama4', open: '<|python_start|>', close: '<|python_end|>', isList: true });
const lfm2 = formatOf({
  ...{ id: 'pythonic-lfm2', isList: true },
  ...{ open: '<|tool_call_start|>', close: '<|tool_call_end|>' },
});
const olmo = formatOf({ id: 'pythonic-olmo', open: '<function_calls>', close: '</function_calls>', isList: false });

/** Pythonic formats by the models that write them. */
export const pythonic = { bare, llama4, lfm2, olmo } as const;

function formatOf(frame: Frame): ToolFormat {
  const { id, open, close, isList } = frame;
  return {
    id,
    markers: open === '' ? [] : [open, close],
    print(content, calls) {
      if (calls.length === 0) return content;
      const list = calls.map(printCall).join(isList ? ', ' : '\n');
      const printed = `${open}${isList ? `[${list}]` : list}${close}`;
      return open === '' ? printed : joinContent(content, printed);
    },
    parse: afterReasoning(parseWithin(frame)),
  };
}

function parseWithin({ open, close, isList }: Frame): ParseBody {
  return (body, _tools, isCut) => {
    const first = open === '' ? body.length - body.trimStart().length : body.indexOf(open);
    if (first < 0) return plainReply(body);
    const start = skipSpace(body, first + open.length);
    const read = isList ? readList(body, start) : readLines(body, start);
    const end = read && skipSpace(body, read.end);
    // Without a frame the list is the whole reply.
    const isClosed = end !== undefined && (open === '' ? end === body.length : body.startsWith(close, end));
    const content = open === '' ? '' : beforeCall(body.slice(0, first));
    if (read && isClosed) return { content, calls: read.calls, repairs: [] };
    const isMeant = open !== '' || /^\[\s*[\w.-]+\(/.test(body.slice(first));
    if (isCut) return plainReply(isMeant ? content : body);
    if (read && open !== '' && end === body.length) return { content, calls: read.calls, repairs: ['close-tag'] };
    return isMeant ? rejectReply(body, 'the calls are no calls with literal keyword arguments') : plainReply(body);
  };
}

interface ReadCalls {
  readonly calls: readonly WrittenCall[];
  readonly end: number;
}

function readList(text: string, from: number): ReadCalls | undefined {
  if (text[from] !== '[') return undefined;
  const calls: WrittenCall[] = [];
  for (let at = from; ; ) {
    const read = readPythonCall(text, skipSpace(text, at + 1));
    if (!read) return undefined;
    calls.push(read.call);
    at = skipSpace(text, read.end);
    if (text[at] === ']') return { calls, end: at + 1 };
    if (text[at] !== ',') return undefined;
  }
}

function readLines(text: string, from: number): ReadCalls | undefined {
  const calls: WrittenCall[] = [];
  let end = from;
  for (let read = readPythonCall(text, from); read; read = readPythonCall(text, skipSpace(text, end))) {
    calls.push(read.call);
    end = read.end;
  }
  return calls.length === 0 ? undefined : { calls, end };
}

const NAME = /[\w.-]+/y;
const KEY = /[^\s=(),'"[\]{}]+/y;

/** Reads one call: a name, and keyword arguments with literal values. */
export function readPythonCall(
  text: string,
  from: number,
): { readonly call: WrittenCall; readonly end: number } | undefined {
  const name = matchAt(NAME, text, from);
  if (name === undefined) return undefined;
  let at = skipSpace(text, from + name.length);
  if (text[at] !== '(') return undefined;
  at = skipSpace(text, at + 1);
  const printed: string[] = [];
  while (text[at] !== ')') {
    const key = matchAt(KEY, text, at);
    if (key === undefined) return undefined;
    at = skipSpace(text, at + key.length);
    if (text[at] !== '=') return undefined;
    const value = readLiteral(text, skipSpace(text, at + 1), true);
    if (!value) return undefined;
    printed.push(`${JSON.stringify(key)}: ${value.json}`);
    at = skipSpace(text, value.end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
    else if (text[at] !== ')') return undefined;
  }
  return { call: { name, arguments: `{${printed.join(', ')}}` }, end: at + 1 };
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function printCall({ name, arguments: args }: WrittenCall): string {
  const members = readWhole(args)?.members ?? new Map<string, Literal>();
  const list = [...members].map(([key, value]) => `${key}=${printPython(value)}`);
  return `${name}(${list.join(', ')})`;
}
