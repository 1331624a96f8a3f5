/**
 * The small from-scratch policy: views, tokenizer, KV cache and the compiled programs behind the `Policy` interface.
 *
 * Each call runs one lane. Members of a lane that wait for an action join the call with whatever tokens they have not
 * read yet; a member that has read its last one decides. A choice is then out; a run of tokens feeds the sampled token
 * back and goes on in the next call, next to whoever has arrived meanwhile (continuous batching).
 */
import { UserError } from '../core/errors.ts';
import { Rng, seedFrom } from '../core/rng.ts';
import type { Decision } from '../core/trajectory.ts';
import type { View } from '../core/view.ts';
import type { Engine, HostTensor, Program } from '../engine/engine.ts';
import { headSize, type ModelConfig } from '../model/config.ts';
import { checkParams, type ParamSet, parameterSpecs } from '../model/parameters.ts';
import { actionsGraph, chooseGraph, type DecoderKind, decodeGraph, prefillGraph } from '../model/programs.ts';
import { decisionFeeds, keepPast, laneCandidates, readingOf } from './decision-feeds.ts';
import { candidateRow, type GroupState, type MemberState, newContext, type OpenLane } from './episode-state.ts';
import { actionFeeds, promptFeeds } from './feeds.ts';
import { Lane } from './lane.ts';
import type { Acted, ActRequest, GivenPrompt, Policy } from './policy.ts';
import { MAX_MENTIONS, type PromptReading, readRendered, readTurn } from './reading.ts';
import { drawFrom } from './sampling.ts';
import { allTokens, nextInTrie } from './spellings.ts';
import { ACT, END, type Tokenizer } from './tokenizer.ts';

export interface SmallPolicyOptions {
  readonly config: ModelConfig;
  readonly tokenizer: Tokenizer;
  readonly view: View;
  readonly decoder: DecoderKind;
  /** With the tokens decoder: sample only spellings of listed actions. Ignored where an env lists none. */
  readonly masked: boolean;
  /** Longest run of tokens of one turn. */
  readonly maxTokens: number;
  /** Turns per engine call, at most. */
  readonly maxBatch: number;
  /** What a weight update does to running episodes: keep their cache (cheap, a little off-policy) or recompute it. */
  readonly cacheOnUpdate: 'keep' | 'recompute';
  /** Milliseconds, for telling where a turn's time went; nothing is told where absent. */
  readonly now?: () => number;
}

/** An action that has no candidate row yet. */
const NO_ROW = -1;

export class SmallPolicy implements Policy {
  readonly maxBatch: number;
  readonly #options: SmallPolicyOptions;
  readonly #prefill: Program;
  readonly #vectors: Program | undefined;
  readonly #decide: Program;
  readonly #lanes: OpenLane[] = [];
  readonly #groups = new Map<string, GroupState>();
  readonly #members = new Map<number, MemberState>();
  #weights: Record<string, HostTensor> = {};
  #version = 0;
  /** Members in the middle of a run of tokens. */
  #runs = 0;
  #tokens = 0;

  private constructor(options: SmallPolicyOptions, prefill: Program, decide: Program, vectors: Program | undefined) {
    this.#options = options;
    this.#prefill = prefill;
    this.#decide = decide;
    this.#vectors = vectors;
    this.maxBatch = options.maxBatch;
  }

  /** Compiles the programs. @throws {UserError} BAD_WEIGHTS when the weights do not fit the model */
  static async create(engine: Engine, options: SmallPolicyOptions, params: ParamSet): Promise<SmallPolicy> {
    const { config, decoder } = options;
    if (config.vocabSize !== options.tokenizer.size) {
      throw new UserError(
        'BAD_WEIGHTS',
        `policy: the model has ${config.vocabSize} tokens, the world's vocabulary ${options.tokenizer.size}; train a new policy for this world`,
      );
    }
    const prefill = await engine.compile(prefillGraph(config));
    const decide = await engine.compile(decoder === 'choice' ? chooseGraph(config) : decodeGraph(config));
    const vectors = decoder === 'choice' ? await engine.compile(actionsGraph(config)) : undefined;
    const policy = new SmallPolicy(options, prefill, decide, vectors);
    policy.load(params);
    return policy;
  }

