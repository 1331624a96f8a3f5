/**
 * The policy behind `serve-policy`: admission by bytes, so that its mailboxes hold no more, even where clients ask and
 * leave.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ServedPolicy, servePolicyActors } from '../../../actors/inference/served-policy.ts';
import { view } from '../../../envs/textcraft/view.ts';
import { loadRunConfig } from '../../../src/config/load.ts';
import { setUpLocalPolicy } from '../../../src/policy/setup.ts';
import { worldUrl } from '../../../src/run/find-world.ts';
import { workerUrl } from '../../../src/runtime/module-url.ts';
import type { DecisionRequest } from '../../../src/serve/decisions.ts';
import { renderPrompt } from '../../../src/text/reading/received-transcript.ts';

vi.setConfig({ testTimeout: 60_000 }); // an engine's thread starts slowly on a busy machine

const KIB = 1024;
const opened: ServedPolicy[] = [];
afterEach(async () => {
  for (const policy of opened.splice(0)) await policy.stop();
});

const raw = { env: { id: 'textcraft' }, horizon: { type: 'fixed', rounds: 4 }, stop: { updates: 1 } };
const tiny = ['policy.model={hiddenSize: 16, layers: 1, heads: 1}'];
const config = loadRunConfig(JSON.stringify(raw), 'test', tiny);
const { codec, model, params } = setUpLocalPolicy(config, view, undefined);

async function served(maxBytes: number): Promise<ServedPolicy> {
  const { decoder, masked, maxTokens } = config.policy;
  const policy = await servePolicyActors({
    policy: {
      kind: 'local',
      engine: { name: config.engine.name, device: config.engine.device, threads: 1 },
      model,
      envModule: workerUrl(worldUrl('textcraft')).href,
      decoder,
      masked,
      maxTokens,
      cacheOnUpdate: 'keep',
      params,
    },
    maxBatch: 16,
    maxWaitMs: 0,
    maxBytes,
  });
  opened.push(policy);
  return policy;
}

const actions = ['get 1 oak logs', 'craft 4 oak planks using 1 oak logs'];
const observation = 'Crafting commands:\ncraft 4 oak planks using 1 oak logs\n\nGoal: craft oak planks.';
const transcript = codec.open({ observation, actions: Int32Array.of(0, 1), newActions: actions });
const turn: DecisionRequest = {
  given: { ...renderPrompt(transcript, actions), seed: 1, maxTokens: 8 },
  actions,
  temperature: 1,
};
const neverAborted = new AbortController().signal;

/** Asks `count` times at once. @returns what came of each */
async function ask(policy: ServedPolicy, count: number, gone = neverAborted): Promise<string[]> {
  const answers = Array.from({ length: count }, () =>
    policy.decide(turn, gone).then(
      ({ action }) => (actions.includes(action) ? 'decided' : action),
      ({ code }) => String(code),
    ),
  );
  expect(policy.waitingBytes).toBeLessThanOrEqual(64 * KIB);
  return Promise.all(answers);
}

const count = (what: readonly string[], which: string) => what.filter((one) => one === which).length;

describe('a served policy', () => {
  it('refuses turns for which it has no room, decides all the others, and has room again', async () => {
    const policy = await served(64 * KIB);

    const flood = await ask(policy, 500);

    expect(count(flood, 'decided')).toBeGreaterThan(10);
    expect(count(flood, 'MAILBOX_FULL')).toBeGreaterThan(400);
    expect(count(flood, 'decided') + count(flood, 'MAILBOX_FULL')).toBe(500);
    expect(policy).toMatchObject({ waiting: 0, waitingBytes: 0 });
    expect(await ask(policy, 10)).toEqual(Array(10).fill('decided'));
  });

  it('keeps the room of clients that left until the policy has read that, and no longer', async () => {
    const policy = await served(64 * KIB);
    const leaving = new AbortController();

    const flood = ask(policy, 500, leaving.signal);
    const held = policy.waitingBytes;
    leaving.abort();

    expect(policy.waitingBytes).toBe(held);
    expect(count(await ask(policy, 500), 'MAILBOX_FULL')).toBe(500);
    expect(count(await flood, 'ASK_TIMEOUT')).toBeGreaterThan(10);
    while (policy.waitingBytes > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await ask(policy, 10)).toEqual(Array(10).fill('decided'));
  });

  it('takes one turn of any size while it has none', async () => {
    const policy = await served(KIB);
    const both = await Promise.allSettled([policy.decide(turn, neverAborted), policy.decide(turn, neverAborted)]);
    expect(both).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { message: expect.stringMatching(/^1 turns of \d KiB wait .* ask again later$/) } },
    ]);
  });
});
