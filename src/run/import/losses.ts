/** Losses of an import: what a source has and a trace cannot hold, counted by field. Nothing is left out without being counted. */
import { isRecord } from '../../core/record.ts';

/** Counts of what was left out, by field. */
export class Losses {
  readonly #counts = new Map<string, number>();

  /** Counts values of a field, e.g. `steps[].metrics.cost_usd`. */
  add(field: string, n = 1): void {
    if (n > 0) this.#counts.set(field, (this.#counts.get(field) ?? 0) + n);
  }

  /** Counts the fields of an object that are not among those that were read; empty ones are none. */
  addOthers(value: unknown, read: readonly string[], path: string): void {
    if (!isRecord(value)) return;
    for (const [key, one] of Object.entries(value)) {
      if (!read.includes(key) && !isEmpty(one)) this.add(path === '' ? key : `${path}.${key}`);
    }
  }

  /** Counts by field, in the order of their names. */
  list(): Record<string, number> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** True for a value that says nothing: none, an empty text, list or object. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isRecord(value) && Object.keys(value).length === 0;
}
