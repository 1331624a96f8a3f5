/** Thread of a replica (replica.ts): opens an engine, compiles the gradient program, and runs what it is sent, one after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import type { HostTensor } from '../../compute/engine/engine.ts';
import { openEngine } from '../../compute/engine/open.ts';
import { compileGradients } from '../../compute/model/compile.ts';
import { messageOf } from '../../core/errors.ts';
import type { ReplicaCommand, ReplicaEvent, ReplicaProgram, ReplicaReady } from './replica.ts';

const { engine: engineOptions, model, options } = workerData as ReplicaProgram;
const port = parentPort!;
const post = (event: ReplicaEvent) => port.postMessage(event);

const engine = await openEngine(engineOptions);
const program = await compileGradients(engine, model, options);
let held: Readonly<Record<string, HostTensor>> = {};

/** Commands in their order: an engine may compute while the thread goes on, and then the next one waits. */
let last: Promise<void> = Promise.resolve();
port.on('message', (command: ReplicaCommand) => {
  last = last.then(() => obey(command));
});
const ready: ReplicaReady = { inputs: program.inputs.map(({ name }) => name) };
port.postMessage(ready);

async function obey(command: ReplicaCommand): Promise<void> {
  if (command.type === 'hold') {
    held = command.feeds;
    return;
  }
  if (command.type === 'end') {
    await program.dispose();
    await engine.dispose();
    port.close();
    return;
  }
  try {
    const out = Object.entries(await program.run({ ...command.feeds, ...held }));
    // Copied by being sent, so the engine may write the next run's outputs where these are.
    post({
      type: 'ran',
      outputs: Object.fromEntries(out.map(([name, { dtype, shape, data }]) => [name, { dtype, shape, data }])),
    });
    for (const [, tensor] of out) tensor.dispose();
  } catch (error) {
    post({ type: 'failed', message: messageOf(error) });
  }
}
