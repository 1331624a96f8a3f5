import { afterEach, expect, it } from 'vitest';
import type { ActedEvent, InferenceInit } from '../../../actors/inference/protocol.ts';
import type { LearnerCommand } from '../../../actors/learner/protocol.ts';
import type { Env } from '../../../src/core/env.ts';
import type { Acted } from '../../../src/policy/policy.ts';
import { setUpLocalPolicy } from '../../../src/policy/setup.ts';
import { unpackActed } from '../../../src/policy/turn-batch.ts';
import type { ActorSystem, SystemEvent } from '../../../src/runtime/actor.ts';
import { createSystem } from '../../../src/runtime/create-system.ts';
import { workerUrl } from '../../../src/runtime/module-url.ts';
import { loadWorld } from '../../../src/world/open-world.ts';
import type { ExitingCommand } from '../../support/exiting-inference-actor.ts';
import { smallConfig, textcraftUrl } from '../../support/small-run.ts';

let system: ActorSystem | undefined;
afterEach(() => system?.stop());

it.each([
  ['between two engine calls', false],
  ['while the thread of its engine is inside a call', true],
])(
  'a thread that exits %s is a typed error that names it; the next one serves the newest weights',
  async (_, engineThread) => {
    const { createEnv, view } = await loadWorld(textcraftUrl);
    const { model, params } = setUpLocalPolicy(smallConfig(), view, undefined);
    system = createSystem({ mode: 'async', seed: 1 });
    const events: SystemEvent[] = [];
    system.inspect$.subscribe((event) => void events.push(event));

    const acted: Acted[] = [];
    await system.spawn<ActedEvent>('rollout', () => ({
      handlers: { acted: ({ turns }) => void acted.push(...unpackActed(turns)) },
    }));
    await system.spawn<LearnerCommand>(
      'learner',
      (ctx) =>
        ({
          handlers: {
            weights: ({ replyTo }: { replyTo: never }) => ctx.reply(replyTo, { ...params, version: 5 } as never),
          },
        }) as never,
    );
    const init: InferenceInit = {
      policy: {
        kind: 'local',
        engine: { name: 'onnxruntime-node', device: 'cpu', threads: 1 },
        model,
        envModule: workerUrl(textcraftUrl).href,
        decoder: 'choice',
        masked: true,
        maxTokens: 16,
        cacheOnUpdate: 'recompute',
        params,
        engineThread,
      },
      maxBatch: 8,
      maxWaitMs: 1,
      replyPath: '/rollout',
      learnerPath: '/learner',
    };
    const url = new URL('../../support/exiting-inference-actor.ts', import.meta.url);
    const inference = await system.spawnModule<ExitingCommand>(
      'inference',
      { url, init, placement: 'thread' },
      { killable: false },
    );

    const env: Env = createEnv!({});
    const send = async (episode: number): Promise<void> => {
      const task = { env: env.id, index: 0, seed: 0 };
      const session = await env.open(task);
      const newActions = session.actions();
      void inference.tell({
        type: 'act',
        requests: [
          {
            episode,
            group: episode,
            member: 0,
            groupSize: 1,
            turn: 0,
            observation: session.first.observation,
            actions: Int32Array.from(newActions.keys()),
            newActions,
            samplingSeed: 1,
            temperature: 0,
          },
        ],
      });
    };
    const decide = async (episode: number): Promise<Acted> => {
      await send(episode);
      await expect.poll(() => acted.find((one) => one.episode === episode), { timeout: 30_000 }).toBeDefined();
      return acted.find((one) => one.episode === episode)!;
    };

    const before = await decide(1);
    expect(before.decision?.version).toBe(params.version);
    if (engineThread) for (let episode = 10; episode < 18; episode++) await send(episode);
    void inference.tell({ type: 'exit' });
    await expect.poll(() => events.some(({ type }) => type === 'restarting'), { timeout: 30_000 }).toBe(true);
    expect(events).toContainEqual({
      type: 'stopped',
      path: '/inference',
      final: false,
      reason: {
        kind: 'crashed',
        error: expect.objectContaining({ code: 'ACTOR_STOPPED', message: 'thread of /inference exited with 3' }),
      },
    });
    const after = await decide(2);
    expect(after.decision?.version).toBe(5);
    expect(after.action).toBe(before.action);
    await system.stop();
    await expect(system.terminated).resolves.toBeUndefined();
  },
);
