/** Rollouts with a model behind a server that misbehaves in every way: nothing finished is lost, nothing hangs. */
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RunLimits } from '../../../actors/tree.ts';
import { loadRunConfig } from '../../../src/config/load.ts';
import type { MetricsRow } from '../../../src/metrics/metric-table.ts';
import { Outbox } from '../../../src/metrics/sinks/outbox.ts';
import type { RemoteUsage } from '../../../src/policy/remote/usage.ts';
import { type PreparedRollout, playRollout } from '../../../src/run/rollout.ts';
import type { RolloutPlan } from '../../../src/run/rollout-plan.ts';
import { createRunFolder } from '../../../src/run/run-folder.ts';
import { readTrace } from '../../../src/storage/trace.ts';
import { tracePaths } from '../../../src/storage/trace-files.ts';
import { buildRecordedConversation } from '../../../src/text/prompts/conversation.ts';
import {
  type Exchange,
  type Fault,
  type MisbehavingServer,
  misbehavingServer,
} from '../../support/misbehaving-server.ts';

vi.setConfig({ testTimeout: 60_000 });
const EPISODES = 4;
const TURNS = 3;
let dir: string;
let server: MisbehavingServer | undefined;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-remote-'));
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(dir, { recursive: true, force: true });
});

/** A model that always looks at its inventory, and answers so in tokens. */
async function model({ path, body }: Exchange): Promise<{ status: number; json: unknown }> {
  if (path === '/v1/models') return { status: 200, json: { object: 'list', data: [{ id: 'tiny' }] } };
  const { messages } = body as { messages: unknown[] };
  const content = 'Thought:\nlook\n\nAction:\ninventory';
  const choice = {
    message: { role: 'assistant', content },
    finish_reason: 'stop',
    token_ids: [5, 6, 7],
    logprobs: { content: [-1, -0.5, -0.25].map((logprob) => ({ token: 'x', logprob })) },
  };
  const usage = { prompt_tokens: 10 * messages.length, completion_tokens: 3 };
  return { status: 200, json: { choices: [choice], prompt_token_ids: [1, 2, 3], usage } };
}

function prepare(settings: readonly string[] = [], episodes = EPISODES) {
  const raw = { env: { id: 'textcraft' }, horizon: { type: 'fixed', rounds: TURNS }, stop: { updates: 1 } };
  const config = loadRunConfig(JSON.stringify(raw), 'test', [
    'policy.kind=openai',
    `policy.openai.baseUrl=${server!.url}/v1`,
    'rollout.concurrentGroups=4',
    ...settings,
  ]);
  createRunFolder(join(dir, 'run'), config);
  const plan: RolloutPlan = { format: 1, episodes, split: 'test', horizon: TURNS, temperature: 1, seed: 1 };
  return { dir: join(dir, 'run'), config, plan };
}

/** Plays under short limits. */
function play(prepared: PreparedRollout, openai: RunLimits['openai'] = {}, maxAttempts?: number) {
  const quick = { attemptMs: 400, totalMs: 4000, minMs: 5, maxMs: 50, ...openai };
  const retry = maxAttempts === undefined ? {} : { maxAttempts };
  return playRollout(prepared, { onNotice: () => {}, limits: { openai: quick, retry } });
}

const traces = () => tracePaths(join(dir, 'run', 'traces')).flatMap((path) => readTrace(path).episodes);
const faults: readonly Fault[] = ['slow', 'reset', '429', '500', 'not-json', 'half', 'silence'];

