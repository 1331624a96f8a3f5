/** API of the viewer's page: types of requests and answers, shared by server and page. */
import type { ReadTurn } from '../core/call-episode.ts';
import type { Drawing } from '../core/draw.ts';
import type { Estimated } from '../learning/evaluation/intervals.ts';
import type { TraceLine } from '../storage/trace.ts';
import type { RecordedMessage } from '../text/prompts/conversation.ts';

/** Run as the page lists it. */
export interface RunInfo {
  readonly id: number;
  readonly name: string;
  readonly env: string;
  readonly seed: number | undefined;
  /** Family: runs with the same configuration but for the seed share it and are drawn as one band. */
  readonly family: string;
  readonly episodes: number;
  /** Rows of metrics read so far. */
  readonly rows: number;
  /** Configuration as YAML; empty where there is none. */
  readonly config: string;
}

/** Curves of a run: one number per point and series; `null` where a row lacks it. */
export interface Curves {
  readonly rows: number;
  /** Rows averaged into one point. */
  readonly stride: number;
  /** Series by metric name, or `name/key` for a split one. */
  readonly series: Readonly<Record<string, readonly (number | null)[]>>;
  /** Evaluations, in the order in which they were made. */
  readonly evaluations: readonly EvaluationRow[];
}

/** Evaluation that a run has written down. */
export interface EvaluationRow {
  /** Policy version it began at; null where the run does not record it. */
  readonly update: number | null;
  readonly name: string;
  readonly horizon: number;
  readonly all: EvaluatedTasks;
  readonly labels: readonly EvaluatedTasks[];
  /** Tasks that training has not met in part, where some are. */
  readonly unseen?: EvaluatedTasks | undefined;
  /** Episodes that failed for good; they count nowhere. */
  readonly failed: number;
}

/** Result over the tasks of an evaluation, or of one sub-task; numbers that are not finite are null. */
export interface EvaluatedTasks {
  readonly label: string;
  readonly tasks: number;
  readonly episodes: number;
  readonly success: { readonly [K in keyof Estimated]: number | null };
  /** Mean return. */
  readonly score: number | null;
  readonly turns: number | null;
  readonly passAtK: Readonly<Record<string, number | null>>;
}

/** Row of the list of episodes. */
export interface EpisodeRow {
  readonly at: number;
  readonly episode: number;
  readonly group: number;
  readonly task: number;
  readonly seed: number;
  readonly label: string;
  readonly purpose: string;
  readonly horizon: number;
  readonly turns: number;
  readonly return: number;
  readonly success: boolean;
  readonly truncated: boolean;
  readonly version: number;
}

export interface EpisodePage {
  /** Episodes of the run, and those that match. */
  readonly total: number;
  readonly matching: number;
  readonly purposes: readonly string[];
  readonly labels: readonly string[];
  readonly rows: readonly EpisodeRow[];
}

/** Episode in which a text was found. */
export interface EpisodeHit {
  readonly row: EpisodeRow;
  readonly match: TextMatch;
}

/** First place of a text in an episode, and how many of its turns have it. */
export interface TextMatch {
  /** Turn to show, in [0, turns]; `turns` is the end. */
  readonly turn: number;
  readonly part: 'observation' | 'answer' | 'action' | 'sub-task' | 'purpose';
  /** Text around it, in three pieces, bounded. */
  readonly before: string;
  readonly found: string;
  readonly after: string;
  readonly turns: number;
}

/** Part of a search: it goes from the newest episode to the oldest, a bounded piece at a time. */
export interface SearchPage {
  readonly hits: readonly EpisodeHit[];
  /** Episodes that this piece looked at; of those that the filters let through and that could be read. */
  readonly searched: number;
  /** Place to go on below; null at the end. */
  readonly next: number | null;
}

/** Episode with its drawings. */
export interface EpisodeView {
  readonly at: number;
  readonly episode: Plain<TraceLine>;
  /** State before each turn, and after the last; empty where the world draws nothing. */
  readonly drawings: readonly (Drawing | null)[];
  /** Address of the screenshot of each state; null where none was kept, empty where the world keeps none. */
  readonly screenshots: readonly (string | null)[];
  /** Text of every token id that occurs in a decision; empty where the vocabulary is not known. */
  readonly spelling: Readonly<Record<number, string>>;
  /** Whole conversation with a language model, or of an episode of calls; empty elsewhere. */
  readonly conversation: readonly ShownMessage[];
  /** Turns of an agent or of a world of tools, read: calls beside their results. Empty elsewhere. */
  readonly calls: readonly ReadTurn[];
}

/** Message of a conversation as it is shown; of an episode of calls there are results of tools. */
export type ShownMessage = Omit<RecordedMessage, 'role'> & { readonly role: RecordedMessage['role'] | 'tool' };

/** Members of a group, in order. */
export interface GroupView {
  readonly members: readonly EpisodeView[];
}

/** Plain type: typed arrays as JSON has them. */
export type Plain<T> = T extends Int32Array | Float32Array
  ? readonly number[]
  : T extends readonly (infer E)[]
    ? readonly Plain<E>[]
    : T extends object
      ? { readonly [K in keyof T]: Plain<T[K]> }
      : T;

/** Data that a report carries instead of a server. */
export interface ReportData {
  readonly runs: readonly RunInfo[];
  readonly curves: readonly Curves[];
  readonly rows: readonly (readonly EpisodeRow[])[];
  /** Episodes that are in the report with their turns, by run and by `at`. */
  readonly episodes: readonly Readonly<Record<number, EpisodeView>>[];
}
