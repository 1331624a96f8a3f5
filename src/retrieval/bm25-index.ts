/**
 * Search over an index: exact top k, term at a time, with pruning.
 *
 * Terms are read in descending order of what they can add at most. As soon as the k-th best sum is above what the
 * remaining terms add together, no new passage can enter: only those that can still reach it look the other terms up.
 * Equal scores are in order of passage. Scores are float32, sums exact (bm25.ts), so pruning changes nothing.
 */
import { ANALYZERS, type Analyzer } from './analyzer.ts';
import { type Passage, readPassage } from './corpus.ts';
import { hashBytes, type IndexArrays, type IndexHeader } from './index-layout.ts';

/** Found passage. */
export interface Found {
  /** Row of the corpus. */
  readonly passage: number;
  readonly score: number;
}

/** Tokens of a query that count, Lucene's bound too; it keeps sums exact. */
const MAX_QUERY_TOKENS = 1024;
/** Tolerance: sums this close below the k-th best may be equal to it once rounded to float32. */
const NEARLY = 1 - 2 ** -22;
const REMEMBERED_TERMS = 65_536;
const REMEMBERED_PASSAGES = 16_384;

interface QueryTerm {
  readonly term: number;
  /** Occurrences in the query. */
  readonly times: number;
  /** Bound of what it can add. */
  readonly bound: number;
}

/** BM25 index that is searched by one thread; several may stand over the same arrays. */
export class Bm25Index {
  readonly header: IndexHeader;
  readonly #arrays: IndexArrays;
  readonly #analyzer: Analyzer;
  readonly #encoder = new TextEncoder();
  readonly #token = new Uint8Array(3 * 256);
  readonly #known = new Map<string, number>();
  readonly #passages = new Map<number, Required<Passage>>();
  /** [N] sums of the running query; 0 where no term was found. */
  readonly #sums: Float64Array;
  #touched = new Uint32Array(1024);

  constructor(header: IndexHeader, arrays: IndexArrays) {
    this.header = header;
    this.#arrays = arrays;
    this.#analyzer = ANALYZERS[header.analyzer];
    this.#sums = new Float64Array(header.passages);
  }

  /** Number of passages. */
  get size(): number {
    return this.header.passages;
  }

  /**
   * Searches the best passages, best first; fewer than `k` where fewer share a token with the query.
   * @param k at least 1
   * @param prune false scores every passage; the result is the same
   */
  search(query: string, k: number, prune = true): Found[] {
    const terms = this.#terms(query);
    const rest = new Float64Array(terms.length + 1);
    for (let i = terms.length - 1; i >= 0; i--) rest[i] = rest[i + 1]! + terms[i]!.bound;
    let found = 0;
    let read = 0;
    let least = 0;
    while (read < terms.length && !(prune && least > rest[read]!)) {
      found = this.#addAll(terms[read++]!, found);
      if (prune && read < terms.length) least = this.#kthBest(found, k) * NEARLY;
    }
    const touched = found;
    const candidates = read < terms.length ? this.#touched.slice(0, found) : this.#touched;
    while (read < terms.length) {
      found = this.#keep(candidates, found, least - rest[read]!);
      this.#addTo(terms[read++]!, candidates, found);
    }
    const best = this.#best(candidates, found, k);
    for (let i = 0; i < touched; i++) this.#sums[this.#touched[i]!] = 0;
    return best;
  }

  /** Passage of a row, as its corpus has it. @throws {RangeError} for a row outside */
  passage(row: number): Required<Passage> {
    const known = this.#passages.get(row);
    if (known) return known;
    if (!(row >= 0 && row < this.size)) throw new RangeError(`row must be in [0, ${this.size}), got ${row}`);
    const { rows, rowStart } = this.#arrays;
    // A copy, because a TextDecoder refuses shared memory.
    const passage = readPassage(rows.slice(rowStart[row]!, rowStart[row + 1]!), `passage ${row} of the index`);
    if (this.#passages.size >= REMEMBERED_PASSAGES) this.#passages.clear();
    this.#passages.set(row, passage);
    return passage;
  }

  /** Terms of the query that are known, the one that can add most first. */
  #terms(query: string): QueryTerm[] {
    const times = new Map<number, number>();
    for (const token of this.#analyzer(query).slice(0, MAX_QUERY_TOKENS)) {
      const term = this.#termOf(token);
      if (term >= 0) times.set(term, (times.get(term) ?? 0) + 1);
    }
    const { upper } = this.#arrays;
    const terms = Array.from(times, ([term, n]) => ({ term, times: n, bound: upper[term]! * n }));
    return terms.sort((a, b) => b.bound - a.bound || a.term - b.term);
  }

