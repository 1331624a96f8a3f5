/** The command line in this process: what a person would have typed, and its output. */
import { runLongplay } from '../../src/cli/program.ts';
import { err, out } from '../../src/console/terminal.ts';

/** Runs a command to its end. Only for commands that end by themselves and leave nothing running. */
export function typed(...args: readonly string[]) {
  return captureProgram(() => runLongplay(args));
}

/** Runs a program in this process. @returns its exit code and output */
export async function captureProgram(run: () => Promise<number>) {
  const before = process.exitCode;
  let stdout = '';
  let stderr = '';
  try {
    const errors = () => err.capture((text) => void (stderr += text), run);
    const status = await out.capture((text) => void (stdout += text), errors);
    return { status, stdout, stderr };
  } finally {
    process.exitCode = before;
  }
}
