/** Masks of answers: what the present answer of a transcript may be sampled from. */
import type { TokenMask } from '../grammar/token-mask.ts';
import { nextInTrie } from './action-trie.ts';
import type { Codec } from './codec.ts';
import type { Transcript } from './transcript.ts';

/**
 * Makes the mask of the present answer: of an agent's reply what its call allows, else the spellings of the listed actions. What
 * a world of tools lists are stages of choosing, which no reply is written in.
 * @param actions indices into the transcript's table
 * @returns undefined where the answer is free
 */
export function maskOf(
  codec: Pick<Codec, 'spell' | 'end'>,
  { table, limits }: Transcript,
  actions: Int32Array,
): TokenMask | undefined {
  if (limits || actions.length === 0) return limits?.mask?.();
  return new SpellingMask(
    Array.from(actions, (action) => codec.spell(table[action]!)),
    codec.end,
  );
}

/** Mask of the spellings of listed actions. */
class SpellingMask implements TokenMask {
  readonly #spellings: readonly Int32Array[];
  readonly #end: number;
  readonly #run: number[] = [];

  /** @param end id that ends a spelling */
  constructor(spellings: readonly Int32Array[], end: number) {
    this.#spellings = spellings;
    this.#end = end;
  }

  allowed(): readonly number[] {
    return nextInTrie(this.#spellings, this.#run, this.#end);
  }

  advance(id: number): void {
    this.#run.push(id);
  }
}
