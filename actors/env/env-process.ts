/** Entry module of a child process that is a host. */
import { messageOf } from '../../src/core/errors.ts';
import { type IpcChannel, ipcPorts } from '../../src/runtime/ipc-ports.ts';
import { writeFile } from './beacon.ts';
import { type HostTask, runHost } from './env-host.ts';
import { BEACON_FD, ports, UNCAUGHT } from './process-channel.ts';

const [setUp, data, control] = ipcPorts(process as unknown as IpcChannel, ports.count);

// Kept before any env can replace them.
const send = process.send!.bind(process);
const exit = process.exit.bind(process);
process.on('disconnect', () => exit(0)); // the parent is gone
/** Exits after reporting the reason. */
function die(message: string): void {
  send([ports.setUp, message], () => exit(UNCAUGHT));
}
// A terminal's Ctrl-C reaches the whole process group: the parent decides when its hosts end.
process.on('SIGINT', () => {});
setUp!.on('message', (task: HostTask) => {
  void runHost(task, data!, control!, writeFile(BEACON_FD), die).then(
    () => setImmediate(() => exit(0)),
    (thrown) => die(messageOf(thrown)),
  );
});
