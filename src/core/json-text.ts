/**
 * JSON of others. An escape like `\ud83d` without its other half would make a text that no UTF-8 can hold: it could not
 * be written to a trace, sent to a server or read back as the same text. Such halves become U+FFFD where a text enters.
 */

/** Escapes of a JSON text, one after another: a whole pair, a lone half, anything else. */
const ESCAPES = /\\(?:(u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2})|(u[dD][89a-fA-F][\da-fA-F]{2})|.)/gs;

/**
 * Parses JSON; lone surrogates, raw or escaped, become U+FFFD. A byte-order mark at its beginning is passed over.
 * @throws {SyntaxError} for what is no JSON
 */
export function parseJson(text: string): unknown {
  const whole = (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text).toWellFormed();
  if (!/\\u[dD][89a-fA-F]/.test(whole)) return JSON.parse(whole);
  return JSON.parse(whole.replace(ESCAPES, (all, _pair, half) => (half === undefined ? all : '\\ufffd')));
}

/** Makes texts well-formed; the list itself where they are already. */
export function makeWellFormed(texts: readonly string[]): readonly string[] {
  return texts.every((text) => text.isWellFormed()) ? texts : texts.map((text) => text.toWellFormed());
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
    const char = text[at];
    if (char === '{') {
      open.push(new Set());
      isKey = true;
    } else if (char === '[') {
      open.push(undefined);
      isKey = false;
    } else if (char === '}' || char === ']') open.pop();
    else if (char === ',') isKey = open.at(-1) !== undefined;
    else if (char === ':') isKey = false;
    else if (char === '"') {
      const end = endOfString(text, at);
      if (isKey) {
        const names = open.at(-1)!;
        const name = JSON.parse(text.slice(at, end + 1)) as string;
        if (names.has(name)) return name;
        names.add(name);
      }
      at = end;
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
