/**
 * Action text → action, by the rules of WebArena's id-based actions.
 *
 * Source   web-arena-x/webarena at f62e0b99, `browser_env/actions.py` (`create_id_based_action`)
 * Differs  `corrected` knows more key names (in any case) and takes every character in a typed text.
 */
import { reprText, split, strip } from '../../src/core/python-text.ts';

/** `original`: answers as the original does, slips included; `corrected`: the table of README.md. */
export type Fidelity = 'original' | 'corrected';

/** Action of WebArena, taken apart. */
export type Action =
  | { readonly type: 'CLICK' | 'HOVER'; readonly id: string }
  /** A text that ends in `\n` presses Enter after it. */
  | { readonly type: 'TYPE'; readonly id: string; readonly text: string }
  | { readonly type: 'KEY_PRESS'; readonly key: string }
  | { readonly type: 'SCROLL'; readonly direction: 'up' | 'down' }
  | { readonly type: 'GOTO_URL'; readonly url: string }
  | { readonly type: 'PAGE_FOCUS'; readonly page: number }
  | { readonly type: 'NEW_TAB' | 'PAGE_CLOSE' | 'GO_BACK' | 'GO_FORWARD' }
  | { readonly type: 'STOP'; readonly answer: string };

/** The error the original raises for a text that is no action: Python's class and message. */
export interface ParseFailure {
  readonly class: 'ActionParsingError' | 'IndexError' | 'KeyError';
  readonly message: string;
}

/** Outcome of reading an action: the action, or the error. */
export type Parsed = { readonly ok: Action } | { readonly error: ParseFailure };

const KEYS = [
  ...['Backquote', 'Minus', 'Equal', 'Backslash', 'Backspace', 'Meta', 'Tab', 'Delete', 'Escape', 'ArrowDown', 'End'],
  ...['Enter', 'Home', 'Insert', 'PageDown', 'PageUp', 'ArrowRight', 'ArrowUp'],
  ...Array.from({ length: 12 }, (_, i) => `F${i + 1}`),
];
const ORIGINAL_KEYS = new Map(KEYS.map((key) => [key.toLowerCase(), key]));
const CORRECTED_KEYS = new Map([
  ...ORIGINAL_KEYS,
  ...['ArrowLeft', 'Control', 'Alt', 'Shift', 'Space'].map((key) => [key.toLowerCase(), key] as const),
  ...([
    ['ctrl', 'Control'],
    ['esc', 'Escape'],
    ['return', 'Enter'],
    ['del', 'Delete'],
    ['cmd', 'Meta'],
  ] as const),
  ...([
    ['left', 'ArrowLeft'],
    ['right', 'ArrowRight'],
    ['up', 'ArrowUp'],
    ['down', 'ArrowDown'],
  ] as const),
]);

const CLICK = /click ?\[(\p{Nd}+)\]/u;
const HOVER = /hover ?\[(\p{Nd}+)\]/u;
const TYPE = /type ?\[(\p{Nd}+)\] ?\[([^\n]+)\] ?\[(\p{Nd}+)\]/u;
const PRESS = /press ?\[([^\n]+)\]/;
const SCROLL = /scroll ?\[?(up|down)\]?/;
const GOTO = /goto ?\[([^\n]+)\]/;
const TAB = /tab_focus ?\[(\p{Nd}+)\]/u;
const STOP = /stop ?\[([^\n]+)\]/;

/** Characters the original has a key for: it cannot type anything else. */
const TYPABLE = /^[\x20-\x7f\x81-\u03e7\n]$/u;

/** Parses an action. @returns the action, or the error that the original raises for this text */
export function parseAction(input: string, fidelity: Fidelity = 'original'): Parsed {
  const text = strip(input);
  const bracket = text.indexOf('[');
  const verb = bracket < 0 ? split(text)[0] : strip(text.slice(0, bracket));
  switch (verb) {
    case undefined:
      return { error: { class: 'IndexError', message: 'list index out of range' } };
    case 'click':
    case 'hover': {
      const id = (verb === 'click' ? CLICK : HOVER).exec(text)?.[1];
      return id === undefined ? invalid(verb, text) : { ok: { type: verb === 'click' ? 'CLICK' : 'HOVER', id } };
    }
    case 'type':
      return parseType(text, fidelity);
    case 'press': {
      const keys = PRESS.exec(text)?.[1];
      if (keys === undefined) return invalid(verb, text);
      return { ok: { type: 'KEY_PRESS', key: keyNames(keys, fidelity) } };
    }
    case 'scroll': {
      const direction = SCROLL.exec(text)?.[1] as 'up' | 'down' | undefined;
      return direction === undefined ? invalid(verb, text) : { ok: { type: 'SCROLL', direction } };
    }
    case 'goto': {
      const url = GOTO.exec(text)?.[1];
      return url === undefined ? invalid(verb, text) : { ok: { type: 'GOTO_URL', url } };
    }
    case 'tab_focus': {
      const page = TAB.exec(text)?.[1];
      return page === undefined ? invalid(verb, text) : { ok: { type: 'PAGE_FOCUS', page: decimal(page) } };
    }
    case 'new_tab':
      return { ok: { type: 'NEW_TAB' } };
    case 'close_tab':
      return { ok: { type: 'PAGE_CLOSE' } };
    case 'go_back':
      return { ok: { type: 'GO_BACK' } };
    case 'go_forward':
      return { ok: { type: 'GO_FORWARD' } };
    case 'stop':
      return { ok: { type: 'STOP', answer: STOP.exec(text)?.[1] ?? '' } };
    default:
      return { error: { class: 'ActionParsingError', message: `Invalid action ${text}` } };
  }
}

function invalid(verb: string, text: string): Parsed {
  return { error: { class: 'ActionParsingError', message: `Invalid ${verb} action ${text}` } };
}

function parseType(stripped: string, fidelity: Fidelity): Parsed {
  const text = stripped.endsWith('[0]') || stripped.endsWith('[1]') ? stripped : `${stripped} [1]`;
  const [, id, typed, enter] = TYPE.exec(text) ?? [];
  if (id === undefined || typed === undefined) return invalid('type', text);
  if (fidelity === 'original') {
    for (const char of typed) {
      if (!TYPABLE.test(char)) return { error: { class: 'KeyError', message: reprText(char) } };
    }
  }
  return { ok: { type: 'TYPE', id, text: enter === '1' ? `${typed}\n` : typed } };
}

/** `ctrl+a` → `ctrl+a` as the original leaves it, `Control+a` corrected. */
function keyNames(keys: string, fidelity: Fidelity): string {
  const known = fidelity === 'original' ? ORIGINAL_KEYS : CORRECTED_KEYS;
  return keys
    .split('+')
    .map((key) => {
      const name = fidelity === 'original' ? key : strip(key);
      return known.get(name.toLowerCase()) ?? name;
    })
    .join('+');
}

/** A number in any script's decimal digits, as Python's `int` reads it. */
function decimal(digits: string): number {
  let value = '';
  for (const digit of digits) value += digitOf(digit);
  return Number(value);
}

/** Value of a decimal digit: every script's ten digits stand in a row that begins after a character that is none. */
function digitOf(char: string): number {
  let code = char.codePointAt(0)!;
  if (code < 0x80) return code - 0x30;
  let value = 0;
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - 1))) {
    code--;
    value++;
  }
  return value;
}
