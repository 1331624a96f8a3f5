/** Preflight from end to end, on worlds and an agent with a planted fault each, and on one that is sound. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import type { PreflightReport } from '../../../src/run/preflight/preflight.ts';
import type { Row } from '../../../src/run/preflight/verdicts.ts';
import { temporaryFolder } from '../../support/small-run.ts';
import { typed } from '../../support/typed.ts';

const folder = temporaryFolder('preflight');
const scratch = join(folder, 'scratch');
const before = process.env.TMPDIR;
beforeAll(() => {
  mkdirSync(scratch);
  process.env.TMPDIR = scratch;
});
afterAll(() => {
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  rmSync(folder, { recursive: true, force: true });
});

/** World of one secret among four doors; the options plant its faults. */
const WORLD = `
export function createEnv({ pays = 'secret', fails = false } = {}) {
  const tasks = [...Array(8).keys()];
  return {
    id: 'doors', description: 'Doors.', rewardRange: [0, 1], maxObservationChars: 200,
    tasks: { count: 8, labels: ['all'], label: () => 'all', split: () => tasks, evalSeed: 5 },
    open(task) {
      const doors = ['red', 'blue', 'green', 'white'];
      let turn = 0;
      return {
        first: { kind: 'first', observation: 'the key is ' + doors[task.index % 4] },
        actions: () => doors,
        step(action) {
          if (fails) throw new Error('the door is stuck');
          if (pays === 'slow' && ++turn < 6) return { kind: 'mid', observation: 'wait', reward: 0 };
          const wins = { secret: doors[task.index % 4], slow: doors[task.index % 4], first: 'red', never: null }[pays];
          const reward = action === wins ? 1 : 0;
          return { kind: 'terminated', observation: 'open', reward, success: reward > 0 };
        },
        close() {},
      };
    },
  };
}
export function createOracle() {
  return (task) => () => ['red', 'blue', 'green', 'white'][task.index % 4];
}
`;

const AGENT = `
export const tasks = Array.from({ length: 20 }, (_, i) => ({ side: i % 2 ? 'left' : 'right' }));
export default async function agent({ task, model, signal }) {
  const tools = [{ type: 'function', function: { name: 'bet', parameters: {
    type: 'object', properties: { side: { enum: ['left', 'right'] }, size: { enum: ['low', 'high'] } },
    required: ['side', 'size'] } } }];
  const response = await fetch(model.baseURL + '/chat/completions', {
    method: 'POST', signal,
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + model.apiKey },
    body: JSON.stringify({ model: model.name, tools, tool_choice: 'required',
      messages: [{ role: 'user', content: 'The coin lies ' + task.side + '. Where do you bet?' }] }),
  });
  const call = (await response.json()).choices[0].message.tool_calls?.[0];
  const { side, size } = call ? JSON.parse(call.function.arguments) : {};
  const correct = side === task.side ? 1 : 0;
  const high = size === 'high' ? 1 : 0;
  return { reward: 0.02 * correct + high, success: correct === 1, metrics: { correct, high } };
}
`;

/** Runs the command on a configuration. */
async function run(name: string, config: object, minutes = 0.05, ...flags: readonly string[]) {
  writeFileSync(join(folder, 'doors.mjs'), WORLD);
  writeFileSync(join(folder, 'agent.mjs'), AGENT);
  const path = join(folder, `${name}.yaml`);
  const base = {
    horizon: { type: 'fixed', rounds: 4 },
    policy: { model: { hiddenSize: 16, layers: 1, heads: 2 } },
    rollout: { groupSize: 4, concurrentGroups: 4 },
    learner: { groupsPerUpdate: 4 },
    stop: { updates: 50 },
  };
  writeFileSync(path, JSON.stringify({ ...base, ...config }));
  const { status, stdout, stderr } = await typed('preflight', path, '--minutes', String(minutes), '--json', ...flags);
  expect(stderr).not.toMatch(/internal error/);
  const report = JSON.parse(stdout) as PreflightReport;
  const verdict = (part: string, row: string) => find(report, part, row)?.verdict;
  expect(readdirSync(scratch).filter((file) => file.startsWith('longplay-preflight'))).toEqual([]);
  return { status, report, verdict };
}

const find = ({ rows }: PreflightReport, part: string, name: string): Row | undefined =>
  rows.find((row) => row.part === part && row.name === name);
const doors = (options: object) => ({ env: { id: './doors.mjs', options } });

/** Test of `npm run test:long` alone: each plays for its bound, and the whole file takes over half a minute. */
const inLong = it.skipIf(process.env.LONGPLAY_LONG !== '1');

