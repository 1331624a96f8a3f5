/**
 * Text as Python cuts and prints it. The originals of the worlds are written in Python, and a recorded answer shows where its rules
 * are not JavaScript's. Its white space has U+001C–U+001F and U+0085 and lacks U+FEFF; `repr` has quotes and escapes of its own.
 */

/** Python's `str.strip()`. */
export function strip(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Python's `str.split()`: the pieces between runs of white space, none of them empty. */
export function split(text: string): string[] {
  const pieces: string[] = [];
  let start = -1;
  for (let i = 0; i <= text.length; i++) {
    const isGap = i === text.length || isSpace(text.charCodeAt(i));
    if (!isGap && start < 0) start = i;
    if (isGap && start >= 0) {
      pieces.push(text.slice(start, i));
      start = -1;
    }
  }
  return pieces;
}

/** Python's `str.isspace` of a UTF-16 unit. */
function isSpace(code: number): boolean {
  if (code < 128) return code === 32 || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
  return (
    code === 0x85 ||
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

const UNPRINTABLE = /[\p{C}\p{Z}]/u;

/** Python's `repr` of a text: single quotes unless it has `'` and no `"`; unprintable characters escaped. */
export function reprText(text: string): string {
  if (/^[ -&(-[\]-~]*$/.test(text)) return `'${text}'`;
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let out = quote;
  for (const char of text) out += escapeChar(char, quote);
  return out + quote;
}

/** Character as `repr` shows it between two quotes. @param quote empty: no quote is escaped */
export function escapeChar(char: string, quote: string): string {
  if (char === '\\' || char === quote) return `\\${char}`;
  if (char === '\n') return '\\n';
  if (char === '\r') return '\\r';
  if (char === '\t') return '\\t';
  if (char === ' ' || !UNPRINTABLE.test(char)) return char;
  const code = char.codePointAt(0)!;
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

/** Python's `repr` of a float: the shortest digits that give it back; an exponent from 1e16 and below 1e-4. */
export function reprFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e16 || size < 1e-4)) {
    const [digits, exponent] = value.toExponential().split('e') as [string, string];
    const sign = exponent.startsWith('-') ? '-' : '+';
    return `${digits}e${sign}${exponent.slice(1).padStart(2, '0')}`;
  }
  const text = String(value);
  return text.includes('.') ? text : `${text}.0`;
}

/** Compares texts by code points, as Python and `LC_ALL=C sort` order them. @returns below, above or at 0 */
export function compareCodePoints(a: string, b: string): number {
  // Units of UTF-16 have the same order but for halves of surrogates.
  if (!/[\ud800-\udfff]/.test(a + b)) return a < b ? -1 : Number(a > b);
  const [left, right] = [[...a], [...b]];
  for (let i = 0; i < left.length && i < right.length; i++) {
    const order = left[i]!.codePointAt(0)! - right[i]!.codePointAt(0)!;
    if (order !== 0) return order;
  }
  return left.length - right.length;
}
