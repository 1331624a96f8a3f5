/** The other side of the message benches: the same trivial step behind postMessage, and behind comlink. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import * as Comlink from 'comlink';
import { comlinkEndpoint, type PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { createEnv } from './trivial-env.ts';

export interface StepRequest {
  readonly episode: number;
  readonly turn: number;
  readonly action: string;
}

export interface StepAnswer {
  readonly episode: number;
  readonly turn: number;
  readonly observation: string;
  readonly reward: number;
}

const session = createEnv().open({ env: 'trivial', index: 0, seed: 0 }) as {
  step(action: string): { readonly observation: string; readonly reward: number };
};

function step({ episode, turn, action }: StepRequest): StepAnswer {
  const { observation, reward } = session.step(action);
  return { episode, turn, observation, reward };
}

const remote = { step, steps: (batch: readonly StepRequest[]) => batch.map(step) };
export type Remote = typeof remote;

if (parentPort) {
  const { comlink } = workerData as { readonly comlink: MessagePort };
  Comlink.expose(remote, comlinkEndpoint(comlink as unknown as PortLike));
  parentPort.on('message', (batch: readonly StepRequest[]) => parentPort!.postMessage(batch.map(step)));
}
