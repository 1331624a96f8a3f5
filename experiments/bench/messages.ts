/**
 * What a message costs: a hop in one thread, a hop between threads, and env steps in batches through a supervised host,
 * beside the bare postMessage and comlink doing the same work. Runs of what is compared alternate; medians of five.
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import * as Comlink from 'comlink';
import { createEnvPool, type EnvPool } from '../../actors/env/env-pool.ts';
import type { EnvEvent } from '../../actors/env/protocol.ts';
import inferenceActor from '../../actors/inference/inference-actor.ts';
import type { InferenceCommand } from '../../actors/inference/protocol.ts';
import { act, type EpisodeRun, observe, openEpisode, openGroup } from '../../actors/rollout/episode-run.ts';
import type { EvaluationPlan, EvaluationRecord, RolloutCommand } from '../../actors/rollout/protocol.ts';
import { rolloutActor } from '../../actors/rollout/rollout-actor.ts';
import { registry } from '../../envs/registry.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { RandomPolicy } from '../../src/policy/random-policy.ts';
import { comlinkEndpoint, type PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { createSystem } from '../../src/runtime/system.ts';
import { workerUrl } from '../../src/runtime/thread.ts';
import { TaskSampler } from '../../src/schedule/task-sampler.ts';
import type { Bench, Figure } from './contract.ts';
import echo, { type Ball } from './echo-actor.ts';
import type { Remote, StepAnswer, StepRequest } from './messages-worker.ts';

const RUNS = 5;
const RUN_MS = 400;

export const bench: Bench = async () => [...(await hops()), ...(await steps()), ...(await supervised())];

// --- hops -----------------------------------------------------------------------------------------------------------

/** Balls back and forth between two actors. */
async function hops(): Promise<Figure[]> {
  const system = createSystem({ mode: 'async' });
  try {
    await system.spawn('left', counting('/right'));
    await system.spawn('right', echo({ to: '/left' }));
    await system.spawn('near', counting('/far'));
    const url = new URL('./echo-actor.js', import.meta.url);
    await system.spawnModule<Ball>('far', { url, init: { to: '/near' }, placement: 'thread' });
    const [local, one, many] = await alternate([
      () => rate(() => throwBalls(system, '/left', 1)),
      () => rate(() => throwBalls(system, '/near', 1)),
      () => rate(() => throwBalls(system, '/near', 256)),
    ]);
    return [
      { name: 'hop in one thread', value: 1e6 / local!, unit: 'µs' },
      { name: 'hop between threads, 1 in flight', value: 1e6 / one!, unit: 'µs' },
      { name: 'messages between threads, 256 in flight', value: many!, unit: '/s' },
    ];
  } finally {
    await system.stop();
  }
}

/** Balls that came back to each counting actor, and whether they are thrown again. */
const tally = { hops: 0, playing: false, caught: () => {} };

function counting(to: string) {
  return (ctx: import('../../src/runtime/actor.ts').Context<Ball>) => {
    const other = ctx.resolve<Ball>(to);
    return {
      handlers: {
        ball(ball: Ball) {
          tally.hops += 2;
          if (tally.playing) void other.tell(ball);
          else tally.caught();
        },
      },
    };
  };
}

/** Keeps `balls` in the air for a while. @returns hops made */
async function throwBalls(system: ReturnType<typeof createSystem>, from: string, balls: number): Promise<number> {
  tally.hops = -2 * balls; // the throws
  tally.playing = true;
  for (let n = 0; n < balls; n++) system.resolve<Ball>(from).tell({ type: 'ball', n });
  await new Promise((resolve) => setTimeout(resolve, RUN_MS));
  let left = balls;
  const landed = new Promise<void>((resolve) => {
    tally.caught = () => {
      if (--left === 0) resolve();
    };
  });
  tally.playing = false;
  await landed;
  return tally.hops;
}

// --- steps ----------------------------------------------------------------------------------------------------------

async function steps(): Promise<Figure[]> {
  const channel = new MessageChannel();
  const worker = new Worker(workerUrl(new URL('./messages-worker.js', import.meta.url)), {
    workerData: { comlink: channel.port2 },
    transferList: [channel.port2],
  });
  const remote = Comlink.wrap<Remote>(comlinkEndpoint(channel.port1 as unknown as PortLike));
  const hosts = await trivialHosts(32);
  try {
    const [ours, raw, batched, single] = await alternate([
      () => rate(() => hosts.run()),
      () => rate(() => rawSteps(worker, 32)),
      () => rate(() => comlinkSteps(remote, 32)),
      () => rate(() => comlinkSingle(remote, 32)),
    ]);
    const name = 'env steps through a supervised host, 32 a message';
    return [
      { name, value: ours!, unit: 'steps/s', reference: { name: 'raw postMessage, 32 a message', value: raw! } },
      { name, value: ours!, unit: 'steps/s', reference: { name: 'comlink, a call a step', value: single! } },
      { name, value: ours!, unit: 'steps/s', reference: { name: 'comlink, 32 a call', value: batched! } },
    ];
  } finally {
    await hosts.close();
    channel.port1.close();
    await worker.terminate();
  }
}

