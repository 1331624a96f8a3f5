/**
 * Queries: choosing and ordering episodes. Pure, without imports: it runs in the server, and in the page of a report.
 */
import type { EpisodePage, EpisodeRow } from './api.ts';

export interface EpisodeQuery {
  readonly purpose?: string;
  readonly label?: string;
  /** Outcome: `solved`, `failed` (ended unsolved) or `truncated`. */
  readonly outcome?: string;
  /** Text to find. Digits: an episode, group or task number; other text: a part of label or purpose. */
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
  const { purpose, label, outcome, text = '', offset, limit } = query;
  const needle = text.trim().toLowerCase();
  const digits = /^\d+$/.test(needle) ? Number(needle) : undefined;
  const matches = (row: EpisodeRow): boolean =>
    (!purpose || row.purpose === purpose) &&
    (!label || row.label === label) &&
    (!outcome || outcomeOf(row) === outcome) &&
    (needle === '' ||
      (digits === undefined
        ? row.label.toLowerCase().includes(needle) || row.purpose.toLowerCase().includes(needle)
        : row.episode === digits || row.group === digits || row.task === digits));
  const found = rows.filter(matches);
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
