/** Entry module of a child process that is a host. */
import { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../src/core/errors.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import { streamPorts } from '../../src/runtime/stream-ports.ts';
import { writeFile } from './beacon.ts';
import { type HostTask, runHost } from './env-host.ts';
import type { OrphanGuardData } from './orphan-guard.ts';
import { BEACON_FD, CHANNEL_FD, ports, UNCAUGHT } from './process-channel.ts';
import { endProcessTree, HOST_MARK } from './process-tree.ts';

// Kept before any env can replace it.
const exit = process.exit.bind(process);
const mark = process.env[HOST_MARK]!;
const channel = streamPorts(new Socket({ fd: CHANNEL_FD, readable: true, writable: true }), {
  count: ports.count,
  maxBytes: Number.POSITIVE_INFINITY, // what the parent sends is ours
  onEnd() {
    endProcessTree(process.pid, mark); // the parent is gone
    exit(0);
  },
});
const [setUp, data, control] = channel.ports;
const guarded: OrphanGuardData = { parent: process.ppid, mark };
new Worker(workerUrl(new URL('./orphan-guard.ts', import.meta.url)), { workerData: guarded, execArgv: [] }).unref();
/** Exits after reporting the reason. */
function die(message: string): void {
  setUp!.postMessage(message);
  channel.end(() => exit(UNCAUGHT));
}
// A terminal's Ctrl-C may reach us where we lead no group of our own: the parent decides when its hosts end.
process.on('SIGINT', () => {});
setUp!.on('message', (task: HostTask) => {
  void runHost(task, data!, control!, writeFile(BEACON_FD), die).then(
    () => setImmediate(() => channel.end(() => exit(0))),
    (thrown) => die(messageOf(thrown)),
  );
});