async function trivialHosts(episodes: number) {
  const pool: EnvPool = await createEnvPool({
    envs: [{ id: 'trivial', url: new URL('./trivial-env.js', import.meta.url) }],
    threads: 1,
    isolation: 'thread',
    stepDeadlineMs: 10_000,
    openDeadlineMs: 10_000,
    listActions: false,
  });
  let count = 0;
  let next = 0;
  const open = () => {
    pool.tell({ type: 'open', episode: next++, attempt: 1, task: { env: 'trivial', index: 0, seed: 0 } });
  };
  pool.observations$.subscribe((event: EnvEvent) => {
    if (event.type === 'failed') throw new Error(event.failure.message);
    count++;
    if (event.turn < 30) {
      pool.tell({ type: 'step', episode: event.episode, turn: event.turn + 1, action: 'go' });
      return;
    }
    pool.tell({ type: 'close', episode: event.episode });
    open();
  });
  let started = false;
  return {
    async run(): Promise<number> {
      if (!started) for (let i = 0; i < episodes; i++) open();
      started = true;
      const before = count;
      await new Promise((resolve) => setTimeout(resolve, RUN_MS));
      return count - before;
    },
    close: () => pool.close(),
  };
}

function requests(n: number, turn: number): StepRequest[] {
  return Array.from({ length: n }, (_, episode) => ({ episode, turn, action: 'go' }));
}

async function rawSteps(worker: Worker, batch: number): Promise<number> {
  const end = performance.now() + RUN_MS;
  let count = 0;
  await new Promise<void>((resolve) => {
    const onAnswers = (answers: readonly StepAnswer[]) => {
      count += answers.length;
      if (performance.now() < end) worker.postMessage(requests(batch, count));
      else {
        worker.off('message', onAnswers);
        resolve();
      }
    };
    worker.on('message', onAnswers);
    worker.postMessage(requests(batch, 0));
  });
  return count;
}

async function comlinkSteps(remote: Comlink.Remote<Remote>, batch: number): Promise<number> {
  let count = 0;
  for (const end = performance.now() + RUN_MS; performance.now() < end; ) {
    count += (await remote.steps(requests(batch, count))).length;
  }
  return count;
}

/** `width` calls in flight. */
async function comlinkSingle(remote: Comlink.Remote<Remote>, width: number): Promise<number> {
  const end = performance.now() + RUN_MS;
  let count = 0;
  const caller = async (episode: number) => {
    while (performance.now() < end) {
      await remote.step({ episode, turn: count, action: 'go' });
      count++;
    }
  };
  await Promise.all(Array.from({ length: width }, (_, episode) => caller(episode)));
  return count;
}

// --- supervision ----------------------------------------------------------------------------------------------------

const EPISODES = 64;
/** Tasks of one run, and episodes of each. */
const TASKS = 400;
const REPEATS = 4;
const HORIZON = 20;

/** TextCraft under the random policy: the rollout actor with all it accounts for, and a bare loop over the same hosts. */
async function supervised(): Promise<Figure[]> {
  const pool = await createEnvPool({
    envs: [{ id: 'textcraft', url: registry.textcraft! }],
    threads: 1,
    isolation: 'thread',
    stepDeadlineMs: 10_000,
    openDeadlineMs: 30_000,
  });
  const system = createSystem({ mode: 'async' });
  try {
    const routes = { actor: true, bare: (_: EnvEvent) => {} };
    let batch: EnvEvent[] = [];
    pool.observations$.subscribe((event) => {
      if (!routes.actor) return routes.bare(event);
      if (batch.push(event) > 1) return;
      queueMicrotask(() => {
        const events = batch;
        batch = [];
        void system.resolve<RolloutCommand>('/rollout').tell({ type: 'observed', events });
      });
    });
    await system.spawn<{ type: 'episodes' }>('recorder', () => ({ handlers: { episodes() {} } }));
    await system.spawn<RolloutCommand>('rollout', rolloutActor(rolloutInit(pool)), { restart: 'temporary' });
    await system.spawn<InferenceCommand>(
      'inference',
      inferenceActor({ policy: { kind: 'random' }, maxBatch: EPISODES, maxWaitMs: 1, replyPath: '/rollout' }) as never,
    );
    let repeat = 0;
    const actors = async () => {
      routes.actor = true;
      const plan: EvaluationPlan = {
        name: `bench ${repeat++}`,
        tasks: Array.from({ length: TASKS }, (_, index) => ({ env: 'textcraft', index, seed: repeat })),
        episodes: REPEATS,
        horizon: HORIZON,
        temperature: 1,
        seed: repeat,
      };
      const record = await system.ask<EvaluationRecord, RolloutCommand>(
        system.resolve('/rollout'),
        (replyTo) => ({ type: 'evaluate', plan, replyTo }),
        { deadlineMs: 600_000 },
      );
      return record.results.flatMap(({ turns }) => turns).reduce((a, b) => a + b, 0);
    };
    const bare = () => {
      routes.actor = false;
      return bareLoop(pool, routes, 1_000_000 * ++repeat);
    };
    const cpu: [number[], number[]] = [[], []];
    const [withActors, without] = await alternate(
      [() => rate(() => costed(actors, cpu[0])), () => rate(() => costed(bare, cpu[1]))],
      9,
    );
    return [
      {
        name: 'TextCraft rollout under actors, supervised and accounted for',
        value: withActors!,
        unit: 'steps/s',
        reference: { name: 'a bare loop over the same hosts', value: without! },
      },
      {
        name: 'the same, processor time of a step (all threads)',
        value: median(cpu[0]),
        unit: 'µs',
        reference: { name: 'the bare loop', value: median(cpu[1]) },
        note: 'moves less with the load of the machine',
      },
    ];
  } finally {
    await system.stop();
    await pool.close();
  }
}

