/** Entry module of a child process that is a host. */
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../src/core/errors.ts';
import { type IpcChannel, ipcPorts } from '../../src/runtime/ipc-ports.ts';
import { workerUrl } from '../../src/runtime/thread.ts';
import { writeFile } from './beacon.ts';
import { type HostTask, runHost } from './env-host.ts';
import type { OrphanGuardData } from './orphan-guard.ts';
import { BEACON_FD, ports, UNCAUGHT } from './process-channel.ts';
import { endProcessTree, HOST_MARK } from './process-tree.ts';

const [setUp, data, control] = ipcPorts(process as unknown as IpcChannel, ports.count);

// Kept before any env can replace them.
const send = process.send!.bind(process);
const exit = process.exit.bind(process);
const mark = process.env[HOST_MARK]!;
process.on('disconnect', () => {
  endProcessTree(process.pid, mark); // the parent is gone
  exit(0);
});
const guarded: OrphanGuardData = { parent: process.ppid, mark };
new Worker(workerUrl(new URL('./orphan-guard.ts', import.meta.url)), { workerData: guarded, execArgv: [] }).unref();
/** Exits after reporting the reason. */
function die(message: string): void {
  send([ports.setUp, message], () => exit(UNCAUGHT));
}
// A terminal's Ctrl-C may reach us where we lead no group of our own: the parent decides when its hosts end.
process.on('SIGINT', () => {});
setUp!.on('message', (task: HostTask) => {
  void runHost(task, data!, control!, writeFile(BEACON_FD), die).then(
    () => setImmediate(() => exit(0)),
    (thrown) => die(messageOf(thrown)),
  );
});
