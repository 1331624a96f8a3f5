/** Llama's JSON: a reply that is one object `{"name", "parameters"}`, or several with `;` between. Llama 3.1 to 3.3. */
import type { Tool } from '../../core/model-call.ts';
import { skipSpace } from './literal.ts';
import { readPythonCall } from './pythonic.ts';
import {
  afterReasoning,
  callOfObject,
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

const TAG = '<|python_tag|>';
const NAMES = ['parameters', 'arguments'] as const;

export const llamaJson: ToolFormat = {
  id: 'llama-json',
  markers: [TAG],
  // A reply is text or calls: its template writes no text beside them.
  print: (content, calls) =>
    calls.length === 0 ? content : calls.map((call) => printCallObject(call, NAMES)).join('; '),
  parse: afterReasoning(parseBody),
};

/** Beginning of an object that is meant as a call. */
const MEANT = /^\{\s*["'](?:name|function)["']\s*:/;

function parseBody(body: string, tools: readonly Tool[], isCut: boolean): ParsedReply {
  const tagged = body.trimStart().startsWith(TAG);
  const text = (tagged ? body.slice(body.indexOf(TAG) + TAG.length) : body).trim();
  const builtIn = tagged ? readBuiltIn(text) : undefined;
  if (builtIn) return { content: '', calls: [builtIn], repairs: [] };
  const unfenced = tagged || tools.length === 0 ? undefined : withoutFence(text);
  const source = (unfenced ?? text).trim();
  const read = readCalls(source, isCut);
  const isMeant = tagged || MEANT.test(source);
  if (read && (isMeant || read.calls.every(({ name }) => tools.some((tool) => tool.name === name)))) {
    return {
      content: '',
      calls: read.calls,
      repairs: unfenced === undefined ? read.repairs : ['fence', ...read.repairs],
    };
  }
  if (!isMeant || unfenced !== undefined) return plainReply(body);
  return isCut ? plainReply('') : rejectReply(body, 'the JSON is no call');
}

function readCalls(text: string, isCut: boolean) {
  const calls: WrittenCall[] = [];
  const repairs: Repair[] = [];
  for (let at = 0; text[at] === '{'; ) {
    const value = readRepaired(text, at, repairs);
    const closed = value || isCut ? undefined : readUnclosed(text, at, repairs);
    if (!value && !closed) return isCut && calls.length > 0 ? { calls, repairs } : undefined;
    const call = callOfObject(closed?.text ?? text, (value ?? closed?.value)!, NAMES, repairs);
    if (!call) return undefined;
    // Either name is the format's.
    if (repairs.at(-1) === 'parameters') repairs.pop();
    calls.push(call);
    const end = value ? skipSpace(text, value.end) : text.length;
    if (end === text.length) return { calls, repairs };
    if (text[end] !== ';') return undefined;
    at = skipSpace(text, end + 1);
  }
  return calls.length > 0 && isCut ? { calls, repairs } : undefined;
}

/** Reads the call of a tool that is built in: `name.call(query="…")`. */
function readBuiltIn(text: string): WrittenCall | undefined {
  const read = readPythonCall(text, 0);
  if (!read || skipSpace(text, read.end) !== text.length) return undefined;
  const { name } = read.call;
  return name.endsWith('.call') ? { ...read.call, name: name.slice(0, -'.call'.length) } : undefined;
}
