/** Action trie: constrained decoding to the spellings of listed actions, walked without being built. */

/**
 * Token ids that may follow `prefix` so that it becomes one of `spellings`, ascending and without repeats.
 * @param end id that stands in the list where a spelling is complete
 */
export function nextInTrie(spellings: readonly Int32Array[], prefix: readonly number[], end: number): number[] {
  const next = new Set<number>();
  for (const spelling of spellings) {
    if (spelling.length < prefix.length || prefix.some((id, i) => spelling[i] !== id)) continue;
    next.add(spelling.length === prefix.length ? end : spelling[prefix.length]!);
  }
  return [...next].sort((a, b) => a - b);
}
