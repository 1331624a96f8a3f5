/** Cache state of running episodes: one prompt per group, one past per member after it. */

import { MentionBook } from '../compute/model/feeds.ts';
import type { Rng } from '../core/rng.ts';
import type { TokenMask } from '../text/grammar/token-mask.ts';
import type { Candidate, Prompt, Transcript } from '../text/reading/transcript.ts';
import type { KvCache } from './kv-cache.ts';
import type { ActRequest } from './policy.ts';

/** KV cache and the members in it: one call reads one running batch. */
export interface RunningBatch {
  readonly cache: KvCache;
  /** World of its members, undefined where requests name none: prompts and lists of one are alike, so a call pads little. */
  readonly world: string | undefined;
  /** Members with an episode. */
  live: number;
  /** Members that wait for an action. */
  readonly waiting: Set<MemberState>;
  /** True while a call over the cache is under way. */
  calling: boolean;
}

/** Slot of the cache: a prompt, the candidates that point at it, and the members that follow it. */
export interface GroupState {
  readonly key: string;
  readonly batch: RunningBatch;
  readonly slot: number;
  prompt: Prompt;
  /** True when the prompt or the weights changed since the prompt was last read. */
  dirty: boolean;
  /** Candidates in the order of their rows; the first `vectors` of them are in the cache. */
  readonly candidates: Candidate[];
  /** Rows by listed action and the text that is read of it, for candidates that several members list. */
  readonly rows: Map<string, Map<string, number>>;
  vectors: number;
  /** Lists of mentions of the candidates; the first `pointed` of them are in the cache. */
  mentions: MentionBook;
  pointed: number;
  /** Episodes in the slot; the slot is freed with the last one. */
  live: number;
}

/** Member of a group: an episode and its row in the cache. */
export interface MemberState {
  readonly episode: number;
  group: GroupState;
  /** Row in the cache, slot · K + member. */
  row: number;
  /** Tokens after its prompt: as many as the cache's past holds are cached. */
  readonly transcript: Transcript;
  /** Prompt of the transcript at the last look; another object means that it was rendered anew. */
  prompt: Prompt;
  /** Candidate row of each entry of the transcript's table, as last read. */
  readonly candidates: (CandidateRow | undefined)[];
  request: ActRequest | undefined;
  /** Time at which the request came, in milliseconds; `prefillMs` and `decodeMs` are what calls took of it since. */
  since: number;
  prefillMs: number;
  decodeMs: number;
  /** Run of tokens under way. */
  run:
    | {
        tokens: number[];
        logprobs: number[];
        versions: number[];
        value: number;
        context: Int32Array;
        rng: Rng;
        /** Mask that the run is sampled under; undefined where it is free. */
        mask: TokenMask | undefined;
      }
    | undefined;
}

/** Row of a candidate, and the text it was embedded from: another text is another row. */
interface CandidateRow {
  readonly read: string;
  readonly row: number;
}

/** Candidate row of a listed action in its group, as it is read now; a new one where it has none. */
export function candidateRow(group: GroupState, action: string, read: string): number {
  // Rows are by text, not by member: what one member has listed costs the others of its group nothing.
  let rows = group.rows.get(action);
  if (!rows) group.rows.set(action, (rows = new Map()));
  let row = rows.get(read);
  if (row === undefined) {
    row = group.candidates.push({ action, read }) - 1;
    rows.set(read, row);
  }
  return row;
}

/** Drops what was computed of a group's prompt and candidates: its text was rendered anew. */
export function resetGroup(group: GroupState, prompt: Prompt): void {
  group.prompt = prompt;
  group.dirty = true;
  group.candidates.length = 0;
  group.rows.clear();
  group.vectors = 0;
  group.mentions = new MentionBook(prompt);
  group.pointed = 0;
  group.batch.cache.candidates.clear(group.slot);
}
