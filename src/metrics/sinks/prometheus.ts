/** Prometheus sink: the newest row in Prometheus' text format, over HTTP on the loopback address. */
import type { HttpLimits, HttpServer, ListenOptions } from '../../http/server.ts';
import { EXPOSITION_TYPE, expositionText, type Sample } from '../exposition.ts';
import type { Metric, MetricsRow } from '../metric-table.ts';
import { points } from '../metrics.ts';
import type { MetricSink } from './sink.ts';
import { snakeName } from './snake-name.ts';

export interface PrometheusSink extends MetricSink {
  /** Settles when the port is open; rejects when it cannot be. */
  readonly ready: Promise<{ readonly port: number }>;
}

/** Connections at once: some scrapers. Each is an open file of the process that trains. */
const MAX_CONNECTIONS = 32;

/**
 * Opens the endpoint.
 * @param port 0 picks a free one; served at `http://127.0.0.1:<port>/metrics`
 */
export function prometheusSink(port: number, limits: HttpLimits = {}): PrometheusSink {
  let row: MetricsRow = {};
  const server = serveMetrics({ maxConnections: MAX_CONNECTIONS, ...limits, port }, () => prometheusText(row));
  const ready = server.then(({ url }) => ({ port: Number(new URL(url).port) }));
  ready.catch(() => {}); // reported where it is awaited
  return {
    name: 'prometheus',
    ready,
    write(next) {
      row = next;
    },
    async close() {
      await server.then((listening) => listening.close()).catch(() => {}); // it never listened
    },
  };
}

/** Serves a text at `/metrics`. The server is loaded for those who use it. */
async function serveMetrics(options: ListenOptions, textOf: () => string): Promise<HttpServer> {
  const [{ createApp }, { listen }] = await Promise.all([import('../../http/app.ts'), import('../../http/server.ts')]);
  const app = createApp();
  app.get('/metrics', (c) => c.body(textOf(), 200, { 'content-type': EXPOSITION_TYPE }));
  app.notFound((c) => c.text('see /metrics\n', 404));
  const server = await listen(app, options);
  server.unref(); // an endpoint is no reason to stay alive
  return server;
}

/** Exposition text of a row, each family once with its help and type. */
export function prometheusText(row: MetricsRow): string {
  const families = new Map<Metric, Sample[]>();
  for (const { metric, key, value } of points(row)) {
    const samples = families.get(metric) ?? [];
    families.set(metric, samples);
    samples.push({ ...(key === undefined ? {} : { labels: { [metric.by!]: key } }), value });
  }
  return expositionText(
    [...families].map(([metric, samples]) => ({
      name: prometheusName(metric),
      type: metric.total ? 'counter' : 'gauge',
      help: metric.unit === '' ? metric.meaning : `${metric.meaning} [${metric.unit}]`,
      samples,
    })),
  );
}

/** Name of a metric: snake case, `_seconds` behind times and `_total` behind totals. */
function prometheusName({ name, unit, total }: Metric): string {
  return `longplay_${snakeName(name)}${unit === 's' ? '_seconds' : ''}${total ? '_total' : ''}`;
}
