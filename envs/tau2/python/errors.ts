/** Exceptions of Python, as far as the original's tools raise them. Their texts are what the agent reads. */
import { repr } from './format.ts';
import type { PyValue } from './values.ts';

/** Exception; its message is `str(exception)`. */
export class PyError extends Error {
  /** @param name class, e.g. `ValueError` */
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

/** Makes a `ValueError`. */
export function valueError(message: string): PyError {
  return new PyError('ValueError', message);
}

/** Makes a `TypeError`. */
export function typeError(message: string): PyError {
  return new PyError('TypeError', message);
}

/** Makes a `KeyError`: its text is the key in quotes. */
export function keyError(key: PyValue): PyError {
  return new PyError('KeyError', repr(key));
}
