/** Merges segments into the arrays of an index: the dictionary in memory, pairs passed on as they come. */
import { type Bm25Options, Impacts } from './bm25.ts';
import { tableOf } from './index-layout.ts';
import type { PairSource } from './segment.ts';

/** Sink of the pairs of one term after the other. */
export type PairSink = (passages: Uint32Array, impacts: Float32Array) => void;

/** Dictionary: the arrays that belong to terms. */
export interface Dictionary {
  readonly pairStart: Uint32Array;
  readonly upper: Float32Array;
  readonly termStart: Uint32Array;
  readonly terms: Uint8Array;
  readonly table: Uint32Array;
}

/** Dictionary under construction: bytes of terms and numbers per term. */
class DictionaryBuilder {
  #bytes = new Uint8Array(1 << 16);
  #used = 0;
  readonly #pairStart: number[] = [0];
  readonly #upper: number[] = [];
  readonly #termStart: number[] = [0];
  readonly #encoder = new TextEncoder();

  get terms(): number {
    return this.#upper.length;
  }

  add(term: string, pairs: number, upper: number): void {
    if (this.#bytes.length - this.#used < 3 * term.length) {
      const larger = new Uint8Array(2 * this.#bytes.length + 3 * term.length);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#used += this.#encoder.encodeInto(term, this.#bytes.subarray(this.#used)).written;
    this.#termStart.push(this.#used);
    this.#pairStart.push(this.#pairStart.at(-1)! + pairs);
    this.#upper.push(upper);
  }

  finish(): Dictionary {
    const terms = this.#bytes.slice(0, this.#used);
    const termStart = Uint32Array.from(this.#termStart);
    return {
      pairStart: Uint32Array.from(this.#pairStart),
      upper: Float32Array.from(this.#upper),
      termStart,
      terms,
      table: tableOf(terms, termStart),
    };
  }
}

/**
 * Merges sources whose passages ascend from one source to the next.
 * @param lengths tokens of each passage of the corpus
 */
export function mergePairs(
  sources: readonly PairSource[],
  lengths: Uint32Array,
  options: Bm25Options,
  sink: PairSink,
): Dictionary {
  let [passages, tokens] = [0, 0];
  for (const length of lengths) {
    if (length > 0) passages++;
    tokens += length;
  }
  const impacts = new Impacts(options, { passages, tokens });
  const dictionary = new DictionaryBuilder();
  for (let term = findLeastTerm(sources); term !== undefined; term = findLeastTerm(sources)) {
    const holders = sources.filter((source) => source.term === term);
    let pairs = 0;
    for (const { passages } of holders) pairs += passages.length;
    const idf = impacts.idf(pairs);
    let upper = 0;
    for (const source of holders) {
      const { passages: found, counts } = source;
      const shares = new Float32Array(found.length);
      for (let i = 0; i < found.length; i++) {
        const share = impacts.share(idf, counts[i]!, lengths[found[i]!]!);
        shares[i] = share;
        if (share > upper) upper = share;
      }
      sink(found, shares);
      source.next();
    }
    dictionary.add(term, pairs, upper);
  }
  return dictionary.finish();
}

function findLeastTerm(sources: readonly PairSource[]): string | undefined {
  let least: string | undefined;
  for (const { term } of sources) {
    if (term !== undefined && (least === undefined || term < least)) least = term;
  }
  return least;
}
