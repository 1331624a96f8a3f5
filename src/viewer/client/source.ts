/** Source of the page's data: a server, or the report it is part of. */
import type { Curves, EpisodePage, EpisodeView, GroupView, ReportData, RunInfo, SearchPage } from '../api.ts';
import { type EpisodeFilters, type EpisodeQuery, passes, queryEpisodes } from '../query.ts';
import { matchRow, matchTurns, needleOf } from '../search.ts';

export interface Source {
  /** True for a server; false for a report, in which nothing changes. */
  readonly live: boolean;
  runs(): Promise<readonly RunInfo[]>;
  curves(run: number): Promise<Curves>;
  episodes(run: number, query: EpisodeQuery): Promise<EpisodePage>;
  /** Piece of a search for a text in episodes, newest first. @param below place to start below; absent at the newest */
  search(run: number, text: string, filters: EpisodeFilters, below?: number): Promise<SearchPage>;
  /** Episode by its place; `undefined` for one that the report leaves out. */
  episode(run: number, at: number): Promise<EpisodeView | undefined>;
  group(run: number, at: number): Promise<GroupView | undefined>;
}

export function openSource(): Source {
  const embedded = document.getElementById('report');
  return embedded ? reportSource(JSON.parse(embedded.textContent ?? '') as ReportData) : serverSource();
}

function serverSource(): Source {
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(path);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  return {
    live: true,
    runs: () => get('api/runs'),
    curves: (run) => get(`api/runs/${run}/curves`),
    episodes: (run, query) => get(`api/runs/${run}/episodes?${parametersOf(query)}`),
    search: (run, text, filters, below) => get(`api/runs/${run}/search?${parametersOf({ ...filters, text, below })}`),
    episode: (run, at) => get(`api/runs/${run}/episodes/${at}`),
    group: (run, at) => get(`api/runs/${run}/episodes/${at}/group`),
  };
}

function parametersOf(query: object): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') parameters.set(name, String(value));
  return parameters;
}

/** Source of a report's own data. */
export function reportSource(data: ReportData): Source {
  return {
    live: false,
    runs: async () => data.runs,
    curves: async (run) => data.curves[run]!,
    episodes: async (run, query) => queryEpisodes(data.rows[run] ?? [], query),
    search: async (run, text, filters) => searchReport(data, run, needleOf(text), filters),
    episode: async (run, at) => data.episodes[run]?.[at],
    async group(run, at) {
      const one = data.episodes[run]?.[at];
      if (!one) return undefined;
      const members = Object.values(data.episodes[run]!).filter(
        ({ episode }) => episode.group === one.episode.group && episode.purpose === one.episode.purpose,
      );
      return { members };
    },
  };
}

/** Search of a report: turns of the episodes that are in it, sub-task and purpose of all. */
function searchReport(data: ReportData, run: number, needle: string, filters: EpisodeFilters): SearchPage {
  const rows = (data.rows[run] ?? []).filter((row) => passes(row, filters)).reverse();
  const hits = rows.flatMap((row) => {
    const view = data.episodes[run]?.[row.at];
    const match = matchRow(row, needle) ?? (view && matchTurns(view.episode, needle));
    return match ? [{ row, match }] : [];
  });
  return { hits, searched: rows.length, next: null };
}