describe('a server that misbehaves', () => {
  it.each(faults)('%s: every episode is finished', async (fault) => {
    // Every third request goes wrong; two in a row never do.
    server = await misbehavingServer(model, (n, { path }) => (path !== '/v1/models' && n % 3 === 1 ? fault : 'ok'));
    // Slow is not silent: an attempt's limit leaves a busy machine time for it.
    const patient = { attemptMs: 20_000, totalMs: 30_000 };
    const { finished, usage } = await play(prepare(), fault === 'slow' ? patient : {});
    expect(finished).toBe(EPISODES);
    for (const { turns, end } of traces()) {
      expect(turns.map(({ action }) => action)).toEqual(['inventory', 'inventory', 'inventory']);
      expect(end).toBe('truncated');
    }
    const remote = usage as RemoteUsage;
    const retries = Object.values(remote.retries).reduce((sum, count) => sum + count, 0);
    expect(server.log.some((one) => one.fault === fault)).toBe(true);
    expect(retries > 0).toBe(fault !== 'slow');
    expect(remote.failures).toBe(0);
    expect(remote.requests).toBe(EPISODES * TURNS);
  });

  it('that never answers well fails the episodes, by their cause, and ends', async () => {
    server = await misbehavingServer(model, (_, { path }) => (path === '/v1/models' ? 'ok' : '500'));
    const { finished, usage } = await play(prepare(), { attempts: 2 }, 2);
    expect(finished).toBe(0);
    expect((usage as RemoteUsage).failures).toBe(2 * EPISODES);
    expect(server.log.filter(({ path }) => path !== '/v1/models').length).toBe(4 * EPISODES);
  });

  it('that refuses a request gets no retry', async () => {
    const refuse = async (exchange: Exchange) =>
      exchange.path === '/v1/models' ? model(exchange) : { status: 400, json: { error: 'too long' } };
    server = await misbehavingServer(refuse, () => 'ok');
    const { finished } = await play(prepare(), {}, 1);
    expect(finished).toBe(0);
    expect(server.log.filter(({ path }) => path !== '/v1/models').length).toBe(EPISODES);
  });

  it('that is busy gets a retry', async () => {
    const slowDown = async (exchange: Exchange) => model(exchange);
    server = await misbehavingServer(slowDown, (n) => (n === 1 ? '429' : 'ok'));
    await play(prepare(['policy.openai.concurrency=1'], 1));
    const requests = server.log.filter(({ path }) => path !== '/v1/models');
    expect(requests.length).toBe(TURNS + 1);
  });

  it('is refused at once where it cannot be reached', async () => {
    server = await misbehavingServer(model, () => 'ok');
    const prepared = prepare();
    await server.close();
    await expect(playRollout(prepared, { onNotice: () => {} })).rejects.toThrow('is the server running?');
  });

  it('is refused with its sinks closed', async () => {
    server = await misbehavingServer(model, () => 'ok');
    const notices: string[] = [];
    const prepared = prepare(['metrics.prometheusPort=0']);
    await server.close();
    const done = playRollout(prepared, { onNotice: (line) => void notices.push(line) });
    await expect(done).rejects.toThrow('is the server running?');
    const [, url] = /(http:\S+)/.exec(notices.join('\n'))!;
    await expect(fetch(url!)).rejects.toThrow();
  });
});

