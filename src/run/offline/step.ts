/** Steps of an offline training, as they are told. */

/** Optimiser step of an offline training. */
export interface OfflineStep {
  /** Steps taken so far, of all epochs. */
  readonly done: number;
  /** Steps of all epochs. */
  readonly total: number;
  /** Loss of the step's episodes or pairs before it; the `nll` or `loss` that an epoch tells the mean of. */
  readonly loss: number;
}
