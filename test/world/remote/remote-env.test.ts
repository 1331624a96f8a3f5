/** Environments behind servers: the same episodes as here, and no step taken twice, whatever the server does. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { agentgym as babyai } from '../../../envs/babyai/agentgym.ts';
import * as searchqa from '../../../envs/searchqa/index.ts';
import { loadRunConfig } from '../../../src/config/load.ts';
import type { EnvStep, First, Session } from '../../../src/core/env.ts';
import { playRollout } from '../../../src/run/rollout.ts';
import type { RolloutPlan } from '../../../src/run/rollout-plan.ts';
import { createRunFolder } from '../../../src/run/run-folder.ts';
import { startEnvServer } from '../../../src/run/serve-worlds.ts';
import { readTrace } from '../../../src/storage/trace.ts';
import { tracePaths } from '../../../src/storage/trace-files.ts';
import { createEnv as createAgentGym } from '../../../src/world/remote/agentgym-client.ts';
import {
  type Exchange,
  type Fault,
  type MisbehavingServer,
  misbehavingServer,
} from '../../support/misbehaving-server.ts';

vi.setConfig({ testTimeout: 60_000 });
const closing: (() => Promise<void>)[] = [];
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-remote-env-'));
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  rmSync(dir, { recursive: true, force: true });
});

async function serve(...envs: string[]): Promise<string> {
  const server = await startEnvServer(envs);
  closing.push(() => server.close());
  return server.url;
}

async function play(name: string, env: object, settings: readonly string[], policy = 'random', horizon = 8) {
  const raw = { env, horizon: { type: 'fixed', rounds: horizon }, stop: { updates: 1 } };
  const config = loadRunConfig(JSON.stringify(raw), 'test', [`policy.kind=${policy}`, ...settings]);
  const out = join(dir, name);
  createRunFolder(out, config);
  const plan: RolloutPlan = { format: 1, episodes: 12, split: 'test', horizon, temperature: 1, seed: 3 };
  const { finished } = await playRollout({ dir: out, config, plan }, { onNotice: () => {} });
  expect(finished).toBe(plan.episodes);
  const lines = tracePaths(join(out, 'traces')).flatMap((path) => readTrace(path).episodes);
  return lines
    .sort((a, b) => a.task.index - b.task.index)
    .map(({ task, end, success, finalObservation, turns, actionTable }) => ({
      task: task.index,
      end,
      success,
      finalObservation,
      actionTable,
      turns: turns.map(({ observation, action, reward, actions }) => ({ observation, action, reward, actions })),
    }));
}

it.each(['textcraft', 'babyai', 'sciworld'])(
  '%s on another machine’s env server gives the traces it gives here',
  async (id) => {
    const url = await serve(id);
    const here = await play('here', { id }, []);
    const there = await play('there', { id }, [`rollout.envServer=${url}`]);
    expect(there).toEqual(here);
  },
);

it('a world that is named by its server’s URL gives the same traces', async () => {
  const url = await serve('textcraft');
  const here = await play('here', { id: 'textcraft' }, []);
  const there = await play('there', { id: `openenv+${url}/openenv/textcraft` }, []);
  expect(there).toEqual(here);
});

/** A model that follows the recipe of task 0, then looks. */
const answers = ['get 1 acacia logs', 'craft 4 acacia planks using 1 acacia logs'];
async function model({ path, body }: Exchange): Promise<{ status: number; json: unknown }> {
  if (path === '/v1/models') return { status: 200, json: { data: [{ id: 'tiny' }] } };
  const turn = ((body as { messages: unknown[] }).messages.length - 3) / 2;
  return { status: 200, json: { choices: [{ message: { content: `Action: ${answers[turn] ?? 'inventory'}` } }] } };
}

it('an AgentGym server is an environment like any other', async () => {
  const url = await serve('textcraft');
  const llm = await misbehavingServer(model, () => 'ok');
  closing.push(() => llm.close());
  const env = { id: 'agentgym', options: { url: `${url}/textcraft`, world: 'textcraft' } };
  const lines = await play('agentgym', env, [`policy.openai.baseUrl=${llm.url}/v1`], 'openai', 3);
  expect(lines[0]).toMatchObject({ task: 0, end: 'terminated', success: true });
  expect(lines[0]!.turns.map(({ reward }) => reward)).toEqual([0, 1]);
  expect(lines[1]).toMatchObject({ end: 'truncated', success: false });
  // The prompt is TextCraft's, not a nameless world's.
  const { messages } = llm.log.find(({ body }) => body)!.body as { messages: { content: string }[] };
  expect(messages[0]!.content).toContain('Minecraft');
});

