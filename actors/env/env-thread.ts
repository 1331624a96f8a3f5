/** Env host in a piscina thread: one task for the thread's whole life. */
import type { MessagePort } from 'node:worker_threads';
import type { PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { writeShared } from './beacon.ts';
import { type HostTask, runHost } from './env-host.ts';

export interface ThreadTask extends HostTask {
  readonly shared: Int32Array<SharedArrayBuffer>;
  readonly data: MessagePort;
  readonly control: MessagePort;
}

/** Ends the thread with an error, which piscina reports. */
function die(message: string): void {
  process.removeAllListeners('uncaughtException');
  process.removeAllListeners('unhandledRejection');
  setImmediate(() => {
    throw new Error(message);
  });
}

/** Task for piscina. Resolves when `stop` was called. */
export default function thread({ data, control, shared, ...task }: ThreadTask): Promise<void> {
  return runHost(task, data as unknown as PortLike, control as unknown as PortLike, writeShared(shared), die);
}
