/** Parity with recordings of an original environment: what a world's re-player gets and gives. */

/** One recorded answer that ours does not match. */
export interface Difference {
  /** Place in the file, e.g. `episode 3 (data_idx 17), step 5`. */
  readonly where: string;
  /** The action and the part of the answer that differs, e.g. `observation after "get 1 stone"`. */
  readonly what: string;
  readonly expected: unknown;
  readonly got: unknown;
}

export interface ParityCounts {
  /** Whatever has no steps (a layout, a row, a query, a string) counts as an episode of 0 steps. */
  readonly episodes: number;
  readonly steps: number;
}

/**
 * Plays one recording again.
 * @param records the JSON values of the file, in order; a file of one JSON value gives one
 * @param report called for each difference, in order
 * @param file path of the recording, for worlds that tell kinds of recording apart by name
 * @throws {UserError} BAD_TRACE for records of a kind it does not know
 */
export type Parity = (
  records: readonly unknown[],
  report: (difference: Difference) => void,
  file: string,
) => ParityCounts | Promise<ParityCounts>;
