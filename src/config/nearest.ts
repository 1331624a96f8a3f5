/** Nearest right word to a wrong one, for "did you mean". */
import { closest, distance } from 'fastest-levenshtein';

/** Finds the word that another one is a part or a misspelling of; undefined where none is near. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  if (words.length === 0) return undefined;
  const low = word.toLowerCase();
  const small = words.map((one) => one.toLowerCase());
  const same = small.indexOf(low);
  if (same >= 0) return words[same];
  if (low.length >= 3) {
    const begun = small.findIndex((one) => one.startsWith(low));
    const within = begun >= 0 ? begun : small.findIndex((one) => one.includes(low));
    if (within >= 0) return words[within];
  }
  const at = small.indexOf(closest(low, small));
  return distance(low, small[at]!) <= Math.max(1, Math.floor(small[at]!.length / 2)) ? words[at] : undefined;
}
