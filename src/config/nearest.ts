/** Nearest right word to a wrong one, for "did you mean". */
import { closest, distance } from 'fastest-levenshtein';

/** The word that another one is a misspelling or the beginning of; undefined where none is near. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  if (words.length === 0) return undefined;
  const low = word.toLowerCase();
  const begun = low.length >= 3 ? words.find((one) => one.toLowerCase().startsWith(low)) : undefined;
  if (begun !== undefined) return begun;
  const small = words.map((one) => one.toLowerCase());
  const at = small.indexOf(closest(low, small));
  return distance(low, small[at]!) <= Math.max(1, Math.floor(small[at]!.length / 2)) ? words[at] : undefined;
}
