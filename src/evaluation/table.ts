/** Table of evaluations in plain text, one row per sub-task, one column per evaluation. */
import type { Estimated } from './intervals.ts';
import type { EvaluationSummary } from './summary.ts';

/** Percentage with its interval, `96 [89, 99]`. */
export function percent({ value, low, high }: Estimated): string {
  const round = (x: number) => (100 * x).toFixed(0);
  return Number.isNaN(value) ? '–' : `${round(value)} [${round(low)}, ${round(high)}]`;
}

/**
 * Table of evaluations.
 * @returns lines without a trailing newline
 */
export function evaluationTable(summaries: readonly EvaluationSummary[]): string[] {
  const labels = [...new Set(summaries.flatMap(({ labels }) => labels.map(({ label }) => label))), 'all'];
  const rows = [
    ['success %, [95 % interval over tasks]', ...summaries.map(({ name }) => name)],
    ...labels.map((label) => {
      const cells = summaries.map(({ labels: parts, all }) => {
        const part = label === 'all' ? all : parts.find((one) => one.label === label);
        return part ? percent(part.success) : '–';
      });
      const tasks = summaries[0]?.labels.find((one) => one.label === label)?.tasks ?? summaries[0]?.all.tasks ?? 0;
      return [`${label} (${tasks} tasks)`, ...cells];
    }),
  ];
  return columns(rows);
}

/** Pads columns to their widest cell. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, c) => Math.max(...rows.map((row) => row[c]!.length)));
  return rows.map((row) =>
    row
      .map((cell, c) => (c === 0 ? cell.padEnd(widths[c]!) : cell.padStart(widths[c]!)))
      .join('  ')
      .trimEnd(),
  );
}
