/**
 * Terminal in few tokens, for the local policy: the request, the calls that were made with the beginning of each output, and the
 * call that is being put together. Every name and value that tasks draw is a known word.
 *
 *     move the file report txt to archive txt | read file report txt apple lemon | call move report txt
 *
 * Values are mentioned where the request quotes them and where outputs show them, tools by the words that they share with the
 * request.
 */
import { readAgentCall, readAgentReply } from '../../src/core/agent-call.ts';
import type { First } from '../../src/core/env.ts';
import { parseJson } from '../../src/core/json-text.ts';
import { isRecord } from '../../src/core/record.ts';
import type { Rendered, SeenTurn, Track, WindowView } from '../../src/core/view.ts';
import { FOLDERS, KEYS, NAMES, PEOPLE, WORDS } from './words.ts';

/** Calls that the text lists, the latest kept; words of an output, and of the request. */
const MAX_LISTED_CALLS = 8;
const MAX_OUTPUT = 10;
const MAX_REQUEST = 96;
const MAX_MENTIONS = 6;

/** Words of requests, of tools and their values, and of the terminal's own texts. */
const WORDING =
  'a add all also and answer append are as bak be but by call cannot characters code column conf contain contains copy count csv ' +
  'delete different directory does drop each edit end error exit extract file files find first folder format from get have how ' +
  'in info is it its join json keep key kind last left line lines list log make many matches md mode more move must name names no ' +
  'not numbers of old once one only option order out output part path permissions read remove replace result row rows run same ' +
  'script set sh sort sorted step1 step2 submit submitted such sum table tables take that the their them then those tmp to tool txt ' +
  'unique value values warning what where which with word write wrong again other';
const KNOWN: ReadonlySet<string> = new Set([WORDING, NAMES, FOLDERS, WORDS, PEOPLE, KEYS].join(' ').split(' '));

/** Piece of the request: a word, or a value that it quotes. */
interface Piece {
  readonly text: string;
  /** The value as it stands in the request; absent for a word. */
  readonly value?: string;
}

/** Call that was made, in known words. */
interface MadeCall {
  readonly call: string;
  readonly output: string;
}

/** Memory of an episode. */
interface Memory {
  readonly request: readonly Piece[];
  readonly calls: readonly MadeCall[];
  /** Choices of the call that is being put together. */
  readonly stage: readonly string[];
}

const track: Track<Memory> = {
  begin,
  reduce,
  situation: (state) => JSON.stringify(state),
};

/** View of the world. */
export const view: WindowView<Memory> = {
  id: 'terminal@1',
  mode: 'window',
  lexicon: [],
  words: ['|', ...KNOWN],
  track,
  candidate: (action) => wordsOf(action, MAX_REQUEST).join(' ') || 'other',
  render,
};

function begin({ observation }: First): Memory {
  const text = textsOf(observation, 'user').join(' ');
  const request = [...text.matchAll(/"([^"]*)"|[^\s"]+/g)].flatMap(([word, value]): Piece[] => {
    const words = wordsOf(value ?? word, MAX_REQUEST);
    if (value === undefined) return words.map((one) => ({ text: one }));
    return words.length > 0 ? [{ text: words.join(' '), value }] : [];
  });
  return { request: request.slice(0, MAX_REQUEST), calls: [], stage: [] };
}

function reduce(memory: Memory, { action, observation, partial }: SeenTurn): Memory {
  if (partial) return { ...memory, stage: [...memory.stage, action] };
  const made = action.startsWith('{') ? readCalls(action) : [[...memory.stage, action].join(' ')];
  const outputs = textsOf(observation, 'tool');
  const calls = made.map((call, i) => ({
    call: wordsOf(call, MAX_REQUEST).join(' '),
    output: wordsOf(outputs[i] ?? '', MAX_OUTPUT).join(' '),
  }));
  return { ...memory, calls: [...memory.calls, ...calls].slice(-MAX_LISTED_CALLS), stage: [] };
}

/** Calls of a reply as texts: the tool, then its values. */
function readCalls(action: string): string[] {
  return readAgentReply(action).calls.map(({ name, arguments: text }) => [name, ...valuesOf(text)].join(' '));
}

function valuesOf(text: string): string[] {
  try {
    const args = parseJson(text);
    return isRecord(args) ? Object.values(args).map(String) : [];
  } catch {
    return []; // no arguments that the tool could read
  }
}

function textsOf(observation: string, wanted: 'user' | 'tool'): string[] {
  if (!observation.startsWith('{')) return [];
  return readAgentCall(observation)
    .messages.filter(({ role }) => role === wanted)
    .map(({ content }) => content);
}

/** Known words of a text, and its numbers in pieces of two digits: the first of them. */
function wordsOf(text: string, count: number): string[] {
  const found: string[] = [];
  for (const [word] of text.toLowerCase().matchAll(/step\d|[a-z]+|\d\d?(?=(?:\d\d)*(?!\d))/g)) {
    if (KNOWN.has(word)) found.push(word);
    else if (/^\d+$/.test(word)) found.push(String(Number(word)));
    if (found.length >= count) break;
  }
  return found;
}

function render(first: First, _turns: readonly SeenTurn[], state?: Memory): Rendered {
  const { request, calls, stage } = state ?? begin(first);
  const segments = request.map(({ text }, i) => (i === 0 ? text : ` ${text}`));
  /** Outputs of calls, by the places of their segments. */
  const outputs = new Map<number, string>();
  for (const { call, output } of calls) {
    segments.push(` | ${call}`);
    if (output === '') continue;
    outputs.set(segments.length, output);
    segments.push(` ${output}`);
  }
  if (stage.length > 0) {
    segments.push(` | call ${stage.map((choice) => wordsOf(choice, MAX_REQUEST).join(' ')).join(' ')}`);
  }
  return {
    segments,
    focus: request.map(({ text }) => text).join(' '),
    mentions(action) {
      const words = wordsOf(action, MAX_REQUEST);
      const isTool = stage.length === 0;
      const asked = request.flatMap(({ text, value }, i) =>
        (value === undefined ? isTool && words.includes(text) : value === action) ? [i] : [],
      );
      if (isTool || words.length === 0) return asked.slice(0, MAX_MENTIONS);
      const shown = [...outputs].filter(([, output]) => ` ${output} `.includes(` ${words.join(' ')} `));
      return [...asked, ...shown.map(([i]) => i)].slice(0, MAX_MENTIONS);
    },
  };
}
