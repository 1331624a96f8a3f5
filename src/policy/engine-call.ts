/**
 * Engine call: what the engine computes for a batch, as plain data, and computing it. A call is prepared where episodes are
 * read, may be computed in another thread, and its outputs become decisions where it was prepared.
 *
 * Its parts run one after another: new prompts, new candidates, decisions. What one leaves for the next goes through the pools
 * of the cache, so all other feeds are ready before the first part runs.
 */
import type { Engine, HostTensor, Program } from '../compute/engine/engine.ts';
import type { ModelConfig } from '../compute/model/config.ts';
import { headSize } from '../compute/model/config.ts';
import { actionsGraph, chooseGraph, type DecoderKind, decodeGraph, prefillGraph } from '../compute/model/programs.ts';
import { candidatePoolFeeds, poolFeeds, writePasts } from './decision-feeds.ts';
import type { KvCache } from './kv-cache.ts';
import { PromptReader } from './prompt-reader.ts';

/** Feeds by name of the input. */
export type Feeds = Readonly<Record<string, HostTensor>>;

/** New prompts of a call: G of them, padded to the longest. */
export interface PromptPart {
  readonly feeds: Feeds;
  /** Slot and number of tokens of each prompt. */
  readonly slots: readonly number[];
  readonly lengths: readonly number[];
  /** Tokens of the longest, which the others are padded to. */
  readonly longest: number;
}

/** New candidates of a call. */
export interface ActionPart {
  readonly feeds: Feeds;
  /** Row of the pool of bags that each vector goes to. */
  readonly rows: Int32Array;
}

/** New mentions of a call: rows of the pool of prompt keys, and the rows of the pool of mentions that they go to. */
export interface MentionPart {
  readonly from: readonly number[];
  readonly to: readonly number[];
}

/** Call, as plain data. */
export interface EngineCall {
  readonly prompts?: PromptPart | undefined;
  readonly actions?: ActionPart | undefined;
  readonly mentions?: MentionPart | undefined;
  /** Feeds of the program that decides, but for the pools. */
  readonly decisions: Feeds;
  /** G: the first slots of the cache, which it reads. */
  readonly slots: number;
  /** Places of the new tokens in the cache (`placesOf`). */
  readonly places: Int32Array;
}

/** Outputs of a call. */
export interface CallOutputs {
  /** Outputs of the program that decides, without keys and values. */
  readonly outputs: Feeds;
  /** Milliseconds that prompts and candidates took, and the decisions after them. */
  readonly readMs: number;
  readonly decideMs: number;
}

/** Computer of calls, here or in another thread. */
export interface CallRunner {
  /** True when a call may be prepared while another one is computed; the pools of the caches then lie elsewhere. */
  readonly overlaps: boolean;
  /** Takes the weights of the calls that follow. */
  load(weights: Feeds): void;
  /** Computes a call over a cache, and keeps in its pools what was computed. @throws {LongplayError} ENGINE_FAILED when the engine fails */
  run(cache: KvCache, call: EngineCall): Promise<CallOutputs>;
  /** Drops the pools of all caches: none of them is used again. */
  forget(): void;
  dispose(): Promise<void>;
}

/** Compiled programs of a cached policy. */
export interface CallPrograms {
  /** Reads prompts: once per group, over [G, P] tokens. Absent where a prompt reader does. */
  readonly prefill: Program | undefined;
  /** Turns candidate texts into vectors; absent with the tokens decoder. */
  readonly vectors: Program | undefined;
  /** Reads new tokens over the cache, and scores candidates or next tokens. */
  readonly decide: Program;
}

/** Compiles the programs of a decoder. */
export async function compileCalls(engine: Engine, config: ModelConfig, decoder: DecoderKind): Promise<CallPrograms> {
  return {
    prefill: PromptReader.reads(config) ? undefined : await engine.compile(prefillGraph(config)),
    decide: await engine.compile(decoder === 'choice' ? chooseGraph(config) : decodeGraph(config)),
    vectors: decoder === 'choice' ? await engine.compile(actionsGraph(config)) : undefined,
  };
}

