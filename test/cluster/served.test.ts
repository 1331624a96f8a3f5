/** Workers of a run whose policy is behind a generation server: they have no weights, and ask under the adapters that the learner had loaded. */
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type RunningWorker, startRun, startWorker } from '../../actors/tree.ts';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { decodeAnnouncement } from '../../src/cluster/identity.ts';
import { MemoryServer } from '../../src/cluster/memory-broker.ts';
import { ClusterWatch } from '../../src/cluster/watch.ts';
import { checkRunConfig } from '../../src/config/load.ts';
import { systemClock } from '../../src/core/clock.ts';
import { unaccounted } from '../../src/core/failure.ts';
import { Rng } from '../../src/core/rng.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { openModel } from '../../src/pretrained/folder.ts';
import { FakeGenerationServer } from '../support/fake-generation-server.ts';
import { temporaryFolder } from '../support/small-run.ts';

const folder = temporaryFolder('served');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const adapter = { rank: 4, alpha: 8, targets: ['q_proj', 'v_proj'] };
const LEASE_MS = 2000;
const UPDATES = 3;

describe('workers without weights', () => {
  it('play a run whose policy a server samples, under the versions that their tickets name', {
    timeout: 120_000,
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
          server: { api: 'vllm', url: server.url, model: 'base', attempts: 8, attemptMs: 10_000, retryMs: 5 },
        },
        rollout: { groupSize: 2, concurrentGroups: 4, maxBatch: 8 },
        learner: {
          ...{
            groupsPerUpdate: 3,
            maxLag: 1,
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
    const envModule = new URL('../support/toy-worlds.ts', import.meta.url);
    const exchange = new MemoryServer(systemClock, Rng.fromSeed(1), LEASE_MS);
    const episodes: Trajectory[] = [];
    const http = { above: 2 ** 30, at: { host: '127.0.0.1', port: 0 } };
    const dir = join(folder, 'run');
    mkdirSync(dir);
    const run = await startRun({
      ...{ config, dir, mode: 'async', envModule, learn: true, journal: join(dir, 'journal') },
      cluster: { broker: exchange.connect(), run: 'run', localGroups: 0, verify: 0, http, watch: new ClusterWatch() },
      onEpisodes: (some) => episodes.push(...some),
    });
    let worker: RunningWorker | undefined;
    try {
      await run.save();
      const training = run.train();
      await expect.poll(() => exchange.announcement, { timeout: 20_000 }).toBeDefined();
      const announcement = decodeAnnouncement(exchange.announcement!.bytes);
      expect(announcement).toMatchObject({ version: 0, bytes: 0, adapter: {} });
      const notices: string[] = [];
      const of = {
        broker: exchange.connect(),
        run: 'run',
        name: 'w',
        announcement,
        envModule,
        slots: 4,
        leaseMs: LEASE_MS,
      };
      const remoteHosts = { connect: () => Promise.reject(new Error('not used')), command: '' };
      const onNotice = (text: string) => void notices.push(text);
      const here = { ...config, policy: { ...config.policy, path: bare } };
      worker = await startWorker({ ...of, config: here, relayAt: http.at, remoteHosts, onNotice });
      const ended = await training;
      expect(ended.status.version).toBe(UPDATES);
      expect(unaccounted(ended.status.accounting)).toBe(0);
      expect(ended.status.accounting.failed).toEqual({});
      expect(exchange.weights.size).toBe(0); // nothing of them went through the broker
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
      await run.stop();
      await worker?.stop();
      await server.stop();
    }
  });
});
