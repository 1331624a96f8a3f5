/** A process with a thread inside a native call, which ends in the way that its argument names. */
import { createSystem } from '../../src/runtime/create-system.ts';
import { endProcess } from '../../src/runtime/native-threads.ts';
import { newGate, reached } from './gate.ts';

const system = createSystem({ mode: 'async', seed: 1 });
const called = newGate();
const url = new URL('./native-call-actor.ts', import.meta.url);
const module = { url, init: { called }, placement: 'thread' } as const;
const starting = system.spawnModule('engine', module, { killable: false, startMs: 50 });
await reached(called);
await new Promise((resolve) => setTimeout(resolve, 200)); // the call begins behind the gate
if (process.argv[2] === 'end') endProcess(130, 'SIGINT');
else {
  const refused = starting.catch((thrown: Error) => console.log(thrown.message));
  await system.stop();
  await refused;
}
