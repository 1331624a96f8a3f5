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
import type { SeenTurn, View } from '../core/view.ts';
import type { Engine, HostTensor, Program } from '../engine/engine.ts';
import { headSize, type ModelConfig } from '../model/config.ts';
import { checkParams, type ParamSet, parameterSpecs } from '../model/parameters.ts';
import { actionsGraph, chooseGraph, type DecoderKind, decodeGraph, prefillGraph } from '../model/programs.ts';
import { actionFeeds, f32, i32, promptFeeds, steps } from './feeds.ts';
import { Lane } from './lane.ts';
import type { Acted, ActRequest, GivenPrompt, Policy } from './policy.ts';
import { MAX_MENTIONS, type PromptReading, readRendered, readTurn } from './reading.ts';
import { drawFrom } from './sampling.ts';
import { allTokens, nextInTrie } from './spellings.ts';
import { ACT, END, PAD, type Tokenizer } from './tokenizer.ts';

export interface SmallPolicyOptions {
  readonly config: ModelConfig;
  readonly tokenizer: Tokenizer;
  readonly view: View;
  readonly decoder: DecoderKind;
  /** With the tokens decoder: sample only spellings of listed actions. Ignored where an env lists none. */
  readonly masked: boolean;
  /** Longest run of tokens of one turn. */
  readonly maxTokens: number;
  /** Members of a group, K. */
  readonly groupSize: number;
  /** Turns per engine call, at most. */
  readonly maxBatch: number;
  /** What a weight update does to running episodes: keep their cache (cheap, a little off-policy) or recompute it. */
  readonly cacheOnUpdate: 'keep' | 'recompute';
  /** Milliseconds, for telling where a turn's time went; nothing is told where absent. */
  readonly now?: () => number;
}

/** New tokens of one member per call, at most; longer readings take several calls. */
const MAX_NEW_TOKENS = 64;

interface GroupState {
  readonly key: string;
  readonly lane: Lane;
  readonly slot: number;
  reading: PromptReading;
  /** [P, d] pointer keys of the prompt, once it is read. */
  promptKeys: Float32Array | undefined;
  /** The prompt or the weights changed since it was last read. */
  dirty: boolean;
  /** Candidate texts in the order of their rows; the first `vectors` of them are in the lane. */
  readonly actions: string[];
  readonly rows: Map<string, number>;
  vectors: number;
  live: number;
}

interface MemberState {
  readonly episode: number;
  readonly group: GroupState;
  readonly member: number;
  /** The episode's own action table. */
  readonly table: string[];
  readonly turns: SeenTurn[];
  readonly firstObservation: string;
  /** Tokens after the prompt; the first `lane.pastLength` of them are cached. */
  readonly tokens: number[];
  /** Length of `tokens` (or of the prompt, for a window) already told in a decision's context. */
  told: number;
  request: ActRequest | undefined;
  /** When the request came, and what calls have taken of it since. */
  since: number;
  prefillMs: number;
  decodeMs: number;
  run: { tokens: number[]; logprobs: number[]; value: number; from: number; rng: Rng } | undefined;
}

