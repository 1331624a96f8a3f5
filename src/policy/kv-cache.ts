/**
 * KV cache of a running batch: G group slots with K members each. Its pools are fed to the engine in place, so nothing is
 * copied per call but the few new rows.
 *
 * Layouts: prompts [G, kvHeads, P, dh] · pasts [G, kvHeads, K, S, dh] · action bags [G, C, d] · mention keys
 * [G, I·M, d]. P, S, C and I are capacities that grow by regrowing the pool.
 *
 * Values beyond a row's length are never cleared: the masks alone say what may be read. A row is slot · K + member; the pasts
 * of a slot lie head by head, then member by member, so that attention reads [G, kvHeads, K, S, dh] as it lies.
 *
 * Bytes of keys and values: 8 · layers · kvHeads · dh · G · (P + K · S), in float32; sharing a prompt among the K members of a
 * group saves (K − 1) · P of the tokens.
 *
 * The price of one allocation per pool is that a longer episode widens every row. Capacities fall back when the cache runs
 * empty, so a single long episode does not stay expensive for the rest of the run.
 */
import type { ModelConfig } from '../model/config.ts';
import { headSize } from '../model/config.ts';
import { MAX_MENTIONS } from '../reading/transcript.ts';

/** Mask value: added to a score, it leaves no probability in f32; −∞ would make a row without any token NaN. */
const MASKED = -1e9;
/**
 * Steps of the capacities, which are multiples of these: pools do not grow with every token, and shapes repeat from
 * call to call.
 */
const PROMPT_STEP = 32;
const PAST_STEP = 16;
const ACTION_STEP = 8;
const LIST_STEP = 8;

/** Factor by which a pool that has to grow is made longer than it has to be: it grows step by step. */
const HEADROOM = 1.5;

/** Pools of one running batch: preallocated arrays, their lengths, and the masks over them. */
export class KvCache {
  /** G, the number of group slots. */
  readonly groups: number;
  /** K, the members of each. */
  readonly members: number;
  /** P: capacity of a slot's prompt, in tokens. */
  prompt = PROMPT_STEP;
  /** S: capacity of a member's past, in tokens. */
  past = PAST_STEP;
  /** C: capacity of a slot's candidate actions. */
  actions = ACTION_STEP;
  /** I: capacity of a slot's different lists of mentions. */
  lists = LIST_STEP;
  /** Pools per layer; each begins with the pool in its present layout, and may be longer. */
  promptK: Float32Array[] = [];
  promptV: Float32Array[] = [];
  pastK: Float32Array[] = [];
  pastV: Float32Array[] = [];
  /** [G, P] 0 where the prompt has a token, −1e9 elsewhere; a slot without one keeps a token: no row may be empty. */
  promptMask: Float32Array;
  /** [G, K, S] likewise for the pasts; an empty past has no token. */
  pastMask: Float32Array;
  /** [G, C, d] one vector per candidate text. */
  bags: Float32Array;
  /** [G, C] list of mentions of each candidate. */
  listOf: Int32Array;
  /** [G, I·M, d] pointer keys of the prompt positions in each list of mentions. */
  mentionKeys: Float32Array;
  /** [G, I, M] 0 where a list has that mention, −1e9 elsewhere. */
  mentionMask: Float32Array;
  /** Tokens in each group's prompt. */
  readonly #promptLength: Int32Array;
  /** Tokens in each member's past [G·K]. */
  readonly #pastLength: Int32Array;
  readonly #config: ModelConfig;
  /** Slots without a group. */
  readonly #free: number[];

