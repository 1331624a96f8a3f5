/**
 * Report: runs as one HTML file that needs no server; curves whole, the list bounded, some episodes with all their
 * turns, without their screenshots.
 */
import type { EpisodeView, ReportData } from './api.ts';
import { pageHtml } from './page.ts';
import type { RunSource } from './run-source.ts';

export interface ReportOptions {
  /** Episodes of a run that are in the report with their turns, at most; whole groups, newest first. */
  readonly episodes: number;
}

/** Most lines of the list; the newest are kept. */
const MAX_ROWS = 20_000;

export async function reportHtml(sources: readonly RunSource[], { episodes }: ReportOptions): Promise<string> {
  const data: ReportData = {
    runs: sources.map(({ info }) => info),
    curves: sources.map(({ curves }) => curves),
    rows: sources.map(({ rows }) => rows.slice(-MAX_ROWS)),
    episodes: await Promise.all(sources.map((source) => chooseEpisodes(source, episodes))),
  };
  return pageHtml(data);
}

async function chooseEpisodes(source: RunSource, most: number): Promise<Record<number, EpisodeView>> {
  const groups = new Map<string, number[]>();
  for (const { at, purpose, group } of source.rows) {
    const key = `${purpose}/${group}`;
    groups.set(key, [...(groups.get(key) ?? []), at]);
  }
  const found: Record<number, EpisodeView> = {};
  let left = most;
  for (const members of [...groups.values()].reverse()) {
    if (members.length > left) break;
    left -= members.length;
    for (const at of members) found[at] = { ...(await source.episode(at)), screenshots: [] };
  }
  return found;
}
