/** Steps of an offline training, as they are reported. */

/** Optimiser step of an offline training. */
export interface OfflineStep {
  /** Steps taken so far, of all epochs. */
  readonly done: number;
  /** Steps of all epochs. */
  readonly total: number;
  /** Loss of the step's episodes or pairs before it; the `nll` or `loss` whose mean an epoch reports. */
  readonly loss: number;
}