it('SearchQA behind AgentGym’s routes is the SearchQA that is here, under the original rules', async () => {
  const options = { fidelity: 'original' };
  const here = searchqa.createEnv(options, await searchqa.start(options, { where: 'test' }));
  const url = `${await serve('searchqa')}/searchqa`;
  const there = createAgentGym({ url, world: 'searchqa' }, searchqa.agentgym.client);
  const oracle = searchqa.createOracle(options);
  let right = 0;
  for (const index of [0, 60, 150, 250, 399]) {
    const task = { env: 'searchqa', index, seed: 0 };
    const [local, remote] = [here.open(task), await there.open(task)];
    expect(remote.first).toEqual(local.first);
    const act = oracle(task);
    const others = ['<search>nothing here', '<answer>wrong</answer>', '<search></search>'];
    for (let step: EnvStep | First = local.first; step.kind !== 'terminated'; ) {
      const action = others.pop() ?? act(step)!;
      step = (await local.step(action)) as EnvStep;
      expect(await remote.step(action)).toEqual(step);
      if (step.kind === 'terminated' && step.success) right++;
    }
    await remote.close();
  }
  expect(right).toBe(5);
  const beyond = { env: 'searchqa', index: 221_327, seed: 0 }; // AgentGym's id; this server has 7,400 questions
  await expect(there.open(beyond)).rejects.toThrow(/HTTP 500/);
});

/** AgentGym's BabyAI in miniature: every step scores, and counts. */
function toyAgentGym() {
  const steps: string[] = [];
  const answer = async ({ path, body }: Exchange): Promise<{ status: number; json: unknown }> => {
    if (path === '/create') return { status: 200, json: { id: 4 } };
    const observation = `step ${steps.length}`;
    if (path === '/reset')
      return { status: 200, json: { observation, reward: 0, score: 0, deleted: false, done: false } };
    if (path === '/close') return { status: 200, json: true };
    const { action } = body as { action: string };
    if (action === 'break') return { status: 200, json: { error: 'The id 4 is not valid.' } };
    steps.push(action);
    const score = 0.25 * steps.length;
    return { status: 200, json: { observation: `step ${steps.length}`, reward: 0.25, score, done: score >= 1 } };
  };
  return { steps, answer };
}

const quick = { attemptMs: 300, deadlineMs: 2500, world: 'babyai' };
const task = { env: 'x', index: 0, seed: 0 };

async function connect(faultOf: (n: number, exchange: Exchange) => Fault) {
  const toy = toyAgentGym();
  const server: MisbehavingServer = await misbehavingServer(toy.answer, faultOf, (json) => ({
    ...(json as object),
    id: 99,
  }));
  closing.push(() => server.close());
  return { env: createAgentGym({ ...quick, url: server.url }, babyai.client), steps: toy.steps };
}

const faults: readonly Fault[] = ['slow', 'reset', '429', '500', 'not-json', 'half', 'silence', 'wrong'];
const isStep = ({ path }: Exchange) => path.endsWith('step');

describe.each(faults)('an AgentGym server that does this: %s', (fault) => {
  it('opens in spite of it, and never takes an action twice', async () => {
    let count = 0;
    const { env, steps } = await connect((n, exchange) =>
      n === 1 || (isStep(exchange) && ++count === 2) ? fault : 'ok',
    );
    const opened = Promise.resolve(env.open(task));
    const session = await opened;
    expect(await session.step('a')).toEqual({ kind: 'mid', observation: 'step 1', reward: 0.25 });
    const second = Promise.resolve(session.step('b'));
    if (fault === 'slow' || fault === '429') {
      expect(await second.then(({ reward }) => reward)).toBe(0.25);
      expect(steps).toEqual(['a', 'b']);
    } else {
      await expect(second).rejects.toThrow();
      expect(steps.filter((action) => action === 'b').length).toBeLessThanOrEqual(1);
    }
    await session.close();
  });
});

it('an error that an AgentGym server reports under HTTP 200 is a failure, not a score', async () => {
  const { env } = await connect(() => 'ok');
  const session = (await env.open(task)) as Session;
  await expect(session.step('break')).rejects.toThrow('The id 4 is not valid.');
});

it('a server that never answers fails within the deadline', async () => {
  const { env } = await connect(() => 'silence');
  await expect(env.open(task)).rejects.toThrow('no whole answer');
});

it.each([
  ['attemptMs', 2 ** 31],
  ['deadlineMs', 715_827_883],
  ['attemptMs', Number.POSITIVE_INFINITY],
  ['deadlineMs', Number.NaN],
  ['attempts', 1e9],
])('takes no %s of %d: a timer would wrap, or it would not end', (key, value) => {
  const options = { ...quick, url: 'http://127.0.0.1:1', [key]: value };
  const expected = new RegExp(`${key}: expected a number from 1 to \\d+, got `);
  expect(() => createAgentGym(options, babyai.client)).toThrow(expected);
});
