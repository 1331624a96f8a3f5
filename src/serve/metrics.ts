/** Metrics of a server, `/metrics` in Prometheus' text format, version 0.0.4. */
import type { HttpCounts } from './http-server.ts';

const PREFIX = 'longplay_server';

/**
 * Metrics as text.
 * @param gauges further figures by name (without prefix): present values or totals
 */
export function metricsText(counts: HttpCounts, gauges: Readonly<Record<string, number>>): string {
  const lines: string[] = [];
  const put = (
    name: string,
    type: 'counter' | 'gauge',
    help: string,
    values: readonly (readonly [string, number])[],
  ) => {
    lines.push(`# HELP ${PREFIX}_${name} ${help}`, `# TYPE ${PREFIX}_${name} ${type}`);
    for (const [labels, value] of values) lines.push(`${PREFIX}_${name}${labels} ${value}`);
  };
  const statuses = [...counts.byStatus].sort(([a], [b]) => a - b);
  put(
    'requests_total',
    'counter',
    'Requests answered.',
    statuses.map(([status, count]) => [`{status="${status}"}`, count] as const),
  );
  put('request_seconds_total', 'counter', 'Time from whole requests to their answers.', [['', counts.busyMs / 1000]]);
  put('refused_total', 'counter', 'Requests refused for rate, size, token or origin.', [['', counts.refused]]);
  for (const [name, value] of Object.entries(gauges)) {
    put(name, 'gauge', name.replaceAll('_', ' '), [['', value]]);
  }
  return `${lines.join('\n')}\n`;
}
