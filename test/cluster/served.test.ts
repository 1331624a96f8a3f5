/** Workers of a run whose policy is behind a generation server: they have no weights, and ask under the adapters that the learner had loaded. */
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { decodeAnnouncement } from '../../src/cluster/identity.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import { countUnaccounted } from '../../src/core/failure.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { FakeGenerationServer } from '../support/fake-generation-server.ts';
import { withSmallCluster } from '../support/small-cluster.ts';
import { temporaryFolder } from '../support/small-run.ts';

const folder = temporaryFolder('served');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const adapter = { rank: 4, alpha: 8, targets: ['q_proj', 'v_proj'] };
const UPDATES = 2;

describe('workers without weights', () => {
  it('play a run whose policy a server samples, under the versions that their tickets name', {
    timeout: 600_000,
  }, async () => {
    const model = join(folder, 'model');
    mkdirSync(model);
    writeTinyChatModel(model);
    const bare = join(folder, 'bare');
    cpSync(model, bare, { recursive: true, filter: (path) => !path.endsWith('.safetensors') });
    expect(readdirSync(bare).length).toBeGreaterThan(2);
    expect(() => openModel(bare)).toThrow(/safetensors|weights/);
    const { config: read, endTokens } = openModel(model);
    const world = { role: 'Play.', forms: [], hints: [], format: 'action' } as const;
    const shape = {
      folder: model,
      vocabSize: read.vocabSize,
      endTokens,
      world,
      format: 'world',
      listActions: false,
    } as const;
    const server = await FakeGenerationServer.start('vllm', { ...shape, contextTokens: 512, answerTokens: 8 }, adapter);
    const config = checkRunConfig(
      {
        seed: 1,
        env: { id: 'toy', options: { world: 'wage' } },
        tasks: { sampling: { type: 'uniform' } },
        horizon: { type: 'fixed', rounds: 2 },
        policy: {
          ...{ kind: 'server', path: model, maxTokens: 8, adapter },
          chat: { format: 'action', contextTokens: 512 },
          server: { api: 'vllm', url: server.url, model: 'base' },
        },
        rollout: { groupSize: 2, concurrentGroups: 4, maxBatch: 8 },
        learner: {
          ...{
            groupsPerUpdate: 3,
            maxLag: 0,
            learningRate: 0.02,
            warmupSteps: 0,
            filterGroups: false,
            entropyCoef: 0.05,
          },
        },
        stop: { updates: UPDATES },
        checkpoint: { everyUpdates: 1000 },
        trace: { everyGroups: 0 },
      },
      'test',
    );
    const limits = { server: { attempts: 8, attemptMs: 10_000, retryMs: 5 } };
    const envModule = new URL('../support/toy-worlds.ts', import.meta.url);
    const episodes: Trajectory[] = [];
    const onEpisodes = (some: readonly Trajectory[]) => void episodes.push(...some);
    const dir = join(folder, 'run');
    try {
      await withSmallCluster({ config, dir, envModule, onEpisodes, limits }, async ({ run, exchange, join }) => {
        const training = run.train();
        await join({ ...config, policy: { ...config.policy, path: bare } });
        expect(decodeAnnouncement(exchange.announcement!.bytes)).toMatchObject({ bytes: 0, adapter: {} });
        const ended = await training;
        expect(ended.status.version).toBe(UPDATES);
        expect(countUnaccounted(ended.status.accounting)).toBe(0);
        expect(ended.status.accounting.failed).toEqual({});
        expect(exchange.weights.size).toBe(0); // nothing of them went through the broker
      });
      // Every decision was sampled under the adapter that its version stands for.
      const truth = new Map(
        server.answers.map(({ adapter: name, tokens, logprobs }) => [
          `${tokens.join()} ${Float32Array.from(logprobs).join()}`,
          name === undefined ? 0 : Number(/-v(\d+)$/.exec(name)![1]),
        ]),
      );
      const versions = new Set<number>();
      for (const { turns } of episodes) {
        for (const { decision } of turns) {
          if (decision?.kind !== 'tokens') throw new Error('an episode without tokens');
          expect(truth.get(`${decision.tokens.join()} ${decision.logprobs.join()}`)).toBe(decision.version);
          versions.add(decision.version);
        }
      }
      expect(episodes.length).toBeGreaterThanOrEqual(UPDATES * 3 * 2);
      expect(versions.size).toBeGreaterThan(1);
      console.log(
        `${episodes.length} episodes of a worker without weights, under versions ${[...versions].join(', ')}`,
      );
    } finally {
      await server.stop();
    }
  });
});
