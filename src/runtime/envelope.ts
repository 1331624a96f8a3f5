/** Envelopes: a message with the return address of its ask, and errors as plain data. */
import { type ErrorCode, LongplayError } from '../core/errors.ts';
import type { Message, ReplyTo } from './actor.ts';

/** Tag of the ask that a message belongs to. */
export interface AskTag extends Address {
  /** Milliseconds the asker waits, from the send. */
  readonly deadlineMs: number;
}

/** Envelope of a message in a mailbox. */
export interface Envelope {
  readonly message: Message;
  readonly ask: AskTag | undefined;
  readonly transfer: readonly ArrayBuffer[] | undefined;
  /** Arrival in this thread, milliseconds of its clock. */
  readonly at: number;
  /** Marks, in a thread, a message that the main thread delivered and that must be acknowledged. */
  readonly windowed?: true;
  /** Marks a message that the actor sent to itself. */
  readonly self?: true;
}

/** Return address without its type. */
export type Address = Pick<ReplyTo<unknown>, 'path' | 'id'>;

/** Outcome of an ask. */
export type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: ErrorRecord };

/** Record of an error that crosses threads without losing its code. */
export interface ErrorRecord {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

export function recordError(thrown: unknown): ErrorRecord {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown) };
  const { name, message, stack } = thrown;
  const code = (thrown as { code?: unknown }).code;
  return { name, message, ...(stack ? { stack } : {}), ...(typeof code === 'string' ? { code } : {}) };
}

export function reviveError(record: ErrorRecord): Error {
  const error = record.code
    ? new LongplayError(record.code as ErrorCode, record.message)
    : Object.assign(new Error(record.message), { name: record.name });
  if (record.stack) error.stack = record.stack;
  return error;
}

export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
