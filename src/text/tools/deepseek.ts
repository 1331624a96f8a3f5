/** DeepSeek's formats: V3 and R1 with a type and a fence, V3.1 without. Either parser reads both. */
import type { Tool } from '../../core/model-call.ts';
import { skipSpace, spaceObject } from './literal.ts';
import {
  afterReasoning,
  type ParsedReply,
  plainReply,
  type Repair,
  readRepaired,
  rejectReply,
  sliceJson,
  type ToolFormat,
  type WrittenCall,
} from './tool-format.ts';

const OPEN = '<｜tool▁calls▁begin｜>';
const CLOSE = '<｜tool▁calls▁end｜>';
const BEGIN = '<｜tool▁call▁begin｜>';
const SEPARATOR = '<｜tool▁sep｜>';
const END = '<｜tool▁call▁end｜>';

const markers = [OPEN, CLOSE, BEGIN, SEPARATOR, END];
const parse = afterReasoning(parseBody);

/** Format of V3 and R1. */
export const deepseekV3: ToolFormat = {
  id: 'deepseek-v3',
  markers,
  print(content, calls) {
    const list = calls.map(({ name, arguments: args }) => {
      return `${BEGIN}function${SEPARATOR}${name}\n\`\`\`json\n${spaceObject(args)}\n\`\`\`${END}`;
    });
    return calls.length === 0 ? content : `${content}${OPEN}${list.join('\n')}${CLOSE}`;
  },
  parse,
};

/** Format of V3.1. */
export const deepseekV31: ToolFormat = {
  id: 'deepseek-v3.1',
  markers,
  print(content, calls) {
    const list = calls.map(({ name, arguments: args }) => `${BEGIN}${name}${SEPARATOR}${spaceObject(args)}${END}`);
    return calls.length === 0 ? content : `${content}${OPEN}${list.join('')}${CLOSE}`;
  },
  parse,
};

const HEAD = new RegExp(
  `\\s*${BEGIN}(?:function${SEPARATOR}([^\\n]+)\\n|([^\\n]+?)${SEPARATOR})\\s*(\`\`\`json\\n)?`,
  'y',
);

function parseBody(body: string, _tools: readonly Tool[], isCut: boolean): ParsedReply {
  const first = body.indexOf(OPEN);
  if (first < 0) return plainReply(body);
  const calls: WrittenCall[] = [];
  const repairs: Repair[] = [];
  let at = first + OPEN.length;
  while (!body.startsWith(CLOSE, skipSpace(body, at))) {
    const read = readCall(body, at, repairs);
    if (read) {
      calls.push(read.call);
      at = read.end;
    } else if (isCut) break;
    else if (calls.length > 0 && skipSpace(body, at) === body.length) {
      repairs.push('close-tag');
      break;
    } else return rejectReply(body, `the call ${calls.length + 1} behind ${OPEN} cannot be read`);
  }
  return { content: body.slice(0, first), calls, repairs };
}

function readCall(text: string, from: number, repairs: Repair[]) {
  HEAD.lastIndex = from;
  const head = HEAD.exec(text);
  if (!head) return undefined;
  const value = readRepaired(text, skipSpace(text, from + head[0].length), repairs);
  if (value?.kind !== 'object') return undefined;
  let at = skipSpace(text, value.end);
  if (head[3] !== undefined && text.startsWith('```', at)) at = skipSpace(text, at + 3);
  if (!text.startsWith(END, at)) return undefined;
  const name = (head[1] ?? head[2]!).trim();
  return { call: { name, arguments: sliceJson(text, value) }, end: at + END.length };
}
