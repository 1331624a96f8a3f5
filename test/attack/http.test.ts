/**
 * Mutated requests to every server here. A request of whole bytes and invalid content gets exactly one answer; one of
 * invalid bytes gets an answer or a closed connection; nothing is answered by an error of ours, and afterwards
 * everything works as before.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Rng } from '../../src/core/rng.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import { servePolicy } from '../../src/serve/policy-server.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import { serveViewer } from '../../src/viewer/server.ts';
import { servedModel } from '../support/served-model.ts';
import { trajectoryOf } from '../support/traces.ts';
import { amount, printFigure, rngOf, SEED, usedMb } from './campaign.ts';
import { type Json, mutated, mutatedJson, mutatedText } from './mutations.ts';

const COUNT = amount(100_000, 500);
/** Connections at once. */
const CLIENTS = 32;

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body: Json | undefined;
}

const post = (path: string, body: Json): Request => ({ method: 'POST', path, body });
const get = (path: string): Request => ({ method: 'GET', path, body: undefined });

const ENV: readonly Request[] = [
  get('/openenv/textcraft/schema'),
  get('/openenv/textcraft/metadata'),
  get('/openenv/textcraft/health'),
  get('/openenv/textcraft/ws'),
  post('/create', {}),
  post('/reset', { id: 0, data_idx: 3 }),
  post('/step', { id: 0, action: 'get 1 oak logs' }),
  get('/observation?id=0'),
  post('/close', { id: 0 }),
  get('/health'),
  get('/metrics'),
];
const POLICY: readonly Request[] = [
  get('/v1/models'),
  get('/health'),
  get('/metrics'),
  post('/v1/completions', {
    prompt: 'goal stick',
    guided_choice: ['get 1 oak logs', 'craft'],
    logprobs: 1,
    n: 2,
    seed: 3,
  }),
  post('/v1/completions', {
    prompt: [1, 2, 3, 4],
    longplay: { prompt_length: 3, focus: [1], mentions: [[0]], candidates: ['a'] },
    structured_outputs: { choice: ['a'] },
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: true,
  }),
  post('/v1/chat/completions', {
    messages: [
      { role: 'system', content: 'play' },
      { role: 'user', content: [{ type: 'text', text: 'goal stick' }] },
      { role: 'assistant', content: 'get 1 oak logs' },
      { role: 'user', content: 'Got it. AVAILABLE ACTIONS: get 1 oak logs' },
    ],
    guided_choice: ['get 1 oak logs'],
    stop: ['\n'],
    temperature: 0.5,
    max_tokens: 8,
  }),
];
const VIEWER: readonly Request[] = [
  get('/'),
  get('/api/runs'),
  get('/api/runs/0/curves'),
  get('/api/runs/0/episodes?sort=return&descending=true&offset=0&limit=5&text=1&purpose=train&outcome=solved'),
  get('/api/runs/0/episodes/0'),
  get('/api/runs/0/episodes/0/group'),
];

const HEADERS = [
  'Content-Length: 5',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked, gzip',
  'Expect: 100-continue',
  'Connection: close',
  'Connection: upgrade',
  'Upgrade: websocket',
  'Host: evil.example',
  'Origin: http://evil.example',
  'Authorization: Bearer x',
  'X: \u0000',
  ': nothing',
  ' folded',
  'Content-Type: text/plain',
  `X-Long: ${'x'.repeat(20_000)}`,
];

interface Target {
  readonly name: string;
  readonly port: number;
  readonly requests: readonly Request[];
}

const closing: (() => unknown)[] = [];
const targets: Target[] = [];
beforeAll(async () => {
  const env = await startEnvServer(['textcraft']);
  closing.push(() => env.close());
  // Stands in for the inference actor: takes the first action.
  const decisions = {
    healthy: true,
    waiting: 0,
    decide: async ({ actions }: { actions: readonly string[] }) => ({
      episode: 0,
      turn: 0,
      action: actions[0] ?? 'nothing',
    }),
  } as never;
  const policy = await servePolicy({ port: 0, model: servedModel, decisions });
  closing.push(() => policy.close());
  const dir = mkdtempSync(join(tmpdir(), 'longplay-attack-http-'));
  closing.push(() => rmSync(dir, { recursive: true, force: true }));
  const files = new TraceFiles({ dir, config: { env: { id: 'toy' } }, rotateBytes: 1e9, keepBytes: 1e12 });
  files.episodes([trajectoryOf({ success: true }), trajectoryOf({ episode: 1, kind: 'tokens' })], 'train', 'easy');
  files.close();
  const viewer = await serveViewer([new RunSource(dir, 0, async () => ({}))], 0);
  closing.push(() => viewer.close());
  const portOf = (url: string) => Number(new URL(url).port);
  targets.push({ name: 'env server', port: portOf(env.url), requests: ENV });
  targets.push({ name: 'policy server', port: portOf(policy.url), requests: POLICY });
  targets.push({ name: 'viewer', port: portOf(viewer.url), requests: VIEWER });
}, 60_000);
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

