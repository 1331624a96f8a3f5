/**
 * Python values. The original's tools are Python functions, and its answers show which number was an `int` and which a `float`, in
 * which order a dictionary was filled, and of which class an object is. So numbers keep their kind here: an int is a `bigint`, a float
 * is a `number`. A dictionary is a `Map` (an object would move keys such as "1656367028" to its front) or a `Table`.
 */
import type { ModelType } from './model.ts';

/** Value of Python. */
export type PyValue = null | boolean | bigint | number | string | PyValue[] | PyDict | Model;

/** Dictionary with text keys. */
export type PyDict = Map<string, PyValue> | Table;

/**
 * Instance of a pydantic model: its fields are its own properties, in the order of their declaration. A domain names them by an
 * interface that extends `Model`.
 */
export class Model {
  readonly #type: ModelType;

  constructor(type: ModelType) {
    this.#type = type;
  }

  /** Type of an instance. */
  static typeOf(model: Model): ModelType {
    return model.#type;
  }
}

/** Fields of an instance, in order. */
export function fieldsOf(model: Model): [name: string, value: PyValue][] {
  return Object.entries(model) as [string, PyValue][];
}

/**
 * Dictionary of rows that many episodes share: reading gives the shared rows, which are frozen, and `edit` gives a copy that
 * belongs to this table. Rows keep the order of the file; new ones come behind.
 */
export class Table<T extends PyValue = PyValue> {
  readonly #shared: ReadonlyMap<string, T>;
  readonly #own = new Map<string, T>();

  /** @param shared rows, frozen by `freeze` */
  constructor(shared: ReadonlyMap<string, T>) {
    this.#shared = shared;
  }

  /** Makes a table over the same shared rows, without the changes of this one. */
  fork(): Table<T> {
    return new Table(this.#shared);
  }

  get size(): number {
    let added = 0;
    for (const key of this.#own.keys()) if (!this.#shared.has(key)) added++;
    return this.#shared.size + added;
  }

  has(key: string): boolean {
    return this.#own.has(key) || this.#shared.has(key);
  }

  /** Row to read; never change it. */
  get(key: string): T | undefined {
    return this.#own.get(key) ?? this.#shared.get(key);
  }

  /** Row to change: a copy is made the first time. */
  edit(key: string): T | undefined {
    const own = this.#own.get(key);
    if (own !== undefined) return own;
    const shared = this.#shared.get(key);
    if (shared === undefined) return undefined;
    const copy = cloneValue(shared);
    this.#own.set(key, copy);
    return copy;
  }

  /** Sets a row, in its place or behind the others. */
  set(key: string, row: T): void {
    this.#own.set(key, row);
  }

  /** Rows that are this table's own: those that were edited or set. */
  own(): Iterable<[key: string, row: T]> {
    return this.#own;
  }

  *keys(): Generator<string> {
    yield* this.#shared.keys();
    for (const key of this.#own.keys()) if (!this.#shared.has(key)) yield key;
  }

  *values(): Generator<T> {
    for (const [, row] of this) yield row;
  }

  *[Symbol.iterator](): Generator<[key: string, row: T]> {
    for (const [key, row] of this.#shared) yield [key, this.#own.get(key) ?? row];
    for (const [key, row] of this.#own) if (!this.#shared.has(key)) yield [key, row];
  }
}

/** True for a dictionary. */
export function isDict(value: PyValue): value is PyDict {
  return value instanceof Map || value instanceof Table;
}

/** Copies a value with everything in it; a table becomes a fork of its shared rows. */
export function cloneValue<T extends PyValue>(value: T): T {
  return clone(value) as T;
}

function clone(value: PyValue): PyValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(clone);
  if (value instanceof Table) return value.fork();
  if (value instanceof Map) return new Map(Array.from(value, ([key, one]) => [key, clone(one)]));
  const copy = new Model(Model.typeOf(value));
  for (const [name, one] of fieldsOf(value)) Reflect.set(copy, name, clone(one));
  return copy;
}

/** Freezes the lists and models of a value. A change by mistake throws then. Maps have no such lock: nobody changes a shared one. */
export function freeze<T extends PyValue>(value: T): T {
  if (typeof value !== 'object' || value === null || value instanceof Table) return value;
  if (value instanceof Map) for (const one of value.values()) freeze(one);
  else if (Array.isArray(value)) for (const one of value) freeze(one);
  else for (const [, one] of fieldsOf(value)) freeze(one);
  if (!(value instanceof Map)) Object.freeze(value);
  return value;
}

/** Name of a value's class, as `type(value).__name__`. */
export function typeName(value: PyValue): string {
  switch (typeof value) {
    case 'string':
      return 'str';
    case 'bigint':
      return 'int';
    case 'number':
      return 'float';
    case 'boolean':
      return 'bool';
  }
  if (value === null) return 'NoneType';
  if (Array.isArray(value)) return 'list';
  return value instanceof Model ? Model.typeOf(value).title : 'dict';
}
