/**
 * MLflow sink: rows over the REST API of a tracking server. The run is made with the first row and found again by a tag, so a
 * resumed run goes on in the same one, and an answer that is lost makes no second one.
 *
 * @see https://mlflow.org/docs/latest/rest-api.html
 */
import { isRecord } from '../../core/record.ts';
import { HttpClient, parseAnswer } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import { pointName, points } from '../metrics.ts';
import { flattenConfig } from './flat-config.ts';
import type { Entry, Outbox } from './outbox.ts';
import type { SinkTransport } from './remote-sink.ts';
import type { RunEnding } from './sink.ts';

export interface MlflowOptions {
  /** Root of the tracking server. */
  readonly url: string;
  readonly token: string | undefined;
  readonly experiment: string;
  /** Name of the run's folder. */
  readonly run: string;
  /** Configuration, which becomes the run's parameters. */
  readonly config: unknown;
  readonly outbox: Pick<Outbox, 'state' | 'keep'>;
  /** Wall clock in milliseconds since 1970. */
  readonly wallClock: () => number;
}

/** Tag by which a run is found again. */
const TAG = 'longplay.run';

/** Opens the way to a tracking server. @throws {UserError} BAD_ARGUMENT for an URL that is none */
export function mlflowTransport(options: MlflowOptions): SinkTransport {
  const { url, token, wallClock } = options;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const client = new HttpClient({ baseUrl: url, headers, maxConnections: 2 });
  let runId: string | undefined;
  const call = async (method: string, path: string, body: unknown, deadlineMs: number) => {
    const { body: text } = await client.send(
      method,
      `api/2.0/mlflow/${path}`,
      body === undefined ? undefined : JSON.stringify(body),
      deadlineMs,
    );
    return parseAnswer(text);
  };
  return {
    async send(entries, deadlineMs) {
      runId ??= await openRun(call, options, deadlineMs);
      for (const metrics of chunksOf(metricsOf(entries), MAX_METRICS)) {
        await call('POST', 'runs/log-batch', { run_id: runId, metrics }, deadlineMs);
      }
    },
    async finish(ending, deadlineMs) {
      const id = runId ?? options.outbox.state.remote.runId;
      if (id === undefined) return; // it never had a row
      await call('POST', 'runs/update', { run_id: id, status: STATUS[ending], end_time: wallClock() }, deadlineMs);
    },
    close: () => client.close(),
  };
}

const STATUS: Readonly<Record<RunEnding, string>> = { finished: 'FINISHED', stopped: 'KILLED', failed: 'FAILED' };

/** Metrics and parameters of one request, as the server bounds them, and characters of a parameter. */
const MAX_METRICS = 1000;
const MAX_PARAMS = 100;
const MAX_PARAM_CHARS = 500;

type Call = (method: string, path: string, body: unknown, deadlineMs: number) => Promise<unknown>;

/** Finds the run, or makes it. @returns its id at the server */
async function openRun(call: Call, options: MlflowOptions, deadlineMs: number): Promise<string> {
  const { outbox, run, config } = options;
  const { key, created, remote, sessions } = outbox.state;
  let id = remote.runId;
  if (id === undefined) {
    const experiment = await openExperiment(call, options.experiment, deadlineMs);
    const found = await call(
      'POST',
      'runs/search',
      { experiment_ids: [experiment], filter: `tags.\`${TAG}\` = '${key}'`, max_results: 1 },
      deadlineMs,
    );
    const runs = isRecord(found) && Array.isArray(found.runs) ? found.runs : [];
    const made =
      runs.length > 0
        ? { run: runs[0] }
        : await call(
            'POST',
            'runs/create',
            { experiment_id: experiment, run_name: run, start_time: created, tags: [{ key: TAG, value: key }] },
            deadlineMs,
          );
    id = textAt(made, ['run', 'info', 'run_id']);
    outbox.keep({ runId: id });
  } else if (sessions > 1) {
    await call('POST', 'runs/update', { run_id: id, status: 'RUNNING' }, deadlineMs);
  }
  if (outbox.state.remote.params === undefined) {
    const params = flattenConfig(config).map(([name, value]) => ({
      key: metricKey(name),
      value: value.slice(0, MAX_PARAM_CHARS).toWellFormed(),
    }));
    for (const some of chunksOf(params, MAX_PARAMS)) {
      await call('POST', 'runs/log-batch', { run_id: id, params: some }, deadlineMs);
    }
    outbox.keep({ params: 'sent' });
  }
  return id;
}

async function openExperiment(call: Call, name: string, deadlineMs: number): Promise<string> {
  const find = () =>
    call('GET', `experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`, undefined, deadlineMs);
  try {
    return textAt(await find(), ['experiment', 'experiment_id']);
  } catch (thrown) {
    if (!(thrown instanceof RemoteError) || thrown.status !== 404) throw thrown;
  }
  try {
    return textAt(await call('POST', 'experiments/create', { name }, deadlineMs), ['experiment_id']);
  } catch (thrown) {
    // Another run may have made it meanwhile.
    if (!(thrown instanceof RemoteError) || !thrown.body?.includes('RESOURCE_ALREADY_EXISTS')) throw thrown;
    return textAt(await find(), ['experiment', 'experiment_id']);
  }
}

/** Text at a path of an answer. @throws {RemoteError} malformed */
function textAt(answer: unknown, path: readonly string[]): string {
  const found = path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), answer);
  if (typeof found === 'string' && found !== '') return found;
  throw new RemoteError('malformed', `the answer has no ${path.join('.')}`);
}

interface MlflowMetric {
  readonly key: string;
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  readonly step: number;
}

/** Metrics of rows: `name`, or `name/key` of a split one, at the row's update. Pure. */
export function metricsOf(entries: readonly Entry[]): MlflowMetric[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== 'row') return [];
    const step = entry.row.update ?? entry.number;
    return [...points(entry.row)].map((point) => ({
      key: metricKey(pointName(point)),
      value: point.value,
      timestamp: Math.round(entry.at),
      step,
    }));
  });
}

/** Name that the server takes: letters, digits, `_-. /` and spaces, no empty or dotted part of a path, at most 250 long. */
export function metricKey(name: string): string {
  return name
    .replace(/[^\w.\- /]/g, '_')
    .split('/')
    .filter((part) => part !== '')
    .map((part) => (/^\.+$/.test(part) ? part.replaceAll('.', '_') : part))
    .join('/')
    .slice(0, 250);
}

function* chunksOf<T>(list: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < list.length; at += size) yield list.slice(at, at + size);
}
