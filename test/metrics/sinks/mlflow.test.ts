/** MLflow sink: against a stand-in of its REST API, and against a real server where one is installed. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { checkRunConfig } from '../../../src/config/load.ts';
import { metricTable } from '../../../src/metrics/metric-table.ts';
import { metricKey } from '../../../src/metrics/sinks/mlflow.ts';
import { openSinks } from '../../../src/metrics/sinks/open.ts';
import { closeSinks } from '../../../src/metrics/sinks/sink.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-mlflow-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function withSinks(url: string, dir: string, rows: readonly object[], ending: 'finished' | 'stopped') {
  const notices: string[] = [];
  const metrics = { tensorboard: false, mlflow: { url, experiment: 'ex per/iment' } };
  const rest = { env: { id: 'babyai' }, horizon: { type: 'fixed', rounds: 4 }, stop: { updates: 1 } };
  const sinks = await openSinks(checkRunConfig({ ...rest, metrics }, 'test'), dir, (line) => notices.push(line));
  for (const row of rows) for (const sink of sinks) sink.write(row);
  await closeSinks(sinks, ending, (line) => notices.push(line));
  return notices;
}

interface Logged {
  readonly key: string;
  readonly value: number;
  readonly step: number;
}

/** Stand-in of a tracking server. The first answer of each kind may be lost: what it was about has happened. */
class Tracker {
  readonly experiments: string[] = [];
  readonly runs: { id: string; status: string; tags: { key: string; value: string }[] }[] = [];
  readonly metrics: Logged[] = [];
  readonly params = new Map<string, string>();
  readonly keys = new Set<string>();
  /** Kinds of requests of which an answer was lost; undefined: none is. */
  lost: Set<string> | undefined;
  server: Server | undefined;

  async listen(): Promise<string> {
    this.server = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk) => (text += chunk));
      request.on('end', () => {
        this.keys.add(String(request.headers.authorization));
        const body = text === '' ? {} : JSON.parse(text);
        const answer = this.answer(request.url!.replace('/api/2.0/mlflow/', ''), body);
        const kind = request.url!.split('?')[0]!;
        const isLost = this.lost !== undefined && !this.lost.has(kind);
        this.lost?.add(kind);
        response.writeHead(isLost ? 503 : answer ? 200 : 404, {
          'content-type': 'application/json',
          'retry-after-ms': '1',
        });
        response.end(JSON.stringify(answer ?? { error_code: 'RESOURCE_DOES_NOT_EXIST' }));
      });
    });
    await new Promise<void>((resolve) => this.server!.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  answer(path: string, body: Record<string, never>): unknown {
    if (path.startsWith('experiments/get-by-name')) {
      const at = this.experiments.indexOf(decodeURIComponent(path.split('=')[1]!));
      return at < 0 ? undefined : { experiment: { experiment_id: String(at) } };
    }
    if (path === 'experiments/create') return { experiment_id: String(this.experiments.push(body.name!) - 1) };
    if (path === 'runs/search') {
      const [, key] = /= '(.*)'$/.exec(body.filter!)!;
      const found = this.runs.filter(({ tags }) => tags.some(({ value }) => value === key));
      return { runs: found.map(({ id }) => ({ info: { run_id: id } })) };
    }
    if (path === 'runs/create') {
      const id = `run ${this.runs.length}`;
      this.runs.push({ id, status: 'RUNNING', tags: body.tags! });
      return { run: { info: { run_id: id } } };
    }
    const run = this.runs.find(({ id }) => id === body.run_id);
    if (!run) return undefined;
    if (path === 'runs/update') run.status = body.status!;
    if (path === 'runs/log-batch') {
      const { metrics = [], params = [] } = body as { metrics?: Logged[]; params?: { key: string; value: string }[] };
      if (metrics.length > 1000 || params.length > 100) throw new Error('too many at once');
      for (const one of metrics) {
        const text = JSON.stringify(one);
        if (!this.metrics.some((other) => JSON.stringify(other) === text)) this.metrics.push(one);
      }
      for (const { key, value } of params) this.params.set(key, value);
    }
    return {};
  }
}

