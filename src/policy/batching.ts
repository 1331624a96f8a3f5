/** When does a batch start? */

export interface BatchState {
  /** Turns that wait for a call. */
  readonly waiting: number;
  readonly maxBatch: number;
  /** Nobody else can join the call: see `Policy.complete`. */
  readonly complete: boolean;
  /** Age of the oldest waiting turn, in milliseconds. */
  readonly oldestMs: number;
  readonly maxWaitMs: number;
}

/** A batch starts when it is full, when nobody else can arrive, or when its oldest turn has waited long enough. */
export function batchStarts({ waiting, maxBatch, complete, oldestMs, maxWaitMs }: BatchState): boolean {
  return waiting > 0 && (waiting >= maxBatch || complete || oldestMs >= maxWaitMs);
}
