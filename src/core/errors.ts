/**
 * Errors come in three kinds: a caller's mistake throws a class from this file with a stable `code`; a failed episode
 * is data (failure.ts); a broken actor crashes and its supervisor decides.
 */

import { redact } from './secrets.ts';

/** Code of an error, stable, for programs; the message is for people. */
export type ErrorCode =
  | 'BAD_CONFIG'
  | 'BAD_ARGUMENT'
  | 'UNKNOWN_ENV'
  | 'UNKNOWN_RUN'
  | 'RUN_EXISTS'
  | 'NO_PERMISSION'
  | 'MISSING_ENGINE'
  | 'BAD_CHECKPOINT'
  | 'BAD_TRACE'
  | 'BAD_SHAPE'
  | 'BAD_WEIGHTS'
  | 'ENGINE_FAILED'
  | 'ASK_TIMEOUT'
  | 'ACTOR_STOPPED'
  | 'MAILBOX_FULL'
  | 'ENV_BROKEN'
  | 'STALLED'
  | 'REMOTE_FAILED';

/**
 * Base class of every error this package throws on purpose. The message states what was expected, what came, what to do.
 */
export class LongplayError extends Error {
  readonly code: ErrorCode;
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** User error: the command line prints the message alone and exits with 2. */
export class UserError extends LongplayError {}

/** Codes of errors that the user can mend by changing the request. */
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

/**
 * True for an error that the user can mend by changing the request. Checked by code too: an error that crossed a thread
 * has lost its class.
 */
export function isUserMistake(thrown: unknown): boolean {
  return thrown instanceof UserError || (thrown instanceof LongplayError && USER_CODES.has(thrown.code));
}

/** Error of operands whose shapes do not fit; names the operation, the operands and their shapes. */
export class ShapeError extends LongplayError {
  constructor(message: string) {
    super('BAD_SHAPE', message);
  }
}

/** UTF-16 units of a message that `messageOf` keeps. */
const MESSAGE_CHARS = 4000;

/**
 * Message of anything that was thrown, at most 4000 characters, without secrets of this process. A value that cannot be made a text (no prototype, a
 * `message` that throws) is named by its kind; this function never throws.
 */
export function messageOf(thrown: unknown): string {
  try {
    const message: unknown = thrown instanceof Error ? thrown.message : thrown;
    const text = redact(String(message)); // before it is cut: half a secret would not be known any more
    return (text.length > MESSAGE_CHARS ? `${text.slice(0, MESSAGE_CHARS)}…` : text).toWellFormed();
  } catch {
    return `something without a message (${typeof thrown})`;
  }
}
