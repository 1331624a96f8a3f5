/**
 * Prometheus sink: the newest row in Prometheus' text format, over HTTP on the loopback address.
 *
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */
import { createServer } from 'node:http';
import { type Metric, type MetricsRow, points } from '../metrics.ts';
import type { MetricSink } from './sink.ts';

export interface PrometheusSink extends MetricSink {
  /** Settles when the port is open; rejects when it cannot be. */
  readonly ready: Promise<{ readonly port: number }>;
}

/**
 * Opens the endpoint.
 * @param port 0 picks a free one; served at `http://127.0.0.1:<port>/metrics`
 */
export function prometheusSink(port: number): PrometheusSink {
  let row: MetricsRow = {};
  const server = createServer((request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404).end('see /metrics\n');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(prometheusText(row));
  });
  const ready = new Promise<{ port: number }>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve({ port: (server.address() as { port: number }).port }));
  });
  ready.catch(() => {}); // reported where it is awaited
  server.unref(); // an endpoint is no reason to stay alive
  return {
    name: 'prometheus',
    ready,
    write(next) {
      row = next;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Exposition text of a row, each family once with its help and type. */
export function prometheusText(row: MetricsRow): string {
  const lines: string[] = [];
  let family: Metric | undefined;
  for (const { metric, key, value } of points(row)) {
    const name = `longplay_${snakeCase(metric.name)}`;
    if (metric !== family) {
      const unit = metric.unit === '' ? '' : ` [${metric.unit}]`;
      lines.push(`# HELP ${name} ${escapeHelp(metric.meaning + unit)}`, `# TYPE ${name} gauge`);
      family = metric;
    }
    lines.push(key === undefined ? `${name} ${value}` : `${name}{${metric.by}="${escapeLabel(key)}"} ${value}`);
  }
  return lines.map((line) => `${line}\n`).join('');
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function escapeHelp(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replace(/"/g, '\\"');
}