  constructor(config: ModelConfig, groups: number, members: number) {
    this.#config = config;
    this.groups = groups;
    this.members = members;
    this.#promptLength = new Int32Array(groups);
    this.#pastLength = new Int32Array(groups * members);
    this.#free = Array.from({ length: groups }, (_, slot) => groups - 1 - slot); // all, in no order that matters
    for (let layer = 0; layer < config.layers; layer++) {
      this.promptK.push(new Float32Array(this.#promptSize));
      this.promptV.push(new Float32Array(this.#promptSize));
      this.pastK.push(new Float32Array(this.#pastSize));
      this.pastV.push(new Float32Array(this.#pastSize));
    }
    this.promptMask = this.#freshPromptMask();
    this.pastMask = this.#freshPastMask();
    this.bags = new Float32Array(groups * this.actions * config.hiddenSize);
    this.listOf = new Int32Array(groups * this.actions);
    this.mentionKeys = new Float32Array(groups * this.lists * MAX_MENTIONS * config.hiddenSize);
    this.mentionMask = new Float32Array(groups * this.lists * MAX_MENTIONS).fill(MASKED);
  }

  /**
   * Bytes of keys and values, at most: when every member is as long as the model reads. The room that pools are grown
   * ahead is left out.
   */
  static mostBytes(config: ModelConfig, groups: number, members: number): number {
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
    this.#setPrompt(slot, 0);
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

  /** Room for prompts of `length` tokens: regrows the pools where they are too short. */
  reservePrompt(length: number): void {
    if (length <= this.prompt) return;
    const before = this.prompt;
    this.prompt = roundUp(length, PROMPT_STEP);
    const { kvHeads } = this.#config;
    const grow = (pool: Float32Array) => regrow(pool, this.groups * kvHeads, before * this.#dh, this.prompt * this.#dh);
    this.promptK = this.promptK.map(grow);
    this.promptV = this.promptV.map(grow);
    this.promptMask = this.#freshPromptMask();
  }

  /** Room for pasts of `length` tokens, likewise. */
  reservePast(length: number): void {
    if (length <= this.past) return;
    const before = this.past;
    this.past = roundUp(length, PAST_STEP);
    const rows = this.groups * this.#config.kvHeads * this.members;
    const grow = (pool: Float32Array) => regrow(pool, rows, before * this.#dh, this.past * this.#dh);
    this.pastK = this.pastK.map(grow);
    this.pastV = this.pastV.map(grow);
    this.pastMask = this.#freshPastMask();
  }

  /** Room for `count` candidate actions in a group, likewise. */
  reserveActions(count: number): void {
    if (count <= this.actions) return;
    const before = this.actions;
    this.actions = roundUp(count, ACTION_STEP);
    const { hiddenSize: d } = this.#config;
    const { groups, actions } = this;
    this.bags = regrow(this.bags, groups, before * d, actions * d);
    const listOf = new Int32Array(groups * actions);
    for (let g = 0; g < groups; g++) listOf.set(this.listOf.subarray(g * before, (g + 1) * before), g * actions);
    this.listOf = listOf;
  }

  /** Room for `count` lists of mentions in a group, likewise. */
  reserveLists(count: number): void {
    if (count <= this.lists) return;
    const before = this.lists;
    this.lists = roundUp(count, LIST_STEP);
    const { groups, lists } = this;
    const keyWidth = MAX_MENTIONS * this.#config.hiddenSize;
    this.mentionKeys = regrow(this.mentionKeys, groups, before * keyWidth, lists * keyWidth);
    const mask = new Float32Array(groups * lists * MAX_MENTIONS).fill(MASKED);
    const width = before * MAX_MENTIONS;
    for (let g = 0; g < groups; g++)
      mask.set(this.mentionMask.subarray(g * width, (g + 1) * width), g * lists * MAX_MENTIONS);
    this.mentionMask = mask;
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
    this.#setPrompt(slot, length);
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

  /** Stores a candidate's vector, and which list of mentions it has. */
  writeAction(slot: number, row: number, bag: Float32Array, list: number): void {
    const at = slot * this.actions + row;
    this.bags.set(bag, at * this.#config.hiddenSize);
    this.listOf[at] = list;
  }

  /** Stores a list of mentions: the pointer keys [·, d] of its positions in the prompt. */
  writeMentions(slot: number, list: number, mentions: readonly number[], promptKeys: Float32Array): void {
    const { hiddenSize: d } = this.#config;
    const at = slot * this.lists + list;
    // Every mention is masked or set: the list may have been another one.
    for (let m = 0; m < MAX_MENTIONS; m++) {
      const position = mentions[m];
      this.mentionMask[at * MAX_MENTIONS + m] = position === undefined ? MASKED : 0;
      if (position !== undefined) {
        this.mentionKeys.set(promptKeys.subarray(position * d, (position + 1) * d), (at * MAX_MENTIONS + m) * d);
      }
    }
  }

  /** Drops a group's candidates: no list has a mention any more, and rows are written anew from 0. */
  clearActions(slot: number): void {
    const width = this.lists * MAX_MENTIONS;
    this.mentionMask.fill(MASKED, slot * width, (slot + 1) * width);
    this.listOf.fill(0, slot * this.actions, (slot + 1) * this.actions);
  }

  /** Length of a slot's prompt; at least one token stays readable, or the softmax of an idle row would be over nothing. */
  #setPrompt(slot: number, length: number): void {
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

  get #dh(): number {
    return headSize(this.#config);
  }

  get #promptSize(): number {
    return this.groups * this.#config.kvHeads * this.prompt * this.#dh;
  }

  get #pastSize(): number {
    return this.groups * this.#config.kvHeads * this.members * this.past * this.#dh;
  }
}

function roundUp(n: number, step: number): number {
  return Math.ceil(n / step) * step;
}

/**
 * Regrows a pool: `rows` rows of width `from` at width `to`, in place where the pool is long enough. What lies between a row's
 * old end and its new one is left as it is: masks keep it from being read.
 * @returns the pool, or a longer one: with room to spare, for a pool grows step by step
 */
function regrow(pool: Float32Array, rows: number, from: number, to: number): Float32Array {
  const size = rows * to;
  if (size > pool.length) {
    const next = new Float32Array(from > 0 ? Math.ceil(size * HEADROOM) : size);
    for (let row = 0; row < rows; row++) next.set(pool.subarray(row * from, (row + 1) * from), row * to);
    return next;
  }
  // Backwards, since rows only move to the right: the last one has to leave before another lands on it.
  for (let row = rows - 1; row > 0 && from > 0; row--) pool.copyWithin(row * to, row * from, (row + 1) * from);
  return pool;
}
