/** Text that is not ours (observations, ids, names, errors of others), made fit for a terminal. Pure. */

/** Controls (C0, C1), formats (bidi, zero width, tags), lone surrogates, separators: obeyed or not shown by a terminal. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u2065\u{e0000}-\u{e0fff}]/gu;
/** The same without the line feed. */
const UNPRINTABLE_IN_LINES = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u2065\u{e0000}-\u{e0fff}]/gu;

/** One line of text in which anything that a terminal would obey or not show is a visible mark. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '�');
}

/** Printable text of several lines: line feeds stay, a tab becomes a blank. */
export function printableLines(text: string): string {
  return text.replace(/\t/g, ' ').replace(/\r\n/g, '\n').replace(UNPRINTABLE_IN_LINES, '�');
}

/** JSON whose strings are escaped where a terminal would obey them: a program reads the same value. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, (found) =>
    Array.from({ length: found.length }, (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** Shortens a text of more than `maxChars` UTF-16 units to its beginning, its end, and how much is between them. */
export function shorten(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const tail = Math.floor(maxChars / 4);
  const left = text.length - maxChars;
  return `${text.slice(0, maxChars - tail)} … ${left} characters left out … ${text.slice(text.length - tail)}`;
}