function wire({ method, path }: Request, body: string | undefined, more: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body ?? '');
  const length = body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${bytes.length}`];
  const head = [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...length, ...more].join('\r\n');
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), bytes]);
}

/** Bytes of the n-th request. `whole` ones are HTTP, whatever they ask for. */
function struck(target: Target, rng: Rng): { readonly bytes: Buffer; readonly whole: boolean } {
  const request = rng.pick(target.requests);
  const body = request.body === undefined ? undefined : JSON.stringify(request.body);
  switch (rng.int(5)) {
    case 0: {
      const text = wire(request, body, rng.int(2) === 0 ? [rng.pick(HEADERS)] : []).toString('latin1');
      return {
        bytes: Buffer.from(
          mutatedText(text, rng, ['\r\n', '\r\n\r\n', ' HTTP/1.1', ':', '\u0000', '0', '%', '?']),
          'latin1',
        ),
        whole: false,
      };
    }
    case 1: {
      const bytes = wire(request, body, [rng.pick(HEADERS), rng.pick(HEADERS)]);
      return { bytes, whole: false };
    }
    case 2: {
      const path = mutatedText(request.path, rng, ['/', '%00', '%', '?', '=', '&', '..', '-1', '1e9']).replaceAll(
        /[^!-~]/g,
        '',
      );
      return {
        bytes: wire({ ...request, path: `/${path.replace(/^\/+/, '')}` }, body, ['Connection: close']),
        whole: true,
      };
    }
    default: {
      const mutant =
        request.body === undefined
          ? undefined
          : rng.int(3) === 0
            ? mutatedJson(request.body, rng)
            : JSON.stringify(mutated(request.body, rng));
      return { bytes: wire(request, mutant, ['Connection: close']), whole: true };
    }
  }
}

/** Milliseconds of silence after which a client leaves whose request was not whole. */
const PATIENCE_MS = 60;

/**
 * Sends bytes. A client that sent a whole request waits until the server closes; another leaves after a silence (node:http
 * does not answer a client that has left).
 * @returns everything that comes until the connection is closed
 */
function talk(port: number, bytes: Buffer, whole: boolean): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', () => {}); // closed while we were still sending
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
    if (!whole) socket.setTimeout(PATIENCE_MS, () => socket.end());
    socket.write(bytes);
  });
}

function statuses(response: string): number[] {
  return [...response.matchAll(/HTTP\/1\.1 (\d{3}) /g)]
    .map(([, status]) => Number(status))
    .filter((status) => status !== 100);
}

it(`${COUNT} mutated requests are answered, or their connection is closed`, { timeout: 3_600_000 }, async () => {
  const answers = new Map<number, number>();
  let next = 0;
  let silent = 0;
  let before = 0;
  const client = async () => {
    for (let n = next++; n < COUNT; n = next++) {
      if (n === Math.floor(COUNT / 5)) before = usedMb();
      const rng = rngOf('http', n);
      const target = rng.pick(targets);
      const { bytes, whole } = struck(target, rng);
      const response = await talk(target.port, bytes, whole);
      const came = statuses(response);
      const what = `${target.name}, request ${n} of seed ${SEED}: ${JSON.stringify(bytes.toString('latin1').slice(0, 500))}\n${response.slice(0, 2000)}`;
      for (const status of came) answers.set(status, (answers.get(status) ?? 0) + 1);
      if (came.length === 0) silent++;
      if (whole) expect(came, what).toHaveLength(1);
      // AgentGym's own servers answer some mistakes with a bare 500, and so do we; 505 is another version of HTTP.
      const ours = came.filter((status) => status >= 500 && status !== 505);
      if (!/Internal Server Error$/.test(response)) expect(ours, what).toEqual([]);
      expect(response, what).not.toMatch(/"type":"internal"|\n\s+at /);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  for (const { port, requests } of targets) {
    const plain = requests.find(({ path }) => /health|api\/runs$/.test(path))!;
    expect(statuses(await talk(port, wire(plain, undefined, ['Connection: close']), true))).toEqual([200]);
  }
  const counted = [...answers].sort(([a], [b]) => a - b).map(([status, times]) => `${status}: ${times}`);
  const grown = usedMb() - before;
  printFigure(
    `http: ${COUNT} requests, answers ${counted.join(', ')}, ${silent} closed without one, memory grew by ${grown.toFixed(1)} MB`,
  );
  expect(silent).toBeLessThan(COUNT / 5);
  expect(grown).toBeLessThan(64);
});
