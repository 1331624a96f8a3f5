/**
 * Cached policy: the KV cache and the compiled programs of a local model behind the `Policy` interface. Episodes come to
 * it as transcripts, so it knows neither views nor templates.
 *
 * Each call runs one batch. Members that wait for an action join the call with whatever tokens they have not read yet;
 * a member that has read its last one decides. A choice is then out; a run of tokens feeds the sampled token back and
 * goes on in the next call, next to turns that have arrived meanwhile (continuous batching).
 *
 * Cached of an episode are its prompt (once per group, where the group shares it) and the tokens after it. A transcript
 * whose `prompt` is a new object was rendered anew: the episode then moves to a slot of its own, or starts its slot over
 * (cache-slots.ts).
 *
 * One call over a cache of G slots with K members, every arrow one run of a compiled program:
 *
 *     new prompts    ── prefill ──►  keys and values of the prompt, pointer keys
 *     new candidates ── vectors ──►  bags, keys of their mentions            (choice decoder)
 *       (of a language model ── decide, a part of them per call: prompt-reader.ts)
 *     new tokens     ── decide  ──►  keys and values of the past, scores or logits, value
 *                                     └─ choose │ sample ─►  acted, or one more token to read in the next call
 *
 * Its owner is an actor, which runs one handler at a time: while `step` awaits the engine, no turn is submitted, no episode
 * released and no weights are loaded. Rows and slots therefore stay what they were between a call's feeds and its outputs.
 *
 * @see Yu et al. 2022 (Orca, iteration-level batching), https://www.usenix.org/conference/osdi22/presentation/yu
 */

import type { Engine, HostTensor, Program } from '../compute/engine/engine.ts';
import { headSize, type ModelConfig } from '../compute/model/config.ts';
import { actionFeeds, promptFeeds } from '../compute/model/feeds.ts';
import { checkBase, checkParams, checkVocabulary, type ParamSet, parameterSpecs } from '../compute/model/parameters.ts';
import { actionsGraph, chooseGraph, decodeGraph, prefillGraph } from '../compute/model/programs.ts';
import type { RunConfig } from '../config/run-config.ts';
import { largestOf } from '../core/extremes.ts';
import type { Codec } from '../text/reading/codec.ts';
import { ReceivedTranscript } from '../text/reading/received-transcript.ts';
import { advanceTranscript } from '../text/reading/replay-turns.ts';
import { CacheSlots } from './cache-slots.ts';
import { choose, type Scored, sample } from './decide.ts';
import { decisionFeeds, feedCandidates, keepPast, readingsOf, worthReading } from './decision-feeds.ts';
import { candidateRow, type GroupState, type MemberState } from './episode-state.ts';
import type { KvCache } from './kv-cache.ts';
import { type Acted, type ActRequest, formatTooLong, nothingListed, type Policy, type Unanswered } from './policy.ts';
import { PromptReader } from './prompt-reader.ts';

/** Model, codec and limits of a cached policy. */
export interface CachedPolicyOptions
  extends Pick<RunConfig['policy'], 'decoder' | 'masked' | 'maxTokens' | 'cacheOnUpdate'> {
  readonly config: ModelConfig;
  /** Codec through which episodes are read; its vocabulary is the model's. */
  readonly codec: Codec;
  /** Turns per engine call, at most. */
  readonly maxBatch: number;
  /** Tokens of a language model's prompts that one call reads, at most; 512 where absent. */
  readonly promptTokensPerCall?: number;
  /** Milliseconds, for the stages of a turn; without it turns carry none. */
  readonly now?: () => number;
}

/** KV-cached policy; see the head of the file for what is cached and when it is dropped. */
export class CachedPolicy implements Policy {
  readonly maxBatch: number;
  readonly #options: CachedPolicyOptions;
  /** Program that reads prompts: once per group, over [G, P] tokens. Absent where the reader does. */
  readonly #prefill: Program | undefined;
  /** Reader of a language model's prompts, through the program of every other call. */
  readonly #reader: PromptReader | undefined;
  /** Program that turns candidate texts into vectors; absent with the tokens decoder. */
  readonly #vectors: Program | undefined;
  /** Program of every other call: reads new tokens over the cache, and scores candidates or next tokens. */
  readonly #decide: Program;
  readonly #slots: CacheSlots;
  /** Weights as feeds. The same objects until the next load: an engine keeps what it made of them. */
  #weights: Record<string, HostTensor> = {};
  #version = 0;
  /** Members in the middle of a run of tokens. */
  #runs = 0;
  /** Tokens computed, prompts included, padding left out. */
  #tokens = 0;

