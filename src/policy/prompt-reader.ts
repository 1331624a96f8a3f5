/**
 * Prompt reader: reads prompts of language models through the program that decides, a bounded number of tokens per
 * call. So a whole page never holds up members that are in the middle of a run. An engine needs no second program with
 * its own copy of the weights.
 *
 * A prompt under way lies in a cache of the reader's own, as a past that grows by each call. When it is whole it is copied
 * to the prompt of its group's slot. The newest one stays: prompts of a world begin alike (its instructions), and what a
 * prompt has in common with that one is copied instead of read.
 *
 * @see Agrawal et al. 2023 (Sarathi, chunked prefills), https://arxiv.org/abs/2308.16369
 */
import type { HostTensor, Program } from '../compute/engine/engine.ts';
import { headSize, type ModelConfig } from '../compute/model/config.ts';
import { f32 } from '../compute/model/feeds.ts';
import { decisionFeeds, keepPast, poolFeeds, type Reading } from './decision-feeds.ts';
import type { GroupState } from './episode-state.ts';
import { KvCache } from './kv-cache.ts';

/** Default of the prompt tokens that one call reads at most. */
const PROMPT_TOKENS_PER_CALL = 512;
/** Prompts that are under way at the same time. */
const PROMPTS = 4;

const NO_FOCUS: ReadonlySet<number> = new Set();
/** Prompt of what is itself a prompt. */
const NOTHING = { tokens: new Int32Array(0), focus: NO_FOCUS } as const;

/** Part of a prompt that a call reads. */
interface Part {
  readonly group: GroupState;
  readonly reading: Reading;
}

export class PromptReader {
  readonly #config: ModelConfig;
  readonly #cache: KvCache;
  readonly #tokensPerCall: number;
  /** Slots of the groups whose prompts are under way, oldest first. */
  readonly #slots = new Map<GroupState, number>();
  /** Newest prompt that was read whole. */
  #kept: { readonly slot: number; readonly tokens: Int32Array } | undefined;

  constructor(config: ModelConfig, tokensPerCall = PROMPT_TOKENS_PER_CALL) {
    this.#config = config;
    this.#tokensPerCall = tokensPerCall;
    this.#cache = new KvCache(config, PROMPTS + 1, 1);
  }

  /** True for a model whose prompts this reader may read: causally, with nothing kept of them but keys and values. */
  static reads({ prefixBidirectional, choiceHead }: ModelConfig): boolean {
    return !prefixBidirectional && !choiceHead;
  }

  /**
   * Reads on in the prompts under way, then in those of `groups`; one that has been read whole is no longer dirty.
   * @param program a compiled `decodeGraph`
   * @returns tokens read
   */
  async read(
    groups: readonly GroupState[],
    program: Program,
    weights: Readonly<Record<string, HostTensor>>,
  ): Promise<number> {
    const parts = this.#parts(groups);
    if (parts.length === 0) return 0;
    const readings = parts.map(({ reading }) => reading);
    const { feeds, slots, tokens } = decisionFeeds(this.#config, this.#cache, readings);
    Object.assign(feeds, poolFeeds(this.#config, this.#cache, slots));
    // Nothing comes before these tokens: a slot without a prompt shows one of its tokens otherwise.
    const mask = feeds['prompt.mask']!;
    feeds['prompt.mask'] = f32(mask.shape, new Float32Array(mask.shape.reduce((a, b) => a * b, 1)).fill(-1e9));
    const out = await program.run({ ...weights, ...feeds });
    keepPast(this.#config, this.#cache, readings, out);
    for (const { group, reading } of parts) {
      if (reading.cached + reading.fresh === group.prompt.tokens.length) this.#finish(group);
    }
    return tokens;
  }

  /** Drops what was read of a group's prompt: it ended, or its prompt or the weights are others now. */
  drop(group: GroupState): void {
    const slot = this.#slots.get(group);
    if (slot === undefined) return;
    this.#slots.delete(group);
    this.#cache.release(slot);
  }

  /** Forgets the prompt that was read last: it was read under other weights. */
  forgetNewest(): void {
    if (this.#kept) this.#cache.release(this.#kept.slot);
    this.#kept = undefined;
  }

  /** Drops all. */
  clear(): void {
    this.forgetNewest();
    for (const group of [...this.#slots.keys()]) this.drop(group);
  }

  #parts(groups: readonly GroupState[]): Part[] {
    const parts: Part[] = [];
    let budget = this.#tokensPerCall;
    // Those under way first, of other batches too: they hold the slots that the others wait for.
    const begun = [...this.#slots.keys()];
    for (const group of [...begun, ...groups.filter((one) => !this.#slots.has(one))]) {
      if (budget === 0) break;
      const slot = this.#slots.get(group) ?? (this.#slots.size < PROMPTS ? this.#begin(group) : undefined);
      if (slot === undefined) break;
      const { tokens } = group.prompt;
      const cached = this.#cache.pastOf(slot);
      const fresh = Math.min(budget, tokens.length - cached);
      budget -= fresh;
      const member = { episode: -1, row: slot, transcript: { tokens }, group: { slot, prompt: NOTHING } };
      parts.push({ group, reading: { member, cached, fresh, decides: false } });
    }
    return parts;
  }

  /** Begins a prompt, with what it has in common with the newest one; a token at least is left to read. @returns its slot */
  #begin(group: GroupState): number {
    const slot = this.#cache.acquire();
    this.#slots.set(group, slot);
    if (this.#kept) {
      const { tokens } = group.prompt;
      const most = Math.min(tokens.length - 1, this.#kept.tokens.length);
      let same = 0;
      while (same < most && tokens[same] === this.#kept.tokens[same]) same++;
      if (same > 0) this.#cache.copyPast(this.#kept.slot, slot, same);
    }
    return slot;
  }

  /** Copies a prompt that has been read whole to its group's slot. */
  #finish(group: GroupState): void {
    const { kvHeads, layers } = this.#config;
    const { past } = this.#cache;
    const { cache } = group.batch;
    const { length } = group.prompt.tokens;
    const width = kvHeads * past * headSize(this.#config);
    const at = this.#slots.get(group)! * width;
    cache.reservePrompt(length);
    for (let layer = 0; layer < layers; layer++) {
      const k = this.#cache.pastK[layer]!.subarray(at, at + width);
      const v = this.#cache.pastV[layer]!.subarray(at, at + width);
      cache.writePrompt(group.slot, layer, k, v, past, length);
    }
    group.dirty = false;
    this.forgetNewest();
    this.#kept = { slot: this.#slots.get(group)!, tokens: group.prompt.tokens };
    this.#slots.delete(group);
    // Beside a prompt that is kept the cache never runs empty, and a long one would stay dear.
    if (this.#slots.size === 0 && past > 4 * length) this.forgetNewest();
  }
}
