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
  times: number;
  /** Bound of what it can add. */
  bound: number;
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
    const rest: number[] = [0]; // from the last term on: what those after it add together
    for (let i = terms.length - 1; i >= 0; i--) rest.push(rest.at(-1)! + terms[i]!.bound);
    rest.reverse();
    let found = 0;
    let read = 0;
    let least = 0;
    while (read < terms.length && !(prune && least > rest[read]!)) {
      found = this.#addAll(terms[read++]!, found);
      if (prune && read < terms.length) least = this.#kthBest(found, k) * NEARLY;
    }
    while (read < terms.length) {
      found = this.#keep(found, least - rest[read]!);
      this.#addTo(terms[read++]!, found);
    }
    const best = this.#best(found, k);
    for (let i = 0; i < found; i++) this.#sums[this.#touched[i]!] = 0;
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
    const { upper } = this.#arrays;
    const tokens = this.#analyzer(query);
    const known = new Map<number, QueryTerm>();
    const terms: QueryTerm[] = [];
    for (let i = 0; i < tokens.length && i < MAX_QUERY_TOKENS; i++) {
      const term = this.#termOf(tokens[i]!);
      if (term < 0) continue;
      const before = known.get(term);
      if (before) before.times++;
      else {
        const one = { term, times: 1, bound: 0 };
        known.set(term, one);
        terms.push(one);
      }
    }
    for (const one of terms) one.bound = upper[one.term]! * one.times;
    return terms.length < 2 ? terms : terms.sort(byBound);
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

  /** Adds a term to the first `found` candidates that have it. */
  #addTo({ term, times }: QueryTerm, found: number): void {
    const { passages, impacts, pairStart } = this.#arrays;
    const [touched, sums] = [this.#touched, this.#sums];
    const end = pairStart[term + 1]!;
    for (let c = 0; c < found; c++) {
      const passage = touched[c]!;
      let low = pairStart[term]!;
      let high = end;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (passages[middle]! < passage) low = middle + 1;
        else high = middle;
      }
      if (low < end && passages[low] === passage) sums[passage]! += impacts[low]! * times;
    }
  }

  /** Moves candidates whose sum is at least `least` to the front and forgets the others. @returns how many stay */
  #keep(found: number, least: number): number {
    const [touched, sums] = [this.#touched, this.#sums];
    let kept = 0;
    for (let c = 0; c < found; c++) {
      const passage = touched[c]!;
      if (sums[passage]! >= least) touched[kept++] = passage;
      else sums[passage] = 0;
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

  #best(found: number, k: number): Found[] {
    const best: Found[] = [];
    const many = k > 64;
    for (let c = 0; c < found; c++) {
      const passage = this.#touched[c]!;
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

function byBound(a: QueryTerm, b: QueryTerm): number {
  return b.bound - a.bound || a.term - b.term;
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