/** Computes calls in this thread. */
export class LocalCalls implements CallRunner {
  readonly overlaps = false;
  readonly programs: CallPrograms;
  readonly #config: ModelConfig;
  readonly #now: () => number;
  #weights: Feeds = {};
  /** Weights and, beside them, the feeds of the last call: every call replaces all that its programs read. */
  #feeds: Record<string, HostTensor> = {};

  /** @param now milliseconds */
  constructor(programs: CallPrograms, config: ModelConfig, now: () => number) {
    this.programs = programs;
    this.#config = config;
    this.#now = now;
  }

  /** Weights in force. */
  get weights(): Feeds {
    return this.#weights;
  }

  load(weights: Feeds): void {
    this.#weights = weights;
    this.#feeds = { ...weights };
  }

  async run(cache: KvCache, call: EngineCall): Promise<CallOutputs> {
    const { prompts, actions, mentions, decisions, slots, places } = call;
    const { prefill, vectors, decide } = this.programs;
    const config = this.#config;
    const { hiddenSize: d } = config;
    const pool = cache.candidates;
    const feeds = this.#feeds;
    const start = this.#now();
    if (prompts) writePrompts(config, cache, prompts, await prefill!.run(Object.assign(feeds, prompts.feeds)));
    if (actions) {
      const out = await vectors!.run(Object.assign(feeds, actions.feeds));
      copyRows(d, floats(out.bags), undefined, pool.bags, actions.rows);
    }
    // After the prompts: mentions are keys of theirs.
    if (mentions) copyRows(d, cache.promptKeys, mentions.from, pool.mentionKeys, mentions.to);
    const read = this.#now();
    Object.assign(feeds, decisions, poolFeeds(config, cache, slots));
    if (vectors) Object.assign(feeds, candidatePoolFeeds(config, pool, slots));
    const out = await decide.run(feeds);
    writePasts(config, cache, places, out);
    const outputs: Record<string, HostTensor> = {};
    for (const name of ['scores', 'logits', 'values']) if (out[name]) outputs[name] = out[name];
    return { outputs, readMs: read - start, decideMs: this.#now() - read };
  }

  forget(): void {}

  async dispose(): Promise<void> {
    const { prefill, vectors, decide } = this.programs;
    await prefill?.dispose();
    await decide.dispose();
    await vectors?.dispose();
  }
}

/**
 * Puts new prompts into the pools.
 * @param out `k<layer>`, `v<layer>` [G, kvHeads, longest, dh]; with a choice head `pointerKeys` [N, d], packed
 */
function writePrompts(config: ModelConfig, cache: KvCache, part: PromptPart, out: Feeds): void {
  const { slots, lengths, longest } = part;
  const { hiddenSize: d, layers, kvHeads } = config;
  const width = kvHeads * longest * headSize(config); // of one prompt in the outputs, padding included
  let packed = 0; // pointer keys are packed: no padding between prompts
  slots.forEach((slot, g) => {
    const length = lengths[g]!;
    for (let layer = 0; layer < layers; layer++) {
      const k = floats(out[`k${layer}`]).subarray(g * width, (g + 1) * width);
      const v = floats(out[`v${layer}`]).subarray(g * width, (g + 1) * width);
      cache.writePrompt(slot, layer, k, v, longest, length);
    }
    if (config.choiceHead) {
      const keys = floats(out.pointerKeys).subarray(packed * d, (packed + length) * d);
      cache.promptKeys.set(keys, slot * cache.prompt * d);
    }
    packed += length;
  });
}

/** Copies rows of `d` numbers. @param from rows of the source; one after the other where absent */
function copyRows(
  d: number,
  source: Float32Array,
  from: ArrayLike<number> | undefined,
  target: Float32Array,
  to: ArrayLike<number>,
): void {
  for (let i = 0; i < to.length; i++) {
    const at = (from ? from[i]! : i) * d;
    target.set(source.subarray(at, at + d), to[i]! * d);
  }
}

function floats(tensor: HostTensor | undefined): Float32Array {
  return tensor!.data as Float32Array;
}
