/** Decoding with a cache held by the test: sequences of several groups, fed in pieces of any size. */
import type { Engine, HostTensor, Program } from '../../../src/compute/engine/engine.ts';
import { headSize, type ModelConfig } from '../../../src/compute/model/config.ts';
import { f32, i32, promptFeeds, steps } from '../../../src/compute/model/feeds.ts';
import type { ParamSet } from '../../../src/compute/model/parameters.ts';
import { decodeGraph, prefillGraph } from '../../../src/compute/model/programs.ts';
import { weightFeeds } from './episodes.ts';

const MASKED = -1e9;

export interface Sequence {
  readonly prompt: Int32Array;
  readonly focus: ReadonlySet<number>;
  /** Tokens after the prompt, per member. */
  readonly members: readonly number[][];
}

/** New tokens of one member in one call. */
export interface Piece {
  readonly group: number;
  readonly member: number;
  readonly count: number;
}

export class Decoder {
  readonly #config: ModelConfig;
  readonly #weights: Record<string, HostTensor>;
  readonly #prefill: Program;
  readonly #decode: Program;

  private constructor(config: ModelConfig, weights: Record<string, HostTensor>, prefill: Program, decode: Program) {
    this.#config = config;
    this.#weights = weights;
    this.#prefill = prefill;
    this.#decode = decode;
  }

  static async create(engine: Engine, config: ModelConfig, params: ParamSet): Promise<Decoder> {
    const weights = weightFeeds(config, params);
    const prefill = await engine.compile(prefillGraph(config));
    return new Decoder(config, weights, prefill, await engine.compile(decodeGraph(config)));
  }

  /** Reads the prompts of a batch. */
  async open(sequences: readonly Sequence[]): Promise<DecodingBatch> {
    const P = Math.max(...sequences.map(({ prompt }) => prompt.length));
    const readings = sequences.map(({ prompt, focus }) => ({ tokens: prompt, focus }));
    const out = await this.#prefill.run({ ...this.#weights, ...promptFeeds(this.#config, readings, P) });
    const cache: Record<string, HostTensor> = {};
    for (let layer = 0; layer < this.#config.layers; layer++) {
      cache[`prompt.k${layer}`] = out[`k${layer}`]!;
      cache[`prompt.v${layer}`] = out[`v${layer}`]!;
    }
    const mask = new Float32Array(sequences.length * P).fill(MASKED);
    for (const [g, { prompt }] of sequences.entries()) mask.fill(0, g * P, g * P + prompt.length);
    cache['prompt.mask'] = f32([sequences.length, P], mask);
    if (this.#config.sameTokenBias !== undefined) {
      const ids = new Int32Array(sequences.length * P).fill(-1);
      for (const [g, { prompt }] of sequences.entries()) ids.set(prompt, g * P);
      cache['prompt.padded'] = i32([sequences.length, P], ids);
    }
    return new DecodingBatch(this.#config, this.#weights, this.#decode, sequences, cache);
  }
}

export class DecodingBatch {
  readonly #config: ModelConfig;
  readonly #weights: Record<string, HostTensor>;
  readonly #decode: Program;
  readonly #sequences: readonly Sequence[];
  readonly #prompt: Record<string, HostTensor>;
  /** Per layer, cached rows [tokens][kvHeads·dh] of each member. */
  readonly #k: Float32Array[][][];
  readonly #v: Float32Array[][][];
  readonly #members: number;

