/** A thread that exits while the thread of its engine is inside a call; the process prints `alive` afterwards. */
import { isMainThread, Worker } from 'node:worker_threads';
import * as textcraft from '../../envs/textcraft/index.ts';
import { smallModel } from '../../src/compute/model/config.ts';
import { initialParams } from '../../src/compute/model/parameters.ts';
import { CachedPolicy } from '../../src/policy/cached-policy.ts';
import { EngineThread } from '../../src/policy/engine-thread.ts';
import { codecOf } from '../../src/text/reading/codec-of.ts';

/** Milliseconds after which the thread exits; the call takes longer. */
const EXIT_MS = 150;

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url));
  worker.on('message', (line) => process.stdout.write(`${line}\n`));
  worker.on('exit', (code) => process.stdout.write(`exited with ${code}\n`));
  process.on('beforeExit', () => process.stdout.write('alive\n'));
} else await exitInsideCall();

async function exitInsideCall(): Promise<void> {
  const codec = codecOf(textcraft);
  const config = smallModel(codec.vocabSize, { layers: 6, hiddenSize: 384 });
  const engine = { name: 'auto', device: 'cpu', threads: 1 } as const;
  const thread = await EngineThread.open({ engine, config, decoder: 'choice' });
  const options = { decoder: 'choice', masked: true, maxTokens: 8, cacheOnUpdate: 'keep', maxBatch: 64 } as const;
  const policy = CachedPolicy.over(thread, { ...options, config, codec }, initialParams(config, 1));
  const env = textcraft.createEnv();
  for (let episode = 0; episode < 32; episode++) {
    const session = await env.open({ env: env.id, index: episode, seed: episode });
    const newActions = session.actions();
    policy.submit([
      {
        ...{ episode, group: episode, member: 0, groupSize: 1, turn: 0, samplingSeed: 1, temperature: 0, newActions },
        observation: session.first.observation,
        actions: Int32Array.from(newActions.keys()),
      },
    ]);
  }
  let done = false;
  void policy.step().then(() => (done = true));
  setTimeout(() => {
    process.stdout.write(done ? 'the call was done\n' : 'inside a call\n');
    setImmediate(() => process.exit(3));
  }, EXIT_MS);
}
