/** How a command ends when something is wrong: one clear line, a truthful exit code, no stack trace for a user's mistake. */
import { type ErrorCode, LongplayError, messageOf, UserError } from '../core/errors.ts';

/** Mistakes of the user. Told by code, not by class: an error that crossed a thread has lost its class. */
const USER_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'BAD_CONFIG',
  'BAD_ARGUMENT',
  'UNKNOWN_ENV',
  'UNKNOWN_RUN',
  'RUN_EXISTS',
  'NO_PERMISSION',
  'MISSING_ENGINE',
  'BAD_CHECKPOINT',
  'BAD_TRACE',
]);

/** Whether somebody has to change what they asked for. */
export function isUserMistake(thrown: unknown): boolean {
  return thrown instanceof UserError || (thrown instanceof LongplayError && USER_CODES.has(thrown.code));
}

/** 2 for a user's mistake, 1 for everything else. */
export function exitCodeOf(thrown: unknown): number {
  return isUserMistake(thrown) ? 2 : 1;
}

/** Text for stderr. A bug of ours keeps its stack: whoever reports it needs it. */
export function failureText(thrown: unknown): string {
  if (thrown instanceof LongplayError) return `longplay: ${thrown.message}`;
  return thrown instanceof Error
    ? `longplay: internal error: ${thrown.stack ?? thrown.message}`
    : `longplay: ${messageOf(thrown)}`;
}

/** Runs a command's body; sets the exit code and prints one message when it throws. */
export async function runCommand(body: () => Promise<void>): Promise<void> {
  try {
    await body();
  } catch (thrown) {
    process.stderr.write(`${failureText(thrown)}\n`);
    process.exitCode = exitCodeOf(thrown);
  }
}
