/** Failure of a command: one clear line, a truthful exit code, no stack trace for a user's mistake. */
import { err } from '../console/terminal.ts';
import { isUserMistake, LongplayError, messageOf } from '../core/errors.ts';
import { describeLoss, type TraceLoss } from '../storage/trace-store.ts';

/** Exit code: 2 for a user's mistake, 1 for everything else. */
function exitCodeOf(thrown: unknown): number {
  return isUserMistake(thrown) ? 2 : 1;
}

/** Failure text for stderr. A bug of ours keeps its stack, which a bug report needs; a full disk is no bug. */
function failureText(thrown: unknown): string {
  if (thrown instanceof LongplayError) return `longplay: ${thrown.message}`;
  if (isSystemError(thrown)) return `longplay: the system refused: ${messageOf(thrown)}`;
  return thrown instanceof Error
    ? `longplay: internal error: ${thrown.stack ?? thrown.message}`
    : `longplay: ${messageOf(thrown)}`;
}

/** True for an error of the operating system: it names the call and the file itself. */
function isSystemError(thrown: unknown): thrown is NodeJS.ErrnoException {
  return thrown instanceof Error && 'syscall' in thrown && 'code' in thrown;
}

/** Tells what was thrown, and sets the exit code. */
export function report(thrown: unknown): void {
  err.line(failureText(thrown));
  process.exitCode = exitCodeOf(thrown);
}

/** Reports what a command's traces have lost, and sets the exit code where episodes are: its result is not the whole. */
export function reportLosses({ losses }: { readonly losses: readonly TraceLoss[] }): void {
  for (const loss of losses) err.line(describeLoss(loss));
  if (losses.some(({ episodes }) => episodes > 0)) process.exitCode = 1;
}

/** Runs a command's body; sets the exit code and prints one message when it throws. */
export async function runCommand(body: () => Promise<void>): Promise<void> {
  try {
    await body();
  } catch (thrown) {
    report(thrown);
  }
}
