/** Env host in a piscina thread: one task for the thread's whole life. */
import type { MessagePort } from 'node:worker_threads';
import type { PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { publishThreadId, writeShared } from './beacon.ts';
import { type HostTask, runHost } from './env-host.ts';
import { HOST_MARK } from './process-tree.ts';
import { ownThreadId } from './processor-wait.ts';

export interface ThreadTask extends HostTask {
  readonly shared: Int32Array<SharedArrayBuffer>;
  readonly data: MessagePort;
  readonly control: MessagePort;
  /** Mark that the processes started here carry. */
  readonly mark: string;
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
export default function thread({ data, control, shared, mark, ...task }: ThreadTask): Promise<void> {
  publishThreadId(shared, ownThreadId());
  process.env[HOST_MARK] = mark; // the thread's own copy: no other thread sees it
  return runHost(task, data as unknown as PortLike, control as unknown as PortLike, writeShared(shared), die);
}
