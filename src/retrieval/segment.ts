/**
 * Segments: the inverted lists of a run of passages. An index is made of one, or merged from many that were written
 * down on the way; both are read through `PairSource`.
 */
import type { Analyzer } from './analyzer.ts';

/** Source of one segment's lists, in order of their terms (by UTF-16 units). */
export interface PairSource {
  /** Term at present; undefined behind the last one. */
  readonly term: string | undefined;
  /** Passages of the current term (numbers of the whole corpus, ascending) and how often each holds it. */
  readonly passages: Uint32Array;
  readonly counts: Uint32Array;
  next(): void;
}

/** Inverted lists of passages `first` … `first + lengths.length − 1`. */
export interface Segment {
  readonly first: number;
  /** Tokens of each passage. */
  readonly lengths: Uint32Array;
  readonly terms: readonly string[];
  /** [terms + 1] where each term's pairs begin. */
  readonly starts: Uint32Array;
  readonly passages: Uint32Array;
  readonly counts: Uint32Array;
}

/** Array of uint32 that grows. */
class Growing {
  values = new Uint32Array(1024);
  length = 0;

  push(value: number): void {
    if (this.length === this.values.length) {
      const larger = new Uint32Array(2 * this.length);
      larger.set(this.values);
      this.values = larger;
    }
    this.values[this.length++] = value;
  }
}

/** Builder of a segment: collects passages in order. */
export class SegmentBuilder {
  readonly #first: number;
  readonly #analyzer: Analyzer;
  readonly #terms = new Map<string, number>();
  /** Last passage by term: its number + 1, and its pair. */
  readonly #lastPassage = new Growing();
  readonly #lastPair = new Growing();
  /** Terms by pair, in order of appearance. */
  readonly #pairTerm = new Growing();
  readonly #pairPassage = new Growing();
  readonly #pairCount = new Growing();
  readonly #lengths = new Growing();

  constructor(first: number, analyzer: Analyzer) {
    this.#first = first;
    this.#analyzer = analyzer;
  }

  get size(): number {
    return this.#lengths.length;
  }

  add(contents: string): void {
    const passage = this.#first + this.#lengths.length;
    const tokens = this.#analyzer(contents);
    for (const token of tokens) {
      let term = this.#terms.get(token);
      if (term === undefined) {
        term = this.#terms.size;
        this.#terms.set(token, term);
        this.#lastPassage.push(0);
        this.#lastPair.push(0);
      }
      if (this.#lastPassage.values[term] === passage + 1) {
        this.#pairCount.values[this.#lastPair.values[term]!]!++;
        continue;
      }
      this.#lastPassage.values[term] = passage + 1;
      this.#lastPair.values[term] = this.#pairTerm.length;
      this.#pairTerm.push(term);
      this.#pairPassage.push(passage);
      this.#pairCount.push(1);
    }
    this.#lengths.push(tokens.length);
  }

  finish(): Segment {
    const terms = [...this.#terms.keys()].sort(byUnits);
    const rank = new Uint32Array(terms.length);
    for (const [place, term] of terms.entries()) rank[this.#terms.get(term)!] = place;
    const pairs = this.#pairTerm.length;
    const starts = new Uint32Array(terms.length + 1);
    for (let i = 0; i < pairs; i++) starts[rank[this.#pairTerm.values[i]!]! + 1]!++;
    for (let t = 0; t < terms.length; t++) starts[t + 1]! += starts[t]!;
    const next = starts.slice();
    const passages = new Uint32Array(pairs);
    const counts = new Uint32Array(pairs);
    for (let i = 0; i < pairs; i++) {
      const at = next[rank[this.#pairTerm.values[i]!]!]!++;
      passages[at] = this.#pairPassage.values[i]!;
      counts[at] = this.#pairCount.values[i]!;
    }
    const lengths = this.#lengths.values.slice(0, this.#lengths.length);
    return { first: this.#first, lengths, terms, starts, passages, counts };
  }
}

function byUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Source over a segment that is held in memory. */
export class MemorySource implements PairSource {
  readonly #segment: Segment;
  #at = 0;

  constructor(segment: Segment) {
    this.#segment = segment;
  }

  get term(): string | undefined {
    return this.#segment.terms[this.#at];
  }

  get passages(): Uint32Array {
    const { starts, passages } = this.#segment;
    return passages.subarray(starts[this.#at]!, starts[this.#at + 1]!);
  }

  get counts(): Uint32Array {
    const { starts, counts } = this.#segment;
    return counts.subarray(starts[this.#at]!, starts[this.#at + 1]!);
  }

  next(): void {
    this.#at++;
  }
}
