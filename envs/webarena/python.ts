/** Python's rules that the original's outputs rest on: `str` of values, `urlparse`, `parse_qs`. */
import { escapeChar, reprFloat, reprText } from '../../src/core/python-text.ts';

/** The text with everything unprintable escaped as `repr` does it: one line, without bidirectional marks. */
export function printable(text: string): string {
  if (/^[ -~]*$/.test(text)) return text;
  let out = '';
  for (const char of text) out += char === '\\' ? char : escapeChar(char, '');
  return out;
}

/** A Python float in recorded or evaluated values, where JSON alone would make it an integer. */
export class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** `str(value)` of a value that came from a page: `None`, `True`, `5`, `['a', 'b']`. */
export function str(value: unknown): string {
  return typeof value === 'string' ? value : literal(value);
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'string') return reprText(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value instanceof Float) return reprFloat(value.value);
  if (typeof value === 'number') return Number.isInteger(value) ? integer(value) : reprFloat(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (typeof value !== 'object') return String(value);
  return `{${Object.entries(value)
    .map(([key, item]) => `${reprText(key)}: ${literal(item)}`)
    .join(', ')}}`;
}

function integer(value: number): string {
  return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
}

/** The parts of `urllib.parse.urlparse` that the evaluators use; `;parameters` are cut off the path. */
export interface ParsedUrl {
  readonly scheme: string;
  readonly netloc: string;
  readonly path: string;
  readonly query: string;
}

const WITH_PARAMETERS = new Set([
  '',
  'ftp',
  'hdl',
  'prospero',
  'http',
  'https',
  'shttp',
  'rtsp',
  'rtsps',
  'rtspu',
  'sip',
  'sips',
  'mms',
  'sftp',
  'tel',
]);

/**
 * `urllib.parse.urlparse`.
 * @throws {RangeError} for a bracket without its partner in the host, as Python's ValueError
 */
export function urlparse(url: string): ParsedUrl {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Python strips just these
  let rest = url.replace(/^[\x00-\x20]+/, '').replace(/[\t\r\n]/g, '');
  let scheme = '';
  const named = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(rest);
  if (named) {
    scheme = named[1]!.toLowerCase();
    rest = rest.slice(named[0].length);
  }
  let netloc = '';
  if (rest.startsWith('//')) {
    const end = rest.slice(2).search(/[/?#]/);
    netloc = end < 0 ? rest.slice(2) : rest.slice(2, 2 + end);
    rest = end < 0 ? '' : rest.slice(2 + end);
    if (netloc.includes('[') !== netloc.includes(']')) throw new RangeError('Invalid IPv6 URL');
  }
  const [beforeFragment] = cut(rest, '#');
  const [path, query] = cut(beforeFragment, '?');
  return { scheme, netloc, path: WITH_PARAMETERS.has(scheme) ? stripParameters(path) : path, query };
}

function stripParameters(path: string): string {
  const at = path.indexOf(';', path.lastIndexOf('/') + 1);
  return at < 0 ? path : path.slice(0, at);
}

function cut(text: string, mark: string): [before: string, after: string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** `urllib.parse.parse_qs`: values by key; blank ones are left out. */
export function parseQuery(query: string): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const pair of query.split('&')) {
    const at = pair.indexOf('=');
    if (at < 0 || at === pair.length - 1) continue;
    const key = unquote(pair.slice(0, at));
    const known = values.get(key);
    if (known) known.push(unquote(pair.slice(at + 1)));
    else values.set(key, [unquote(pair.slice(at + 1))]);
  }
  return values;
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

function unquote(text: string): string {
  return text.replace(/\+/g, ' ').replace(/(?:%[0-9A-Fa-f]{2})+/g, (run) => {
    return utf8.decode(Uint8Array.from(run.slice(1).split('%'), (hex) => Number.parseInt(hex, 16)));
  });
}
