/** Parity with recordings of an original environment: input and output of a world's re-player. */

import type { World } from './world.ts';

/** Difference between a recorded answer and ours. */
export interface Difference {
  /** Place in the file, e.g. `episode 3 (data_idx 17), step 5`. */
  readonly where: string;
  /** The action and the part of the answer that differs, e.g. `observation after "get 1 stone"`. */
  readonly what: string;
  readonly expected: unknown;
  readonly got: unknown;
}

/** Counts of a comparison with recordings. */
export interface ParityCounts {
  /** Episodes compared; a record without steps (a layout, a row, a query, a string) counts as an episode of 0 steps. */
  readonly episodes: number;
  readonly steps: number;
}

/** Request of a recording. */
export interface RecordedRequest {
  readonly method: string;
  /** Path below the world's root, with its query. */
  readonly path: string;
  /** Body as it was sent; absent without one. */
  readonly body?: string;
  /** Content type of the body. Default `application/json`. */
  readonly contentType?: string;
}

/** HTTP answer of a served world, its body as text. */
export interface ServedAnswer {
  readonly status: number;
  /** Content type; absent where the answer has none. */
  readonly contentType: string | undefined;
  readonly body: string;
}

/** AgentGym's server of one world, without a socket. */
export interface ServedWorld {
  handle(request: RecordedRequest): Promise<ServedAnswer>;
  close(): Promise<void>;
}

/**
 * Serves a world as `serve-env` does, under the options of its dialect; ids count from 0. For recorded exchanges.
 * @param world with rules and `agentgym.server`; it may be made for the recording
 */
export type ServeWorld = (world: World) => Promise<ServedWorld>;

/**
 * Plays one recording again.
 * @param records the JSON values of the file, in order; a file of one JSON value gives one
 * @param report called for each difference, in order
 * @param file path of the recording, for worlds that distinguish kinds of recording by name
 * @param serve for recorded exchanges with AgentGym's server
 * @throws {UserError} BAD_TRACE for records of a kind it does not know
 */
export type Parity = (
  records: readonly unknown[],
  report: (difference: Difference) => void,
  file: string,
  serve?: ServeWorld,
) => ParityCounts | Promise<ParityCounts>;
