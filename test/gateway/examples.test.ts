/** Example agents, each with its real library: an episode of random choices ends with the reward that the agent gives. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Rng } from '../../src/core/rng.ts';
import { connect } from '../../src/gateway/agent-world.ts';

const folder = join(import.meta.dirname, '../../experiments/agents');
const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
};
const missing = Object.keys(dependencies).filter((name) => !existsSync(join(folder, 'node_modules', name)));
if (missing.length > 0) console.log(`examples of agents are skipped: npm install in ${folder} (${missing.join(', ')})`);

const agents = readdirSync(folder).filter((name) => name.endsWith('.mjs') && name !== 'library.mjs');

it('are all of at most 60 lines, on libraries of pinned majors', () => {
  expect(agents.sort()).toEqual(['ai-sdk.mjs', 'anthropic.mjs', 'langgraph.mjs', 'openai.mjs']);
  const imported = new Set<string>();
  for (const name of agents) {
    const text = readFileSync(join(folder, name), 'utf8');
    expect(text.split('\n').length).toBeLessThanOrEqual(60);
    for (const [, from] of text.matchAll(/from '((?:@[\w-]+\/)?[\w-]+)/g)) imported.add(from!);
  }
  expect(Object.keys(dependencies).sort()).toEqual([...imported].sort());
  for (const version of Object.values(dependencies)) expect(version).toMatch(/^\^[1-9]\d*(\.\d+){0,2}$/);
});

describe.skipIf(missing.length > 0).each(agents)('the agent of %s', (name) => {
  let world: Awaited<ReturnType<typeof connect>>;
  let resources: Awaited<ReturnType<NonNullable<(typeof world)['start']>>>;
  beforeAll(async () => {
    world = await connect(new URLSearchParams({ agent: JSON.stringify({ module: join(folder, name) }) }));
    resources = await world.start!({}, {} as never);
  });
  afterAll(() => resources.dispose?.());

  it('plays episodes by stages of choices, and ends with its own reward', async () => {
    const env = world.createEnv!({}, resources);
    const rewards: number[] = [];
    let replies = 0;
    for (let index = 0; index < 5; index++) {
      const rng = Rng.fromSeed(index);
      const session = await env.open({ env: 'agent', index, seed: index }, { horizon: 8 });
      let reward = 0;
      for (let left = 200; left > 0; left--) {
        const choices = session.actions!();
        if (choices.length === 0) break; // the horizon ended it
        const taken = await session.step(choices[rng.int(choices.length)]!);
        reward += taken.reward;
        if (taken.kind === 'terminated') break;
        if (!taken.partial) replies++;
      }
      rewards.push(reward);
      session.close?.();
    }
    expect(rewards.every((reward) => [0, 0.3, 1].includes(reward))).toBe(true);
    expect(replies).toBeGreaterThan(2);
  }, 60_000);
});
