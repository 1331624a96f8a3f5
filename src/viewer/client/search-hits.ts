/** Finding: a search through a run's episodes as it goes on, piece by piece. */
import { append } from '../../core/extremes.ts';
import type { EpisodeHit, EpisodeRow } from '../api.ts';
import { type EpisodeFilters, queryEpisodes } from '../query.ts';
import type { Source } from './source.ts';

/** Hits after which a search pauses until it is asked for more. */
const MAX_HITS = 200;

/** Search of one run for one text under some filters. */
export class SearchHits {
  /** Text and filters as one key: another one is another search. */
  readonly key: string;
  readonly hits: EpisodeHit[] = [];
  /** Episodes that there were to look at when it began. */
  total: number | undefined;
  readonly #piece: (below: number | undefined) => ReturnType<Source['search']>;
  #searched = 0;
  #below: number | null | undefined;
  #most = MAX_HITS;
  #going: Promise<void> | undefined;

  constructor(source: Source, run: number, text: string, filters: EpisodeFilters) {
    this.key = SearchHits.keyOf(run, text, filters);
    this.#piece = (below) => source.search(run, text, filters, below);
  }

  static keyOf(run: number, text: string, { purpose, label, outcome }: EpisodeFilters): string {
    return JSON.stringify([run, text, purpose, label, outcome]);
  }

  /** Episodes looked at so far. */
  get searched(): number {
    return this.#searched;
  }

  /** True once all episodes have been looked at. */
  get done(): boolean {
    return this.#below === null;
  }

  /** True when it waits for `more`. */
  get paused(): boolean {
    return !this.done && this.hits.length >= this.#most;
  }

  /** Lets a paused search go on. */
  resume(): void {
    this.#most = this.hits.length + MAX_HITS;
  }

  /** Searches one piece further; who asks while a piece is under way waits for that one. */
  step(): Promise<void> {
    this.#going ??= this.#next().finally(() => {
      this.#going = undefined;
    });
    return this.#going;
  }

  async #next(): Promise<void> {
    const { hits, searched, next } = await this.#piece(this.#below ?? undefined);
    append(this.hits, hits);
    this.#searched += searched;
    this.#below = next;
  }

  /** Rows found so far, in the order of the list. */
  rows(sort: string, descending: boolean): readonly EpisodeRow[] {
    const found = this.hits.map(({ row }) => row).sort((a, b) => a.at - b.at);
    return queryEpisodes(found, { sort, descending, offset: 0, limit: found.length }).rows;
  }
}
