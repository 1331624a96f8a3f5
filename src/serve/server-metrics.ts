/** Metrics of a server: what `/metrics` answers, in Prometheus' text format. */

import type { HttpAnswer } from '../http/app.ts';
import { DURATION_BOUNDS_MS, type HttpCounts } from '../http/server.ts';
import { EXPOSITION_TYPE, expositionText, type Family, histogram } from '../metrics/exposition.ts';

const PREFIX = 'longplay_server_';

/** Figure of a server beside what HTTP counts. */
export interface ServerFigure {
  /** Name without prefix; a counter's ends in `_total`. */
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly value: number;
}

/** Answer of `/metrics`. */
export function metricsAnswer(counts: HttpCounts, figures: readonly ServerFigure[]): HttpAnswer {
  const statuses = [...counts.byStatus].sort(([a], [b]) => a - b);
  const families: readonly Family[] = [
    {
      name: `${PREFIX}requests_total`,
      type: 'counter',
      help: 'Requests answered, refusals among them.',
      samples: statuses.map(([status, value]) => ({ labels: { status: String(status) }, value })),
    },
    {
      name: `${PREFIX}refused_requests_total`,
      type: 'counter',
      help: 'Requests refused for form, rate, size, token or origin.',
      samples: [{ value: counts.refused }],
    },
    histogram(
      `${PREFIX}request_duration_seconds`,
      'Time from a whole request to its answer, refusals left out.',
      DURATION_BOUNDS_MS.map((ms) => ms / 1000),
      counts.durations,
      counts.busyMs / 1000,
    ),
    ...figures.map(({ name, type, help, value }) => ({ name: PREFIX + name, type, help, samples: [{ value }] })),
  ];
  return { status: 200, contentType: EXPOSITION_TYPE, body: expositionText(families) };
}