  constructor(
    config: ModelConfig,
    weights: Record<string, HostTensor>,
    decode: Program,
    sequences: readonly Sequence[],
    prompt: Record<string, HostTensor>,
  ) {
    this.#config = config;
    this.#weights = weights;
    this.#decode = decode;
    this.#sequences = sequences;
    this.#prompt = prompt;
    this.#members = Math.max(...sequences.map(({ members }) => members.length));
    const empty = () =>
      Array.from({ length: config.layers }, () =>
        Array.from({ length: sequences.length * this.#members }, (): Float32Array[] => []),
      );
    this.#k = empty();
    this.#v = empty();
  }

  /** Tokens a member has read. */
  read(group: number, member: number): number {
    return this.#k[0]![group * this.#members + member]!.length;
  }

  /** Reads the next tokens of some members. @returns the logits after the last one of each piece */
  async step(pieces: readonly Piece[]): Promise<Float32Array[]> {
    const { layers, kvHeads, vocabSize, tokenShift, focusBit, sameTokenBias, slidingWindow } = this.#config;
    const dh = headSize(this.#config);
    const [G, K] = [this.#sequences.length, this.#members];
    const T = Math.max(...pieces.map(({ count }) => count));
    const S = Math.max(1, ...this.#k[0]!.map((rows) => rows.length));
    const N = pieces.reduce((sum, { count }) => sum + count, 0);
    const column = () => new Int32Array(N);
    const [ids, previous1, previous2, positions, inverse] = [column(), column(), column(), column(), column()];
    const focus = new Float32Array(N);
    const index = new Int32Array(G * K * T).fill(-1);
    const deciding = new Int32Array(G * K).fill(-1);
    const decidingInverse = new Int32Array(N).fill(-1);
    const fresh = new Int32Array(G * K * T).fill(-1);
    const past = new Int32Array(G * K * S).fill(-1);
    let n = 0;
    for (const { group, member, count } of pieces) {
      const sequence = this.#sequences[group]!;
      const all = [...sequence.prompt, ...sequence.members[member]!];
      const at = group * K + member;
      past.set(all.slice(sequence.prompt.length, sequence.prompt.length + this.read(group, member)), at * S);
      for (let t = 0; t < count; t++, n++) {
        const position = sequence.prompt.length + this.read(group, member) + t;
        ids[n] = fresh[at * T + t] = all[position]!;
        previous1[n] = all[position - 1] ?? 0;
        previous2[n] = all[position - 2] ?? 0;
        focus[n] = sequence.focus.has(all[position]!) ? 1 : 0;
        positions[n] = position;
        index[at * T + t] = n;
        inverse[n] = at * T + t;
      }
      deciding[at] = n - 1;
      decidingInverse[n - 1] = at;
    }
    const pastMask = new Float32Array(G * K * S).fill(MASKED);
    const feeds: Record<string, HostTensor> = {
      ...this.#prompt,
      'tokens.ids': i32([N], ids),
      'tokens.positions': i32([N], positions),
      'episodes.index': i32([G, K, T], index),
      'episodes.inverse': i32([N], inverse),
      'episodes.steps': steps(T),
      'decisions.index': i32([G, K], deciding),
      'decisions.inverse': i32([N], decidingInverse),
      'past.mask': f32([G, K, S], pastMask),
    };
    for (const [at, rows] of this.#k[0]!.entries()) pastMask.fill(0, at * S, at * S + rows.length);
    if (tokenShift > 0) feeds['tokens.previous1'] = i32([N], previous1);
    if (tokenShift > 1) feeds['tokens.previous2'] = i32([N], previous2);
    if (focusBit) feeds['tokens.focus'] = f32([N, 1], focus);
    if (sameTokenBias !== undefined) {
      feeds['episodes.padded'] = i32([G, K, T], fresh);
      feeds['past.padded'] = i32([G, K, S], past);
    }
    if (slidingWindow !== undefined) {
      feeds['prompt.steps'] = steps(this.#prompt['prompt.mask']!.shape[1]!);
      feeds['past.steps'] = steps(S);
    }
    for (let layer = 0; layer < layers; layer++) {
      for (const [kind, cached] of [
        ['k', this.#k],
        ['v', this.#v],
      ] as const) {
        const pool = new Float32Array(G * kvHeads * K * S * dh);
        cached[layer]!.forEach((rows, at) => {
          const [g, k] = [Math.floor(at / K), at % K];
          rows.forEach((row, s) => {
            for (let h = 0; h < kvHeads; h++) {
              pool.set(row.subarray(h * dh, (h + 1) * dh), (((g * kvHeads + h) * K + k) * S + s) * dh);
            }
          });
        });
        feeds[`past.${kind}${layer}`] = f32([G, kvHeads, K, S, dh], pool);
      }
    }
    const out = await this.#decode.run({ ...this.#weights, ...feeds });
    for (let layer = 0; layer < layers; layer++) {
      let row = 0;
      for (const { group, member, count } of pieces) {
        for (let t = 0; t < count; t++, row++) {
          const part = (name: string) =>
            (out[name]!.data as Float32Array).slice(row * kvHeads * dh, (row + 1) * kvHeads * dh);
          this.#k[layer]![group * K + member]!.push(part(`k${layer}`));
          this.#v[layer]![group * K + member]!.push(part(`v${layer}`));
        }
      }
    }
    const logits = out.logits!.data as Float32Array;
    return pieces.map(({ group, member }) => {
      const at = group * K + member;
      return logits.slice(at * vocabSize, (at + 1) * vocabSize);
    });
  }
}
