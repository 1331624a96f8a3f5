/**
 * Window policy: for codecs that render every turn anew, choosing among listed actions. Nothing is kept between the turns
 * of an episode but its transcript, so there is no cache: one call reads the windows of all waiting turns, whole, and
 * decides for all of them.
 *
 * Decides exactly as `CachedPolicy` does through the same codec (a test compares them), in about half the time: one program
 * instead of three, and no keys and values carried out of the engine that nothing would read again.
 */

import type { Engine, HostTensor, Program } from '../compute/engine/engine.ts';
import type { ModelConfig } from '../compute/model/config.ts';
import { type Window, windowFeeds } from '../compute/model/feeds.ts';
import { checkParams, checkVocabulary, type ParamSet, parameterSpecs } from '../compute/model/parameters.ts';
import { windowGraph } from '../compute/model/programs.ts';
import type { Decision } from '../core/trajectory.ts';
import type { Codec } from '../text/reading/codec.ts';
import { advanceTranscript } from '../text/reading/replay-turns.ts';
import type { Transcript } from '../text/reading/transcript.ts';
import { drawOf } from './decide.ts';
import { type Acted, type ActRequest, formatTooLong, nothingListed, type Policy, type Unanswered } from './policy.ts';
import { drawFrom, likeliestOf } from './sampling.ts';

/** Model, codec and limits of a window policy. */
export interface WindowPolicyOptions {
  readonly config: ModelConfig;
  /** Codec that `rendersAnew`. */
  readonly codec: Codec;
  /** Turns per engine call, at most. */
  readonly maxBatch: number;
  /** Milliseconds, monotonic; without it turns carry no times. */
  readonly now?: () => number;
}

/** Running episode: its transcript is all that is kept between turns. */
interface Episode {
  readonly transcript: Transcript;
  waiting: Waiting | undefined;
}

/** Waiting turn, rendered when it was submitted. */
interface Waiting extends Window {
  readonly request: ActRequest;
  /** Time at which the turn came, where the policy has a clock. */
  readonly since: number;
}

/** Cacheless policy over windows; only the choice decoder. */
export class WindowPolicy implements Policy {
  readonly maxBatch: number;
  readonly #options: WindowPolicyOptions;
  readonly #program: Program;
  readonly #episodes = new Map<number, Episode>();
  /** Queue of waiting turns, in the order in which they came. */
  readonly #queue = new Set<Episode>();
  #weights: Record<string, HostTensor> = {};
  #version = 0;
  #tokens = 0;

  private constructor(options: WindowPolicyOptions, program: Program) {
    this.#options = options;
    this.#program = program;
    this.maxBatch = options.maxBatch;
  }

  /** Compiles its one program. @throws {UserError} BAD_WEIGHTS when the weights do not fit the model */
  static async create(engine: Engine, options: WindowPolicyOptions, params: ParamSet): Promise<WindowPolicy> {
    checkVocabulary(options.config, options.codec.vocabSize);
    const policy = new WindowPolicy(options, await engine.compile(windowGraph(options.config)));
    policy.load(params);
    return policy;
  }

  load(params: ParamSet): void {
    const { config } = this.#options;
    checkParams(config, params);
    this.#version = params.version;
    // Nothing is cached, so new weights need nothing recomputed.
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

  /** True when every running episode waits: no other turn can arrive before one of them was answered. */
  get complete(): boolean {
    return this.#queue.size > 0 && this.#queue.size === this.#episodes.size;
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
    const { codec, config } = this.#options;
    if (request.actions.length === 0) return nothingListed(request);
    // An episode that is not known brings its history along (a restart of the policy): `follow` takes it up.
    const known = this.#episodes.get(request.episode);
    const transcript = advanceTranscript(codec, known?.transcript, request);
    const episode = known ?? { transcript, waiting: undefined };
    if (!known) this.#episodes.set(request.episode, episode);
    const { prompt, tokens, table } = transcript;
    // One position is for the token that decides.
    if (prompt.tokens.length >= config.maxPositions)
      return formatTooLong(prompt.tokens.length + 1, config.maxPositions);
    const candidates = Array.from(request.actions, (index) => {
      const action = table[index]!;
      return { action, read: transcript.candidate(action) };
    });
    const since = this.#options.now?.() ?? 0;
    episode.waiting = { request, prompt, candidates, deciding: tokens.at(-1)!, since };
    this.#queue.add(episode);
    return undefined;
  }

  async step(): Promise<readonly Acted[]> {
    const { config, codec } = this.#options;
    const episodes = [...this.#queue].slice(0, this.maxBatch); // oldest first, so that none starves
    if (episodes.length === 0) return [];
    const waiting = episodes.map((episode) => episode.waiting!);
    const { now } = this.#options;
    const start = now?.() ?? 0;
    // Turns that arrive while the engine runs join the queue and wait for the next call.
    const out = await this.#program.run({ ...this.#weights, ...windowFeeds(config, codec, waiting) });
    const scores = out.scores!.data as Float32Array;
    const values = out.values?.data as Float32Array | undefined;
    // [turns, candidates of the longest list]: shorter lists are padded, and their padding is never read.
    const width = scores.length / episodes.length;
    const decodeMs = (now?.() ?? 0) - start;
    return episodes.map((episode, row) => {
      episode.waiting = undefined;
      this.#queue.delete(episode);
      const { request, prompt, candidates, since } = waiting[row]!;
      this.#tokens += prompt.tokens.length + 1; // the window, and the token that decides
      const listed = scores.subarray(row * width, row * width + candidates.length);
      const { at, logprob } = drawFrom(listed, request.temperature, drawOf(request));
      const decision: Decision = {
        kind: 'choice',
        version: this.#version,
        context: episode.transcript.takeContext(),
        value: values ? values[row]! : 0,
        choice: at,
        logprob,
        likeliest: likeliestOf(listed),
      };
      return {
        episode: request.episode,
        turn: request.turn,
        action: candidates[at]!.action,
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

  forget(): void {
    this.#episodes.clear();
    this.#queue.clear();
  }

  async dispose(): Promise<void> {
    await this.#program.dispose();
  }
}
