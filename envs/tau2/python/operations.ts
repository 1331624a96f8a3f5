/** Operations of Python on values of any type, with the texts of its errors. */
import { compareCodePoints } from '../../../src/core/python-text.ts';
import { PyError, typeError } from './errors.ts';
import { fieldsOf, isDict, Model, type PyValue, typeName } from './values.ts';

/** `a == b`: numbers and booleans by value, dictionaries without order. */
export function isEqual(a: PyValue, b: PyValue): boolean {
  if (a === b) return true;
  if (isNumber(a) && isNumber(b)) {
    const [left, right] = [numberOf(a), numberOf(b)];
    // biome-ignore lint/suspicious/noDoubleEquals: an int and a float are equal by value
    return left == right;
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((one, i) => isEqual(one, b[i]!));
  }
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null || Array.isArray(b)) return false;
  if (isDict(a)) {
    if (!isDict(b) || a.size !== b.size) return false;
    for (const [key, one] of a) {
      const other = b.get(key);
      if (other === undefined || !isEqual(one, other)) return false;
    }
    return true;
  }
  if (isDict(b) || Model.typeOf(a) !== Model.typeOf(b)) return false;
  const others = fieldsOf(b);
  return fieldsOf(a).every(([, one], i) => isEqual(one, others[i]![1]));
}

/** True for int, float and bool. */
export function isNumber(value: PyValue): value is bigint | number | boolean {
  return typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean';
}

function numberOf(value: bigint | number | boolean): bigint | number {
  return typeof value === 'boolean' ? BigInt(value) : value;
}

/** True for what `if value` takes for true. */
export function isTrue(value: PyValue): boolean {
  if (value === null) return false;
  if (typeof value !== 'object') return Boolean(value);
  if (Array.isArray(value)) return value.length > 0;
  return isDict(value) ? value.size > 0 : true;
}

/** Key of a dictionary with text keys: undefined for a value that is none of them. @throws {PyError} where it has no hash */
export function keyOf(value: PyValue): string | undefined {
  checkHash(value);
  return typeof value === 'string' ? value : undefined;
}

/** @throws {PyError} for a value that cannot be a key: a list, a dictionary, a model */
function checkHash(value: PyValue): void {
  if (typeof value === 'object' && value !== null) throw typeError(`unhashable type: '${typeName(value)}'`);
}

/** Row of a dictionary; undefined where the key is not in it. @throws {PyError} for a key without a hash */
export function lookUp<T extends PyValue>(dict: { get(key: string): T | undefined }, key: PyValue): T | undefined {
  const text = keyOf(key);
  return text === undefined ? undefined : dict.get(text);
}

/** Items that `for item in value` gives: of a list, the characters of a text, the keys of a dictionary. @throws {PyError} */
export function iterate(value: PyValue): PyValue[] {
  if (typeof value === 'string') return [...value];
  if (Array.isArray(value)) return value;
  if (isDict(value)) return [...value.keys()];
  throw typeError(`'${typeName(value)}' object is not iterable`);
}

/** `len(value)`. @throws {PyError} */
export function lengthOf(value: PyValue): number {
  if (typeof value === 'string') return [...value].length;
  if (Array.isArray(value)) return value.length;
  if (isDict(value)) return value.size;
  throw typeError(`object of type '${typeName(value)}' has no len()`);
}

/** `value.count(item)` of a list or a text. @throws {PyError} */
export function countOf(value: PyValue, item: PyValue): number {
  if (Array.isArray(value)) return value.filter((one) => isEqual(one, item)).length;
  if (typeof value !== 'string') throw attributeError(value, 'count');
  if (typeof item !== 'string') throw typeError(`must be str, not ${typeName(item)}`);
  return item === '' ? [...value].length + 1 : value.split(item).length - 1;
}

/** `value.lower()`. @throws {PyError} */
export function lower(value: PyValue): string {
  if (typeof value !== 'string') throw attributeError(value, 'lower');
  return value.toLowerCase();
}

/** Makes an `AttributeError`. */
export function attributeError(value: PyValue, name: string): PyError {
  return new PyError('AttributeError', `'${typeName(value)}' object has no attribute '${name}'`);
}

/** `a < b` of numbers, texts and lists. @throws {PyError} for values without an order */
export function isLess(a: PyValue, b: PyValue, sign = '<'): boolean {
  if (isNumber(a) && isNumber(b)) return numberOf(a) < numberOf(b);
  if (typeof a === 'string' && typeof b === 'string') return compareCodePoints(a, b) < 0;
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let i = 0; i < a.length && i < b.length; i++) if (!isEqual(a[i]!, b[i]!)) return isLess(a[i]!, b[i]!, sign);
    return a.length < b.length;
  }
  throw typeError(`'${sign}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

/** `sorted(value)`. @throws {PyError} for items without an order */
export function sortItems(value: PyValue): PyValue[] {
  const items = [...iterate(value)];
  // Neighbours are compared first, as Python does it: of two kinds, the later one is named first.
  for (let i = 1; i < items.length; i++) isLess(items[i]!, items[i - 1]!);
  return items.sort((a, b) => (isLess(b, a) ? 1 : isLess(a, b) ? -1 : 0));
}

/** `a += b` of numbers. @throws {PyError} for other values */
export function add(a: PyValue, b: PyValue): bigint | number {
  const [left, right] = numbers('+=', a, b);
  return typeof left === 'bigint' && typeof right === 'bigint' ? left + right : toFloat(left) + toFloat(right);
}

/** `a - b` of numbers. @throws {PyError} for other values */
export function subtract(a: PyValue, b: PyValue): bigint | number {
  const [left, right] = numbers('-', a, b);
  return typeof left === 'bigint' && typeof right === 'bigint' ? left - right : toFloat(left) - toFloat(right);
}

/** `a * b` of a whole number and a number, a text or a list. @throws {PyError} for other values */
export function multiply(a: bigint, b: PyValue): PyValue {
  if (typeof b === 'string') return b.repeat(Number(a));
  if (Array.isArray(b)) return Array.from({ length: Number(a) }, () => b).flat();
  const [left, right] = numbers('*', a, b);
  return typeof left === 'bigint' && typeof right === 'bigint' ? left * right : toFloat(left) * toFloat(right);
}

/** Number as a float. @throws {PyError} for an int that is too large */
export function toFloat(value: bigint | number): number {
  const float = Number(value);
  if (typeof value === 'number' || Number.isFinite(float)) return float;
  throw new PyError('OverflowError', 'int too large to convert to float');
}

function numbers(sign: string, a: PyValue, b: PyValue): [bigint | number, bigint | number] {
  if (isNumber(a) && isNumber(b)) return [numberOf(a), numberOf(b)];
  throw typeError(`unsupported operand type(s) for ${sign}: '${typeName(a)}' and '${typeName(b)}'`);
}
