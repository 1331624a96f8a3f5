/** A policy behind a real server under the laws of every policy: token prompts over HTTP to `serve-policy`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import * as textcraft from '../../../envs/textcraft/index.ts';
import { loadRunConfig } from '../../../src/config/load.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { Rng } from '../../../src/core/rng.ts';
import { OpenAIClient } from '../../../src/policy/remote/openai-client.ts';
import { RemotePolicy } from '../../../src/policy/remote/remote-policy.ts';
import { TokenPrompting } from '../../../src/policy/remote/token-prompting.ts';
import { startPolicyServer } from '../../../src/run/serve-trained-policy.ts';
import { codecOf } from '../../../src/text/reading/codec-of.ts';
import { makePolicyRun } from '../../support/policy-run.ts';
import { testPolicyLaws } from '../laws.ts';

let dir: string;
let server: Awaited<ReturnType<typeof startPolicyServer>>;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-remote-laws-'));
  await makePolicyRun(join(dir, 'run'), 'textcraft', ['policy.model.layers=1', 'policy.model.hiddenSize=16']);
  server = await startPolicyServer(join(dir, 'run'));
}, 120_000);
afterAll(async () => {
  await server?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** @param concurrency requests in flight */
function open(concurrency = 64, baseUrl = `${server.url}/v1`): RemotePolicy {
  const raw = { env: { id: 'textcraft' }, horizon: { type: 'fixed', rounds: 4 }, stop: { updates: 1 } };
  const { openai } = loadRunConfig(JSON.stringify(raw), 'test', [
    'policy.kind=openai',
    'policy.openai.api=completions',
    'policy.openai.prompt=tokens',
    `policy.openai.baseUrl=${baseUrl}`,
    `policy.openai.concurrency=${concurrency}`,
  ]).policy;
  const client = new OpenAIClient({ baseUrl, headers: {}, maxConnections: concurrency });
  const prompting = new TokenPrompting(openai, server.name, codecOf(textcraft));
  return new RemotePolicy({
    openai,
    client,
    prompting,
    clock: systemClock,
    rng: Rng.fromSeed(1),
    limits: { attempts: 1 },
  });
}

// Its server is the one that refuses.
testPolicyLaws('remote', () => ({ open, env: textcraft.createEnv(), groupSize: 2, chooses: false }));

it('a turn that no attempt answers is thrown by `step`, and handed out by `take`', async () => {
  const policy = open(2, 'http://127.0.0.1:9/v1');
  const first = textcraft.createEnv().open({ env: 'textcraft', index: 0, seed: 0 });
  const { observation } = (await first).first;
  const request = {
    observation,
    actions: Int32Array.of(0),
    newActions: ['inventory'],
    group: 0,
    member: 0,
    groupSize: 1,
  };
  const ask = (episode: number) => ({ ...request, episode, turn: 0, samplingSeed: 1, temperature: 1 });
  policy.submit([ask(1)]);
  await expect(policy.step()).rejects.toThrow(/9/);
  policy.submit([ask(2)]);
  await expect.poll(() => policy.take().unanswered.map(({ episode }) => episode), { timeout: 10_000 }).toEqual([2]);
  expect([policy.waiting, policy.usage.failures]).toEqual([0, 2]);
  policy.dispose();
});
