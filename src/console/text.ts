/** Styled text of a known width, of which frames are made before it becomes escape codes. Pure. */
import { printable } from '../core/printable.ts';

export type Style = 'plain' | 'dim' | 'bold' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'inverse';

export interface Span {
  readonly text: string;
  readonly style: Style;
}

export type Line = readonly Span[];

const CODES: Readonly<Record<Style, string>> = {
  plain: '',
  dim: '2',
  bold: '1',
  red: '31',
  green: '32',
  yellow: '33',
  blue: '34',
  magenta: '35',
  cyan: '36',
  inverse: '7',
};

export function span(text: string, style: Style = 'plain'): Span {
  return { text: printable(text), style };
}

/** Width of a text in columns: East Asian wide characters and emoji take two, combining marks none. */
export function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += charWidth(char.codePointAt(0)!);
  return width;
}

function charWidth(code: number): number {
  if (code < 0x300) return 1;
  if (code < 0x370 || (code >= 0xfe00 && code <= 0xfe0f)) return 0;
  const wide =
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd);
  return wide ? 2 : 1;
}

export function lineWidth(line: Line): number {
  return line.reduce((sum, { text }) => sum + widthOf(text), 0);
}

/** Cuts text to `width` columns, an ellipsis where something is missing. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  if (width <= 0) return '';
  let out = '';
  let used = 0;
  for (const char of text) {
    const next = used + widthOf(char);
    if (next > width - 1) break;
    out += char;
    used = next;
  }
  return `${out}…`;
}

/** Pads or cuts text to exactly `width` columns. */
export function pad(text: string, width: number, side: 'start' | 'end' = 'end'): string {
  const fitted = cut(text, width);
  const room = ' '.repeat(Math.max(0, width - widthOf(fitted)));
  return side === 'end' ? fitted + room : room + fitted;
}

/** Clips a line to `width` columns. */
export function clip(line: Line, width: number): Line {
  const out: Span[] = [];
  let left = width;
  for (const { text, style } of line) {
    const fitted = cut(text, left);
    out.push({ text: fitted, style });
    left -= widthOf(fitted);
    if (left <= 0) break;
  }
  return out;
}

/** Fills a line with blanks to `width` columns. */
export function fill(line: Line, width: number): Line {
  const fitted = clip(line, width);
  const room = width - lineWidth(fitted);
  return room > 0 ? [...fitted, span(' '.repeat(room))] : fitted;
}

/**
 * Renders a line.
 * @param color false writes the text alone
 */
export function render(line: Line, color: boolean): string {
  return line
    .map(({ text, style }) =>
      color && style !== 'plain' && text !== '' ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text,
    )
    .join('')
    .trimEnd();
}
