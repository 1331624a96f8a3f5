/**
 * Mistral's formats: a JSON list behind `[TOOL_CALLS]` (tokenizers v3 to v7), or for each call its name and `[ARGS]` (v11
 * and later). Either parser reads both.
 */
import { append } from '../../core/extremes.ts';
import type { Tool } from '../../core/model-call.ts';
import { readLiteral, skipSpace, spaceObject } from './literal.ts';
import {
  afterReasoning,
  beforeCall,
  callOfObject,
  type ParsedReply,
  plainReply,
  printCallObject,
  type Repair,
  readRepaired,
  rejectReply,
  type ToolFormat,
  type WrittenCall,
} from './tool-format.ts';

const CALLS = '[TOOL_CALLS]';
const ID = '[CALL_ID]';
const ARGS = '[ARGS]';
const NAMES = ['arguments', 'parameters'] as const;

const markers = [CALLS, ID, ARGS, '[THINK]', '[/THINK]'];
const parse = afterReasoning(parseBody);

/** Format of the tokenizers v3 to v7. */
export const mistralList: ToolFormat = {
  id: 'mistral-list',
  markers,
  print(content, calls) {
    const list = calls.map((call) => printCallObject(call, NAMES));
    return calls.length === 0 ? content : `${content}${CALLS} [${list.join(', ')}]`;
  },
  parse,
};

/** Format of the tokenizers v11 and later. */
export const mistralArgs: ToolFormat = {
  id: 'mistral-args',
  markers,
  print: (content, calls) =>
    content + calls.map(({ name, arguments: args }) => `${CALLS}${name}${ARGS}${spaceObject(args)}`).join(''),
  parse,
};

function parseBody(body: string, _tools: readonly Tool[], isCut: boolean): ParsedReply {
  const first = body.indexOf(CALLS);
  if (first < 0) return plainReply(body);
  const calls: WrittenCall[] = [];
  const repairs: Repair[] = [];
  for (let at = first; at < body.length; ) {
    if (!body.startsWith(CALLS, at)) break;
    const start = skipSpace(body, at + CALLS.length);
    const read = body[start] === '[' ? readList(body, start, repairs) : readNamed(body, start);
    if (!read) {
      if (isCut) break;
      return rejectReply(body, `what follows ${CALLS} is no call`);
    }
    append(calls, read.calls);
    at = skipSpace(body, read.end);
  }
  return { content: beforeCall(body.slice(0, first)), calls, repairs };
}

function readList(text: string, at: number, repairs: Repair[]) {
  const value = readRepaired(text, at, repairs);
  if (!value?.items?.length) return undefined;
  const calls = value.items.map((item) => callOfObject(text, item, NAMES, repairs));
  return calls.every((call) => call !== undefined) ? { calls, end: value.end } : undefined;
}

/** Reads a name, an id if there is one, and the arguments. */
function readNamed(text: string, at: number) {
  const args = text.indexOf(ARGS, at);
  if (args < 0) return undefined;
  const name = text.slice(at, args).split(ID, 1)[0]!.trim();
  const value = readLiteral(text, skipSpace(text, args + ARGS.length));
  if (name === '' || value?.kind !== 'object') return undefined;
  return { calls: [{ name, arguments: text.slice(value.start, value.end) }], end: value.end };
}