  private constructor(
    options: CachedPolicyOptions,
    prefill: Program | undefined,
    decide: Program,
    vectors: Program | undefined,
  ) {
    this.#options = options;
    this.#prefill = prefill;
    const reader = prefill ? undefined : new PromptReader(options.config, options.promptTokensPerCall);
    this.#reader = reader;
    const { config, maxBatch } = options;
    this.#slots = new CacheSlots({ config, maxBatch, onPromptDropped: (group) => reader?.drop(group) });
    this.#decide = decide;
    this.#vectors = vectors;
    this.maxBatch = maxBatch;
  }

  /** Compiles the programs. @throws {UserError} BAD_WEIGHTS when the weights do not fit the model */
  static async create(engine: Engine, options: CachedPolicyOptions, params: ParamSet): Promise<CachedPolicy> {
    const { config, decoder, codec } = options;
    checkVocabulary(config, codec.vocabSize);
    const prefill = PromptReader.reads(config) ? undefined : await engine.compile(prefillGraph(config));
    const decide = await engine.compile(decoder === 'choice' ? chooseGraph(config) : decodeGraph(config));
    const vectors = decoder === 'choice' ? await engine.compile(actionsGraph(config)) : undefined;
    const policy = new CachedPolicy(options, prefill, decide, vectors);
    policy.load(params);
    return policy;
  }

