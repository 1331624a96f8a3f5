/**
 * Inputs of one call: the tokens that members have not read yet, and the pools of the cache in place.
 *
 * Sizes: G slots · K members of each · N new tokens in all, packed · T new tokens of one member at the most · S tokens of the
 * longest past, the new ones included. Linear layers run over the N packed rows; attention over the padded [G, K, T], which
 * `episodes.index` fills (−1 is padding) and `episodes.inverse` reads back.
 */
import type { HostTensor } from '../compute/engine/engine.ts';
import { headSize, type ModelConfig } from '../compute/model/config.ts';
import { f32, i32, PAD, steps } from '../compute/model/feeds.ts';
import { MAX_MENTIONS, type Prompt } from '../text/reading/transcript.ts';
import type { CandidatePool } from './candidate-pool.ts';
import type { MemberState } from './episode-state.ts';
import type { KvCache } from './kv-cache.ts';

/**
 * New tokens of one member per call, at most; longer readings take several calls. Attention is padded to the longest
 * reading, so without a bound one member that reads a page would cost every other row of the call as much.
 */
const MAX_NEW_TOKENS = 64;

/**
 * Costs of a call of the choice decoder: of the call as such, and of a row of the cache, whose candidates are scored
 * whether or not it reads anything. Measured on small models; the unit is one new token's attention to one key.
 */
const CALL_COST = 25_000;
const ROW_COST = 1_000;

/** Reader of some tokens: facts that a call needs of it. */
interface Reader extends Pick<MemberState, 'episode' | 'row'> {
  readonly transcript: { readonly tokens: ArrayLike<number> };
  readonly group: { readonly slot: number; readonly prompt: Pick<Prompt, 'tokens' | 'focus'> };
}

/** Tokens that a call reads for a member, or of a prompt. */
export interface Reading<M extends Reader = Reader> {
  readonly member: M;
  /** Tokens after the prompt that are cached, and that the call reads. */
  readonly cached: number;
  readonly fresh: number;
  /** True when the call reads the last token, and so decides. */
  readonly decides: boolean;
}

/**
 * Readings of a call: of each member at most `most` tokens, from the first that is not cached.
 * @param most MAX_NEW_TOKENS where absent
 */
export function readingsOf(
  members: readonly MemberState[],
  cache: KvCache,
  most = MAX_NEW_TOKENS,
): readonly Reading<MemberState>[] {
  return members.map((member) => {
    const cached = cache.pastOf(member.row);
    const left = unreadOf(member, cache);
    return { member, cached, fresh: Math.min(left, most), decides: left <= most };
  });
}

function unreadOf({ transcript, row }: MemberState, cache: KvCache): number {
  return transcript.tokens.length - cache.pastOf(row);
}

/** Tokens worth reading (below) for these members of a cache, which are in the order of their rows. */
export function worthReading(members: readonly MemberState[], cache: KvCache): number {
  const unread = members.map((member) => unreadOf(member, cache));
  const rows = (members.at(-1)!.group.slot + 1) * cache.members;
  return tokensWorthReading(unread, rows, cache.prompt + cache.past);
}

/**
 * New tokens of one member that a call of the choice decoder should read, at most: as many as let it read the most
 * tokens for what it costs. After an answer of some ten tokens few members have more to read than two or three (a stage
 * of an action). A call that read whole answers would cost all rows as much as the longest.
 * @param unread tokens that each member has not read yet
 * @param rows rows of the cache that the call computes, idle ones too
 * @param keys positions that every new token is compared with, padding included
 */
export function tokensWorthReading(unread: readonly number[], rows: number, keys: number): number {
  let best = MAX_NEW_TOKENS;
  let bestRate = 0;
  for (const most of new Set(unread.map((left) => Math.min(left, MAX_NEW_TOKENS)))) {
    const read = unread.reduce((sum, left) => sum + Math.min(left, most), 0);
    const rate = read / (CALL_COST + rows * (ROW_COST + most * (keys + most)));
    if (rate > bestRate || (rate === bestRate && most > best)) [best, bestRate] = [most, rate];
  }
  return best;
}

/**
 * Feeds of a call but for its pools: N new tokens of members in the first G slots, T of one member at the most. Makes room in the cache for
 * them.
 * @throws {RangeError} for an episode longer than the model reads
 */
