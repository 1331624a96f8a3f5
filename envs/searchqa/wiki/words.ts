/** Closed lists of the embedded world: values that are common words. */

export const JOBS = (
  'painter botanist architect composer surgeon chemist poet sculptor astronomer geologist historian engineer novelist ' +
  'linguist cellist printer'
).split(' ');
/** Kinds of works, as they are written. */
export const KINDS = 'novel opera symphony film play ballet memoir atlas anthology cantata'.split(' ');
/** Industries of companies, as they are written. */
export const INDUSTRIES =
  'shipbuilding brewing weaving mining insurance publishing glassmaking forestry milling tanning'.split(' ');

/** All of them: they count as mentions though they are written small. */
export const LIST_WORDS: ReadonlySet<string> = new Set([...JOBS, ...KINDS, ...INDUSTRIES]);

/** `a` or `an`. */
export function article(word: string): string {
  return /^[aeiou]/i.test(word) ? 'an' : 'a';
}