  /** Takes new weights; they hold from the next call on. @throws {UserError} BAD_WEIGHTS */
  load(params: ParamSet): void {
    checkParams(this.#options.config, params);
    this.#version = params.version;
    this.#weights = {};
    for (const { name, shape } of parameterSpecs(this.#options.config)) {
      this.#weights[name] = { dtype: 'f32', shape, data: params.values[name]! };
    }
    if (this.#options.cacheOnUpdate === 'keep') return;
    for (const group of this.#groups.values()) {
      group.dirty = true;
      group.vectors = 0;
    }
    for (const member of this.#members.values()) this.#forgetPast(member);
  }

  get version(): number {
    return this.#version;
  }

  get waiting(): number {
    let waiting = 0;
    for (const lane of this.#lanes) waiting += lane.waiting.size;
    return waiting;
  }

  get complete(): boolean {
    return this.#runs > 0 || this.#lanes.some(({ live, waiting }) => live > 0 && waiting.size === live);
  }

  get tokens(): number {
    return this.#tokens;
  }

  submit(requests: readonly ActRequest[]): void {
    for (const request of requests) this.#submit(request);
  }

  #submit(request: ActRequest): void {
    const { view, tokenizer, decoder } = this.#options;
    const known = this.#members.get(request.episode);
    const member = known ?? this.#open(request);
    for (const text of request.newActions) {
      member.table.push(text);
      member.candidates.push(NO_ROW);
    }
    if (request.turn > 0 && request.lastAction !== undefined) {
      const turn = { action: request.lastAction, observation: request.observation };
      member.turns.push(turn);
      if (view.mode === 'append') for (const id of readTurn(tokenizer, view, turn)) member.tokens.push(id);
    }
    if (view.mode === 'window' && !request.given) this.#renderWindow(member);
    if (decoder === 'choice') {
      if (request.actions.length === 0) {
        throw new RangeError(
          `policy: episode ${request.episode} lists no action on turn ${request.turn}; the choice decoder needs a list (use decoder: tokens)`,
        );
      }
      const { candidates, group, table } = member;
      for (const action of request.actions) {
        if (candidates[action] === NO_ROW) candidates[action] = candidateRow(group, table[action]!);
      }
    }
    member.request = request;
    member.since = this.#now();
    member.prefillMs = member.decodeMs = 0;
    member.group.lane.waiting.add(member);
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) {
      const member = this.#members.get(episode);
      if (!member) continue;
      this.#members.delete(episode);
      if (member.run) this.#runs--;
      const { group } = member;
      group.lane.waiting.delete(member);
      group.lane.live--;
      group.live--;
      if (group.live > 0) continue;
      group.lane.cache.release(group.slot);
      this.#groups.delete(group.key);
    }
  }

  forget(): void {
    this.#members.clear();
    this.#groups.clear();
    this.#lanes.length = 0;
    this.#runs = 0;
  }

  async step(): Promise<readonly Acted[]> {
    const lane = this.#busiestLane();
    if (!lane) return [];
    const ready = [...lane.waiting].sort((a, b) => a.row - b.row);
    const groups = [...new Set(ready.map((member) => member.group))];
    const start = this.#now();
    await this.#readPrompts(
      lane.cache,
      groups.filter((group) => group.dirty),
    );
    if (this.#vectors) await this.#embedActions(groups.filter((group) => group.vectors < group.actions.length));
    const read = this.#now();
    const acted = await this.#decideFor(lane.cache, ready);
    if (!this.#options.now) return acted;
    const end = this.#now();
    for (const member of ready) {
      member.prefillMs += read - start;
      member.decodeMs += end - read;
    }
    return acted.map((one) => {
      const { since, prefillMs, decodeMs } = this.#members.get(one.episode)!;
      return { ...one, stages: { waitMs: Math.max(0, end - since - prefillMs - decodeMs), prefillMs, decodeMs } };
    });
  }

  #now(): number {
    return this.#options.now?.() ?? 0;
  }

  async dispose(): Promise<void> {
    await this.#prefill.dispose();
    await this.#decide.dispose();
    await this.#vectors?.dispose();
  }

  // --- episodes -------------------------------------------------------------------------------------------------

  #open(request: ActRequest): MemberState {
    const { view } = this.#options;
    const [first] = request.history ?? [];
    const firstObservation = first ? first.observation : request.observation;
    const shared = view.mode === 'append' && !request.given;
    const key = shared ? `g${request.group}` : `e${request.episode}`;
    const group = this.#groups.get(key) ?? this.#openGroup(key, request, firstObservation, shared);
    group.live++;
    group.lane.live++;
    const member: MemberState = {
      episode: request.episode,
      group,
      row: group.slot * group.lane.cache.members + (shared ? request.member : 0),
      table: [],
      candidates: [],
      turns: [],
      firstObservation,
      tokens: request.given ? [...request.given.after] : [ACT],
      told: 0,
      request: undefined,
      since: 0,
      prefillMs: 0,
      decodeMs: 0,
      run: undefined,
    };
    group.lane.cache.setPast(member.row, 0);
    this.#members.set(request.episode, member);
    if (request.history) this.#recall(member, request.history);
    return member;
  }

  #openGroup(key: string, request: ActRequest, firstObservation: string, shared: boolean): GroupState {
    const { view, tokenizer, maxBatch } = this.#options;
    const members = shared ? request.groupSize : 1;
    let lane = this.#lanes.find(({ cache }) => !cache.full && cache.members === members);
    if (!lane) {
      const cache = new Lane(this.#options.config, Math.max(1, Math.floor(maxBatch / members)), members);
      lane = { cache, live: 0, waiting: new Set() };
      this.#lanes.push(lane);
    }
    const first = { kind: 'first', observation: firstObservation } as const;
    const read = () => readRendered(tokenizer, view.mode === 'append' ? view.prompt(first) : view.render(first, []));
    const slot = lane.cache.acquire();
    lane.cache.clearActions(slot);
    const group: GroupState = {
      key,
      lane,
      slot,
      reading: request.given ? readGiven(request.given) : read(),
      promptKeys: undefined,
      dirty: true,
      actions: [],
      rows: new Map(),
      vectors: 0,
      live: 0,
    };
    this.#groups.set(key, group);
    return group;
  }

  /** Takes up an episode in the middle: its tokens are read again, the sampled ones as they were sampled. */
  #recall(member: MemberState, history: NonNullable<ActRequest['history']>): void {
    const { view, tokenizer } = this.#options;
    history.forEach(({ action, decision }, i) => {
      const after = history[i + 1]?.observation;
      if (decision?.kind === 'tokens' && view.mode === 'append') member.tokens.push(...decision.tokens);
      if (after === undefined) return;
      const turn = { action, observation: after };
      member.turns.push(turn);
      if (view.mode === 'append') for (const id of readTurn(tokenizer, view, turn)) member.tokens.push(id);
    });
    member.told = member.tokens.length;
  }

  #renderWindow(member: MemberState): void {
    const { view, tokenizer } = this.#options;
    if (view.mode !== 'window') return;
    const { group } = member;
    group.reading = readRendered(
      tokenizer,
      view.render({ kind: 'first', observation: member.firstObservation }, member.turns),
    );
    group.dirty = true;
    group.actions.length = 0;
    group.rows.clear();
    group.vectors = 0;
    group.lane.cache.clearActions(group.slot);
    member.candidates.fill(NO_ROW);
    member.tokens.splice(0, member.tokens.length, ACT);
    member.told = 0;
    this.#forgetPast(member);
  }

