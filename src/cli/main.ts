/** Command line: the process, started by bin/longplay.js. Its commands are in program.ts. */
import { takeTerminal } from '../console/terminal.ts';
import { runLongplay } from './program.ts';

takeTerminal();
process.exitCode = await runLongplay(process.argv.slice(2));
