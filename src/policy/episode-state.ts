/** What the small policy remembers of running episodes: a group has a prompt in a lane, each member a past after it. */
import type { Rng } from '../core/rng.ts';
import type { SeenTurn } from '../core/view.ts';
import type { Lane } from './lane.ts';
import type { ActRequest } from './policy.ts';
import type { PromptReading } from './reading.ts';

/** A lane and who is in it. */
export interface OpenLane {
  readonly cache: Lane;
  /** Members with an episode. */
  live: number;
  /** Members that wait for an action. */
  readonly waiting: Set<MemberState>;
}

export interface GroupState {
  readonly key: string;
  readonly lane: OpenLane;
  readonly slot: number;
  reading: PromptReading;
  /** [P, d] pointer keys of the prompt, once it is read. */
  promptKeys: Float32Array | undefined;
  /** The prompt or the weights changed since it was last read. */
  dirty: boolean;
  /** Candidate texts in the order of their rows; the first `vectors` of them are in the lane. */
  readonly actions: string[];
  readonly rows: Map<string, number>;
  vectors: number;
  live: number;
}

export interface MemberState {
  readonly episode: number;
  readonly group: GroupState;
  /** Row in the lane, slot · K + member. */
  readonly row: number;
  /** The episode's own action table. */
  readonly table: string[];
  /** Candidate row of each entry of `table`; −1 until it has one. */
  readonly candidates: number[];
  readonly turns: SeenTurn[];
  readonly firstObservation: string;
  /** Tokens after the prompt; as many as the lane's past holds are cached. */
  readonly tokens: number[];
  /** Length of `tokens` (or of the prompt, for a window) already told in a decision's context. */
  told: number;
  request: ActRequest | undefined;
  /** When the request came, and what calls have taken of it since. */
  since: number;
  prefillMs: number;
  decodeMs: number;
  run: { tokens: number[]; logprobs: number[]; value: number; from: number; rng: Rng } | undefined;
}

/** The candidate row of a text in its group; a new one where it has none. */
export function candidateRow({ rows, actions }: GroupState, text: string): number {
  const known = rows.get(text);
  if (known !== undefined) return known;
  const row = actions.push(text) - 1;
  rows.set(text, row);
  return row;
}

/** What was read since the last decision, up to `until`: on turn 0 (and in every window) the prompt too. */
export function newContext(member: MemberState, until: number): Int32Array {
  const { told, tokens, group } = member;
  const head = told === 0 ? group.reading.tokens.length : 0;
  const context = new Int32Array(head + until - told);
  if (head > 0) context.set(group.reading.tokens);
  for (let i = told; i < until; i++) context[head + i - told] = tokens[i]!;
  member.told = until;
  return context;
}
