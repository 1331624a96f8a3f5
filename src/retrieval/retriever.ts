/**
 * Retrievers: a query in, the best passages out. An index of ours (index-retriever.ts) and a server that speaks Search-R1's
 * protocol or Elasticsearch's JSON (remote-retriever.ts) share this interface.
 */
import type { MaybePromise } from '../core/env.ts';
import type { Passage } from './corpus.ts';

/** Hit: a passage found. */
export interface Hit {
  readonly document: Passage;
  /** Score, larger is better; some servers do not report it. */
  readonly score?: number;
}

/** Retriever of passages. */
export interface Retriever {
  /**
   * Searches the best passages, best first, at most `topk`.
   * @param topk at least 1
   * @throws {LongplayError} REMOTE_FAILED where a server cannot be asked
   */
  search(query: string, topk: number): MaybePromise<readonly Hit[]>;
  /** True when the same query always finds the same; false of a live server, unless its answers are recorded. */
  readonly isRepeatable: boolean;
  /** Releases connections; calling it twice does no harm. */
  dispose(): MaybePromise<void>;
}
