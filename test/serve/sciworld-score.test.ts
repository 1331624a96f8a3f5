/** SciWorld's score on AgentGym's protocol: the game's own, with the points that a variation begins with. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentgym } from '../../envs/sciworld/agentgym.ts';
import { createEnv, createOracle } from '../../envs/sciworld/index.ts';
import type { TimeStep } from '../../src/core/env.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import type { EnvServer } from '../../src/serve/env-server.ts';
import { createEnv as createAgentGym } from '../../src/world/remote/agentgym-client.ts';

/** Tasks that begin with points: what they ask for lies, or lives, where the agent starts. */
const BEGINS = [
  [641, 3],
  [2506, 5],
  [4297, 50],
] as const;

let server: EnvServer;
beforeAll(async () => {
  server = await startEnvServer(['sciworld']);
});
afterAll(() => server.close());

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  return (await fetch(`${server.url}${path}`, init)).json() as Promise<Record<string, unknown>>;
}

it.each(BEGINS)('task %i begins with %i points, paid at the reset', async (index, points) => {
  const { id } = await post('/create', {});
  expect(await post('/reset', { id, data_idx: index })).toMatchObject({ reward: points, score: points, done: false });
  expect(await post('/step', { id, action: 'look around' })).toMatchObject({ reward: 0, score: points, done: false });
  // A reset to another task forgets them.
  expect(await post('/reset', { id, data_idx: 0 })).toMatchObject({ reward: 0, score: 0 });
});

it.each(BEGINS)(
  'task %i is solved with 100 by every client, and what it begins with is not earned',
  async (index, points) => {
    const there = createAgentGym({ url: server.url, world: 'sciworld' }, agentgym.client);
    const here = createEnv({ fidelity: 'original' });
    const task = { env: 'sciworld', index, seed: 0 };
    const [far, near] = [await there.open(task), await here.open(task)];
    const next = createOracle({ fidelity: 'original' })(task);
    let [step, total]: [TimeStep, number] = [near.first, 0];
    while (step.kind !== 'terminated') {
      const action = next(step)!;
      const answer = await far.step(action);
      step = await near.step(action);
      const { kind, observation, reward } = step;
      const success = step.kind === 'terminated' ? { success: step.success } : {};
      expect(answer).toMatchObject({ kind, observation, reward, ...success });
      total += answer.reward;
    }
    expect([step.success, total]).toEqual([true, 100 - points]);
    await far.close();
  },
);

it('every ninth of the paper’s test tasks begins with points', () => {
  const test = agentgym.client.tasks.split!('test');
  const begins = test.filter((index) => agentgym.server!.firstReward!(index) > 0);
  expect([begins.length, test.length]).toEqual([22, 200]);
});
