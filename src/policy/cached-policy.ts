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
 * A call is prepared as plain data (engine-call.ts), computed here or in the engine's own thread (engine-thread.ts), and then
 * finished. In the second case its owner goes on meanwhile: turns of other batches are submitted and prepared, episodes
 * released, weights loaded. A batch with a call under way takes no other. What a call leaves behind is checked when it is
 * finished: an episode that has ended is not answered, and nothing is kept that older weights have computed.
 *
 * @see Yu et al. 2022 (Orca, iteration-level batching), https://www.usenix.org/conference/osdi22/presentation/yu
 */

import type { Engine, HostTensor } from '../compute/engine/engine.ts';
import type { ModelConfig } from '../compute/model/config.ts';
import { actionFeeds, promptFeeds } from '../compute/model/feeds.ts';
import { checkBase, checkParams, checkVocabulary, type ParamSet, parameterSpecs } from '../compute/model/parameters.ts';
import type { RunConfig } from '../config/run-config.ts';
import { largestOf } from '../core/extremes.ts';
import type { Codec } from '../text/reading/codec.ts';
import { ReceivedTranscript } from '../text/reading/received-transcript.ts';
import { advanceTranscript } from '../text/reading/replay-turns.ts';
import type { AnswerLimits, Refusal, Transcript } from '../text/reading/transcript.ts';
import { CacheSlots } from './cache-slots.ts';
import { choose, type Scored, sample } from './decide.ts';
import { candidateFeeds, decisionFeeds, placesOf, type Reading, readingsOf, worthReading } from './decision-feeds.ts';
import { type CallOutputs, type CallRunner, compileCalls, type EngineCall, LocalCalls } from './engine-call.ts';
import { candidateRow, type GroupState, type MemberState, type RunningBatch } from './episode-state.ts';
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
  /** Limits that a call of an agent program sets on its reply, where requests bring some (`GivenPrompt.call`). */
  readonly limitsOfCall?: ((call: string) => AnswerLimits | undefined) | undefined;
  /** Milliseconds, for the stages of a turn; without it turns carry none. */
  readonly now?: () => number;
}

/** Message for a call whose reply has to be of a form. */
const UNMASKED =
  'the call of the agent asks for a tool or for JSON, which needs masked sampling (set policy.masked: true)';

/** Call that was prepared, and what has to be known of it when its outputs come. */
interface PreparedCall {
  readonly call: EngineCall;
  readonly readings: readonly Reading<MemberState>[];
  /** Groups whose prompts it reads, and those whose candidates it embeds, with how many they will then have. */
  readonly prompts: readonly GroupState[];
  readonly embedded: readonly { readonly group: GroupState; readonly vectors: number; readonly pointed: number }[];
  /** Tokens that it computes. */
  readonly tokens: number;
  /** Version of the weights, and the number of their load. */
  readonly version: number;
  readonly loads: number;
}

/** KV-cached policy; see the head of the file for what is cached and when it is dropped. */
export class CachedPolicy implements Policy {
  readonly maxBatch: number;
  readonly overlaps: boolean;
  readonly #options: CachedPolicyOptions;
  readonly #calls: CallRunner;
  /** Reader of a language model's prompts, through the program of every other call. */
  readonly #reader: PromptReader | undefined;
  readonly #slots: CacheSlots;
  /** Steps under way. */
  readonly #steps = new Set<Promise<unknown>>();
  #version = 0;
  /** Loads of weights that made what is cached stale. */
  #loads = 0;
  /** Members in the middle of a run of tokens. */
  #runs = 0;
  /** Tokens computed, prompts included, padding left out. */
  #tokens = 0;

