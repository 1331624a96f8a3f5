/**
 * KV cache of a running batch: G group slots with K members each. Its pools are fed to the engine in place, so nothing is
 * copied per call but the few new rows.
 *
 * Layouts: prompts [G, kvHeads, P, dh] · pasts [G, kvHeads, K, S, dh]. P and S are capacities that grow by regrowing the pool.
 * The candidates of each slot lie in a pool of their own (candidate-pool.ts).
 *
 * Values beyond a row's length are never cleared: the masks alone define what may be read. A row is slot · K + member; the pasts
 * of a slot lie head by head, then member by member, so that attention reads [G, kvHeads, K, S, dh] as it lies.
 *
 * Bytes of keys and values: 8 · layers · kvHeads · dh · G · (P + K · S), in float32; sharing a prompt among the K members of a
 * group saves (K − 1) · P of the tokens.
 *
 * The price of one allocation per pool is that a longer episode widens every row. Capacities fall back when the cache runs
 * empty, so a single long episode does not stay expensive for the rest of the run.
 */
import type { ModelConfig } from '../compute/model/config.ts';
import { headSize } from '../compute/model/config.ts';
import { CandidatePool } from './candidate-pool.ts';
import { growPool, MASKED, roundUp } from './grow-pool.ts';

/**
 * Steps of the capacities, which are multiples of these: pools do not grow with every token, and shapes repeat from
 * call to call.
 */
const PROMPT_STEP = 32;
const PAST_STEP = 16;

/** Capacities of a cache, in tokens and candidates of a slot. */
export interface CacheLayout {
  readonly prompt: number;
  readonly past: number;
  readonly actions: number;
  readonly lists: number;
}

/**
 * Pools of one running batch: preallocated arrays, their lengths, and the masks over them. Where the engine has a thread of its
 * own the pools lie there, in a cache that follows this one's layout; this one then keeps lengths and masks alone.
 */
export class KvCache {
  /** G, the number of group slots. */
  readonly groups: number;
  /** K, the members of each. */
  readonly members: number;
  /** Candidates of each slot. */
  readonly candidates: CandidatePool;
  /** P: capacity of a slot's prompt, in tokens. */
  prompt = PROMPT_STEP;
  /** S: capacity of a member's past, in tokens. */
  past = PAST_STEP;
  /** Pools per layer; each begins with the pool in its present layout, and may be longer. */
  promptK: Float32Array[] = [];
  promptV: Float32Array[] = [];
  pastK: Float32Array[] = [];
  pastV: Float32Array[] = [];
  /** [G, P, d] pointer keys of the prompts, for candidates that are listed later; empty without a choice head. */
  promptKeys: Float32Array;
  /** [G, P] 0 where the prompt has a token, −1e9 elsewhere; a slot without one keeps a token: no row may be empty. */
  promptMask: Float32Array;
  /** [G, K, S] likewise for the pasts; an empty past has no token. */
  pastMask: Float32Array;
  /** Tokens in each group's prompt. */
  readonly #promptLength: Int32Array;
  /** Tokens in each member's past [G·K]. */
  readonly #pastLength: Int32Array;
  readonly #config: ModelConfig;
  /** False where the pools lie in another thread. */
  readonly #isStored: boolean;
  /** Slots without a group. */
  readonly #free: number[];

