/**
 * Retrievers: a query in, the best passages out. Three kinds share this interface: an index of ours (index-retriever.ts),
 * Search-R1's server (search-r1-retriever.ts), Elasticsearch's JSON (elasticsearch-retriever.ts).
 */
import type { MaybePromise } from '../core/env.ts';
import type { Passage } from './corpus.ts';

/** A passage found. */
export interface Hit {
  readonly document: Passage;
  /** Larger is better; some servers do not tell it. */
  readonly score?: number;
}

/** Finds passages. */
export interface Retriever {
  /**
   * The best passages, best first, at most `topk`.
   * @param topk at least 1
   * @throws {LongplayError} REMOTE_FAILED where a server cannot be asked
   */
  search(query: string, topk: number): MaybePromise<readonly Hit[]>;
  /** The same query always finds the same: false of a live server, unless its answers are recorded. */
  readonly isRepeatable: boolean;
  /** Releases connections; twice does no harm. */
  dispose(): MaybePromise<void>;
}
