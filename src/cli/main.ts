/** Command line: the process, started by bin/longplay.js. Its commands are in program.ts. */
import { err, takeTerminal } from '../console/terminal.ts';
import { endProcess, nativeThreadsEnded } from '../runtime/native-threads.ts';
import { runLongplay } from './program.ts';

/** Milliseconds that a native call may go on after the command's end: as long as an orderly end may take. */
const NATIVE_CALL_MS = 60_000;

takeTerminal();
process.exitCode = await runLongplay(process.argv.slice(2));
if (!(await nativeThreadsEnded(NATIVE_CALL_MS))) {
  err.line('longplay: an engine does not come out of its call; the process is killed');
  endProcess(1, 'SIGKILL');
}
