/** Words for a value in a message about a configuration. */

/** UTF-16 units of what came that a message repeats. */
const REPEATED_CHARS = 120;

/** Describes a value as a message shows it. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  return cutText(JSON.stringify(value));
}

/** Cuts a part of what came to what a message repeats of it. */
export function cutText(text: string): string {
  return text.length > REPEATED_CHARS ? `${text.slice(0, REPEATED_CHARS)}…` : text;
}
