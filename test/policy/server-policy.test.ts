import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import type { ChatCodecSpec } from '../../src/text/reading/chat-codec.ts';
import { FakeGenerationServer } from '../support/fake-generation-server.ts';
import { inFolder, withToyRun } from '../support/toy-run.ts';

const long = process.env.LONGPLAY_LONG === '1';
const folder = mkdtempSync(join(tmpdir(), 'longplay-served-'));
beforeAll(() => void writeTinyChatModel(folder));
afterAll(() => rmSync(folder, { recursive: true }));

/** Milliseconds that a request to the server may take. */
const ATTEMPT_MS = 10_000;
const adapter = { rank: 4, alpha: 8, targets: ['q_proj', 'v_proj'] };

function chat(): ChatCodecSpec {
  const { config, endTokens } = openModel(folder);
  return {
    folder,
    vocabSize: config.vocabSize,
    endTokens,
    world: { role: 'Play.', forms: [], hints: [], format: 'action' },
    format: 'world',
    listActions: false,
    contextTokens: 512,
    answerTokens: 8,
  };
}

function configOf(api: 'vllm' | 'sglang', url: string, updates: number) {
  return checkRunConfig(
    {
      seed: 1,
      env: { id: 'toy', options: { world: 'wage' } },
      tasks: { sampling: { type: 'uniform' } },
      horizon: { type: 'fixed', rounds: 2 },
      policy: {
        kind: 'server',
        path: folder,
        maxTokens: 8,
        adapter,
        chat: { format: 'action', contextTokens: 512 },
        server: { api, url, model: 'base' },
      },
      rollout: { groupSize: 2, concurrentGroups: 6, maxBatch: 8 },
      learner: {
        groupsPerUpdate: 5,
        maxLag: 1,
        learningRate: 0.02,
        warmupSteps: 0,
        filterGroups: false,
        entropyCoef: 0.05,
      },
      stop: { updates },
      checkpoint: { everyUpdates: 1000 },
      trace: { everyGroups: 0 },
    },
    'test',
  );
}

/** Retries of a server that a test does not wait for. */
function quick(retryMs = 5) {
  return { limits: { server: { attempts: 8, attemptMs: ATTEMPT_MS, retryMs } } };
}

/** Trains behind a fake server; what the server really did beside what the run recorded. */
async function trained(
  api: 'vllm' | 'sglang',
  updates: number,
  meddle: (server: FakeGenerationServer, episodes: number) => void = () => {},
) {
  const server = await FakeGenerationServer.start(api, chat(), adapter);
  const episodes: Trajectory[] = [];
  try {
    return await inFolder(async (dir) => {
      const onEpisodes = (some: readonly Trajectory[]) => {
        episodes.push(...some);
        meddle(server, episodes.length);
      };
      const config = configOf(api, server.url, updates);
      const { rows, notices } = await withToyRun(
        config,
        dir,
        async ({ run, rows, notices }) => {
          await run.train();
          return { rows, notices };
        },
        { onEpisodes, ...quick() },
      );
      const left = existsSync(join(dir, 'adapters')) ? readdirSync(join(dir, 'adapters')) : [];
      return {
        episodes,
        rows,
        notices,
        left,
        answers: server.answers,
        ever: server.everLoaded,
        loaded: [...server.loaded],
      };
    });
  } finally {
    await server.stop();
  }
}

/** Version that the adapter of each true answer stands for, by what was answered. */
function truth(answers: FakeGenerationServer['answers']): Map<string, number> {
  return new Map(
    answers.map(({ adapter: name, tokens, logprobs }) => [
      `${tokens.join()} ${Float32Array.from(logprobs).join()}`,
      name === undefined ? 0 : Number(/-v(\d+)$/.exec(name)![1]),
    ]),
  );
}

function checkVersions(episodes: readonly Trajectory[], answers: FakeGenerationServer['answers']): number {
  const really = truth(answers);
  let decisions = 0;
  for (const { turns } of episodes) {
    for (const { decision } of turns) {
      if (decision?.kind !== 'tokens') throw new Error('an episode without tokens');
      expect(really.get(`${decision.tokens.join()} ${decision.logprobs.join()}`)).toBe(decision.version);
      decisions++;
    }
  }
  return decisions;
}

