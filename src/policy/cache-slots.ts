/**
 * Cache slots: which episode lies in which row of which KV cache. A slot holds a prompt and the members that follow it:
 * a group where its members share the prompt, one episode where they do not. It computes nothing.
 *
 * Caches are made as they are needed, one per world and number of members K, and a further one where all slots are taken.
 */

import type { ModelConfig } from '../compute/model/config.ts';
import { MentionBook } from '../compute/model/feeds.ts';
import { equalTokens, type Transcript } from '../text/reading/transcript.ts';
import { type GroupState, type MemberState, type RunningBatch, resetGroup } from './episode-state.ts';
import { KvCache } from './kv-cache.ts';
import type { ActRequest } from './policy.ts';

/** Model and limits of the slots. */
export interface CacheSlotsOptions {
  readonly config: ModelConfig;
  /** Turns per engine call, at most; a cache has as many slots as fill one call. */
  readonly maxBatch: number;
  /** False where the caches' pools lie in another thread. */
  readonly isStored: boolean;
  /** Called with a group whose prompt is not wanted any more: its slot was freed, or its text rendered anew. */
  readonly onPromptDropped: (group: GroupState) => void;
}

/** Slots of all running episodes. */
export class CacheSlots {
  readonly #options: CacheSlotsOptions;
  /**
   * Batches by world and number of members K of their slots: a call reads one [G, K] cache, so groups of another size, and
   * episodes with a prompt of their own (K = 1), lie in another batch.
   */
  readonly #batches: RunningBatch[] = [];
  /** Groups by `g<group>` where the prompt is shared, by `e<episode>` where it is not. */
  readonly #groups = new Map<string, GroupState>();
  readonly #members = new Map<number, MemberState>();

  constructor(options: CacheSlotsOptions) {
    this.#options = options;
  }

  /** Number of members that wait for an action, and that a call could take. */
  get waiting(): number {
    let waiting = 0;
    for (const batch of this.#batches) if (!batch.calling) waiting += batch.waiting.size;
    return waiting;
  }

  /** True when in some batch without a call every member waits for an action. */
  get hasCompleteBatch(): boolean {
    return this.#batches.some(({ live, waiting, calling }) => !calling && live > 0 && waiting.size === live);
  }

  /** Gets the member of an episode; undefined where the episode has none. */
  get(episode: number): MemberState | undefined {
    return this.#members.get(episode);
  }

  /** Opens a row for a new episode: beside its group where the prompt is shared, in a slot of its own where it is not. */
  open({ episode, group: id, member: index, groupSize, world }: ActRequest, transcript: Transcript): MemberState {
    // An agent's program may begin otherwise in each episode of a group: the first prompt is the group's.
    const first = this.#groups.get(`g${id}`)?.prompt;
    const shared = transcript.prompt.shared && (!first || equalTokens(first.tokens, transcript.prompt.tokens));
    const group = shared
      ? this.#groupOf(`g${id}`, groupSize, world, transcript)
      : this.#groupOf(`e${episode}`, 1, world, transcript);
    const member: MemberState = {
      episode,
      group,
      row: group.slot * group.batch.cache.members + (shared ? index : 0),
      transcript,
      prompt: transcript.prompt,
      candidates: [],
      request: undefined,
      since: 0,
      prefillMs: 0,
      decodeMs: 0,
      run: undefined,
    };
    this.#members.set(episode, member);
    group.batch.cache.setPast(member.row, 0); // the row may have had another episode
    return member;
  }

  /** Follows a prompt that was rendered anew: nothing that was cached under the former one holds. */
  followPrompt(member: MemberState): void {
    const { prompt } = member.transcript;
    if (prompt === member.prompt) return;
    member.prompt = prompt;
    // In a slot of several members the prompt's cache is everybody's; only a slot of one can be read over in place.
    if (member.group.batch.cache.members > 1 || prompt.shared !== member.group.prompt.shared) {
      // The others go on under the old prompt.
      const { world } = member.group.batch;
      this.#leave(member.group);
      member.group = this.#groupOf(`e${member.episode}`, 1, world, member.transcript);
      member.row = member.group.slot;
    } else {
      this.#options.onPromptDropped(member.group);
      resetGroup(member.group, prompt);
    }
    member.candidates.length = 0;
    member.group.batch.cache.setPast(member.row, 0);
  }

  /** Releases an episode; the last one of a group frees its slot. @returns its member; undefined where it had none */
  release(episode: number): MemberState | undefined {
    const member = this.#members.get(episode);
    if (!member) return undefined;
    this.#members.delete(episode);
    member.group.batch.waiting.delete(member);
    this.#leave(member.group);
    return member;
  }

  /** Marks everything as unread: the calls that next need it read it again. */
  markUnread(): void {
    for (const group of this.#groups.values()) {
      group.dirty = true;
      group.vectors = group.pointed = 0;
    }
    for (const { group, row } of this.#members.values()) group.batch.cache.setPast(row, 0);
  }

  /** Removes all episodes, and their caches. */
  clear(): void {
    this.#members.clear();
    this.#groups.clear();
    this.#batches.length = 0;
  }

  /** Finds the batch without a call with most members that wait; undefined where none waits. */
  findBusiest(): RunningBatch | undefined {
    let best: RunningBatch | undefined;
    // The fullest first: engine time per turn falls with the size of the batch.
    for (const batch of this.#batches) {
      if (!batch.calling && batch.waiting.size > (best?.waiting.size ?? 0)) best = batch;
    }
    return best;
  }

  /** Slot of a group, opened where it is new, with one more member in it. @param members K of the slot */
  #groupOf(key: string, members: number, world: string | undefined, { prompt }: Transcript): GroupState {
    let group = this.#groups.get(key);
    if (!group) {
      const batch = this.#batchOf(members, world);
      const slot = batch.cache.acquire();
      const empty = { dirty: true, candidates: [], rows: new Map(), vectors: 0, live: 0 };
      group = { key, batch, slot, prompt, ...empty, mentions: new MentionBook(prompt), pointed: 0 };
      batch.cache.candidates.clear(slot);
      this.#groups.set(key, group);
    }
    group.live++;
    group.batch.live++;
    return group;
  }

  /** Batch of a world with a free slot for `members` members. */
  #batchOf(members: number, world: string | undefined): RunningBatch {
    const free = this.#batches.find((one) => !one.cache.full && one.cache.members === members && one.world === world);
    if (free) return free;
    const { config, maxBatch, isStored } = this.#options;
    // As many slots as fill a call: more episodes than that would wait for each other anyway, and open a further batch.
    const cache = new KvCache(config, Math.max(1, Math.floor(maxBatch / members)), members, isStored);
    const batch = { cache, world, live: 0, waiting: new Set<MemberState>(), calling: false };
    this.#batches.push(batch);
    return batch;
  }

  /** One member fewer; the last one frees the slot. */
  #leave(group: GroupState): void {
    group.batch.live--;
    group.live--;
    if (group.live > 0) return;
    this.#options.onPromptDropped(group);
    group.batch.cache.release(group.slot);
    this.#groups.delete(group.key);
  }
}