  load(params: ParamSet): void {
    checkParams(this.#options.config, params);
    this.#version = params.version;
    this.#weights = {};
    for (const { name, shape } of parameterSpecs(this.#options.config)) {
      this.#weights[name] = { dtype: 'f32', shape, data: params.values[name]! };
    }
    // Under `keep` a cache made by older weights is read on by newer ones: cheap, and a little off-policy. The decision
    // records the version that scored it; the learner's ratio is taken to the log-probability that was really drawn from.
    // Prompts that are still to come are read by the newer ones.
    this.#reader?.forgetNewest();
    if (this.#options.cacheOnUpdate === 'keep') return;
    // Nothing is computed here: everything counts as unread, and is read again by the calls that next need it.
    this.#reader?.clear();
    this.#slots.markUnread();
  }

  get version(): number {
    return this.#version;
  }

  get waiting(): number {
    return this.#slots.waiting;
  }

  /**
   * Complete when a run of tokens is under way, which others can join between two of its calls, or when a batch has all
   * its members waiting.
   */
  get complete(): boolean {
    return this.#runs > 0 || this.#slots.hasCompleteBatch;
  }

  get tokens(): number {
    return this.#tokens;
  }

  submit(requests: readonly ActRequest[]): readonly Unanswered[] {
    return requests.flatMap((request) => {
      const message = this.#submit(request);
      return message === undefined ? [] : [{ episode: request.episode, message }];
    });
  }

  /**
   * Submits one turn.
   * @returns the reason why it cannot be decided
   */
  #submit(request: ActRequest): string | undefined {
    const { codec, decoder, config } = this.#options;
    const { given, actions } = request;
    const known = this.#slots.get(request.episode);
    const transcript =
      given && !known ? new ReceivedTranscript(given, request) : advanceTranscript(codec, known?.transcript, request);
    const member = known ?? this.#slots.open(request, transcript);
    if (known) this.#slots.followPrompt(known);
    // Refused before it waits, so that one episode that is too long cannot fail a call that others are in.
    const length = transcript.prompt.tokens.length + transcript.tokens.length;
    if (length > config.maxPositions) return formatTooLong(length, config.maxPositions);
    if (decoder === 'choice') {
      if (actions.length === 0) return nothingListed(request);
      // A view may restate a listed action by what was read since (`get 2 oak log held 1`): then it is another candidate,
      // with a row of its own. Rows of former restatements stay until the group ends or its text is rendered anew.
      const { group, candidates } = member;
      for (const action of actions) {
        const text = transcript.table[action]!;
        const read = transcript.candidate(text);
        if (candidates[action]?.read !== read) candidates[action] = { read, row: candidateRow(group, text, read) };
      }
    }
    member.request = request;
    member.since = this.#now();
    member.prefillMs = member.decodeMs = 0;
    member.group.batch.waiting.add(member);
    return undefined;
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) {
      const member = this.#slots.release(episode);
      if (member?.run) this.#runs--; // a run under way dies with its episode
    }
  }

  forget(): void {
    this.#reader?.clear();
    this.#slots.clear();
    this.#runs = 0;
  }

  /**
   * Makes one call of the fullest batch: first prompts and candidates that are new, then the decisions of all its
   * members that wait. A batch that is passed over keeps waiting until it is the fullest.
   */
  async step(): Promise<readonly Acted[]> {
    const batch = this.#slots.findBusiest();
    if (!batch) return [];
    // By row: the program's outputs are laid out by slot and member, and the last one's slot bounds what it reads.
    const ready = [...batch.waiting].sort((a, b) => a.row - b.row);
    const groups = [...new Set(ready.map((member) => member.group))];
    const start = this.#now();
    // Prompts before candidates: a candidate's row holds the pointer keys of the prompt positions that mention it.
    await this.#readPrompts(
      batch.cache,
      groups.filter((group) => group.dirty),
    );
    if (this.#vectors) await this.#embedActions(groups.filter((group) => group.vectors < group.candidates.length));
    const read = this.#now();
    // A long prompt takes several calls: meanwhile the others go on.
    const able = ready.filter(({ group }) => !group.dirty);
    const acted = able.length > 0 ? await this.#decideFor(batch.cache, able) : [];
    if (!this.#options.now) return acted;
    const end = this.#now();
    // A call's time counts in full for every turn in it: they waited for each other. What is left of a turn's own time is
    // waiting, before its first call and between the calls of a run.
    for (const member of ready) {
      member.prefillMs += read - start;
      member.decodeMs += end - read;
    }
    return acted.map((one) => {
      const { since, prefillMs, decodeMs } = this.#slots.get(one.episode)!;
      return { ...one, stages: { waitMs: Math.max(0, end - since - prefillMs - decodeMs), prefillMs, decodeMs } };
    });
  }

  #now(): number {
    return this.#options.now?.() ?? 0;
  }

  async dispose(): Promise<void> {
    await this.#prefill?.dispose();
    await this.#decide.dispose();
    await this.#vectors?.dispose();
  }

  // --- calls ----------------------------------------------------------------------------------------------------

  /**
   * Keys and values of new prompts, all in one call: G prompts padded to the longest, `k<layer>`, `v<layer>`
   * [G, kvHeads, longest, dh]. Pointer keys come packed [N, d]: they are only needed where an action is mentioned.
   */
  async #readPrompts(cache: KvCache, groups: readonly GroupState[]): Promise<void> {
    if (groups.length === 0) return;
    if (this.#reader) {
      this.#tokens += await this.#reader.read(groups, this.#decide, this.#weights);
      return;
    }
    const { config } = this.#options;
    const longest = largestOf(groups.map(({ prompt }) => prompt.tokens.length));
    cache.reservePrompt(longest);
    const feeds = promptFeeds(
      config,
      groups.map(({ prompt }) => prompt),
      longest,
    );
    const out = await this.#prefill!.run({ ...this.#weights, ...feeds });
    const dh = headSize(config);
    const width = config.kvHeads * longest * dh; // of one prompt in the outputs, padding included
    let packed = 0; // pointer keys are packed: no padding between prompts
    groups.forEach((group, g) => {
      const { length } = group.prompt.tokens;
      for (let layer = 0; layer < config.layers; layer++) {
        const k = floats(out[`k${layer}`]).subarray(g * width, (g + 1) * width);
        const v = floats(out[`v${layer}`]).subarray(g * width, (g + 1) * width);
        cache.writePrompt(group.slot, layer, k, v, longest, length);
      }
      if (config.choiceHead) {
        const d = config.hiddenSize;
        // A copy: the output's buffer belongs to the engine, and candidates listed in later turns still need the keys.
        group.promptKeys = floats(out.pointerKeys).slice(packed * d, (packed + length) * d);
      }
      packed += length;
      group.dirty = false;
    });
    this.#tokens += packed;
  }

