/**
 * Candidates of the slots of a running batch, fed to the engine in place: action bags [G, C, d], and pointer keys
 * [G, I·M, d] of the I different lists of places of the prompt that mention them. C and I are capacities that grow by
 * regrowing the pool.
 */
import { MAX_MENTIONS } from '../text/reading/transcript.ts';
import { growPool, MASKED, roundUp } from './grow-pool.ts';

/** Step of both capacities: shapes repeat from call to call. */
const STEP = 8;

/** Pools of candidates and of their lists of mentions. */
export class CandidatePool {
  /** C: capacity of a slot's candidate actions. */
  actions = STEP;
  /** I: capacity of a slot's different lists of mentions. */
  lists = STEP;
  /** [G, C, d] one vector per candidate text. */
  bags: Float32Array;
  /** [G, C] list of mentions of each candidate. */
  listOf: Int32Array;
  /** [G, I·M, d] pointer keys of the prompt positions in each list of mentions. */
  mentionKeys: Float32Array;
  /** [G, I, M] 0 where a list has that mention, −1e9 elsewhere. */
  mentionMask: Float32Array;
  readonly #groups: number;
  /** d, the hidden size. */
  readonly #width: number;

  constructor(groups: number, width: number) {
    this.#groups = groups;
    this.#width = width;
    this.bags = new Float32Array(groups * this.actions * width);
    this.listOf = new Int32Array(groups * this.actions);
    this.mentionKeys = new Float32Array(groups * this.lists * MAX_MENTIONS * width);
    this.mentionMask = new Float32Array(groups * this.lists * MAX_MENTIONS).fill(MASKED);
  }

  /** Room for `count` candidate actions in a slot: regrows the pools where they are too short. */
  reserveActions(count: number): void {
    if (count <= this.actions) return;
    const before = this.actions;
    this.actions = roundUp(count, STEP);
    this.bags = growPool(this.bags, this.#groups, before * this.#width, this.actions * this.#width);
    const listOf = new Int32Array(this.#groups * this.actions);
    for (let g = 0; g < this.#groups; g++)
      listOf.set(this.listOf.subarray(g * before, (g + 1) * before), g * this.actions);
    this.listOf = listOf;
  }

  /** Room for `count` lists of mentions in a slot, likewise. */
  reserveLists(count: number): void {
    if (count <= this.lists) return;
    const before = this.lists * MAX_MENTIONS;
    this.lists = roundUp(count, STEP);
    const after = this.lists * MAX_MENTIONS;
    this.mentionKeys = growPool(this.mentionKeys, this.#groups, before * this.#width, after * this.#width);
    const mask = new Float32Array(this.#groups * after).fill(MASKED);
    for (let g = 0; g < this.#groups; g++) mask.set(this.mentionMask.subarray(g * before, (g + 1) * before), g * after);
    this.mentionMask = mask;
  }

  /** Books a candidate's list of mentions. @returns the row of `bags` for its vector */
  setAction(slot: number, row: number, list: number): number {
    const at = slot * this.actions + row;
    this.listOf[at] = list;
    return at;
  }

  /** Books how many mentions a list has. @returns the row of `mentionKeys` for the first of them */
  setMentions(slot: number, list: number, count: number): number {
    const first = (slot * this.lists + list) * MAX_MENTIONS;
    // Every mention is masked or set: the list may have been another one.
    this.mentionMask.fill(0, first, first + count).fill(MASKED, first + count, first + MAX_MENTIONS);
    return first;
  }

  /** Drops a slot's candidates: no list has a mention any more, and rows are written anew from 0. */
  clear(slot: number): void {
    const width = this.lists * MAX_MENTIONS;
    this.mentionMask.fill(MASKED, slot * width, (slot + 1) * width);
    this.listOf.fill(0, slot * this.actions, (slot + 1) * this.actions);
  }
}
