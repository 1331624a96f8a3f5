/**
 * Cost of a message: a hop in one thread, a hop between threads, and env steps in batches through a supervised host,
 * beside the bare postMessage and comlink doing the same work; and what supervision costs a rollout.
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import * as Comlink from 'comlink';
import { createEnvPool, type EnvPool } from '../../actors/env/env-pool.ts';
import type { EnvEvent } from '../../actors/env/protocol.ts';
import { comlinkEndpoint, type PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { createSystem } from '../../src/runtime/create-system.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import { alternate, rate } from './alternate.ts';
import type { Bench, Figure } from './contract.ts';
import echo, { type Ball } from './echo-actor.ts';
import type { Remote, StepAnswer, StepRequest } from './messages-worker.ts';
import { supervision } from './supervision.ts';

const RUN_MS = 400;

/** Bench `messages`. */
export const bench: Bench = async () => [...(await hops()), ...(await steps()), ...(await supervision())];

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
    pool.send({ type: 'open', episode: next++, attempt: 1, task: { env: 'trivial', index: 0, seed: 0 } });
  };
  pool.observations$.subscribe((event: EnvEvent) => {
    if (event.type === 'failed') throw new Error(event.failure.message);
    count++;
    if (event.turn < 30) {
      pool.send({ type: 'step', episode: event.episode, turn: event.turn + 1, action: 'go' });
      return;
    }
    pool.send({ type: 'close', episode: event.episode });
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
