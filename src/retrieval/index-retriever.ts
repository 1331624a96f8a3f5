/** Retriever over an index of ours: answers at once. */
import type { Bm25Index } from './bm25-index.ts';
import type { Hit, Retriever } from './retriever.ts';

export class IndexRetriever implements Retriever {
  readonly isRepeatable = true;
  readonly index: Bm25Index;

  constructor(index: Bm25Index) {
    this.index = index;
  }

  search(query: string, topk: number): readonly Hit[] {
    const { index } = this;
    return index.search(query, topk).map(({ passage, score }) => ({ document: index.passage(passage), score }));
  }

  dispose(): void {}
}