  /** @param isStored false for a cache without pools */
  constructor(config: ModelConfig, groups: number, members: number, isStored = true) {
    this.#config = config;
    this.#isStored = isStored;
    this.groups = groups;
    this.members = members;
    this.candidates = new CandidatePool(groups, isStored ? config.hiddenSize : 0);
    this.#promptLength = new Int32Array(groups);
    this.#pastLength = new Int32Array(groups * members);
    this.#free = Array.from({ length: groups }, (_, slot) => groups - 1 - slot); // all, in no order that matters
    for (let layer = 0; layer < config.layers; layer++) {
      this.promptK.push(new Float32Array(this.#promptSize));
      this.promptV.push(new Float32Array(this.#promptSize));
      this.pastK.push(new Float32Array(this.#pastSize));
      this.pastV.push(new Float32Array(this.#pastSize));
    }
    this.promptKeys = new Float32Array(groups * this.prompt * this.#keyWidth);
    this.promptMask = this.#freshPromptMask();
    this.pastMask = this.#freshPastMask();
  }

  /**
   * Bytes of keys and values, at most: when every member is as long as the model reads. The room that pools are grown
   * ahead is left out.
   */
  static countMaxBytes(config: ModelConfig, groups: number, members: number): number {
    const { layers, kvHeads, maxPositions } = config;
    return 8 * layers * kvHeads * headSize(config) * groups * members * maxPositions;
  }

  /** True when no slot is free. */
  get full(): boolean {
    return this.#free.length === 0;
  }

  /** True when no slot is taken. */
  get empty(): boolean {
    return this.#free.length === this.groups;
  }

  /** Takes the lowest free slot, which is empty: calls read slots up to the highest taken one, so low ones keep them small. */
  acquire(): number {
    let at = 0;
    for (let i = 1; i < this.#free.length; i++) if (this.#free[i]! < this.#free[at]!) at = i;
    return this.#free.splice(at, 1)[0]!;
  }

  /** Frees a slot: its prompt and its members' pasts are masked from now on. */
  release(slot: number): void {
    this.#free.push(slot);
    this.setPrompt(slot, 0);
    for (let member = 0; member < this.members; member++) this.setPast(slot * this.members + member, 0);
    // The next fill decides the capacities anew. Arrays stay: they are reused in place, and masks are made with the width.
    if (this.empty) this.past = this.prompt = 0;
  }

  /** Tokens in the past of a row, slot · K + member. */
  pastOf(row: number): number {
    return this.#pastLength[row]!;
  }

  /** Sets the length of a row's past: masked beyond it, readable up to it. */
  setPast(row: number, length: number): void {
    const before = this.#pastLength[row]!;
    this.#pastLength[row] = length;
    const start = row * this.past;
    // Only the difference is written: a mask of [G, K, S] would otherwise be rewritten for every token of every member.
    if (length > before) this.pastMask.fill(0, start + before, start + length);
    else this.pastMask.fill(MASKED, start + length, start + Math.min(before, this.past));
  }

  /** Capacities at present. */
  get layout(): CacheLayout {
    const { prompt, past } = this;
    const { actions, lists } = this.candidates;
    return { prompt, past, actions, lists };
  }

  /** Takes another cache's layout, so that its rows are this one's. A capacity that fell was emptied before it grew. */
  follow({ prompt, past, actions, lists }: CacheLayout): void {
    if (prompt < this.prompt) this.prompt = 0;
    if (past < this.past) this.past = 0;
    this.reservePrompt(prompt);
    this.reservePast(past);
    this.candidates.reserveActions(actions);
    this.candidates.reserveLists(lists);
  }

  /** Room for prompts of `length` tokens: regrows the pools where they are too short. */
  reservePrompt(length: number): void {
    if (length <= this.prompt) return;
    const before = this.prompt;
    this.prompt = roundUp(length, PROMPT_STEP);
    const { kvHeads } = this.#config;
    const grow = (pool: Float32Array) =>
      growPool(pool, this.groups * kvHeads, before * this.#dh, this.prompt * this.#dh);
    this.promptK = this.promptK.map(grow);
    this.promptV = this.promptV.map(grow);
    const width = this.#keyWidth;
    this.promptKeys = growPool(this.promptKeys, this.groups, before * width, this.prompt * width);
    this.promptMask = this.#freshPromptMask();
  }

  /** Room for pasts of `length` tokens, likewise. */
  reservePast(length: number): void {
    if (length <= this.past) return;
    const before = this.past;
    this.past = roundUp(length, PAST_STEP);
    const rows = this.groups * this.#config.kvHeads * this.members;
    const grow = (pool: Float32Array) => growPool(pool, rows, before * this.#dh, this.past * this.#dh);
    this.pastK = this.pastK.map(grow);
    this.pastV = this.pastV.map(grow);
    this.pastMask = this.#freshPastMask();
  }

  /**
   * Stores a prompt's keys and values of one layer.
   * @param k [kvHeads, stride, dh], of which the first `length` tokens of each head count
   */
  writePrompt(slot: number, layer: number, k: Float32Array, v: Float32Array, stride: number, length: number): void {
    const dh = this.#dh;
    const { kvHeads } = this.#config;
    for (let head = 0; head < kvHeads; head++) {
      const from = head * stride * dh;
      const to = (slot * kvHeads + head) * this.prompt * dh;
      this.promptK[layer]!.set(k.subarray(from, from + length * dh), to);
      this.promptV[layer]!.set(v.subarray(from, from + length * dh), to);
    }
    this.setPrompt(slot, length);
  }

  /** Stores the keys and values of a row's tokens `at` … `at + count − 1`, of one layer: rows of [kvHeads·dh] from `first` on. */
  writePast(
    row: number,
    at: number,
    count: number,
    layer: number,
    k: Float32Array,
    v: Float32Array,
    first: number,
  ): void {
    const dh = this.#dh;
    const { kvHeads } = this.#config;
    const member = row % this.members;
    const slot = (row - member) / this.members;
    const pastK = this.pastK[layer]!;
    const pastV = this.pastV[layer]!;
    const width = kvHeads * dh;
    // Head by head: what is written is then one run of memory.
    for (let head = 0; head < kvHeads; head++) {
      let from = first * width + head * dh;
      let to = (((slot * kvHeads + head) * this.members + member) * this.past + at) * dh;
      for (let t = 0; t < count; t++, from += width) {
        for (let i = from; i < from + dh; i++, to++) {
          pastK[to] = k[i]!;
          pastV[to] = v[i]!;
        }
      }
    }
  }

  /** Copies the first `length` tokens of a row's past to another row, which then holds those alone. */
  copyPast(from: number, to: number, length: number): void {
    const { kvHeads } = this.#config;
    const startOf = (row: number, head: number) => {
      const member = row % this.members;
      const slot = (row - member) / this.members;
      return ((slot * kvHeads + head) * this.members + member) * this.past * this.#dh;
    };
    for (const pool of [...this.pastK, ...this.pastV]) {
      for (let head = 0; head < kvHeads; head++) {
        const start = startOf(from, head);
        pool.copyWithin(startOf(to, head), start, start + length * this.#dh);
      }
    }
    this.setPast(to, length);
  }

  /**
   * Sets the length of a slot's prompt; at least one token stays readable, or the softmax of an idle row would be over
   * nothing.
   */
  setPrompt(slot: number, length: number): void {
    this.#promptLength[slot] = length;
    const start = slot * this.prompt;
    const end = Math.min(this.prompt, Math.max(1, length));
    this.promptMask.fill(0, start, start + end).fill(MASKED, start + end, start + this.prompt);
  }

  /** Mask over prompts at the present capacity, made from the lengths: rows move when a pool is regrown. */
  #freshPromptMask(): Float32Array {
    const { groups, prompt } = this;
    const mask = new Float32Array(groups * prompt).fill(MASKED);
    for (let g = 0; g < groups; g++) mask.fill(0, g * prompt, g * prompt + Math.max(1, this.#promptLength[g]!));
    return mask;
  }

  /** Mask over pasts, likewise. Unlike a prompt, a past may be empty: the prompt keeps the softmax from being over nothing. */
  #freshPastMask(): Float32Array {
    const { past } = this;
    const mask = new Float32Array(this.groups * this.members * past).fill(MASKED);
    for (let row = 0; row < this.#pastLength.length; row++) {
      mask.fill(0, row * past, row * past + this.#pastLength[row]!);
    }
    return mask;
  }

  /** Numbers of a token in a head; none where the pools lie elsewhere. */
  get #dh(): number {
    return this.#isStored ? headSize(this.#config) : 0;
  }

  get #keyWidth(): number {
    const { choiceHead, hiddenSize } = this.#config;
    return this.#isStored && choiceHead ? hiddenSize : 0;
  }

  get #promptSize(): number {
    return this.groups * this.#config.kvHeads * this.prompt * this.#dh;
  }

  get #pastSize(): number {
    return this.groups * this.#config.kvHeads * this.members * this.past * this.#dh;
  }
}
