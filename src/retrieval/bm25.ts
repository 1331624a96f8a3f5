/**
 * BM25 as Lucene 9 computes it: idf · tf / (tf + k1 · (1 − b + b · length / average)), without the factor k1 + 1, in
 * float32, lengths through Lucene's one-byte code unless `exact`. A term that stands twice in a query counts twice.
 *
 * The share of a term in a passage (its impact) is fixed when the index is built, rounded to a multiple of 2⁻³², so
 * that sums of float64 are exact in any order: that is what makes pruned and plain search equal bit for bit.
 *
 * @see Lucene `BM25Similarity`, `SmallFloat.intToByte4`
 */

/** Scoring of an index; fixed when it is built. */
export interface Bm25Options {
  /** Saturation of repeated terms. Default 0.9, Pyserini's. */
  readonly k1: number;
  /** Weight of the passage's length, in [0, 1]. Default 0.4, Pyserini's. */
  readonly b: number;
  /**
   * Lengths of passages. `lucene` (default): lengths of 40 tokens and more rounded down in steps of 2, 4, 8 …; `exact`:
   * as they are.
   */
  readonly lengths: 'lucene' | 'exact';
}

export const DEFAULT_BM25: Bm25Options = { k1: 0.9, b: 0.4, lengths: 'lucene' };

/** Step of all shares, and the smallest share. */
const STEP = 2 ** -32;

/** Length of a passage after Lucene's one-byte code: exact below 40, then with four significant bits. */
export function decodeLength(length: number): number {
  if (length < 40) return length;
  const over = length - 24;
  const shift = Math.floor(Math.log2(over)) - 3;
  return 24 + Math.floor(over / 2 ** shift) * 2 ** shift;
}

/** Totals over the passages that have a token. */
export interface CorpusTotals {
  readonly passages: number;
  readonly tokens: number;
}

/** Shares of terms under fixed options and totals. */
export class Impacts {
  readonly #k1: number;
  readonly #b: number;
  readonly #coded: boolean;
  readonly #average: number;
  readonly #passages: number;
  /** Inverse norm of the shorter lengths. */
  readonly #inverse = new Float32Array(1024);

  constructor(options: Bm25Options, { passages, tokens }: CorpusTotals) {
    this.#k1 = Math.fround(options.k1);
    this.#b = Math.fround(options.b);
    this.#coded = options.lengths === 'lucene';
    this.#average = Math.fround(tokens / Math.max(1, passages));
    this.#passages = passages;
    for (let length = 0; length < this.#inverse.length; length++) this.#inverse[length] = this.#inverseNorm(length);
  }

  /** Weight of a term that stands in `frequency` passages. */
  idf(frequency: number): number {
    return Math.fround(Math.log(1 + (this.#passages - frequency + 0.5) / (frequency + 0.5)));
  }

  /** Share of a term of weight `idf` that stands `count` times in a passage of `length` tokens; at least 2⁻³². */
  share(idf: number, count: number, length: number): number {
    const f = Math.fround;
    const inverse = length < this.#inverse.length ? this.#inverse[length]! : this.#inverseNorm(length);
    const share = f(idf - f(idf / f(1 + f(count * inverse))));
    return Math.max(STEP, Math.round(share / STEP) * STEP);
  }

  #inverseNorm(length: number): number {
    const f = Math.fround;
    const read = this.#coded ? decodeLength(length) : length;
    return f(1 / f(this.#k1 * f(f(1 - this.#b) + f(f(this.#b * read) / this.#average))));
  }
}
