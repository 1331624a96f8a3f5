/** Texts of Python values: `repr`, `str`, `json.dumps`, rounding. */
import { reprFloat, reprText } from '../../../src/core/python-text.ts';
import { fieldsOf, isDict, Model, type PyValue } from './values.ts';

/** `repr(value)`. */
export function repr(value: PyValue): string {
  switch (typeof value) {
    case 'string':
      return reprText(value);
    case 'bigint':
      return String(value);
    case 'number':
      return reprFloat(value);
    case 'boolean':
      return value ? 'True' : 'False';
  }
  if (value === null) return 'None';
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`;
  if (isDict(value)) return `{${Array.from(value, ([key, one]) => `${repr(key)}: ${repr(one)}`).join(', ')}}`;
  const fields = fieldsOf(value).map(([name, one]) => `${name}=${repr(one)}`);
  return `${Model.typeOf(value).title}(${fields.join(', ')})`;
}

/** `str(value)`, as an f-string shows it. */
export function str(value: PyValue): string {
  return typeof value === 'string' ? value : repr(value);
}

/** Printable ASCII without the quote and the backslash. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Text of JSON with non-ASCII characters and controls escaped, as `json.dumps` writes it. */
export function quoteAscii(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) =>
    unit === '\u007f' ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** `json.dumps(value)`: default separators, ASCII, keys in their order. A model is dumped by its fields. */
export function dumps(value: PyValue): string {
  switch (typeof value) {
    case 'string':
      return quoteAscii(value);
    case 'bigint':
      return String(value);
    case 'number':
      return dumpFloat(value);
    case 'boolean':
      return String(value);
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${value.map(dumps).join(', ')}]`;
  const entries = isDict(value) ? Array.from(value) : fieldsOf(value);
  return `{${entries.map(([key, one]) => `${quoteAscii(key)}: ${dumps(one)}`).join(', ')}}`;
}

/** Float as `json.dumps` writes it. */
export function dumpFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  return reprFloat(value);
}

/**
 * `round(value, digits)` of a float: to the nearest decimal of the exact binary value, ties to even (2.675 → 2.67, 0.125 → 0.12).
 * @param digits 0 to 20
 */
export function roundFloat(value: number, digits: number): number {
  return value !== 0 && Math.abs(value) < 2 ** 53 ? Number(formatFixed(value, digits)) : value; // -0.0 keeps its sign
}

/** `f'{value:.{digits}f}'` of a float. @param digits 0 to 20 */
export function formatFixed(value: number, digits: number): string {
  if (!Number.isFinite(value)) return reprFloat(value);
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}.${'0'.repeat(digits)}`;
  // `toFixed` is exact too, but a tie goes away from zero. A tie at d digits is an odd multiple of 2^-(d+1).
  const multiple = Math.abs(value) * 2 ** (digits + 1);
  if (!Number.isInteger(multiple) || multiple % 2 === 0 || multiple >= 2 ** 53) return value.toFixed(digits);
  const below = (BigInt(multiple) * 5n ** BigInt(digits) - 1n) / 2n; // the tie is below + 1/2
  const even = String(below % 2n === 0n ? below : below + 1n).padStart(digits + 1, '0');
  const text = digits === 0 ? even : `${even.slice(0, -digits)}.${even.slice(-digits)}`;
  return value < 0 ? `-${text}` : text;
}
