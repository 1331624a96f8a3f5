/**
 * Harmony, the format of gpt-oss: a reply is messages in channels. `analysis` is reasoning, `final` and `commentary` are
 * text, and a message to `functions.<name>` is a call. The recipient stands before or behind the channel.
 */
import { skipSpace, spaceObject } from './literal.ts';
import { type Repair, readRepaired, rejectReply, sliceJson, type ToolFormat, type WrittenCall } from './tool-format.ts';

const START = '<|start|>';
const CHANNEL = '<|channel|>';
const MESSAGE = '<|message|>';
const CONSTRAIN = '<|constrain|>';
const END = '<|end|>';
const CALL = '<|call|>';

export const harmony: ToolFormat = {
  id: 'harmony',
  markers: [START, CHANNEL, MESSAGE, CONSTRAIN, END, CALL, '<|return|>'],
  print(content, calls) {
    if (calls.length === 0) return `${CHANNEL}final${MESSAGE}${content}`;
    const preamble = content === '' ? [] : [`${CHANNEL}commentary${MESSAGE}${content}${END}`];
    const list = calls.map(({ name, arguments: args }) => {
      return `${CHANNEL}commentary to=functions.${name} ${CONSTRAIN}json${MESSAGE}${spaceObject(args)}`;
    });
    const called = list.join(`${CALL}${START}assistant`);
    return [...preamble, called].join(`${START}assistant`);
  },
  parse(text, _tools, isCut = false) {
    const content: string[] = [];
    const reasoning: string[] = [];
    const calls: WrittenCall[] = [];
    const repairs: Repair[] = [];
    const rest = { ...(text.includes(MESSAGE) ? {} : { content: text }) };
    for (let at = 0; at < text.length; ) {
      const opened = text.indexOf(MESSAGE, at);
      if (opened < 0) break;
      const head = text.slice(at, opened);
      const body = opened + MESSAGE.length;
      const name = /\bto=functions\.([^\s<]+)/.exec(head)?.[1];
      if (name !== undefined) {
        // By the value: a text within the arguments may spell a marker.
        const value = readRepaired(text, skipSpace(text, body), repairs);
        const behind = value && skipSpace(text, value.end);
        const isClosed =
          behind === text.length ? !isCut : behind !== undefined && endOfMessage(text, behind) === behind;
        if (value?.kind !== 'object' || !isClosed) {
          if (isCut) break;
          return rejectReply(text, `the arguments of ${name} are no JSON object`);
        }
        calls.push({ name, arguments: sliceJson(text, value) });
        at = afterMessage(text, behind!);
        continue;
      }
      const end = endOfMessage(text, body);
      (/<\|channel\|>\s*analysis/.test(head) ? reasoning : content).push(text.slice(body, end));
      at = afterMessage(text, end);
    }
    return {
      ...{ content: content.join('\n'), calls, repairs, ...rest },
      ...(reasoning.length === 0 ? {} : { reasoning: reasoning.join('\n') }),
    };
  },
};

const ENDS = /<\|(?:end|call|return|start)\|>/g;

/** Place where a message ends. */
function endOfMessage(text: string, from: number): number {
  ENDS.lastIndex = from;
  return ENDS.exec(text)?.index ?? text.length;
}

/** Place behind the token that ends a message. */
function afterMessage(text: string, end: number): number {
  ENDS.lastIndex = end;
  return ENDS.exec(text)?.index === end ? ENDS.lastIndex : end;
}
