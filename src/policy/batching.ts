/** Batching rule: starts a call when it is full, complete, or waited for long enough. */

/** Milliseconds that the oldest waiting turn of a run waits for others: about what one engine call takes. */
export const MAX_WAIT_MS = 2;

/** State of the queue at a moment when a call may start. */
export interface BatchState {
  /** Turns that wait for a call. */
  readonly waiting: number;
  readonly maxBatch: number;
  /** True when no other turn can join the call: see `Policy.complete`. */
  readonly complete: boolean;
  /** Age of the oldest waiting turn, in milliseconds. */
  readonly oldestMs: number;
  readonly maxWaitMs: number;
}

/** True when a batch is full, when no other turn can arrive, or when its oldest one has waited `maxWaitMs`. */
export function batchStarts({ waiting, maxBatch, complete, oldestMs, maxWaitMs }: BatchState): boolean {
  return waiting > 0 && (waiting >= maxBatch || complete || oldestMs >= maxWaitMs);
}
