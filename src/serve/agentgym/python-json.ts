/**
 * JSON mistakes: the errors of Python's `json` for a text that is no JSON, word for word and at the same place:
 * AgentGym's servers hand them on to their clients. Only called when `JSON.parse` has refused.
 */
export interface JsonMistake {
  readonly message: string;
  /** Characters (code points) before the mistake. */
  readonly position: number;
}

/** Finds the first mistake, or `undefined` in a text that Python would read. */
export function findJsonMistake(text: string): JsonMistake | undefined {
  try {
    const end = skipSpace(text, skipValue(text, skipSpace(text, 0)));
    if (end < text.length) fail('Extra data', end);
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof Mistake)) throw thrown;
    return { message: thrown.message, position: [...text.slice(0, thrown.at)].length };
  }
}

class Mistake extends Error {
  readonly at: number;
  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

function fail(message: string, at: number): never {
  throw new Mistake(message, at);
}

function skipSpace(text: string, at: number): number {
  let i = at;
  while (text[i] === ' ' || text[i] === '\t' || text[i] === '\n' || text[i] === '\r') i++;
  return i;
}

const LITERALS = ['null', 'true', 'false', 'NaN', 'Infinity', '-Infinity'];
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
/** Depth at which Python's recursive reader gives up; nothing of ours is nested this deep. */
const MAX_DEPTH = 500;

/**
 * Reads a value.
 * @returns the place behind it
 */
function skipValue(text: string, at: number, depth = 0): number {
  if (depth > MAX_DEPTH) fail('Expecting value', at);
  if (text[at] === '"') return skipString(text, at + 1);
  if (text[at] === '{') return skipObject(text, at + 1, depth);
  if (text[at] === '[') return skipArray(text, at + 1, depth);
  const literal = LITERALS.find((known) => text.startsWith(known, at));
  if (literal) return at + literal.length;
  NUMBER.lastIndex = at;
  const number = NUMBER.exec(text);
  return number ? at + number[0].length : fail('Expecting value', at);
}

function skipObject(text: string, at: number, depth: number): number {
  const name = 'Expecting property name enclosed in double quotes';
  let i = skipSpace(text, at);
  if (text[i] === '}') return i + 1;
  for (;;) {
    if (text[i] !== '"') fail(name, i);
    i = skipSpace(text, skipString(text, i + 1));
    if (text[i] !== ':') fail("Expecting ':' delimiter", i);
    i = skipSpace(text, skipValue(text, skipSpace(text, i + 1), depth + 1));
    if (text[i] === '}') return i + 1;
    if (text[i] !== ',') fail("Expecting ',' delimiter", i);
    i = skipSpace(text, i + 1);
  }
}

function skipArray(text: string, at: number, depth: number): number {
  let i = skipSpace(text, at);
  if (text[i] === ']') return i + 1;
  for (;;) {
    i = skipSpace(text, skipValue(text, i, depth + 1));
    if (text[i] === ']') return i + 1;
    if (text[i] !== ',') fail("Expecting ',' delimiter", i);
    i = skipSpace(text, i + 1);
  }
}

/**
 * Reads a string.
 * @param at the place behind the opening quote
 */
function skipString(text: string, at: number): number {
  for (let i = at; i < text.length; i++) {
    const char = text[i]!;
    if (char === '"') return i + 1;
    if (char < ' ') fail('Invalid control character at', i);
    if (char !== '\\') continue;
    const code = text[++i];
    if (code === undefined) break;
    if (code === 'u') {
      if (!/^[0-9a-fA-F]{4}$/.test(text.slice(i + 1, i + 5))) fail('Invalid \\uXXXX escape', i + 1);
      i += 4;
    } else if (!'"\\/bfnrt'.includes(code)) fail('Invalid \\escape: ', i - 1);
  }
  return fail('Unterminated string starting at', at - 1);
}