  /** Number of a token's term, −1 where no passage has it. */
  #termOf(token: string): number {
    const known = this.#known.get(token);
    if (known !== undefined) return known;
    const term = this.#lookUp(token);
    if (this.#known.size >= REMEMBERED_TERMS) this.#known.clear();
    this.#known.set(token, term);
    return term;
  }

  #lookUp(token: string): number {
    const { terms, termStart, table } = this.#arrays;
    const { written } = this.#encoder.encodeInto(token, this.#token);
    const mask = table.length - 1;
    for (let slot = hashBytes(this.#token, written) & mask; ; slot = (slot + 1) & mask) {
      const term = table[slot]! - 1;
      if (term < 0) return -1;
      const start = termStart[term]!;
      if (termStart[term + 1]! - start !== written) continue;
      let i = 0;
      while (i < written && terms[start + i] === this.#token[i]) i++;
      if (i === written) return term;
    }
  }

  /** Adds a term to all its passages. @returns how many are touched now */
  #addAll({ term, times }: QueryTerm, found: number): number {
    const { passages, impacts, pairStart } = this.#arrays;
    const sums = this.#sums;
    const end = pairStart[term + 1]!;
    let n = found;
    if (this.#touched.length < n + end - pairStart[term]!) {
      const larger = new Uint32Array(2 * (n + end - pairStart[term]!));
      larger.set(this.#touched);
      this.#touched = larger;
    }
    const touched = this.#touched;
    for (let i = pairStart[term]!; i < end; i++) {
      const passage = passages[i]!;
      const sum = sums[passage]!;
      if (sum === 0) touched[n++] = passage;
      sums[passage] = sum + impacts[i]! * times;
    }
    return n;
  }

  /** Adds a term to the candidates that have it. */
  #addTo({ term, times }: QueryTerm, candidates: Uint32Array, found: number): void {
    const { passages, impacts, pairStart } = this.#arrays;
    for (let c = 0; c < found; c++) {
      const passage = candidates[c]!;
      let low = pairStart[term]!;
      let high = pairStart[term + 1]!;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (passages[middle]! < passage) low = middle + 1;
        else high = middle;
      }
      if (low < pairStart[term + 1]! && passages[low] === passage) this.#sums[passage]! += impacts[low]! * times;
    }
  }

  /** Moves candidates whose sum is at least `least` to the front. @returns how many */
  #keep(candidates: Uint32Array, found: number, least: number): number {
    let kept = 0;
    for (let c = 0; c < found; c++) {
      const passage = candidates[c]!;
      if (this.#sums[passage]! >= least) candidates[kept++] = passage;
    }
    return kept;
  }

  /** Sum of the k-th best candidate, 0 where there are fewer. */
  #kthBest(found: number, k: number): number {
    if (found < k) return 0;
    const heap = new Float64Array(k); // least first
    for (let i = 0; i < found; i++) {
      const sum = this.#sums[this.#touched[i]!]!;
      if (sum > heap[0]!) replaceLeast(heap, sum);
    }
    return heap[0]!;
  }

  #best(candidates: Uint32Array, found: number, k: number): Found[] {
    const best: Found[] = [];
    const many = k > 64;
    for (let c = 0; c < found; c++) {
      const passage = candidates[c]!;
      const score = Math.fround(this.#sums[passage]!);
      if (many || best.length < k) best.push({ passage, score });
      else if (isBetter(score, passage, best[k - 1]!)) best[k - 1] = { passage, score };
      else continue;
      if (many) continue;
      for (let i = best.length - 1; i > 0 && isBetter(best[i]!.score, best[i]!.passage, best[i - 1]!); i--) {
        [best[i - 1], best[i]] = [best[i]!, best[i - 1]!];
      }
    }
    return many ? best.sort((a, b) => b.score - a.score || a.passage - b.passage).slice(0, k) : best;
  }
}

function isBetter(score: number, passage: number, other: Found): boolean {
  return score > other.score || (score === other.score && passage < other.passage);
}

/** Replaces the least value of a heap by a larger one. */
function replaceLeast(heap: Float64Array, value: number): void {
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= value) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = value;
}
