/** Objects that are no lists, in values of somebody's: a JSON object, a section of a configuration. */

/** True for an object that is no list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns the objects in a list, lists left out; none of what is no list */
export function recordsOf(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** @returns the value where it is an object that is no list, else undefined */
export function recordOf(value: unknown): Record<string, unknown> | undefined {
  return isRecord(value) ? value : undefined;
}
