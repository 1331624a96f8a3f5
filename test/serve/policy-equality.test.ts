/** A policy behind our server decides as it does in this process: the same seeds, the same decisions, the same traces. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RolloutPlan } from '../../src/run/rollout-plan.ts';
import { startPolicyServer } from '../../src/run/serve-trained-policy.ts';
import type { TraceLine } from '../../src/storage/trace.ts';
import { playPlan } from '../support/play-plan.ts';
import { makePolicyRun } from '../support/policy-run.ts';

const long = process.env.LONGPLAY_LONG === '1';
vi.setConfig({ testTimeout: 300_000 });
let dir: string;
let close: (() => Promise<void>) | undefined;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-equality-'));
});
afterEach(async () => {
  await close?.();
  close = undefined;
  rmSync(dir, { recursive: true, force: true });
});

const play = (name: string, env: string, plan: RolloutPlan, settings: readonly string[]): Promise<TraceLine[]> =>
  playPlan(join(dir, name), env, plan, settings);

function comparable({ task, turns, actionTable, end, success, finalObservation, view }: TraceLine) {
  return {
    task,
    actionTable,
    end,
    success,
    finalObservation,
    view,
    turns: turns.map(({ observation, actions, action, reward, decision }) => {
      if (decision?.kind !== 'choice') return { observation, actions, action, reward, decision };
      const { logprob, value, likeliest, ...rest } = decision; // a server does not report the last
      return { observation, actions, action, reward, decision: rest };
    }),
  };
}

describe.each([
  ['textcraft', long ? 200 : 24],
  ['babyai', long ? 100 : 10],
] as const)('%s', (env, episodes) => {
  it(`plays ${episodes} episodes alike through token prompts and in process`, async () => {
    const run = join(dir, 'trained');
    await makePolicyRun(run, env);
    const server = await startPolicyServer(run);
    close = () => server.close();
    const plan = { format: 1, episodes, split: 'test', horizon: 12, temperature: 1, seed: 5 } as const;
    const inside = await play('inside', env, { ...plan, policyRun: run }, []);
    const remote = await play('remote', env, plan, [
      'policy.kind=openai',
      `policy.openai.baseUrl=${server.url}/v1`,
      'policy.openai.api=completions',
      'policy.openai.prompt=tokens',
    ]);
    expect(remote.map(comparable)).toEqual(inside.map(comparable));
    const logprobs = (lines: TraceLine[]) =>
      lines.flatMap(({ turns }) => turns.map(({ decision }) => (decision?.kind === 'choice' ? decision.logprob : NaN)));
    const [a, b] = [logprobs(inside), logprobs(remote)];
    expect(a.length).toBeGreaterThan(2 * episodes);
    for (const [i, logprob] of a.entries()) expect(b[i]).toBeCloseTo(logprob, 4);
    // The choices differ from turn to turn: a server that ignored the prompt could not pass.
    expect(new Set(inside.flatMap(({ turns }) => turns.map(({ action }) => action))).size).toBeGreaterThan(10);
  });

  it('plays through chat with the ReAct prompts', async () => {
    const run = join(dir, 'trained');
    await makePolicyRun(run, env);
    const server = await startPolicyServer(run);
    close = () => server.close();
    const plan = {
      format: 1,
      episodes: Math.ceil(episodes / 2),
      split: 'test',
      horizon: 12,
      temperature: 1,
      seed: 5,
    } as const;
    const inside = await play('inside', env, { ...plan, policyRun: run }, []);
    const remote = await play('chat', env, plan, [
      'policy.kind=openai',
      `policy.openai.baseUrl=${server.url}/v1`,
      'policy.openai.guided=guided_choice',
    ]);
    const actions = (lines: TraceLine[]) => lines.map(({ turns }) => turns.map(({ action }) => action));
    expect(actions(remote)).toEqual(actions(inside));
    expect(remote[0]!.turns[0]!.response?.text).toMatch(/^Thought:\n\n\nAction:\n/);
  });
});

it('plays alike with a policy that writes tokens', async () => {
  const run = join(dir, 'trained');
  await makePolicyRun(run, 'textcraft', ['policy.decoder=tokens']);
  const server = await startPolicyServer(run);
  close = () => server.close();
  const plan = { format: 1, episodes: 6, split: 'test', horizon: 6, temperature: 1, seed: 5 } as const;
  const inside = await play('inside', 'textcraft', { ...plan, policyRun: run }, []);
  const remote = await play('remote', 'textcraft', plan, [
    'policy.kind=openai',
    `policy.openai.baseUrl=${server.url}/v1`,
    'policy.openai.api=completions',
    'policy.openai.prompt=tokens',
  ]);
  const sampled = (lines: TraceLine[]) =>
    lines.map(({ turns }) =>
      turns.map(({ action, decision }) =>
        decision?.kind === 'tokens' ? [action, decision.context, decision.tokens, decision.masked] : undefined,
      ),
    );
  expect(sampled(remote)).toEqual(sampled(inside));
});
