/**
 * Queries: choosing and ordering episodes. Pure, without imports: it runs in the server, and in the page of a report.
 */
import type { EpisodePage, EpisodeRow } from './api.ts';

export interface EpisodeQuery {
  readonly purpose?: string;
  readonly label?: string;
  /** Outcome: `solved`, `failed` (ended unsolved) or `truncated`. */
  readonly outcome?: string;
  /** Number to find: of an episode, group or task. Other texts are searched for in the turns (`search.ts`). */
  readonly text?: string;
  readonly sort?: string;
  readonly descending?: boolean;
  readonly offset: number;
  readonly limit: number;
}

export const SORTABLE = [
  'episode',
  'group',
  'task',
  'label',
  'purpose',
  'horizon',
  'turns',
  'return',
  'version',
] as const;

export function queryEpisodes(rows: readonly EpisodeRow[], query: EpisodeQuery): EpisodePage {
  const { text = '', offset, limit } = query;
  const digits = /^\d+$/.test(text.trim()) ? Number(text) : undefined;
  const matchesNumber = (row: EpisodeRow) => row.episode === digits || row.group === digits || row.task === digits;
  const found = rows.filter((row) => passes(row, query) && (digits === undefined || matchesNumber(row)));
  const key = SORTABLE.find((name) => name === query.sort);
  if (key) {
    const sign = query.descending ? -1 : 1;
    found.sort((a, b) => sign * compare(a[key], b[key]) || a.at - b.at);
  } else if (query.descending) found.reverse();
  return {
    total: rows.length,
    matching: found.length,
    purposes: distinct(rows, 'purpose'),
    labels: distinct(rows, 'label'),
    rows: found.slice(offset, offset + limit),
  };
}

/** Filters of a query: purpose, label and outcome. */
export type EpisodeFilters = Pick<EpisodeQuery, 'purpose' | 'label' | 'outcome'>;

/** True for a row that the filters let through. */
export function passes(row: EpisodeRow, { purpose, label, outcome }: EpisodeFilters): boolean {
  return (
    (!purpose || row.purpose === purpose) && (!label || row.label === label) && (!outcome || outcomeOf(row) === outcome)
  );
}

export function outcomeOf(row: EpisodeRow): 'solved' | 'failed' | 'truncated' {
  return row.success ? 'solved' : row.truncated ? 'truncated' : 'failed';
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
}

function distinct(rows: readonly EpisodeRow[], name: 'purpose' | 'label'): string[] {
  const seen = new Set<string>();
  for (const row of rows) if (seen.size < 200) seen.add(row[name]);
  return [...seen].sort();
}