export class SmallPolicy implements Policy {
  readonly maxBatch: number;
  readonly #options: SmallPolicyOptions;
  readonly #prefill: Program;
  readonly #vectors: Program | undefined;
  readonly #decide: Program;
  readonly #lanes: Lane[] = [];
  readonly #groups = new Map<string, GroupState>();
  readonly #members = new Map<number, MemberState>();
  #weights: Record<string, HostTensor> = {};
  #version = 0;
  #waiting = 0;
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
    return this.#waiting;
  }

  get complete(): boolean {
    const open = new Map<Lane, { live: number; waiting: number }>();
    for (const { group, request, run } of this.#members.values()) {
      if (run) return true;
      const lane = open.get(group.lane) ?? { live: 0, waiting: 0 };
      lane.live++;
      if (request) lane.waiting++;
      open.set(group.lane, lane);
    }
    return [...open.values()].some(({ live, waiting }) => waiting > 0 && waiting === live);
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
    for (const text of request.newActions) member.table.push(text);
    if (request.turn > 0 && request.lastAction !== undefined) {
      const turn = { action: request.lastAction, observation: request.observation };
      member.turns.push(turn);
      if (view.mode === 'append') member.tokens.push(...readTurn(tokenizer, view, turn));
    }
    if (view.mode === 'window' && !request.given) this.#renderWindow(member);
    if (decoder === 'choice') {
      if (request.actions.length === 0) {
        throw new RangeError(
          `policy: episode ${request.episode} lists no action on turn ${request.turn}; the choice decoder needs a list (use decoder: tokens)`,
        );
      }
      for (const action of request.actions) this.#rowOf(member.group, member.table[action]!);
    }
    member.request = request;
    member.since = this.#now();
    member.prefillMs = member.decodeMs = 0;
    this.#waiting++;
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) {
      const member = this.#members.get(episode);
      if (!member) continue;
      this.#members.delete(episode);
      if (member.request) this.#waiting--;
      const { group } = member;
      group.live--;
      if (group.live > 0) continue;
      group.lane.release(group.slot);
      this.#groups.delete(group.key);
    }
  }

  async step(): Promise<readonly Acted[]> {
    const lane = this.#busiestLane();
    if (!lane) return [];
    const ready = [...this.#members.values()].filter((member) => member.request && member.group.lane === lane);
    const groups = [...new Set(ready.map((member) => member.group))];
    const start = this.#now();
    await this.#readPrompts(
      lane,
      groups.filter((group) => group.dirty),
    );
    if (this.#vectors) await this.#embedActions(groups.filter((group) => group.vectors < group.actions.length));
    const read = this.#now();
    const acted = await this.#decideFor(lane, ready);
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
    const member: MemberState = {
      episode: request.episode,
      group,
      member: shared ? request.member : 0,
      table: [],
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
    group.lane.pastLength[group.slot * group.lane.members + member.member] = 0;
    this.#members.set(request.episode, member);
    if (request.history) this.#recall(member, request.history);
    return member;
  }

  #openGroup(key: string, request: ActRequest, firstObservation: string, shared: boolean): GroupState {
    const { view, tokenizer, maxBatch } = this.#options;
    const members = shared ? request.groupSize : 1;
    let lane = this.#lanes.find((candidate) => !candidate.full && candidate.members === members);
    if (!lane) {
      lane = new Lane(this.#options.config, Math.max(1, Math.floor(maxBatch / members)), members);
      this.#lanes.push(lane);
    }
    const first = { kind: 'first', observation: firstObservation } as const;
    const read = () => readRendered(tokenizer, view.mode === 'append' ? view.prompt(first) : view.render(first, []));
    const slot = lane.acquire();
    lane.clearActions(slot);
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
      if (view.mode === 'append') member.tokens.push(...readTurn(tokenizer, view, turn));
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
    group.lane.clearActions(group.slot);
    member.tokens.splice(0, member.tokens.length, ACT);
    member.told = 0;
    this.#forgetPast(member);
  }

  #forgetPast({ group, member }: MemberState): void {
    group.lane.pastLength[group.slot * group.lane.members + member] = 0;
  }

  #rowOf(group: GroupState, text: string): number {
    const known = group.rows.get(text);
    if (known !== undefined) return known;
    const row = group.actions.push(text) - 1;
    group.rows.set(text, row);
    return row;
  }

  // --- calls ----------------------------------------------------------------------------------------------------

  #busiestLane(): Lane | undefined {
    const waiting = new Map<Lane, number>();
    for (const { request, group } of this.#members.values()) {
      if (request) waiting.set(group.lane, (waiting.get(group.lane) ?? 0) + 1);
    }
    let best: Lane | undefined;
    for (const lane of this.#lanes) {
      if ((waiting.get(lane) ?? 0) > (best ? waiting.get(best)! : 0)) best = lane;
    }
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
    for (const { lane, actions } of groups) lane.reserveActions(actions.length);
    pending.forEach(({ group, row, text }, i) => {
      const mentions = group.reading.mentions(text);
      group.lane.writeAction(group.slot, row, bags.subarray(i * d, (i + 1) * d), mentions, group.promptKeys!);
      group.vectors = row + 1;
    });
  }

  async #decideFor(lane: Lane, ready: readonly MemberState[]): Promise<readonly Acted[]> {
    const { config, decoder } = this.#options;
    const rows = ready.map((member) => {
      const at = member.group.slot * lane.members + member.member;
      const cached = lane.pastLength[at]!;
      const fresh = member.tokens.slice(cached, cached + MAX_NEW_TOKENS);
      return { member, at, cached, fresh, done: cached + fresh.length === member.tokens.length };
    });
    const groups = Math.max(...ready.map(({ group }) => group.slot)) + 1;
    const T = Math.max(...rows.map(({ fresh }) => fresh.length));
    const N = rows.reduce((sum, { fresh }) => sum + fresh.length, 0);
    lane.reservePast(Math.max(1, ...rows.map(({ cached, fresh }) => cached + fresh.length)));
    lane.reservePrompt(1);

    const ids = new Int32Array(N);
    const previous1 = new Int32Array(N);
    const previous2 = new Int32Array(N);
    const focus = new Float32Array(N);
    const positions = new Int32Array(N);
    const index = new Int32Array(groups * lane.members * T).fill(-1);
    const inverse = new Int32Array(N);
    const deciding = new Int32Array(groups * lane.members).fill(-1);
    const decidingInverse = new Int32Array(N).fill(-1);
    let n = 0;
    for (const { member, at, cached, fresh, done } of rows) {
      const { tokens: prompt, focus: focusIds } = member.group.reading;
      const seen = (i: number) => (i >= 0 ? member.tokens[i]! : (prompt[prompt.length + i] ?? PAD));
      fresh.forEach((id, t) => {
        ids[n] = id;
        previous1[n] = seen(cached + t - 1);
        previous2[n] = seen(cached + t - 2);
        focus[n] = focusIds.has(id) ? 1 : 0;
        positions[n] = prompt.length + cached + t;
        index[at * T + t] = n;
        inverse[n] = at * T + t;
        n++;
      });
      if (done) {
        deciding[at] = n - 1;
        decidingInverse[n - 1] = at;
      }
      const last = prompt.length + cached + fresh.length;
      if (last > config.maxPositions) {
        throw new RangeError(
          `policy: episode ${member.episode} is ${last} tokens long; the model reads ${config.maxPositions} (raise model.maxPositions or shorten the horizon)`,
        );
      }
    }
    this.#tokens += N;

    const dh = headSize(config);
    const { kvHeads, hiddenSize: d } = config;
    const feeds: Record<string, HostTensor> = {
      'tokens.ids': i32([N], ids),
      'tokens.positions': i32([N], positions),
      'episodes.index': i32([groups, lane.members, T], index),
      'episodes.inverse': i32([N], inverse),
      'episodes.steps': steps(T),
      'decisions.index': i32([groups, lane.members], deciding),
      'decisions.inverse': i32([N], decidingInverse),
      'prompt.mask': f32([groups, lane.prompt], lane.promptMask(groups)),
      'past.mask': f32([groups, lane.members, lane.past], lane.pastMask(groups)),
    };
    if (config.tokenShift > 0) feeds['tokens.previous1'] = i32([N], previous1);
    if (config.tokenShift > 1) feeds['tokens.previous2'] = i32([N], previous2);
    if (config.focusBit) feeds['tokens.focus'] = f32([N, 1], focus);
    for (let layer = 0; layer < config.layers; layer++) {
      const promptShape = [groups, kvHeads, lane.prompt, dh];
      const pastShape = [groups, kvHeads, lane.members, lane.past, dh];
      feeds[`prompt.k${layer}`] = f32(promptShape, lane.promptK[layer]!);
      feeds[`prompt.v${layer}`] = f32(promptShape, lane.promptV[layer]!);
      feeds[`past.k${layer}`] = f32(pastShape, lane.pastK[layer]!);
      feeds[`past.v${layer}`] = f32(pastShape, lane.pastV[layer]!);
    }
    if (decoder === 'choice') {
      feeds['candidates.bags'] = f32([groups, lane.actions, d], lane.bags);
      feeds['candidates.keys'] = f32([groups, lane.actions * MAX_MENTIONS, d], lane.mentionKeys);
      feeds['candidates.mentionMask'] = f32([groups, lane.actions, MAX_MENTIONS], lane.mentionMask);
    }
    const out = await this.#decide.run({ ...this.#weights, ...feeds });

    n = 0;
    for (let layer = 0; layer < config.layers; layer++) {
      const k = floats(out[`k${layer}`]);
      const v = floats(out[`v${layer}`]);
      n = 0;
      for (const { member, cached, fresh } of rows) {
        for (let t = 0; t < fresh.length; t++, n++) {
          lane.writePast(member.group.slot, member.member, cached + t, layer, k, v, n * kvHeads * dh);
        }
      }
    }
    const values = config.valueHead ? floats(out.values) : undefined;
    const acted: Acted[] = [];
    for (const { member, at, cached, fresh, done } of rows) {
      lane.pastLength[at] = cached + fresh.length;
      if (!done || !member.request) continue;
      const value = values ? values[at]! : 0;
      const finished =
        decoder === 'choice'
          ? this.#choose(
              member,
              member.request,
              floats(out.scores).subarray(at * lane.actions, (at + 1) * lane.actions),
              value,
            )
          : this.#sample(
              member,
              member.request,
              floats(out.logits).subarray(at * config.vocabSize, (at + 1) * config.vocabSize),
              value,
            );
      if (!finished) continue;
      acted.push(finished);
      member.request = undefined;
      this.#waiting--;
    }
    return acted;
  }

  #choose(member: MemberState, request: ActRequest, scores: Float32Array, value: number): Acted {
    const { group, table } = member;
    const listed = Float32Array.from(request.actions, (action) => scores[group.rows.get(table[action]!)!]!);
    const { at, logprob } = drawFrom(listed, request.temperature, drawOf(request));
    const decision: Decision = {
      kind: 'choice',
      version: this.#version,
      context: this.#context(member),
      value,
      choice: at,
      logprob,
    };
    return { episode: member.episode, turn: request.turn, action: table[request.actions[at]!]!, decision };
  }

  /** Samples the next token; the turn is finished when the run ends. */
  #sample(member: MemberState, request: ActRequest, logits: Float32Array, value: number): Acted | undefined {
    const { tokenizer, maxTokens } = this.#options;
    const masked = this.#options.masked && request.actions.length > 0;
    member.run ??= {
      tokens: [],
      logprobs: [],
      value,
      from: member.tokens.length,
      rng: drawOf(request),
    };
    const { run } = member;
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
      context: this.#context(member, run.from),
      value: run.value,
      tokens: Int32Array.from(run.tokens),
      logprobs: Float32Array.from(run.logprobs),
      masked,
    };
    member.tokens.push(id); // read on the next turn, before what the env says
    member.told = member.tokens.length;
    member.run = undefined;
    return { episode: member.episode, turn: request.turn, action: tokenizer.decode(run.tokens), decision };
  }

  /** What was read since the last decision: on turn 0 (and in every window) the prompt too. */
  #context(member: MemberState, until = member.tokens.length): Int32Array {
    const { told, tokens, group } = member;
    const fresh = tokens.slice(told, until);
    member.told = until;
    return told === 0 ? Int32Array.from([...group.reading.tokens, ...fresh]) : Int32Array.from(fresh);
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
