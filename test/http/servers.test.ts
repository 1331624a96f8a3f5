/** Every server here, held to the laws of all of them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openGateway } from '../../src/gateway/server.ts';
import { appOf } from '../../src/http/app.ts';
import { type HttpLimits, listen } from '../../src/http/server.ts';
import { prometheusSink } from '../../src/metrics/sinks/prometheus.ts';
import { IndexRetriever } from '../../src/retrieval/index-retriever.ts';
import { indexPassages } from '../../src/retrieval/memory-index.ts';
import { retrieveHandler } from '../../src/retrieval/retrieve-server.ts';
import { serveEnvs } from '../../src/serve/env-server.ts';
import { servePolicy } from '../../src/serve/policy-server.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import { serveViewer } from '../../src/viewer/server.ts';
import { servedModel } from '../support/served-model.ts';
import { trajectoryOf } from '../support/traces.ts';
import { testServerLaws } from './laws.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-servers-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const files = new TraceFiles({ dir, config: { env: { id: 'toy' } }, rotateBytes: 1e9, keepBytes: 1e12 });
files.episodes([trajectoryOf()], 'train', 'easy');
files.close();

const prometheus = (limits: HttpLimits) => {
  const sink = prometheusSink(0, limits);
  return sink.ready.then(({ port }) => ({ url: `http://127.0.0.1:${port}`, close: () => sink.close() }));
};
const idle = { healthy: true, waiting: 0, waitingBytes: 0, count: 0 } as never;
const index = indexPassages([{ id: '0', contents: 'a title\na text' }]);

testServerLaws('a plain app', {
  start: (limits) =>
    listen(
      appOf(() => ({ status: 200, body: '{}' })),
      { port: 0, ...limits },
    ),
  path: '/',
});
testServerLaws('worlds', {
  start: (limits) => serveEnvs({ port: 0, worlds: [], episodes: idle, clock: systemClock, ...limits }),
  path: '/health',
});
testServerLaws('a policy', {
  start: (limits) => servePolicy({ port: 0, model: servedModel, decisions: idle, ...limits }),
  path: '/v1/models',
});
testServerLaws('the viewer', {
  start: (limits) => serveViewer([new RunSource(dir, 0, async () => ({}))], 0, limits),
  path: '/api/runs',
});
testServerLaws('Prometheus', { start: prometheus, path: '/metrics', maxConnections: 32 });
testServerLaws('the gateway of agents', {
  start: (limits) => openGateway({ limits }),
  path: '/e/none/v1/models',
  status: 404,
  isKeyed: true,
});
testServerLaws('a retriever', {
  start: async (limits) => {
    const handler = retrieveHandler(new IndexRetriever(index), { topk: 3 });
    return listen(appOf(handler), { port: 0, ...limits });
  },
  path: '/retrieve',
  status: 405,
});

it('there is no server beside these: each listens by src/http/server.ts', () => {
  const root = new URL('../..', import.meta.url).pathname;
  const sources = ['src', 'actors', 'envs'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length)),
  );
  const matching = (pattern: RegExp) => sources.filter((file) => pattern.test(readFileSync(join(root, file), 'utf8')));
  expect(matching(/\bcreate(Secure)?Server\(|\bgetRequestListener\(/)).toEqual([
    'src/http/server.ts',
    'envs/webarena/drivers/loopback.ts', // for the world's own browser: without its unguessable header all is refused
  ]);
  expect(matching(/\bawait listen\(/).sort()).toEqual([
    'src/cli/commands/serve-retriever.ts',
    'src/gateway/server.ts',
    'src/metrics/sinks/prometheus.ts',
    'src/serve/env-server.ts',
    'src/serve/policy-server.ts',
    'src/viewer/server.ts',
  ]);
});
