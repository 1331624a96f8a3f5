/**
 * Text as Python cuts it. The originals are written in Python, whose white space and word characters are not
 * JavaScript's: its white space has U+001C–U+001F and U+0085 and lacks U+FEFF, its words are Unicode's.
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
