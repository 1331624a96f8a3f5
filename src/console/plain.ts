/** Plain lines for logs: a row as one `key=value` line. Pure. */
import { type Metric, type MetricsRow, metricTable, type PlainName } from '../metrics/metric-table.ts';

/** Metrics that a person follows a run by. */
const NAMES = metricTable.filter((metric: Metric) => metric.inLine).map(({ name }) => name as PlainName);

/** Line of a row. Split metrics become `success[depth_1]=0.5`; a key has no blanks, so that the line splits at them. */
export function plainLine(row: MetricsRow): string {
  const pairs = NAMES.flatMap((name) => {
    const value = row[name];
    return value === undefined ? [] : [`${name}=${short(value)}`];
  });
  const labels = Object.entries(row.successByLabel ?? {}).map(
    ([label, value]) => `success[${label.replace(/[\s=[\]\p{C}]+/gu, '_')}]=${short(value)}`,
  );
  const parts = Object.entries(row.time ?? {}).map(([part, share]) => `time[${part}]=${short(share)}`);
  return [...pairs, ...labels, ...parts].join(' ');
}

function short(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3)));
}
