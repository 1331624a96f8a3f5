/** Opens the sinks that a configuration asks for. What a sink needs is loaded for those who use it. */
import { randomBytes } from 'node:crypto';
import { basename, join, resolve } from 'node:path';
import { policyKindOf } from '../../config/policy-kinds.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { systemClock } from '../../core/clock.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { Rng } from '../../core/rng.ts';
import { addSecret } from '../../core/secrets.ts';
import { readApiKey } from '../../http/api-key.ts';
import type { Outbox } from './outbox.ts';
import { prometheusSink } from './prometheus.ts';
import type { SinkTransport } from './remote-sink.ts';
import { closeSinks, type MetricSink } from './sink.ts';
import { tensorboardSink } from './tensorboard.ts';

export type SinksConfig = Pick<RunConfig, 'metrics' | 'policy'>;

/**
 * Opens the sinks of a configuration. A server that is away is no reason to refuse: what it misses waits for it.
 * @param dir the run's folder
 * @param onNotice receives a line for each sink that was opened or refused, and later for servers that go and come back
 * @throws {UserError} BAD_CONFIG for a port that cannot be opened, a URL that is none, and a variable that is not set
 */
export async function openSinks(
  config: SinksConfig,
  dir: string,
  onNotice: (line: string) => void,
): Promise<MetricSink[]> {
  const { metrics } = config;
  const sinks: MetricSink[] = [];
  try {
    if (metrics.prometheusPort !== undefined) sinks.push(await openPrometheus(metrics.prometheusPort, onNotice));
    if (metrics.tensorboard) {
      try {
        sinks.push(tensorboardSink(join(dir, 'tensorboard'), Date.now));
      } catch (thrown) {
        onNotice(`cannot write tensorboard: ${messageOf(thrown)}; the run goes on without it`);
      }
    }
    if (metrics.otel) sinks.push(await openOtel(metrics.otel, config, dir, onNotice));
    if (metrics.mlflow) sinks.push(await openMlflow(metrics.mlflow, config, dir, onNotice));
    if (metrics.wandb) {
      const { wandbSink } = await import('./wandb.ts');
      const [project = '', entity] = metrics.wandb.split('/').reverse();
      sinks.push(wandbSink({ dir, project, entity, config, wallClock: Date.now }));
    }
    return sinks;
  } catch (thrown) {
    await closeSinks(sinks, 'failed', onNotice);
    throw thrown;
  }
}

async function openPrometheus(wanted: number, onNotice: (line: string) => void): Promise<MetricSink> {
  const sink = prometheusSink(wanted);
  try {
    const { port } = await sink.ready;
    onNotice(`metrics for Prometheus at http://127.0.0.1:${port}/metrics`);
  } catch (thrown) {
    throw new UserError(
      'BAD_CONFIG',
      `metrics.prometheusPort: cannot listen on 127.0.0.1:${wanted}: ${messageOf(thrown)}; choose another port, or 0 for any`,
    );
  }
  return sink;
}

async function openOtel(
  otel: NonNullable<RunConfig['metrics']['otel']>,
  { policy }: SinksConfig,
  dir: string,
  onNotice: (line: string) => void,
): Promise<MetricSink> {
  const { otelRun, otelTransport, parseHeaders } = await import('./otel.ts');
  const { url, traces, headersEnv } = otel;
  const variable = headersEnv ?? 'OTEL_EXPORTER_OTLP_HEADERS';
  const headers = parseHeaders(readNamed('metrics.otel.headersEnv', headersEnv, variable) ?? '', variable);
  for (const value of Object.values(headers)) {
    addSecret(value);
    addSecret(value.replace(/^\S+\s+/, '')); // the key behind `Bearer`
  }
  const { isRemote } = policyKindOf({ policy });
  const model = (isRemote ? policy.openai.model : (policy.server.model ?? policy.path)) || policy.kind;
  const name = basename(resolve(dir));
  return openRemote('otel', url, dir, onNotice, (outbox) =>
    otelTransport({
      url,
      headers,
      traces: traces !== 'none',
      run: otelRun(outbox.state, {
        name,
        model,
        provider: isRemote ? 'openai' : 'longplay',
        content: traces === 'content',
      }),
    }),
  );
}

async function openMlflow(
  { url, experiment, tokenEnv }: NonNullable<RunConfig['metrics']['mlflow']>,
  config: SinksConfig,
  dir: string,
  onNotice: (line: string) => void,
): Promise<MetricSink> {
  const { mlflowTransport } = await import('./mlflow.ts');
  const token = readNamed('metrics.mlflow.tokenEnv', tokenEnv, 'MLFLOW_TRACKING_TOKEN');
  const run = basename(resolve(dir));
  return openRemote('mlflow', url, dir, onNotice, (outbox) =>
    mlflowTransport({ url, token, experiment, run, config, outbox, wallClock: Date.now }),
  );
}

/** Reads a variable that a key names, or the usual one. @throws {UserError} BAD_CONFIG for a named one that is not set */
function readNamed(key: string, named: string | undefined, usual: string): string | undefined {
  const value = readApiKey(named ?? usual);
  if (value === undefined && named !== undefined) {
    throw new UserError(
      'BAD_CONFIG',
      `${key}: the environment variable ${named} is not set; set it, or leave the key out`,
    );
  }
  return value;
}

async function openRemote(
  name: string,
  url: string,
  dir: string,
  onNotice: (line: string) => void,
  openTransport: (outbox: Outbox) => SinkTransport,
): Promise<MetricSink> {
  const [{ Outbox }, { openRemoteSink }] = await Promise.all([import('./outbox.ts'), import('./remote-sink.ts')]);
  const outbox = new Outbox(join(dir, 'sinks', name), randomBytes(16).toString('hex'), Date.now());
  return openRemoteSink({
    name,
    url,
    outbox,
    transport: openTransport(outbox),
    clock: systemClock,
    wallClock: Date.now,
    rng: Rng.fromSeed(Date.now() >>> 0),
    onNotice,
  });
}
