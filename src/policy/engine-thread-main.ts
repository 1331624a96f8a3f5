/** Main of an engine's thread (engine-thread.ts): opens the engine, compiles the programs, and computes call after call. */
import { parentPort, workerData } from 'node:worker_threads';
import type { HostTensor } from '../compute/engine/engine.ts';
import { openEngine } from '../compute/engine/open.ts';
import { timeEngine } from '../compute/engine/timed.ts';
import { systemClock } from '../core/clock.ts';
import { recordError } from '../runtime/envelope.ts';
import { type CallOutputs, compileCalls, LocalCalls } from './engine-call.ts';
import {
  CLOSED,
  COMPUTING,
  type EngineThreadCommand,
  type EngineThreadData,
  type EngineThreadEvent,
  type EngineThreadOpened,
  type FollowedCache,
} from './engine-thread.ts';
import { KvCache } from './kv-cache.ts';

const { engine: engineOptions, config, decoder, state } = workerData as EngineThreadData;
const port = parentPort!;

const { calls, engine, computing } = await openCalls();

/** Caches by their number. */
const caches = new Map<number, KvCache>();

/** Commands in their order: an engine may compute while the thread goes on, and then the next one waits. */
let last: Promise<void> = Promise.resolve();
port.on('message', (command: EngineThreadCommand) => {
  last = last.then(() => obey(command));
});
first({ engine: `${engine.name}/${engine.device}` });

/** Opens the engine and compiles the programs. Where that fails the thread reports why, and ends. */
async function openCalls() {
  try {
    const timed = timeEngine(await openEngine(engineOptions), systemClock);
    const programs = await compileCalls(timed.engine, config, decoder);
    return { ...timed, calls: new LocalCalls(programs, config, () => systemClock.now()) };
  } catch (thrown) {
    first({ error: recordError(thrown) });
    process.exit(0);
  }
}

function first(opened: EngineThreadOpened): void {
  port.postMessage(opened);
}

async function obey(command: EngineThreadCommand): Promise<void> {
  switch (command.type) {
    case 'load':
      return calls.load(command.weights);
    case 'forget':
      return caches.clear();
    case 'run':
      return answer(() => calls.run(cacheOf(command.cache), command.call));
    case 'end':
      await calls.dispose();
      await engine.dispose();
      port.close();
  }
}

async function answer(run: () => Promise<CallOutputs>): Promise<void> {
  const before = computing.ms;
  Atomics.store(state, COMPUTING, 1);
  try {
    // Looked at after the flag is up: whoever closes waits for it, or is seen here.
    if (Atomics.load(state, CLOSED) === 1) return;
    const out = await run();
    // Outputs are copied by being sent, so the engine may write the next call's where these are.
    post({
      type: 'ran',
      out: { ...out, outputs: plainTensors(out.outputs) },
      engineMs: computing.ms - before,
    });
  } catch (error) {
    post({ type: 'failed', error: recordError(error) });
  } finally {
    Atomics.store(state, COMPUTING, 0);
    Atomics.notify(state, COMPUTING);
  }
}

function post(event: EngineThreadEvent): void {
  port.postMessage(event);
}

function cacheOf({ id, groups, members, layout }: FollowedCache): KvCache {
  let cache = caches.get(id);
  if (!cache) caches.set(id, (cache = new KvCache(config, groups, members)));
  cache.follow(layout);
  return cache;
}

function plainTensors(outputs: Readonly<Record<string, HostTensor>>): Record<string, HostTensor> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, { dtype, shape, data }]) => [name, { dtype, shape, data }]),
  );
}
