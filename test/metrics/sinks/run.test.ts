/** Sinks of a whole run: rows and traces arrive at a receiver, a recorder that is restarted loses none, mistakes are refused at once. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { poolOptions } from '../../../actors/env/init.ts';
import { checkRunConfig } from '../../../src/config/load.ts';
import type { MetricsRow } from '../../../src/metrics/metric-table.ts';
import { openSinks } from '../../../src/metrics/sinks/open.ts';
import type { MetricSink, RunEnding } from '../../../src/metrics/sinks/sink.ts';
import { inFolder, toyConfig, withToyRun } from '../../support/toy-run.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-sinks-run-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const base = { env: { id: 'babyai' }, horizon: { type: 'fixed', rounds: 4 }, stop: { updates: 1 } };
const check = (metrics: object) => checkRunConfig({ ...base, metrics: { tensorboard: false, ...metrics } }, 'my.yaml');

describe('a run', () => {
  it('sends each update’s row, and a trace of each episode that its traces keep', async () => {
    const requests: { path: string; body: Record<string, never> }[] = [];
    const server = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk) => (text += chunk));
      request.on('end', () => {
        requests.push({ path: request.url!, body: JSON.parse(text) });
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`;
    await inFolder(async (dir) => {
      const metrics = { tensorboard: false, otel: { url } };
      const config = toyConfig('bandit', { stop: { updates: 3 }, trace: { everyGroups: 1, maxShare: 1 }, metrics });
      const sinks = await openSinks(config, dir, () => {});
      let episodes = 0;
      const onEpisodes = (trajectories: readonly unknown[]) => void (episodes += trajectories.length);
      await withToyRun(config, dir, ({ run }) => run.train(), { sinks, onEpisodes });
      const metricsOf = requests
        .filter(({ path }) => path === '/base/v1/metrics')
        .flatMap(({ body }) => deep(body, 'metrics'));
      const updates = metricsOf
        .filter(({ name }) => name === 'longplay.update')
        .flatMap((one) => deep(one, 'dataPoints'));
      expect(updates.map(({ asDouble }) => asDouble)).toEqual([1, 2, 3]);
      const spans = requests
        .filter(({ path }) => path === '/base/v1/traces')
        .flatMap(({ body }) => deep(body, 'spans'));
      const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined);
      expect(episodes).toBeGreaterThan(20);
      expect(roots).toHaveLength(episodes);
      expect(new Set(roots.map(({ traceId }) => traceId)).size).toBe(episodes);
    });
    server.close();
    server.closeAllConnections();
  });

  it('keeps its sinks open over a restart of the recorder, and closes them once, with its ending', async () => {
    const rows: MetricsRow[] = [];
    const endings: (RunEnding | undefined)[] = [];
    const sink: MetricSink = {
      name: 'mine',
      write(row) {
        if (endings.length > 0) throw new Error('it is closed');
        rows.push(row);
      },
      close: (ending) => void endings.push(ending),
    };
    let groups = 0;
    const onEpisodes = () => {
      if (++groups === 3) throw new Error('a planted crash');
    };
    const notices = await inFolder((dir) =>
      withToyRun(
        toyConfig('bandit', { stop: { updates: 3 } }),
        dir,
        async ({ run, notices: lines }) => {
          await run.train();
          return lines;
        },
        { sinks: [sink], onEpisodes },
      ),
    );
    expect(groups).toBeGreaterThan(3);
    expect(rows.map(({ update }) => update)).toEqual([1, 2, 3]);
    expect(endings).toEqual(['finished']);
    expect(notices.filter((line) => /cannot (write|close)/.test(line))).toEqual([]);
  });

  it('closes its sinks as those of a run that was stopped, where training is halted', async () => {
    const endings: (RunEnding | undefined)[] = [];
    const sink: MetricSink = { name: 'mine', write() {}, close: (ending) => void endings.push(ending) };
    await inFolder((dir) =>
      withToyRun(
        toyConfig('bandit', { stop: { updates: 1000 } }),
        dir,
        async ({ run }) => {
          run.metrics$.subscribe(() => run.halt());
          expect((await run.train()).why).toBe('halted');
        },
        { sinks: [sink] },
      ),
    );
    expect(endings).toEqual(['stopped']);
  });

  it('gives no world the keys of its sinks', () => {
    const config = check({
      otel: { url: 'http://127.0.0.1:1', headersEnv: 'MY_HEADERS' },
      mlflow: { url: 'http://127.0.0.1:1', tokenEnv: 'MY_PASS' },
    });
    const options = { config, mode: 'serial' } as const;
    const { variables } = poolOptions(options, [], { outside() {} } as never, undefined);
    expect(variables!.secret).toEqual(expect.arrayContaining(['OTEL_EXPORTER_OTLP_HEADERS', 'MY_HEADERS', 'MY_PASS']));
  });
});

describe('a mistake', () => {
  it.each([
    [{ opentelemetry: {} }, /metrics\.opentelemetry/],
    [{ otel: { url: 'localhost:4318' } }, /^my\.yaml: metrics\.otel\.url: /],
    [
      { otel: { url: 'http://me:secret@127.0.0.1:4318' } },
      /metrics\.otel\.url: the URL carries a name, a password or a key/,
    ],
    [
      { mlflow: { url: 'http://127.0.0.1:5000?token=secret' } },
      /metrics\.mlflow\.url: the URL carries a name, a password or a key/,
    ],
    [{ mlflow: {} }, /metrics\.mlflow\.url/],
    [{ wandb: 'a/b/c' }, /metrics\.wandb: expected a project, or a team and a project/],
    [{ otel: { url: 'http://127.0.0.1:1', traces: true } }, /metrics\.otel\.traces/],
  ])('in %j is one line before anything is played', (metrics, message) => {
    expect(() => check(metrics)).toThrow(message);
    try {
      check(metrics);
    } catch (thrown) {
      expect((thrown as Error).message.split('\n')).toHaveLength(1);
      expect((thrown as Error).message).not.toMatch(/secret/);
    }
  });

  it.each([
    [
      { otel: { url: 'http://127.0.0.1:1', headersEnv: 'NOT_SET' } },
      /metrics\.otel\.headersEnv: the environment variable NOT_SET is not set/,
    ],
    [
      { mlflow: { url: 'http://127.0.0.1:1', tokenEnv: 'NOT_SET' } },
      /metrics\.mlflow\.tokenEnv: the environment variable NOT_SET is not set/,
    ],
  ])('in the variables of %j is one, and no sink stays open', async (metrics, message) => {
    const notices: string[] = [];
    const opening = openSinks(check({ prometheusPort: 0, ...metrics }), join(root, 'a'), (line) => notices.push(line));
    await expect(opening).rejects.toThrow(message);
    const [url] = /http:\S+/.exec(notices.join('\n'))!;
    await expect(fetch(url)).rejects.toThrow();
  });
});

/** Members of a name, at any depth, joined. */
function deep(value: unknown, name: string): Record<string, unknown>[] {
  if (Array.isArray(value)) return value.flatMap((one) => deep(one, name));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === name ? (inner as never) : deep(inner, name)));
}
