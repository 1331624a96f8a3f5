/** Which tokens may come next: a trie of the listed actions' spellings, walked without being built. */
import { END, type Tokenizer } from './tokenizer.ts';

/**
 * Token ids that may follow `prefix` so that it becomes one of `spellings`, ascending and without repeats; END where
 * one is complete.
 */
export function nextInTrie(spellings: readonly Int32Array[], prefix: readonly number[]): number[] {
  const next = new Set<number>();
  for (const spelling of spellings) {
    if (spelling.length < prefix.length || prefix.some((id, i) => spelling[i] !== id)) continue;
    next.add(spelling.length === prefix.length ? END : spelling[prefix.length]!);
  }
  return [...next].sort((a, b) => a - b);
}

/** Every id that free sampling may draw: all but padding and the markers that only the framework writes. */
export function allTokens(tokenizer: Tokenizer): number[] {
  const ids: number[] = [];
  for (let id = END; id < tokenizer.size; id++) ids.push(id);
  return ids;
}
