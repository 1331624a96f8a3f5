/** A language model plays and learns an agent under the defaults of a configuration, in hosts as they are. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { readAgentReply } from '../../src/core/agent-call.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { localUrl } from '../../src/runtime/module-url.ts';
import { AGENT_TEMPLATES } from '../support/agent-templates.ts';
import { play } from '../support/golden-runs.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-agent-model-'));
const program = fileURLToPath(new URL('../fixtures/agents/free-agent.mjs', import.meta.url));

/** Replies of a run, and what each was sampled under. */
async function repliesOf(module: string): Promise<readonly { readonly action: string; readonly masked: boolean }[]> {
  const env = { id: 'agent', options: { module } };
  const { trajectories } = await play({
    name: 'language model',
    order: 'free',
    config: {
      env,
      horizon: { type: 'fixed', rounds: 2 },
      stop: { updates: 1 },
      policy: { kind: 'checkpoint', decoder: 'tokens', path: folder, masked: true, maxTokens: 40 },
      rollout: { groupSize: 2, concurrentGroups: 1 },
      learner: { groupsPerUpdate: 1, filterGroups: false, maxTokens: 4096, recompute: true },
      trace: { everyGroups: 0 },
      evaluation: { episodesPerTask: 1, horizons: [2], tasks: [0], greedy: false, randomBaseline: false },
      metrics: { tensorboard: false },
    },
    options: { envModule: localUrl(worldUrl('agent', env.options)) },
  });
  return trajectories.flatMap(({ turns }: Trajectory) =>
    turns.map(({ action, decision }) => ({ action, masked: decision?.kind === 'tokens' && decision.masked })),
  );
}

it('writes freely where the call is free, and calls where it is forced', { timeout: 120_000 }, async () => {
  writeTinyChatModel(folder, {
    text: [AGENT_TEMPLATES.hermes, '{"name": "act", "arguments": {"side": "left"}}'],
    merges: 100,
    config: { num_hidden_layers: 1, hidden_size: 32 },
  });
  writeFileSync(join(folder, 'chat_template.jinja'), AGENT_TEMPLATES.hermes);
  try {
    const free = await repliesOf(program);
    expect(free.length).toBeGreaterThan(0);
    expect(free.filter(({ masked }) => masked)).toEqual([]);
    const forced = await repliesOf(program.replace('free-', 'forced-'));
    expect(forced.length).toBeGreaterThan(0);
    for (const { action, masked } of forced) {
      const { calls, finish } = readAgentReply(action);
      expect([masked, finish === 'length' || calls[0]?.name === 'act']).toEqual([true, true]);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
