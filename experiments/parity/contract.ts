/** What a world's replayer gets and gives; the main (../parity.ts) reads files, counts and prints. */

/** One recorded answer that ours does not match. */
export interface Difference {
  /** Where in the file, e.g. `episode 3 (data_idx 17), step 5`. */
  readonly where: string;
  /** What was done and which part of the answer differs, e.g. `observation after "get 1 stone"`. */
  readonly what: string;
  readonly expected: unknown;
  readonly got: unknown;
}

export interface Counts {
  readonly episodes: number;
  readonly steps: number;
}

/**
 * Plays a recording again.
 * @param records the JSON values of the file, in order; a file of one JSON value gives one
 * @param report called for each difference, in order
 * @throws {UserError} for records of a kind it does not know
 */
export type Replay = (
  records: readonly unknown[],
  report: (difference: Difference) => void,
) => Counts | Promise<Counts>;
