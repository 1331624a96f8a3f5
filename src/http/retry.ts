/** Retries: the faults that are worth one, and the wait before it. Pure. */

import { LongplayError } from '../core/errors.ts';

/** Fault of a request to another machine. */
export type RemoteFault =
  | 'network' // no connection, or it broke off
  | 'timeout' // no whole answer within the deadline
  | 'status' // an answer whose status is an error
  | 'malformed' // an answer that cannot be read: no JSON, half a body, another shape
  | 'oversized'
  | 'refused' // a message of the server that reports an error
  | 'mismatch' // an answer to another client or another question
  | 'closed'; // our end was closed: nobody waits for the answer

export class RemoteError extends Error {
  readonly fault: RemoteFault;
  /** Status code of a `status` fault. */
  readonly status: number | undefined;
  /** Milliseconds that the server asks to wait. */
  readonly retryAfterMs: number | undefined;
  /** Beginning of the answer of a `status` fault, for those who read its fields. */
  readonly body: string | undefined;
  constructor(
    fault: RemoteFault,
    message: string,
    more: { status?: number; retryAfterMs?: number | undefined; body?: string } = {},
  ) {
    super(message);
    this.name = 'RemoteError';
    this.fault = fault;
    this.status = more.status;
    this.retryAfterMs = more.retryAfterMs;
    this.body = more.body;
  }
}

/** Gateway statuses: the server behind a proxy does not answer. */
const GATEWAY = new Set([502, 504]);

/** True for an error, or one that it was caused by, that means: no connection, or no answer in time. */
export function isUnanswered(thrown: unknown): boolean {
  if (!(thrown instanceof RemoteError)) return thrown instanceof LongplayError && isUnanswered(thrown.cause);
  const { fault, status } = thrown;
  return fault === 'network' || fault === 'timeout' || (fault === 'status' && GATEWAY.has(status!));
}

export interface RetryPolicy {
  /** Attempts at a request, ≥ 1. */
  readonly attempts: number;
  /** Milliseconds before the second attempt; doubled for each further one. */
  readonly minMs: number;
  /** Milliseconds of the longest wait, also where a server asks for more. */
  readonly maxMs: number;
}

/** Transient statuses, which may pass by themselves. */
const TRANSIENT = new Set([408, 425, 429, 500, 502, 503, 504, 529]);

/** True if sending the same request again may help. */
export function isTransient(error: RemoteError): boolean {
  if (error.fault === 'status') return TRANSIENT.has(error.status!);
  return error.fault !== 'oversized' && error.fault !== 'refused' && error.fault !== 'closed';
}

/**
 * Milliseconds to wait before attempt `attempt + 1`: what the server asked for, else min(maxMs, minMs·2ⁿ⁻¹) of which
 * up to half is taken off at random, so that clients that failed together do not come back together.
 *
 * @param attempt attempts made, ≥ 1
 * @param u uniform in [0, 1)
 */
export function retryDelayMs({ minMs, maxMs }: RetryPolicy, attempt: number, error: RemoteError, u: number): number {
  if (error.retryAfterMs !== undefined) return Math.min(maxMs, error.retryAfterMs);
  return Math.min(maxMs, minMs * 2 ** (attempt - 1)) * (1 - u / 2);
}

/**
 * Wait that `Retry-After` (seconds or a date) or `retry-after-ms` asks for, in milliseconds. A date is read against the
 * answer's own `Date`, so that no clock of ours is involved.
 */
export function retryAfterMs(headers: Readonly<Record<string, string | string[] | undefined>>): number | undefined {
  const ms = Number(headers['retry-after-ms'] ?? Number.NaN);
  if (ms >= 0) return ms;
  const wish = headers['retry-after'];
  if (typeof wish !== 'string') return undefined;
  const seconds = Number(wish);
  if (wish.trim() !== '' && seconds >= 0) return 1000 * seconds;
  const until = Date.parse(wish) - Date.parse(String(headers.date));
  return Number.isFinite(until) ? Math.max(0, until) : undefined;
}
