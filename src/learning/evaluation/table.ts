/** Table of evaluations in plain text, one row per sub-task, one column per evaluation. */

import { largestOf } from '../../core/extremes.ts';
import { printable, shorten } from '../../core/printable.ts';
import type { Estimated } from './intervals.ts';
import type { EvaluationSummary, LabelSummary } from './summary.ts';

/** Percentage with its interval, `96 [89, 99]`. */
export function percent({ value, low, high }: Estimated): string {
  const round = (x: number) => (100 * x).toFixed(0);
  return Number.isNaN(value) ? '–' : `${round(value)} [${round(low)}, ${round(high)}]`;
}

/**
 * Table of evaluations; of several worlds a table each, under the world's name: their tasks are not the same, so no row has a number
 * over all of them.
 * @returns lines without a trailing newline
 */
export function evaluationTable(summaries: readonly EvaluationSummary[]): string[] {
  const worlds = [...new Set(summaries.map(({ world }) => world))];
  if (worlds.length < 2) return tableOfWorld(summaries);
  return worlds.flatMap((world, i) => [
    ...(i === 0 ? [] : ['']),
    ...tableOfWorld(summaries.filter((one) => one.world === world)),
  ]);
}

function tableOfWorld(summaries: readonly EvaluationSummary[]): string[] {
  const named = summaries.flatMap(({ labels }) => labels.map(({ label }) => label));
  const labels = [...new Set(named), 'all', ...(summaries.some(({ unseen }) => unseen) ? ['unseen'] : [])];
  const rows = [
    ['success %, [95 % interval over tasks]', ...summaries.map(({ name }) => name)],
    ...labels.map((label) => {
      const parts = summaries.map((summary) => partOf(summary, label));
      const tasks = parts[0]?.tasks ?? 0;
      return [
        `${label} (${tasks} ${tasks === 1 ? 'task' : 'tasks'})`,
        ...parts.map((part) => (part ? percent(part.success) : '–')),
      ];
    }),
  ];
  if (summaries.some(({ all }) => all.asked > all.episodes)) {
    rows.push(['of all episodes asked for', ...summaries.map(({ all }) => ofAsked(all))]);
  }
  for (const name of new Set(summaries.flatMap(({ metrics = {} }) => Object.keys(metrics)))) {
    rows.push([name, ...summaries.map(({ metrics }) => formatMean(metrics?.[name]))]);
  }
  return columns(rows);
}

/** Mean of a reported number, in three digits. */
function formatMean(value: number | undefined): string {
  return value === undefined ? '–' : String(Number(value.toPrecision(3)));
}

/** Success of all episodes asked for, `75 (12 of 16 finished)`. */
function ofAsked({ successOfAsked, episodes, asked }: LabelSummary): string {
  return `${(100 * successOfAsked).toFixed(0)} (${episodes} of ${asked} finished)`;
}

function partOf({ labels, all, unseen }: EvaluationSummary, label: string): LabelSummary | undefined {
  if (label === 'all') return all;
  return label === 'unseen' ? unseen : labels.find((one) => one.label === label);
}

/** Characters of a cell that are shown: names of sub-tasks, evaluations and workers may be of any length. */
const CELL_CHARS = 120;

/** Pads columns to their widest cell. Each cell is one line, whatever a name in it holds. */
export function columns(cells: readonly (readonly string[])[]): string[] {
  const rows = cells.map((row) => row.map((cell) => printable(shorten(cell, CELL_CHARS))));
  const widths = rows[0]!.map((_, c) => largestOf(rows.map((row) => row[c]!.length)));
  return rows.map((row) =>
    row
      .map((cell, c) => (c === 0 ? cell.padEnd(widths[c]!) : cell.padStart(widths[c]!)))
      .join('  ')
      .trimEnd(),
  );
}