describe('preflight', { timeout: 120_000 }, () => {
  it('finds nothing to stop for in a sound world, and estimates the run', async () => {
    const out = join(folder, 'report.json');
    const flags = ['--hardware', 'h100', '--hardware', 'l4', '--price', '2', '--out', out];
    const { status, report, verdict } = await run('sound', doors({}), 0.1, ...flags);
    expect(status).toBe(0);
    expect([verdict('plays', 'failures'), verdict('plays', 'horizon')]).toEqual(['ok', 'ok']);
    expect(['first', 'last', 'same', 'empty', 'word'].map((rule) => verdict('rules', rule))).toEqual(
      Array(5).fill('ok'),
    );
    expect(verdict('toy', 'signal')).toBe('ok');
    expect(report.plays.random).toMatchObject({ turns: 1, truncated: 0 });
    expect(report.plays.toy!.episodes).toBeGreaterThan(16);
    expect(report.estimate).toMatchObject({ updates: 50, endedBy: 'updates', episodes: 800 });
    expect(report.hardware.map(({ name }) => name)).toEqual(['h100', 'l4']);
    const { seconds, cost } = report.hardware[0]!;
    expect(cost).toBeCloseTo((seconds / 3600) * 2, 12);
    expect(find(report, 'estimate', 'h100')!.found).toMatch(/computed, not measured: \(2 \+ 6 × 2 epochs\)/);
    expect(JSON.parse(readFileSync(out, 'utf8'))).toEqual({ ...report });
  });
  it('looks at a world whose first action always wins', async () => {
    const { status, verdict } = await run('first', doors({ pays: 'first' }));
    expect([status, verdict('rules', 'first'), verdict('rules', 'last')]).toEqual([0, 'look', 'ok']);
  });
  inLong('stops for a world that never rewards', async () => {
    const { status, verdict } = await run('never', doors({ pays: 'never' }));
    expect([status, verdict('toy', 'signal')]).toEqual([1, 'stop']);
  });
  it('stops for a world that fails', async () => {
    const { status, report } = await run('fails', doors({ fails: true }));
    expect(status).toBe(1);
    expect(find(report, 'plays', 'failures')).toMatchObject({
      verdict: 'stop',
      found: expect.stringMatching(/threw \d+\).*the door is stuck/),
      advice: expect.stringMatching(/longplay check-env/),
    });
  });
  inLong('stops for a horizon below the oracle', async () => {
    const { status, report } = await run('slow', doors({ pays: 'slow' }));
    expect(status).toBe(1);
    expect(find(report, 'plays', 'horizon')).toMatchObject({
      verdict: 'stop',
      found: expect.stringMatching(
        /^4 turns; the oracle takes 6, at most 6; (\d+) of \1 tasks need more than the horizon$/,
      ),
    });
  });
  it('looks at an agent whose one part dominates', async () => {
    const { status, report, verdict } = await run('agent', { agent: './agent.mjs' }, 0.1);
    expect(status).toBe(0);
    expect(find(report, 'toy', 'parts')).toMatchObject({ verdict: 'look', found: expect.stringMatching(/high 100 %/) });
    expect([verdict('plays', 'failures'), verdict('plays', 'horizon')]).toEqual(['ok', undefined]);
    expect(report.estimate!.tokens).toBeGreaterThan(0);
  });
  inLong('plays the configured language model, by its own tokens', async () => {
    const model = join(folder, 'model');
    if (!existsSync(model)) {
      mkdirSync(model);
      writeTinyChatModel(model);
    }
    const policy = { kind: 'checkpoint', path: model, maxTokens: 8, chat: { contextTokens: 2048 } };
    const { report, verdict } = await run('model', { ...doors({}), policy, learner: {} }, 0.2);
    expect(report.tokens).toMatchObject({ from: 'played' });
    expect(report.tokens!.perEpisode).toBeGreaterThan(50);
    expect(verdict('policy', 'tokens')).toBe('ok');
    expect(find(report, 'policy', 'answers')!.found).toMatch(/of answers name an action/);
    expect(find(report, 'policy', 'memory')!.found).toMatch(/MiB computed for a base of .* M weights/);
    expect(find(report, 'estimate', 'this machine')!.found).toMatch(/tokens\/s measured/);
  });
  it('downloads nothing: a model that is not here is one row', async () => {
    const policy = { kind: 'checkpoint', path: 'hf:nobody/nothing' };
    const { status, report } = await run('absent', { ...doors({}), policy, learner: {} });
    expect(status).toBe(0);
    expect(find(report, 'policy', 'model')).toMatchObject({
      verdict: 'look',
      found: expect.stringMatching(/not in the cache/),
    });
  });
});
