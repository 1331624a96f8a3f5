/**
 * The small policy for views that are rendered anew every turn, choosing among listed actions. Nothing is kept between
 * the turns of an episode but its text, so there is no cache: one call reads the windows of whoever waits, whole, and
 * decides for all of them.
 *
 * Says exactly what `SmallPolicy` says under the same view (a test compares them), in about half the time.
 */
import { UserError } from '../core/errors.ts';
import { Rng, seedFrom } from '../core/rng.ts';
import type { Decision } from '../core/trajectory.ts';
import type { SeenTurn, WindowView } from '../core/view.ts';
import type { Engine, HostTensor, Program } from '../engine/engine.ts';
import type { ModelConfig } from '../model/config.ts';
import { checkParams, type ParamSet, parameterSpecs } from '../model/parameters.ts';
import { windowGraph } from '../model/programs.ts';
import { windowFeeds } from './feeds.ts';
import type { Acted, ActRequest, Policy } from './policy.ts';
import { type PromptReading, readRendered } from './reading.ts';
import { drawFrom } from './sampling.ts';
import { ACT, type Tokenizer } from './tokenizer.ts';

export interface WindowPolicyOptions {
  readonly config: ModelConfig;
  readonly tokenizer: Tokenizer;
  readonly view: WindowView;
  /** Turns per engine call, at most. */
  readonly maxBatch: number;
  /** Milliseconds, monotonic; without it turns carry no times. */
  readonly now?: () => number;
}

interface Episode {
  readonly firstObservation: string;
  readonly turns: SeenTurn[];
  /** The episode's own action table. */
  readonly table: string[];
  waiting: Waiting | undefined;
}

interface Waiting {
  readonly request: ActRequest;
  readonly reading: PromptReading;
  readonly actions: readonly string[];
  /** When the turn came, where the policy has a clock. */
  readonly since: number;
}

export class WindowPolicy implements Policy {
  readonly maxBatch: number;
  readonly #options: WindowPolicyOptions;
  readonly #program: Program;
  readonly #episodes = new Map<number, Episode>();
  /** In the order in which they came. */
  readonly #queue = new Set<Episode>();
  #weights: Record<string, HostTensor> = {};
  #version = 0;
  #tokens = 0;

  private constructor(options: WindowPolicyOptions, program: Program) {
    this.#options = options;
    this.#program = program;
    this.maxBatch = options.maxBatch;
  }

  /** Compiles the program. @throws {UserError} BAD_WEIGHTS when the weights do not fit the model */
  static async create(engine: Engine, options: WindowPolicyOptions, params: ParamSet): Promise<WindowPolicy> {
    const { config, tokenizer } = options;
    if (config.vocabSize !== tokenizer.size) {
      throw new UserError(
        'BAD_WEIGHTS',
        `policy: the model has ${config.vocabSize} tokens, the world's vocabulary ${tokenizer.size}; train a new policy for this world`,
      );
    }
    const policy = new WindowPolicy(options, await engine.compile(windowGraph(config)));
    policy.load(params);
    return policy;
  }

  /** Takes new weights; they hold from the next call on. @throws {UserError} BAD_WEIGHTS */
  load(params: ParamSet): void {
    const { config } = this.#options;
    checkParams(config, params);
    this.#version = params.version;
    for (const { name, shape } of parameterSpecs(config)) {
      this.#weights[name] = { dtype: 'f32', shape, data: params.values[name]! };
    }
  }

  get version(): number {
    return this.#version;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  get complete(): boolean {
    return this.#queue.size > 0 && this.#queue.size === this.#episodes.size;
  }

  get tokens(): number {
    return this.#tokens;
  }

  submit(requests: readonly ActRequest[]): void {
    for (const request of requests) this.#submit(request);
  }

  #submit(request: ActRequest): void {
    const { tokenizer, view, config } = this.#options;
    if (request.actions.length === 0) {
      throw new RangeError(
        `policy: episode ${request.episode} lists no action on turn ${request.turn}; the choice decoder needs a list (use decoder: tokens)`,
      );
    }
    const episode = this.#episodes.get(request.episode) ?? this.#open(request);
    for (const text of request.newActions) episode.table.push(text);
    if (request.turn > 0 && request.lastAction !== undefined) {
      episode.turns.push({ action: request.lastAction, observation: request.observation });
    }
    const first = { kind: 'first', observation: episode.firstObservation } as const;
    const reading = readRendered(tokenizer, view.render(first, episode.turns));
    if (reading.tokens.length >= config.maxPositions) {
      throw new RangeError(
        `policy: episode ${request.episode} is ${reading.tokens.length + 1} tokens long; the model reads ${config.maxPositions} (raise model.maxPositions)`,
      );
    }
    const actions = Array.from(request.actions, (action) => episode.table[action]!);
    episode.waiting = { request, reading, actions, since: this.#options.now?.() ?? 0 };
    this.#queue.add(episode);
  }

  #open({ episode, observation, history }: ActRequest): Episode {
    const opened: Episode = {
      firstObservation: history?.[0]?.observation ?? observation,
      turns: [],
      table: [],
      waiting: undefined,
    };
    history?.slice(0, -1).forEach(({ action }, i) => {
      opened.turns.push({ action, observation: history[i + 1]!.observation });
    });
    this.#episodes.set(episode, opened);
    return opened;
  }

  async step(): Promise<readonly Acted[]> {
    const { config, tokenizer } = this.#options;
    const episodes = [...this.#queue].slice(0, this.maxBatch);
    if (episodes.length === 0) return [];
    const waiting = episodes.map((episode) => episode.waiting!);
    const { now } = this.#options;
    const start = now?.() ?? 0;
    const out = await this.#program.run({ ...this.#weights, ...windowFeeds(config, tokenizer, waiting) });
    const scores = out.scores!.data as Float32Array;
    const values = out.values?.data as Float32Array | undefined;
    const width = scores.length / episodes.length;
    const decodeMs = (now?.() ?? 0) - start;
    return episodes.map((episode, row) => {
      episode.waiting = undefined;
      this.#queue.delete(episode);
      const { request, reading, actions, since } = waiting[row]!;
      this.#tokens += reading.tokens.length + 1;
      const rng = Rng.fromSeed(seedFrom(request.samplingSeed, request.turn));
      const listed = scores.subarray(row * width, row * width + actions.length);
      const { at, logprob } = drawFrom(listed, request.temperature, rng);
      const decision: Decision = {
        kind: 'choice',
        version: this.#version,
        context: Int32Array.from([...reading.tokens, ACT]),
        value: values ? values[row]! : 0,
        choice: at,
        logprob,
      };
      return {
        episode: request.episode,
        turn: request.turn,
        action: actions[at]!,
        decision,
        ...(now ? { stages: { waitMs: start - since, prefillMs: 0, decodeMs } } : {}),
      };
    });
  }

  release(episodes: readonly number[]): void {
    for (const id of episodes) {
      const episode = this.#episodes.get(id);
      if (episode) this.#queue.delete(episode);
      this.#episodes.delete(id);
    }
  }

  /** Forgets all episodes: the policy is then as if it had just started. */
  forget(): void {
    this.#episodes.clear();
    this.#queue.clear();
  }

  async dispose(): Promise<void> {
    await this.#program.dispose();
  }
}
