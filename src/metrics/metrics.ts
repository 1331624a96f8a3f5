/** Points of a row of metrics, as sinks write them, and the page that lists all metrics. */
import { largestOf } from '../core/extremes.ts';
import { type Metric, type MetricsRow, metricTable } from './metric-table.ts';

/** Point: one number of a row. */
export interface Point {
  readonly metric: Metric;
  /** Key of a split metric: label, horizon, part, actor or worker. */
  readonly key: string | undefined;
  readonly value: number;
}

/** Points of a row, its finite numbers in the table's order, as a sink writes them. */
export function* points(row: MetricsRow): Generator<Point> {
  for (const metric of metricTable) {
    const value = row[metric.name];
    if (typeof value === 'number') {
      if (Number.isFinite(value)) yield { metric, key: undefined, value };
    } else if (value) {
      for (const [key, part] of Object.entries(value)) if (Number.isFinite(part)) yield { metric, key, value: part };
    }
  }
}

/** Name of a point: its metric's, and behind a slash the key of a split one. */
export function pointName({ metric, key }: Pick<Point, 'metric' | 'key'>): string {
  return key === undefined ? metric.name : `${metric.name}/${key}`;
}

/** Page METRICS.md. */
export function metricsPage(): string {
  const rows = metricTable.map((metric: Metric) => {
    const { name, unit, by, total, meaning } = metric;
    return [`\`${name}\``, unit || '–', by ?? '', total ? 'yes' : '', meaning];
  });
  return [
    '# Metrics',
    '',
    'Generated from the table in `src/metrics/metric-table.ts`; a test compares the two. One row per update, in',
    '`metrics.jsonl` (one JSON object per line, a split metric as an object of its keys), in TensorBoard events',
    '(`<name>` or `<name>/<key>`) and at the Prometheus endpoint (`longplay_<name>{<split>="<key>"}`, the name in snake',
    'case, `_seconds` behind it for times, `_total` for totals of the run, which are counters; all others are gauges).',
    'Shares lie in [0, 1]. A metric that does not apply to an update is absent from its row.',
    '',
    ...markdownTable([['name', 'unit', 'split by', 'total', 'meaning'], ...rows]),
    '',
  ].join('\n');
}

/** Markdown table, padded as the formatter pads. */
function markdownTable([head = [], ...rows]: readonly (readonly string[])[]): string[] {
  const widths = head.map((_, c) => largestOf([head, ...rows].map((row) => row[c]!.length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, c) => cell.padEnd(widths[c]!)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)];
}
