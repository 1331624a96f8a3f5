/**
 * JSON of others. An escape like `\ud83d` without its other half would make a text that no UTF-8 can hold: it could not
 * be written to a trace, sent to a server or read back as the same text. Such halves become U+FFFD where a text enters.
 */

/** Escapes of a JSON text, one after another: a whole pair, a lone half, anything else. */
const ESCAPES = /\\(?:(u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2})|(u[dD][89a-fA-F][\da-fA-F]{2})|.)/gs;

/** Levels of nesting that are read; Python's reader ends at a thousand. */
const MAX_NESTING = 500;

/**
 * Parses JSON; lone surrogates, raw or escaped, become U+FFFD. A byte-order mark at its beginning is passed over.
 * `JSON.parse` reads any depth, at which whatever walks the value (`JSON.stringify`, a schema) runs out of stack.
 * @throws {SyntaxError} for what is no JSON, or nested more than 500 levels deep
 */
export function parseJson(text: string): unknown {
  const whole = (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text).toWellFormed();
  if (isDeep(whole)) throw new SyntaxError(`values nested more than ${MAX_NESTING} levels deep`);
  if (!/\\u[dD][89a-fA-F]/.test(whole)) return JSON.parse(whole);
  return JSON.parse(whole.replace(ESCAPES, (all, _pair, half) => (half === undefined ? all : '\\ufffd')));
}

/** True for a text whose values are nested too deep; brackets within strings do not count. */
function isDeep(text: string): boolean {
  if (text.length < 2 * MAX_NESTING) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > MAX_NESTING) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
    }
  }
  return false;
}

/**
 * Finds a name that an object of a JSON text has twice: `JSON.parse` takes the later value, other readers the first.
 * @param text JSON that has been parsed
 * @returns the first such name; undefined where there is none
 */
export function findDuplicateKey(text: string): string | undefined {
  const open: (Set<string> | undefined)[] = []; // names of each open object; undefined for a list
  let isKey = false;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x7b: // {
        open.push(new Set());
        isKey = true;
        break;
      case 0x5b: // [
        open.push(undefined);
        isKey = false;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        open.pop();
        break;
      case 0x2c: // ,
        isKey = open.at(-1) !== undefined;
        break;
      case 0x3a: // :
        isKey = false;
        break;
      case 0x22: {
        // "
        const end = endOfString(text, at);
        if (isKey) {
          const names = open.at(-1)!;
          const raw = text.slice(at + 1, end);
          const name = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
          if (names.has(name)) return name;
          names.add(name);
        }
        at = end;
      }
    }
  }
  return undefined;
}

/** Place of the quotation mark that ends a string. @param at that of the one that begins it */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}
