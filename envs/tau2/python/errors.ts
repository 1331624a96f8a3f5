/** Exceptions of Python, as far as the original's tools raise them. Their texts are what the agent reads. */
import { repr } from './format.ts';

/** Exception; its message is `str(exception)`. */
export class PyError extends Error {
  /** Class, e.g. `ValueError`. */
  readonly kind: string;

  constructor(kind: string, message: string) {
    super(message);
    this.name = 'PyError';
    this.kind = kind;
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
export function keyError(key: string): PyError {
  return new PyError('KeyError', repr(key));
}