describe('the REST API', () => {
  const tracker = new Tracker();
  afterEach(() => {
    tracker.server?.close();
    tracker.server?.closeAllConnections();
  });

  it('gets one run with each row once, though answers are lost and the run is stopped and resumed', async () => {
    const url = await tracker.listen();
    const dir = join(root, 'my-run');
    tracker.lost = new Set();
    process.env.MLFLOW_TRACKING_TOKEN = 'a-token';
    const first = await withSinks(
      url,
      dir,
      [
        { update: 1, success: 0.25 },
        { update: 2, success: 0.5 },
      ],
      'stopped',
    );
    expect(first).toEqual([]);
    expect([...tracker.lost!].map((kind) => kind.replace('/api/2.0/mlflow/', '')).sort()).toEqual([
      'experiments/create',
      'experiments/get-by-name',
      'runs/create',
      'runs/log-batch',
      'runs/search',
      'runs/update',
    ]);
    expect(tracker.runs).toHaveLength(1);
    expect(tracker.runs[0]!.status).toBe('KILLED');
    const again = [
      { update: 2, success: 0.6 },
      { update: 3, success: 0.75, actorRestarts: { '/rollout': 1 } },
    ];
    expect(await withSinks(url, dir, again, 'finished')).toEqual([
      expect.stringMatching(/has the rows up to update 2/),
    ]);
    delete process.env.MLFLOW_TRACKING_TOKEN;
    expect(tracker.runs).toEqual([expect.objectContaining({ status: 'FINISHED' })]);
    expect(tracker.experiments).toEqual(['ex per/iment']);
    const success = tracker.metrics.filter(({ key }) => key === 'success');
    expect(success).toEqual([
      { key: 'success', value: 0.25, timestamp: expect.any(Number), step: 1 },
      { key: 'success', value: 0.5, timestamp: expect.any(Number), step: 2 },
      { key: 'success', value: 0.75, timestamp: expect.any(Number), step: 3 },
    ]);
    expect(tracker.metrics.find(({ step, key }) => step === 3 && key.startsWith('actor'))!.key).toBe(
      'actorRestarts/rollout',
    );
    expect(tracker.params.get('horizon.rounds')).toBe('4');
    expect(tracker.keys).toEqual(new Set(['Bearer a-token']));
  });

  it('takes names of every metric, of any key', () => {
    const keys = ['/rollout', 'depth 1', '../x', 'a//b', '.', 'ü:?', 'x'.repeat(300)];
    for (const { name } of metricTable) {
      for (const key of keys) {
        const made = metricKey(`${name}/${key}`);
        expect(made).toMatch(/^[\w.\- /]{1,250}$/);
        expect(made.split('/').every((part) => part !== '' && part !== '.' && part !== '..')).toBe(true);
      }
    }
  });
});

const python = process.env.LONGPLAY_PYTHON ?? 'python3';
const has = spawnSync(python, ['-c', 'import mlflow.server']).status === 0;
if (!has) console.log(`skipped: ${python} has no mlflow, so no server of its own takes the rows`);

describe.skipIf(!has)('a real mlflow server', () => {
  let server: ChildProcess | undefined;
  afterAll(() => {
    if (server?.pid !== undefined) process.kill(-server.pid, 'SIGKILL');
  });

  it('shows one finished run with each row once', { timeout: 180_000 }, async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const store = [
      '--backend-store-uri',
      `sqlite:///${join(root, 'm.db')}`,
      '--default-artifact-root',
      join(root, 'art'),
    ];
    server = spawn(python, ['-m', 'mlflow', 'server', '--port', String(port), '--workers', '1', ...store], {
      env: { ...process.env, MLFLOW_DISABLE_TELEMETRY: 'true', PYTHONWARNINGS: 'ignore' },
      stdio: 'ignore',
      detached: true,
    });
    while (
      !(await fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      ))
    ) {
      expect(server.exitCode).toBeNull();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const dir = join(root, 'real');
    const all = Object.fromEntries(metricTable.map((metric) => [metric.name, 'by' in metric ? { '/a key ü': 1 } : 1]));
    expect(
      await withSinks(
        url,
        dir,
        [
          { ...all, update: 1 },
          { update: 2, success: 0.5 },
        ],
        'stopped',
      ),
    ).toEqual([]);
    const notices = await withSinks(
      url,
      dir,
      [
        { update: 2, success: 0.9 },
        { update: 3, success: 0.75 },
      ],
      'finished',
    );
    expect(notices).toEqual([expect.stringMatching(/has the rows up to update 2/)]);
    const script = `
import sys, json, mlflow
mlflow.set_tracking_uri(sys.argv[1]); c = mlflow.MlflowClient()
e = c.get_experiment_by_name('ex per/iment'); runs = c.search_runs([e.experiment_id]); r = runs[0]
print(json.dumps([len(runs), r.info.run_name, r.info.status, len(r.data.metrics), r.data.params['horizon.rounds'],
  [[m.step, m.value] for m in c.get_metric_history(r.info.run_id, 'success')]]))`;
    const { stdout } = spawnSync(python, ['-c', script, url], { encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual([
      1,
      'real',
      'FINISHED',
      metricTable.length,
      '4',
      [
        [1, 1],
        [2, 0.5],
        [3, 0.75],
      ],
    ]);
  });
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const socket = createSocket().listen(0, '127.0.0.1', () => {
      const { port } = socket.address() as AddressInfo;
      socket.close(() => resolve(port));
    });
  });
}