export function decisionFeeds(
  config: ModelConfig,
  cache: KvCache,
  readings: readonly Reading[],
): { readonly feeds: Record<string, HostTensor>; readonly slots: number; readonly tokens: number } {
  let G = 0;
  let N = 0;
  let T = 0;
  let S = 1;
  for (const { member, cached, fresh } of readings) {
    G = Math.max(G, member.group.slot + 1); // slots up to the highest: those between are idle rows
    N += fresh;
    T = Math.max(T, fresh);
    S = Math.max(S, cached + fresh);
  }
  // Room before the feeds are made: growing replaces the pools' arrays, which feeds point into.
  cache.reservePast(S);
  cache.reservePrompt(1); // no dimension may be 0
  return {
    feeds: {
      ...tokenFeeds(config, cache.members, readings, { G, N, T }),
      ...maskFeeds(config, cache, G),
      ...(config.sameTokenBias === undefined ? {} : feedPadded(cache, readings, G, T)),
    },
    slots: G,
    tokens: N,
  };
}

/** New tokens, packed [N], and their places in the padded layout [G, K, T]. */
function tokenFeeds(
  config: ModelConfig,
  K: number,
  readings: readonly Reading[],
  { G, N, T }: { readonly G: number; readonly N: number; readonly T: number },
): Record<string, HostTensor> {
  const ids = new Int32Array(N);
  const previous1 = new Int32Array(N);
  const previous2 = new Int32Array(N);
  const focus = new Float32Array(N);
  const positions = new Int32Array(N);
  const index = new Int32Array(G * K * T).fill(-1); // padded place → packed row
  const inverse = new Int32Array(N); // packed row → padded place
  const deciding = new Int32Array(G * K).fill(-1); // row of the cache → packed row of its last token
  const decidingInverse = new Int32Array(N).fill(-1);
  let n = 0;
  for (const { member, cached, fresh, decides } of readings) {
    const { row, episode } = member;
    const { tokens } = member.transcript;
    const { tokens: prompt, focus: focusIds } = member.group.prompt;
    const P = prompt.length;
    if (P + cached + fresh > config.maxPositions) {
      throw new RangeError(
        `policy: episode ${episode} is ${P + cached + fresh} tokens long; the model reads ${config.maxPositions} (raise model.maxPositions or shorten the horizon)`,
      );
    }
    // The two tokens before the first new one: of the cached past, or of the prompt's end where the past is that short.
    let before1 = cached > 0 ? tokens[cached - 1]! : (prompt[P - 1] ?? PAD);
    let before2 = cached > 1 ? tokens[cached - 2]! : (prompt[P - 2 + cached] ?? PAD);
    for (let t = 0; t < fresh; t++, n++) {
      const id = tokens[cached + t]!;
      ids[n] = id;
      previous1[n] = before1;
      previous2[n] = before2;
      before2 = before1;
      before1 = id;
      if (focusIds.has(id)) focus[n] = 1;
      positions[n] = P + cached + t;
      inverse[n] = row * T + t;
      index[row * T + t] = n;
    }
    if (decides) {
      deciding[row] = n - 1;
      decidingInverse[n - 1] = row;
    }
  }
  const feeds: Record<string, HostTensor> = {
    'tokens.ids': i32([N], ids),
    'tokens.positions': i32([N], positions),
    'episodes.index': i32([G, K, T], index),
    'episodes.inverse': i32([N], inverse),
    'episodes.steps': steps(T),
    'decisions.index': i32([G, K], deciding),
    'decisions.inverse': i32([N], decidingInverse),
  };
  // Only what the program declares is fed: a model without these options has no such inputs.
  if (config.tokenShift > 0) feeds['tokens.previous1'] = i32([N], previous1);
  if (config.tokenShift > 1) feeds['tokens.previous2'] = i32([N], previous2);
  if (config.focusBit) feeds['tokens.focus'] = f32([N, 1], focus);
  return feeds;
}

/** Ids of prompts, pasts and new tokens in their padded layouts, −1 elsewhere; of rows that are not in the call none are needed. */
function feedPadded(
  { members: K, prompt: P, past: S }: KvCache,
  readings: readonly Reading[],
  G: number,
  T: number,
): Record<string, HostTensor> {
  const prompts = new Int32Array(G * P).fill(-1);
  const pasts = new Int32Array(G * K * S).fill(-1);
  const fresh = new Int32Array(G * K * T).fill(-1);
  let filled: Reader['group'] | undefined;
  for (const { member, cached, fresh: count } of readings) {
    const { row, group, transcript } = member;
    if (group !== filled) prompts.set(group.prompt.tokens, group.slot * P); // members of a group follow each other
    filled = group;
    for (let t = 0; t < cached; t++) pasts[row * S + t] = transcript.tokens[t]!;
    for (let t = 0; t < count; t++) fresh[row * T + t] = transcript.tokens[cached + t]!;
  }
  return {
    'prompt.padded': i32([G, P], prompts),
    'past.padded': i32([G, K, S], pasts),
    'episodes.padded': i32([G, K, T], fresh),
  };
}

