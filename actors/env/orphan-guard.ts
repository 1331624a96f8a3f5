/**
 * A thread of a host process that ends it once the process that started it is gone: a host whose environment spins
 * never notices that its channel was closed.
 */
import { workerData } from 'node:worker_threads';
import { endProcessTree } from './process-tree.ts';

export interface OrphanGuardData {
  /** Pid of the process that started the host. */
  readonly parent: number;
  readonly mark: string;
}

/** Milliseconds between two looks. */
const LOOK_MS = 1000;

const { parent, mark } = workerData as OrphanGuardData;
setInterval(() => {
  if (process.ppid !== parent) endProcessTree(process.pid, mark);
}, LOOK_MS);