  private constructor(options: CachedPolicyOptions, calls: CallRunner) {
    this.#options = options;
    this.#calls = calls;
    this.overlaps = calls.overlaps;
    const reader = PromptReader.reads(options.config)
      ? new PromptReader(options.config, options.promptTokensPerCall)
      : undefined;
    this.#reader = reader;
    const { config, maxBatch } = options;
    this.#slots = new CacheSlots({
      config,
      maxBatch,
      isStored: !calls.overlaps,
      onPromptDropped: (group) => reader?.drop(group),
    });
    this.maxBatch = maxBatch;
  }

  /** Compiles the programs. @throws {UserError} BAD_WEIGHTS when the weights do not fit the model */
  static async create(engine: Engine, options: CachedPolicyOptions, params: ParamSet): Promise<CachedPolicy> {
    const { config, decoder, codec } = options;
    checkVocabulary(config, codec.vocabSize);
    const programs = await compileCalls(engine, config, decoder);
    return CachedPolicy.over(new LocalCalls(programs, config, options.now ?? (() => 0)), options, params);
  }

  /**
   * Opens a policy over calls that are computed elsewhere, which it disposes of. Not for a language model, whose prompts are
   * read in parts.
   * @throws {UserError} BAD_WEIGHTS when the weights do not fit the model
   */
  static over(calls: CallRunner, options: CachedPolicyOptions, params: ParamSet): CachedPolicy {
    checkVocabulary(options.config, options.codec.vocabSize);
    const policy = new CachedPolicy(options, calls);
    policy.load(params);
    return policy;
  }

  load(params: ParamSet): void {
    checkParams(this.#options.config, params);
    this.#version = params.version;
    // The same objects until the next load: an engine keeps what it made of them.
    const weights: Record<string, HostTensor> = {};
    for (const { name, shape } of parameterSpecs(this.#options.config)) {
      weights[name] = { dtype: 'f32', shape, data: params.values[name]! };
    }
    this.#calls.load(weights);
    // Under `keep` a cache made by older weights is read on by newer ones: cheap, and a little off-policy. The decision
    // records the version that scored it; the learner's ratio is taken to the log-probability that was really drawn from.
    // Prompts that are still to come are read by the newer ones.
    this.#reader?.forgetNewest();
    if (this.#options.cacheOnUpdate === 'keep') return;
    // Nothing is computed here: everything counts as unread, and is read again by the calls that next need it.
    this.#loads++;
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
      const refusal = this.#submit(request);
      return refusal ? [{ episode: request.episode, ...refusal }] : [];
    });
  }

  /**
   * Submits one turn.
   * @returns the reason why it cannot be decided
   */
  #submit(request: ActRequest): Refusal | undefined {
    const { codec, decoder, config, masked, limitsOfCall } = this.#options;
    const { given, actions } = request;
    const known = this.#slots.get(request.episode);
    const transcript: Transcript =
      given && !known
        ? new ReceivedTranscript(given, request, given.call === undefined ? undefined : limitsOfCall?.(given.call))
        : advanceTranscript(codec, known?.transcript, request);
    const member = known ?? this.#slots.open(request, transcript);
    if (known) this.#slots.followPrompt(known);
    // Refused before it waits, so that one episode that is too long cannot fail a call that others are in.
    const length = transcript.prompt.tokens.length + transcript.tokens.length;
    if (transcript.refusal) return transcript.refusal;
    if (transcript.limits?.mask && !masked) return { message: UNMASKED };
    if (length > config.maxPositions) return { message: formatTooLong(length, config.maxPositions) };
    if (decoder === 'choice') {
      if (actions.length === 0) return { message: nothingListed(request) };
      // A view may restate a listed action by what was read since (`get 2 oak log held 1`): then it is another candidate,
      // with a row of its own. Rows of former restatements stay until the group ends or its text is rendered anew.
      const { group, candidates } = member;
      const { table } = transcript;
      for (let i = 0; i < actions.length; i++) {
        const action = actions[i]!;
        const text = table[action]!;
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
    this.#calls.forget();
    this.#runs = 0;
  }

  /**
   * Makes one call of the fullest batch: first prompts and candidates that are new, then the decisions of all its
   * members that wait. A batch that is passed over keeps waiting until it is the fullest.
   */
  async step(): Promise<readonly Acted[]> {
    const batch = this.#slots.findBusiest();
    if (!batch) return [];
    batch.calling = true;
    const step = this.#stepOf(batch).finally(() => {
      batch.calling = false;
      this.#steps.delete(step);
    });
    this.#steps.add(step);
    return step;
  }

  async #stepOf(batch: RunningBatch): Promise<readonly Acted[]> {
    // By row: the program's outputs are laid out by slot and member, and the last one's slot bounds what it reads.
    const ready = [...batch.waiting].sort((a, b) => a.row - b.row);
    const start = this.#now();
    if (this.#reader) await this.#readParts([...new Set(ready.map(({ group }) => group))]);
    const read = this.#now();
    // A long prompt takes several calls: meanwhile the others go on.
    const able = this.#reader ? ready.filter(({ group }) => !group.dirty) : ready;
    let acted: readonly Acted[] = [];
    let readMs = read - start;
    let queuedMs = 0;
    if (able.length > 0) {
      const prepared = this.#prepare(batch, able);
      const given = this.#now();
      const out = await this.#calls.run(batch.cache, prepared.call);
      queuedMs = Math.max(0, this.#now() - given - out.readMs - out.decideMs);
      readMs += out.readMs;
      acted = this.#finish(batch.cache, prepared, out);
    }
    if (!this.#options.now) return acted;
    const end = this.#now();
    // A call's time counts in full for every turn in it: they waited for each other. What is left of a turn's own time is
    // waiting: before its first call, behind a call that the engine was inside of, and between the calls of a run.
    for (const member of ready) {
      member.prefillMs += readMs;
      member.decodeMs += end - start - queuedMs - readMs;
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
    await Promise.allSettled(this.#steps);
    await this.#calls.dispose();
  }

  // --- calls ----------------------------------------------------------------------------------------------------

  /** Reads a part of a language model's new prompts. */
  async #readParts(groups: readonly GroupState[]): Promise<void> {
    const { programs, weights } = this.#calls as LocalCalls;
    const dirty = groups.filter((group) => group.dirty);
    if (dirty.length > 0) this.#tokens += await this.#reader!.read(dirty, programs.decide, weights);
  }

  /** Prepares a call: everything that it is fed, before any of it is computed. */
  #prepare({ cache }: RunningBatch, ready: readonly MemberState[]): PreparedCall {
    const { config, decoder } = this.#options;
    const groups = [...new Set(ready.map(({ group }) => group))];
    const chooses = decoder === 'choice';
    const dirty = groups.filter((group) => group.dirty);
    // Room first, here and below: growing replaces the arrays that feeds point into.
    const longest = largestOf(dirty.map(({ prompt }) => prompt.tokens.length));
    if (dirty.length > 0) cache.reservePrompt(longest);
    const pending = chooses ? this.#bookCandidates(cache, groups) : undefined;
    const readings = readingsOf(ready, cache, chooses ? worthReading(ready, cache) : undefined);
    for (const { slot, prompt } of dirty) cache.setPrompt(slot, prompt.tokens.length);
    const { feeds, slots, tokens } = decisionFeeds(config, cache, readings);
    if (chooses) Object.assign(feeds, candidateFeeds(cache.candidates, slots));
    const lengths = dirty.map(({ prompt }) => prompt.tokens.length);
    const prompts = dirty.map(({ prompt }) => prompt);
    return {
      call: {
        prompts:
          dirty.length === 0
            ? undefined
            : {
                feeds: promptFeeds(config, prompts, longest),
                slots: dirty.map(({ slot }) => slot),
                lengths,
                longest,
              },
        actions: pending?.actions,
        mentions: pending?.mentions && {
          from: pending.mentions.from.map(({ slot, position }) => slot * cache.prompt + position),
          to: pending.mentions.to,
        },
        decisions: feeds,
        slots,
        places: placesOf(readings),
      },
      readings,
      prompts: dirty,
      embedded: pending?.embedded ?? [],
      tokens: tokens + lengths.reduce((a, b) => a + b, 0),
      version: this.#version,
      loads: this.#loads,
    };
  }

  /** Books the candidates that have no vector yet: all groups' texts are embedded in one call. */
  #bookCandidates({ candidates: pool }: KvCache, all: readonly GroupState[]) {
    const { config, codec } = this.#options;
    const groups = all.filter((group) => group.vectors < group.candidates.length);
    if (groups.length === 0) return undefined;
    const texts: { readonly text: string; readonly focus: ReadonlySet<number> }[] = [];
    const lists: number[] = [];
    for (const { candidates, vectors, prompt, mentions } of groups) {
      for (let row = vectors; row < candidates.length; row++) {
        const { action, read } = candidates[row]!;
        texts.push({ text: read, focus: prompt.focus });
        lists.push(mentions.listOf(action));
      }
    }
    // All room first: a pool then grows once a call, not once a group.
    for (const { candidates, mentions } of groups) {
      pool.reserveActions(candidates.length);
      pool.reserveLists(mentions.lists.length);
    }
    const rows = new Int32Array(texts.length);
    const from: { readonly slot: number; readonly position: number }[] = [];
    const to: number[] = [];
    let text = 0;
    for (const { slot, candidates, vectors, mentions, pointed } of groups) {
      for (let row = vectors; row < candidates.length; row++, text++) {
        rows[text] = pool.setAction(slot, row, lists[text]!);
      }
      for (let list = pointed; list < mentions.lists.length; list++) {
        const positions = mentions.lists[list]!;
        const first = pool.setMentions(slot, list, positions.length);
        positions.forEach((position, m) => {
          from.push({ slot, position });
          to.push(first + m);
        });
      }
    }
    return {
      actions: { feeds: actionFeeds(config, codec, texts), rows },
      mentions: { from, to },
      embedded: groups.map((group) => ({
        group,
        vectors: group.candidates.length,
        pointed: group.mentions.lists.length,
      })),
    };
  }

  /**
   * Finishes a call: keeps what it read, and decides. Meanwhile episodes may have ended, of which nothing is kept, and weights
   * may have been loaded, under which all of it has to be read again.
   */
  #finish(cache: KvCache, prepared: PreparedCall, { outputs }: CallOutputs): readonly Acted[] {
    const { config, decoder } = this.#options;
    const { readings, prompts, embedded, version } = prepared;
    this.#tokens += prepared.tokens;
    const runs = (member: MemberState) => this.#slots.get(member.episode) === member;
    if (prepared.loads === this.#loads) {
      for (const group of prompts) group.dirty = false;
      for (const { group, vectors, pointed } of embedded) Object.assign(group, { vectors, pointed });
      for (const { member, cached, fresh } of readings) if (runs(member)) cache.setPast(member.row, cached + fresh);
    }
    // Outputs are laid out by row, slot · K + member, whether or not the row was in this call.
    const values = config.valueHead ? floats(outputs.values) : undefined;
    const scoresOf = floats(decoder === 'choice' ? outputs.scores : outputs.logits);
    const shape = outputs[decoder === 'choice' ? 'scores' : 'logits']!.shape;
    const width = shape.at(-1)!;
    const acted: Acted[] = [];
    for (const { member, decides } of readings) {
      const { request, row } = member;
      if (!decides || !request || !runs(member)) continue;
      const value = values ? values[row]! : 0;
      const scored = { scores: scoresOf.subarray(row * width, (row + 1) * width), value, version };
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
