/** Hermes format: `<tool_call>` tags around JSON. Qwen 2.5 and 3, Hermes, SmolLM3, and templates without tools. */
import { append } from '../../core/extremes.ts';
import type { Tool } from '../../core/model-call.ts';
import { skipSpace } from './literal.ts';
import {
  afterReasoning,
  beforeCall,
  callOfObject,
  joinContent,
  type ParsedReply,
  plainReply,
  printCallObject,
  type Repair,
  readRepaired,
  readUnclosed,
  rejectReply,
  type ToolFormat,
  type WrittenCall,
  withoutFence,
} from './tool-format.ts';

const OPEN = '<tool_call>';
const CLOSE = '</tool_call>';
const NAMES = ['arguments', 'parameters'] as const;

export const hermes: ToolFormat = {
  id: 'hermes',
  markers: [OPEN, CLOSE],
  print: (content, calls) => joinContent(content, calls.map(printCall).join('\n')),
  parse: afterReasoning(parseBody),
};

function printCall(call: WrittenCall): string {
  return `${OPEN}\n${printCallObject(call, NAMES)}\n${CLOSE}`;
}

function parseBody(body: string, tools: readonly Tool[], isCut: boolean): ParsedReply {
  const first = body.indexOf(OPEN);
  if (first < 0) return parseFence(body, tools);
  const calls: WrittenCall[] = [];
  const repairs: Repair[] = [];
  for (let at = first; at >= 0; ) {
    const tag = readTag(body, at + OPEN.length, isCut, repairs);
    if (tag === 'unfinished') break;
    if (!tag) return rejectReply(body, `the JSON in the tag ${calls.length + 1} of ${OPEN} is no call`);
    append(calls, tag.calls);
    at = body.indexOf(OPEN, tag.end);
  }
  return { content: beforeCall(body.slice(0, first)), calls, repairs };
}

/** Reads the calls of one tag. @param at behind its opening */
function readTag(body: string, at: number, isCut: boolean, repairs: Repair[]) {
  // By the value and not by the closing tag, which a text within the arguments may spell.
  const start = skipSpace(body, at);
  const read = readValues(body, start);
  if (read) {
    const behind = skipSpace(body, read.end);
    const closed = body.startsWith(CLOSE, behind);
    if (closed || behind === body.length) {
      if (!closed && isCut) return 'unfinished';
      append(repairs, read.repairs);
      if (!closed) repairs.push('close-tag');
      return { calls: read.calls, end: closed ? behind + CLOSE.length : behind };
    }
  }
  const close = body.indexOf(CLOSE, start);
  if (close < 0 && isCut) return 'unfinished';
  const end = close < 0 ? body.length : close;
  const inner = readInner(body.slice(start, end));
  if (!inner) return undefined;
  append(repairs, inner.repairs);
  if (close < 0) repairs.push('close-tag');
  return { calls: inner.calls, end };
}

/** Reads what stands in a tag and is no plain value: a fence, or an object without its last brace. */
function readInner(text: string): Values | undefined {
  const unfenced = withoutFence(text);
  if (unfenced !== undefined) {
    const read = readValues(unfenced, skipSpace(unfenced, 0));
    return read && { ...read, repairs: ['fence', ...read.repairs] };
  }
  const repairs: Repair[] = [];
  const closed = readUnclosed(text, skipSpace(text, 0), repairs);
  const call = closed && callOfObject(closed.text, closed.value, NAMES, repairs);
  return call && { calls: [call], repairs, end: text.length };
}

interface Values {
  readonly calls: readonly WrittenCall[];
  readonly repairs: readonly Repair[];
  readonly end: number;
}

/** Reads one call, several, or a list of calls. */
function readValues(text: string, at: number): Values | undefined {
  const repairs: Repair[] = [];
  const calls: WrittenCall[] = [];
  let end = at;
  for (let next = at; text[next] === '{' || text[next] === '['; next = skipSpace(text, end)) {
    const value = readRepaired(text, next, repairs);
    if (!value) return undefined;
    for (const one of value.kind === 'list' ? value.items! : [value]) {
      const call = callOfObject(text, one, NAMES, repairs);
      if (!call) return undefined;
      calls.push(call);
    }
    if (value.kind === 'list' || next !== at) repairs.push('several-in-tag');
    end = value.end;
  }
  return calls.length === 0 ? undefined : { calls, repairs, end };
}

/** Reads a reply without tags: a fence at its end with a call of a known tool. */
function parseFence(body: string, tools: readonly Tool[]): ParsedReply {
  const at = body.search(/```[a-z_]*[^\S\n]*\n\s*\{/);
  const unfenced = at < 0 ? undefined : withoutFence(body.slice(at));
  const read = unfenced === undefined ? undefined : readValues(unfenced, skipSpace(unfenced, 0));
  const known = read?.calls.every(({ name }) => tools.some((tool) => tool.name === name));
  if (!read || !known || skipSpace(unfenced!, read.end) !== unfenced!.length) return plainReply(body);
  return { content: beforeCall(body.slice(0, at)), calls: read.calls, repairs: ['fence', ...read.repairs] };
}
