/** Facts of an algorithm, as `longplay algorithms` and ALGORITHMS.md show them. */
export interface AlgorithmFacts {
  /** Name in the field, e.g. `GSPO`. */
  readonly title: string;
  /** arXiv ids, e.g. `2507.18071`, or URLs; none where it is nobody's. */
  readonly papers: readonly string[];
  /** Formula or idea, in one sentence. */
  readonly summary: string;
  /** Advice: when to choose it, in one sentence. */
  readonly use: string;
  /** Keys of the configuration elsewhere that it reads. */
  readonly keys?: readonly string[];
}