/** Masks over the first G slots, and the places of their tokens where a window slides over them. */
function maskFeeds(
  { slidingWindow }: ModelConfig,
  { prompt, past, members, promptMask, pastMask }: KvCache,
  G: number,
): Record<string, HostTensor> {
  return {
    'prompt.mask': f32([G, prompt], promptMask),
    'past.mask': f32([G, members, past], pastMask),
    ...(slidingWindow === undefined ? {} : { 'prompt.steps': steps(prompt), 'past.steps': steps(past) }),
  };
}

/** Pools of the first G slots, in place: a pool's slots lie one after the other, so a prefix of it is a batch. */
export function poolFeeds(config: ModelConfig, cache: KvCache, G: number): Record<string, HostTensor> {
  const { kvHeads } = config;
  const promptShape = [G, kvHeads, cache.prompt, headSize(config)];
  const pastShape = [G, kvHeads, cache.members, cache.past, headSize(config)];
  // Views, not copies: engines read as many numbers as the shape gives from the pool's start.
  const feeds: Record<string, HostTensor> = {};
  for (let layer = 0; layer < config.layers; layer++) {
    feeds[`prompt.k${layer}`] = f32(promptShape, cache.promptK[layer]!);
    feeds[`prompt.v${layer}`] = f32(promptShape, cache.promptV[layer]!);
    feeds[`past.k${layer}`] = f32(pastShape, cache.pastK[layer]!);
    feeds[`past.v${layer}`] = f32(pastShape, cache.pastV[layer]!);
  }
  return feeds;
}

/** Lists of mentions of the first `groups` slots' candidates, for the choice decoder. */
export function candidateFeeds(pool: CandidatePool, groups: number): Record<string, HostTensor> {
  return {
    'candidates.lists': i32([groups, pool.actions], pool.listOf),
    'candidates.mentionMask': f32([groups, pool.lists, MAX_MENTIONS], pool.mentionMask),
  };
}

/** Vectors of the first `groups` slots' candidates, in place, and the keys of what mentions them. */
export function candidatePoolFeeds(
  { hiddenSize: d }: ModelConfig,
  pool: CandidatePool,
  groups: number,
): Record<string, HostTensor> {
  return {
    'candidates.bags': f32([groups, pool.actions, d], pool.bags),
    'candidates.keys': f32([groups, pool.lists * MAX_MENTIONS, d], pool.mentionKeys),
  };
}

/** Places of new tokens, three numbers each reading: row, tokens cached before, new tokens. */
export function placesOf(readings: readonly Reading[]): Int32Array {
  const places = new Int32Array(3 * readings.length);
  readings.forEach(({ member, cached, fresh }, i) => {
    places[3 * i] = member.row;
    places[3 * i + 1] = cached;
    places[3 * i + 2] = fresh;
  });
  return places;
}

/** Writes the new tokens' keys and values into the pools, where no length makes them readable yet. @param out `k<layer>`, `v<layer>` [N, kvHeads·dh] */
export function writePasts(
  config: ModelConfig,
  cache: KvCache,
  places: Int32Array,
  out: Readonly<Record<string, HostTensor>>,
): void {
  for (let layer = 0; layer < config.layers; layer++) {
    const k = out[`k${layer}`]!.data as Float32Array;
    const v = out[`v${layer}`]!.data as Float32Array;
    for (let i = 0, n = 0; i < places.length; i += 3) {
      const fresh = places[i + 2]!;
      cache.writePast(places[i]!, places[i + 1]!, fresh, layer, k, v, n);
      n += fresh;
    }
  }
}

/** Puts the new tokens' keys and values into the cache. @param out `k<layer>`, `v<layer>` [N, kvHeads·dh] */
export function keepPast(
  config: ModelConfig,
  cache: KvCache,
  readings: readonly Reading[],
  out: Readonly<Record<string, HostTensor>>,
): void {
  writePasts(config, cache, placesOf(readings), out);
  // Readable only now: a call that failed leaves the lengths as they were, and its rows are written again.
  for (const { member, cached, fresh } of readings) cache.setPast(member.row, cached + fresh);
}