  #forgetPast({ group, row }: MemberState): void {
    group.lane.cache.setPast(row, 0);
  }

  // --- calls ----------------------------------------------------------------------------------------------------

  #busiestLane(): OpenLane | undefined {
    let best: OpenLane | undefined;
    for (const lane of this.#lanes) if (lane.waiting.size > (best?.waiting.size ?? 0)) best = lane;
    return best;
  }

  async #readPrompts(lane: Lane, groups: readonly GroupState[]): Promise<void> {
    if (groups.length === 0) return;
    const { config } = this.#options;
    const longest = Math.max(...groups.map(({ reading }) => reading.tokens.length));
    lane.reservePrompt(longest);
    const feeds = promptFeeds(
      config,
      groups.map(({ reading }) => reading),
      longest,
    );
    const out = await this.#prefill.run({ ...this.#weights, ...feeds });
    const dh = headSize(config);
    const width = config.kvHeads * longest * dh;
    let packed = 0;
    groups.forEach((group, g) => {
      const length = group.reading.tokens.length;
      for (let layer = 0; layer < config.layers; layer++) {
        const k = floats(out[`k${layer}`]).subarray(g * width, (g + 1) * width);
        const v = floats(out[`v${layer}`]).subarray(g * width, (g + 1) * width);
        lane.writePrompt(group.slot, layer, k, v, longest, length);
      }
      if (config.choiceHead) {
        const d = config.hiddenSize;
        group.promptKeys = floats(out.pointerKeys).slice(packed * d, (packed + length) * d);
      }
      packed += length;
      group.dirty = false;
    });
    this.#tokens += packed;
  }

  async #embedActions(groups: readonly GroupState[]): Promise<void> {
    const { config, tokenizer } = this.#options;
    const pending = groups.flatMap((group) =>
      group.actions.slice(group.vectors).map((text, i) => ({ group, row: group.vectors + i, text })),
    );
    if (pending.length === 0) return;
    const feeds = actionFeeds(
      config,
      tokenizer,
      pending.map(({ text, group }) => ({ text, focus: group.reading.focus })),
    );
    const out = await this.#vectors!.run({ ...this.#weights, ...feeds });
    const bags = floats(out.bags);
    const d = config.hiddenSize;
    for (const { lane, actions } of groups) lane.cache.reserveActions(actions.length);
    pending.forEach(({ group, row, text }, i) => {
      const mentions = group.reading.mentions(text);
      group.lane.cache.writeAction(group.slot, row, bags.subarray(i * d, (i + 1) * d), mentions, group.promptKeys!);
      group.vectors = row + 1;
    });
  }

  async #decideFor(lane: Lane, ready: readonly MemberState[]): Promise<readonly Acted[]> {
    const { config, decoder } = this.#options;
    const readings = ready.map((member) => readingOf(member, lane));
    const { feeds, tokens } = decisionFeeds(config, lane, readings);
    if (decoder === 'choice') Object.assign(feeds, laneCandidates(config, lane, ready.at(-1)!.group.slot + 1));
    this.#tokens += tokens;
    const out = await this.#decide.run({ ...this.#weights, ...feeds });
    keepPast(config, lane, readings, out);

    const values = config.valueHead ? floats(out.values) : undefined;
    const scores = floats(decoder === 'choice' ? out.scores : out.logits);
    const width = decoder === 'choice' ? lane.actions : config.vocabSize;
    const acted: Acted[] = [];
    for (const { member, decides } of readings) {
      const { request, row } = member;
      if (!decides || !request) continue;
      const value = values ? values[row]! : 0;
      const own = scores.subarray(row * width, (row + 1) * width);
      const finished =
        decoder === 'choice' ? this.#choose(member, request, own, value) : this.#sample(member, request, own, value);
      if (!finished) continue;
      acted.push(finished);
      member.request = undefined;
      member.group.lane.waiting.delete(member);
    }
    return acted;
  }

  #choose(member: MemberState, request: ActRequest, scores: Float32Array, value: number): Acted {
    const { candidates, table } = member;
    const { actions } = request;
    const listed = new Float32Array(actions.length);
    for (let i = 0; i < actions.length; i++) listed[i] = scores[candidates[actions[i]!]!]!;
    const { at, logprob } = drawFrom(listed, request.temperature, drawOf(request));
    const decision: Decision = {
      kind: 'choice',
      version: this.#version,
      context: newContext(member, member.tokens.length),
      value,
      choice: at,
      logprob,
    };
    return { episode: member.episode, turn: request.turn, action: table[actions[at]!]!, decision };
  }

  /** Samples the next token; the turn is finished when the run ends. */
  #sample(member: MemberState, request: ActRequest, logits: Float32Array, value: number): Acted | undefined {
    const { tokenizer, maxTokens } = this.#options;
    const masked = this.#options.masked && request.actions.length > 0;
    let { run } = member;
    if (!run) {
      member.run = run = { tokens: [], logprobs: [], value, from: member.tokens.length, rng: drawOf(request) };
      this.#runs++;
    }
    const allowed = masked
      ? nextInTrie(
          [...request.actions].map((action) => tokenizer.encode(member.table[action]!)),
          run.tokens,
        )
      : allTokens(tokenizer);
    const { at, logprob } = drawFrom(
      Float32Array.from(allowed, (id) => logits[id]!),
      request.temperature,
      run.rng,
    );
    const id = allowed[at]!;
    run.tokens.push(id);
    run.logprobs.push(logprob);
    const most = Math.min(maxTokens, request.given?.maxTokens ?? maxTokens);
    const ended = id === END || (!masked && run.tokens.length >= most);
    if (!ended) {
      member.tokens.push(id);
      return undefined;
    }
    const decision: Decision = {
      kind: 'tokens',
      version: this.#version,
      context: newContext(member, run.from),
      value: run.value,
      tokens: Int32Array.from(run.tokens),
      logprobs: Float32Array.from(run.logprobs),
      masked,
    };
    member.tokens.push(id); // read on the next turn, before what the env says
    member.told = member.tokens.length;
    member.run = undefined;
    this.#runs--;
    return { episode: member.episode, turn: request.turn, action: tokenizer.decode(run.tokens), decision };
  }
}

/** The generator of a turn's draw. */
function drawOf({ given, samplingSeed, turn }: ActRequest): Rng {
  return Rng.fromSeed(given ? given.seed : seedFrom(samplingSeed, turn));
}

function readGiven({ prompt, focus, mentions }: GivenPrompt): PromptReading {
  return {
    tokens: prompt,
    focus: new Set(focus),
    mentions(action) {
      const places = mentions.get(action)?.slice(0, MAX_MENTIONS) ?? [];
      return places.length > 0 ? places : [0];
    },
  };
}

function floats(tensor: HostTensor | undefined): Float32Array {
  return tensor!.data as Float32Array;
}