describe.each(['vllm', 'sglang'] as const)('a learner beside %s', (api) => {
  it('hands adapters over under names never used again, and knows the version of every decision', async () => {
    const updates = long ? 20 : 3;
    const { episodes, rows, answers, ever, loaded, left } = await trained(api, updates);
    expect(episodes.length).toBeGreaterThanOrEqual(updates * 10);
    expect(checkVersions(episodes, answers)).toBeGreaterThanOrEqual(episodes.length);
    expect(new Set(ever).size).toBe(ever.length);
    expect(ever.length).toBeGreaterThanOrEqual(updates - 1);
    expect(loaded).toEqual([]); // nothing is left behind, on the server or on the disk
    expect(left).toEqual([]);
    expect(rows.length).toBe(updates);
    for (const row of rows) {
      expect(row.skippedSteps ?? 0).toBe(0);
      expect(row.behaviourGap).toBeLessThan(1e-3); // the stand-in computes with the learner's own kernels
    }
  });

  it('survives failing and late loads, broken answers and a restart, without one wrong version', async () => {
    const updates = long ? 20 : 4;
    const injected = { failLoads: 0, lateLoads: 0, halfLoads: 0, evictions: 0, aborts: 0, errors: 0, impostors: 0 };
    const every = { failLoads: 6, halfLoads: 8, aborts: 10, evictions: 12, errors: 14, impostors: 16, lateLoads: 30 };
    let kills = 0;
    const { episodes, answers, ever, loaded, left } = await trained(api, updates, (server, count) => {
      server.lateMs = ATTEMPT_MS * 1.2; // its answer comes when no request waits for it any more
      for (const [fault, n] of Object.entries(every) as [keyof typeof every, number][]) {
        if (count % n !== 0 || (fault === 'impostors' && api === 'sglang')) continue; // sglang's answers name no model
        server.faults[fault]++;
        injected[fault]++;
      }
      if (count >= 20 * (kills + 1) && kills < (long ? 6 : 1)) {
        kills++;
        void server.kill().then(() => server.listen());
      }
    });
    expect(kills).toBeGreaterThan(0);
    for (const [fault, times] of Object.entries(injected)) {
      if (fault !== 'impostors' || api === 'vllm') expect(times, fault).toBeGreaterThan(0);
    }
    expect(episodes.length).toBeGreaterThanOrEqual(updates * 10);
    const decisions = checkVersions(episodes, answers);
    expect(new Set(ever).size).toBeGreaterThanOrEqual(updates - 1);
    expect([loaded, left]).toEqual([[], []]);
    const versions = new Set(episodes.flatMap(({ turns }) => turns.map(({ decision }) => decision!.version))).size;
    const counts = { updates, episodes: episodes.length, decisions, versions, loads: ever.length, kills, ...injected };
    if (long) console.log(`${api}: ${JSON.stringify(counts)}, wrong versions: 0`);
  });
});

it('log-probabilities of another distribution take the update back', async () => {
  const server = await FakeGenerationServer.start('vllm', chat(), adapter);
  server.bias = -0.7;
  try {
    await inFolder(async (dir) => {
      await withToyRun(configOf('vllm', server.url, 1), dir, ({ run }) => run.train());
      expect(readFileSync(join(dir, 'quarantine/1.jsonl'), 'utf8')).toContain('off by 0.700 nats a token');
    });
  } finally {
    await server.stop();
  }
});

it.each([
  [
    { learner: { offPolicy: { type: 'ratio' } } },
    /learner\.offPolicy\.type.*expected truncated, masked or second_moment, got ratio/,
  ],
  [{ policy: { full: true } }, /takes adapters/],
  [{ policy: { decoder: 'choice' } }, /policy\.decoder: a language model writes tokens/],
] as const)('%j is refused', (change, message) => {
  const raw = {
    env: { id: 'toy' },
    horizon: { type: 'fixed', rounds: 1 },
    stop: { updates: 1 },
    ...change,
    policy: { kind: 'server', path: folder, ...('policy' in change ? change.policy : {}) },
  };
  expect(() => checkRunConfig(raw, 'test')).toThrow(message);
});

it('a server that does not see the adapters is one line, and nothing of them is left', async () => {
  const server = await FakeGenerationServer.start('vllm', chat(), adapter);
  server.blind = true;
  try {
    await inFolder(async (dir) => {
      const training = withToyRun(configOf('vllm', server.url, 3), dir, ({ run }) => run.train(), quick(1));
      await expect(training).rejects.toThrow(/loads no adapter from .*lp-.*-v1: .*HTTP 404.*No adapter found/);
      expect(readdirSync(join(dir, 'adapters'))).toEqual([]);
    });
  } finally {
    await server.stop();
  }
});

it('a server that is not there is one line', async () => {
  await inFolder(async (dir) => {
    const config = configOf('vllm', 'http://127.0.0.1:9', 1);
    const training = withToyRun(config, dir, ({ run }) => run.train(), quick(1));
    await expect(training).rejects.toThrow(/no answer in 8 attempts: .*http:\/\/127\.0\.0\.1:9/);
  });
});