  /** Vectors of the candidates that have none yet: all groups' texts in one call. */
  async #embedActions(groups: readonly GroupState[]): Promise<void> {
    const { config, codec } = this.#options;
    const pending = groups.flatMap((group) =>
      group.candidates
        .slice(group.vectors)
        .map(({ action, read }, i) => ({ group, row: group.vectors + i, action, text: read })),
    );
    if (pending.length === 0) return;
    const feeds = actionFeeds(
      config,
      codec,
      pending.map(({ text, group }) => ({ text, focus: group.prompt.focus })),
    );
    const out = await this.#vectors!.run({ ...this.#weights, ...feeds });
    const bags = floats(out.bags);
    const d = config.hiddenSize;
    // All room first: a pool then grows once a call, not once a group.
    const lists = pending.map(({ group, action }) => group.mentions.listOf(action));
    for (const { batch, candidates, mentions } of groups) {
      batch.cache.candidates.reserveActions(candidates.length);
      batch.cache.candidates.reserveLists(mentions.lists.length);
    }
    pending.forEach(({ group, row }, i) => {
      group.batch.cache.candidates.writeAction(group.slot, row, bags.subarray(i * d, (i + 1) * d), lists[i]!);
      group.vectors = row + 1;
    });
    for (const group of groups) {
      const { batch, slot, mentions, promptKeys } = group;
      for (; group.pointed < mentions.lists.length; group.pointed++) {
        batch.cache.candidates.writeMentions(slot, group.pointed, mentions.lists[group.pointed]!, promptKeys!);
      }
    }
  }

  /**
   * Runs the decision program over what `ready` members have not read yet. Members with more new tokens than one call
   * takes are read in part, and decide in a later call.
   */
  async #decideFor(cache: KvCache, ready: readonly MemberState[]): Promise<readonly Acted[]> {
    const { config, decoder } = this.#options;
    const readings = readingsOf(ready, cache, decoder === 'choice' ? worthReading(ready, cache) : undefined);
    const { feeds, tokens } = decisionFeeds(config, cache, readings);
    if (decoder === 'choice')
      Object.assign(feeds, feedCandidates(config, cache.candidates, ready.at(-1)!.group.slot + 1));
    this.#tokens += tokens;
    const out = await this.#decide.run({ ...this.#weights, ...feeds });
    keepPast(config, cache, readings, out);

    // Outputs are laid out by row, slot · K + member, whether or not the row was in this call.
    const values = config.valueHead ? floats(out.values) : undefined;
    const scores = floats(decoder === 'choice' ? out.scores : out.logits);
    const width = decoder === 'choice' ? cache.candidates.actions : config.vocabSize;
    const acted: Acted[] = [];
    for (const { member, decides } of readings) {
      const { request, row } = member;
      if (!decides || !request) continue;
      const value = values ? values[row]! : 0;
      const own = scores.subarray(row * width, (row + 1) * width);
      const scored = { scores: own, value, version: this.#version };
      // `sample` begins and ends runs; `#runs` follows by the difference.
      const running = member.run !== undefined;
      const finished = this.#finishDecision(member, request, scored);
      this.#runs += Number(member.run !== undefined) - Number(running);
      if (!finished) continue;
      acted.push(finished);
      member.request = undefined;
      member.group.batch.waiting.delete(member);
    }
    return acted;
  }

  #finishDecision(member: MemberState, request: ActRequest, scored: Scored): Acted | undefined {
    try {
      return this.#options.decoder === 'choice'
        ? choose(member, request, scored)
        : sample(this.#options, member, request, scored);
    } catch (thrown) {
      // Scores that are not finite may be the model folder's fault.
      if (thrown instanceof RangeError) checkBase(this.#options.config);
      throw thrown;
    }
  }
}

function floats(tensor: HostTensor | undefined): Float32Array {
  return tensor!.data as Float32Array;
}