describe('a rollout', () => {
  it('keeps to its concurrency, and takes the key from the environment alone', async () => {
    let now = 0;
    let most = 0;
    const counting = async (exchange: Exchange) => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 10));
      now--;
      return model(exchange);
    };
    server = await misbehavingServer(counting, () => 'ok');
    process.env.LONGPLAY_TEST_KEY = 'sk-secret';
    try {
      const prepared = prepare(['policy.openai.concurrency=3', 'policy.apiKeyEnv=LONGPLAY_TEST_KEY'], 12);
      await playRollout({ ...prepared }, { onNotice: () => {} });
    } finally {
      delete process.env.LONGPLAY_TEST_KEY;
    }
    expect(most).toBe(3);
    expect(new Set(server.log.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer sk-secret']));
    for (const path of readdirSync(join(dir, 'run'), { recursive: true, encoding: 'utf8' })) {
      const file = join(dir, 'run', path);
      if (statSync(file).isFile()) expect(readFileSync(file, 'utf8')).not.toContain('sk-secret');
    }
  });

  it('with nothing left sends what waits for its sinks', async () => {
    const withReceiver = async (exchange: Exchange) =>
      exchange.path === '/v1/metrics' ? { status: 200, json: {} } : model(exchange);
    server = await misbehavingServer(withReceiver, () => 'ok');
    const { config, ...prepared } = prepare([], 1);
    await play({ ...prepared, config });
    const outbox = () => new Outbox(join(dir, 'run', 'sinks', 'otel'), 'a'.repeat(32), Date.now());
    outbox().appendRow(Date.now(), { update: 1 } as MetricsRow);
    expect(outbox().pending).toBe(1);
    const otel = { url: server.url, traces: 'none' } as const;
    const again = await play({ ...prepared, config: { ...config, metrics: { ...config.metrics, otel } } });
    expect(again).toMatchObject({ finished: 1, played: 0 });
    expect(outbox().pending).toBe(0);
    expect(server.log.filter(({ path }) => path === '/v1/metrics')).toHaveLength(1);
  });

  it('goes on where it stopped, without playing a finished episode again', async () => {
    // The server breaks for good in the middle.
    let broken = true;
    server = await misbehavingServer(model, (n, { path }) => (broken && n > 8 && path !== '/v1/models' ? '500' : 'ok'));
    const prepared = prepare(['rollout.concurrentGroups=1'], 6);
    const first = await play(prepared, { attempts: 1 }, 1);
    expect(first.finished).toBeGreaterThan(0);
    expect(first.finished).toBeLessThan(6);
    const before = traces();
    const [file] = tracePaths(join(dir, 'run', 'traces'));
    appendFileSync(file!, '{"purpose":"rollout","episode":99,"ta'); // a killed process leaves this
    broken = false;
    const sent = server.log.length;
    const second = await play(prepared);
    expect(second.finished).toBe(6);
    expect(second.played).toBe(6 - first.finished);
    expect(server.log.length - sent).toBe(1 + TURNS * (6 - first.finished));
    const after = traces();
    expect(after.slice(0, before.length)).toEqual(before);
    expect(new Set(after.map(({ task }) => task.index)).size).toBe(6);
    expect(new Set(after.map(({ episode }) => episode)).size).toBe(6);
    expect(readFileSync(file!, 'utf8').endsWith('\n')).toBe(true);
  });

  it('plays what was left just as a rollout that was never stopped, seed for seed', async () => {
    // The answer depends on the seed of the turn, so that another seed would be another episode.
    const drawn = async (exchange: Exchange) => {
      const { status, json } = await model(exchange);
      if (exchange.path === '/v1/models') return { status, json };
      const { seed } = exchange.body as { seed: number };
      const content = `Thought:\nlook\n\nAction:\n${seed % 2 === 0 ? 'inventory' : `get ${seed % 97} dirt`}`;
      return { status, json: { choices: [{ message: { role: 'assistant', content } }] } };
    };
    const played = () =>
      new Map(traces().map(({ task, turns }) => [`${task.index}#${task.seed}`, turns.map(({ action }) => action)]));
    server = await misbehavingServer(drawn, () => 'ok');
    await play(prepare([], 8));
    const whole = played();
    await server.close();
    rmSync(join(dir, 'run'), { recursive: true });
    let broken = true;
    server = await misbehavingServer(drawn, (n, { path }) => (broken && n > 8 && path !== '/v1/models' ? '500' : 'ok'));
    const prepared = prepare(['rollout.concurrentGroups=1'], 8);
    const first = await play(prepared, { attempts: 1 }, 1);
    expect(first.finished).toBeGreaterThan(0);
    expect(first.finished).toBeLessThan(8);
    broken = false;
    await play(prepared);
    expect(new Map([...played()].sort())).toEqual(new Map([...whole].sort()));
    expect(new Set([...whole.values()].flat()).size).toBeGreaterThan(8);
  });

  it('keeps what was sampled, and sends a seed per turn', async () => {
    server = await misbehavingServer(model, () => 'ok');
    const { usage } = await play(prepare(['policy.openai.logprobs=true', 'policy.openai.tokenIds=true']));
    const [episode] = traces();
    expect(episode!.turns[1]!.decision).toMatchObject({
      kind: 'tokens',
      context: Int32Array.of(1, 2, 3),
      tokens: Int32Array.of(5, 6, 7),
      logprobs: Float32Array.of(-1, -0.5, -0.25),
    });
    expect(episode!.turns[1]!.response).toMatchObject({ promptTokens: 50, completionTokens: 3 });
    expect((usage as RemoteUsage).completionTokens).toBe(3 * EPISODES * TURNS);
    const seeds = server.log.flatMap(({ body }) => (body ? [(body as { seed: number }).seed] : []));
    expect(new Set(seeds).size).toBe(EPISODES * TURNS);
  });

  it('sends a model its format error', async () => {
    const rambler = async (exchange: Exchange) => {
      const { json } = await model(exchange);
      if (exchange.path === '/v1/models') return { status: 200, json };
      const usage = { prompt_tokens: 400, completion_tokens: 50 };
      return { status: 200, json: { choices: [{ message: { content: 'I wonder.' } }], usage } };
    };
    server = await misbehavingServer(rambler, () => 'ok');
    const { usage } = await play(prepare([], 1));
    const [{ turns }] = traces() as [ReturnType<typeof traces>[number]];
    expect(turns.map(({ action }) => action)).toEqual(['', '', '']);
    expect(turns[0]!.response!.formatError).toContain("no 'Action:'");
    expect((usage as RemoteUsage).formatErrors).toBe(TURNS);
    const second = server.log.filter(({ body }) => body)[1]!.body as { messages: { content: string }[] };
    const kept = buildRecordedConversation(traces()[0]!).map(({ role, content }) => ({ role, content }));
    expect(kept.slice(0, second.messages.length)).toEqual(second.messages);
    expect(second.messages.at(-1)!.content).toMatch(/^The answer has no 'Action:'.*\n\nCould not execute/s);
  });
});