function rolloutInit(pool: EnvPool): Parameters<typeof rolloutActor>[0] {
  return {
    envs: pool,
    sampler: new TaskSampler('textcraft', [0], 1, { type: 'uniform' }),
    seed: 1,
    view: undefined,
    groupSize: 1,
    envThreads: 1,
    labelOf: () => 'all',
    concurrentGroups: EPISODES / REPEATS,
    groupsPerUpdate: 1,
    maxLag: 0,
    maxAttempts: 1,
    maxFailures: 1,
    stop: { updates: 1 },
    start: { version: 0, horizon: HORIZON, state: undefined },
    paths: { inference: '/inference', learner: undefined, recorder: '/recorder' },
    onUpdate() {},
    onFailure() {},
  };
}

/** The same episodes, played and recorded by the same functions: no mailbox, no message, no supervisor, no ledger. */
async function bareLoop(pool: EnvPool, routes: { bare: (event: EnvEvent) => void }, first: number): Promise<number> {
  const policy = new RandomPolicy(EPISODES);
  const runs = new Map<number, EpisodeRun>();
  const finished: Trajectory[] = [];
  const purpose = { name: 'bench', temperature: 1, seed: first };
  let opened = 0;
  let over = 0;
  let ticking = false;
  await new Promise<void>((done) => {
    const open = () => {
      if (opened === TASKS * REPEATS) return;
      const index = opened++;
      const task = { env: 'textcraft', index: Math.floor(index / REPEATS), seed: first };
      const group = openGroup(first + index, task, HORIZON, 1, purpose);
      runs.set(first + index, openEpisode(group, 0, first + index, 1, performance.now()));
      pool.tell({ type: 'open', episode: first + index, attempt: 1, task });
    };
    const decide = () => {
      ticking = false;
      while (policy.waiting > 0) {
        for (const acted of policy.step()) {
          const { episode, turn } = acted;
          const action = act(runs.get(episode)!, acted, performance.now())!;
          pool.tell({ type: 'step', episode, turn: turn + 1, action });
        }
      }
    };
    routes.bare = (event) => {
      if (event.type === 'failed') throw new Error(event.failure.message);
      const { episode } = event;
      const next = observe(runs.get(episode)!, event, undefined, performance.now());
      if ('broken' in next) throw new Error(next.broken.message);
      if ('trajectory' in next) {
        finished.push(next.trajectory);
        runs.delete(episode);
        pool.tell({ type: 'close', episode });
        policy.release([episode]);
        if (++over === TASKS * REPEATS) done();
        open();
        return;
      }
      policy.submit([next.request]);
      if (!ticking) queueMicrotask(decide);
      ticking = true;
    };
    for (let i = 0; i < EPISODES; i++) open();
  });
  return finished.reduce((sum, { turns }) => sum + turns.length, 0);
}

// --- measuring ------------------------------------------------------------------------------------------------------

/** Runs `work` and notes the processor microseconds of each thing it counted. */
async function costed(work: () => Promise<number>, into: number[]): Promise<number> {
  const before = process.cpuUsage();
  const count = await work();
  const { user, system } = process.cpuUsage(before);
  into.push((user + system) / count);
  return count;
}

/** @returns what `work` counted, per second */
async function rate(work: () => Promise<number>): Promise<number> {
  const began = performance.now();
  const count = await work();
  return (1000 * count) / (performance.now() - began);
}

/** Two warm-ups and `runs` rounds in which each takes its turn. @returns the median of each */
async function alternate(measures: readonly (() => Promise<number>)[], runs = RUNS): Promise<number[]> {
  const values: number[][] = measures.map(() => []);
  for (let round = -2; round < runs; round++) {
    for (const [i, measure] of measures.entries()) {
      const value = await measure();
      if (round >= 0) values[i]!.push(value);
    }
  }
  return values.map(median);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}
