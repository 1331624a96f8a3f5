/**
 * Training steps and measurements of many-layered models, run part by part (layer-graphs.ts): each layer is a call of one
 * compiled program. To its users it is a program like any other: feeds and outputs are those of `gradientGraph` and
 * `logprobsGraph`.
 */
import type { Engine, Feed, HostTensor, Program, RunTensor } from '../engine/engine.ts';
import type { Graph, ValueInfo } from '../tensor/graph.ts';
import { BaseTensors } from './base-tensors.ts';
import type { ModelConfig } from './config.ts';
import {
  firstTrainedLayer,
  inLayer,
  isLayerParameter,
  type LayerGraphs,
  layerGraphs,
  type MeasuringGraphs,
  measuringGraphs,
} from './layer-graphs.ts';
import { parameterSpecs } from './parameters.ts';
import type { Decoding, TrainOptions } from './programs.ts';

type Feeds = Readonly<Record<string, Feed>>;
type Outputs = Record<string, RunTensor>;

/** Compiles a program that does what `gradientGraph` does, layer by layer. */
export async function compileLayeredGradients(
  engine: Engine,
  config: ModelConfig,
  options: Omit<TrainOptions, 'adamW'>,
): Promise<Program> {
  return LayeredProgram.create(engine, config, layerGraphs(config, options));
}

/** Compiles a program that does what `logprobsGraph` does, layer by layer. */
export async function compileLayeredLogprobs(
  engine: Engine,
  config: ModelConfig,
  decoding: Decoding,
): Promise<Program> {
  return LayeredProgram.create(engine, config, measuringGraphs(config, decoding));
}

/** Compiled parts. */
interface Parts {
  readonly embed: Program;
  readonly forward: Program;
  readonly trunk: Program | undefined;
  readonly head: Program;
  readonly backward: Program | undefined;
  readonly embedBackward: Program | undefined;
}

class LayeredProgram implements Program {
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  readonly #config: ModelConfig;
  readonly #parts: Parts;
  readonly #base: BaseTensors;

  private constructor(config: ModelConfig, parts: Parts, base: BaseTensors) {
    this.#config = config;
    this.#parts = parts;
    this.#base = base;
    const all = Object.values(parts as unknown as Record<string, Program | undefined>);
    const made = /^(?:layer|head|embed|kept)\.|^model\./;
    const inputs = new Map<string, ValueInfo>();
    for (const part of all) for (const one of part?.inputs ?? []) if (!made.test(one.name)) inputs.set(one.name, one);
    const trained = parameterSpecs(config).map(({ name, shape }): ValueInfo => ({ name, shape, dtype: 'f32' }));
    for (const one of trained) inputs.delete(one.name);
    const firstLayer = [...inputs.values()].filter(({ name }) => !isLayerParameter(name));
    this.inputs = [...firstLayer, ...trained];
    const reported = parts.head.outputs.filter(({ name }) => !/^d\/|^dPrompt$|^dTokens$/.test(name));
    this.outputs = parts.backward
      ? [...reported, ...trained.map((one) => ({ ...one, name: `d/${one.name}` }))]
      : reported;
  }

  static async create(engine: Engine, config: ModelConfig, graphs: LayerGraphs | MeasuringGraphs): Promise<Program> {
    const compileOr = (graph: Graph | undefined) => (graph ? engine.compile(graph) : undefined);
    const training = 'backward' in graphs ? graphs : undefined;
    const parts = {
      embed: await engine.compile(graphs.embed),
      forward: await engine.compile(graphs.forward),
      trunk: await compileOr(graphs.trunk),
      head: await engine.compile(graphs.head),
      backward: await compileOr(training?.backward),
      embedBackward: await compileOr(training?.embedBackward),
    };
    return new LayeredProgram(config, parts, new BaseTensors(config));
  }

  async run(feeds: Feeds): Promise<Outputs> {
    const { embed, forward, trunk, head, backward, embedBackward } = this.#parts;
    const lowest = firstTrainedLayer(this.#config);
    const { layers, hiddenSize: d } = this.#config;
    const withBase = (program: Program, layer = 0): Feeds => this.#feedsOf(program, feeds, layer);

    let x = (await embed.run(withBase(embed))).x!;
    // What each layer's backward pass reads: its input, or what it kept.
    const entered: Feeds[] = [];
    for (let layer = 0; layer < lowest; layer++) {
      x = (await trunk!.run({ ...withBase(trunk!, layer), 'layer.x': x })).x!;
    }
    for (let layer = lowest; layer < layers; layer++) {
      const { x: y, ...kept } = await forward.run({ ...withBase(forward, layer), 'layer.x': x });
      entered.push({ 'layer.x': x, ...kept });
      x = y!;
      if (!backward) entered.length = 0;
    }
    const prompts = feeds['prompt.ids']!.shape[0]!;
    const tokens = x.shape[0]! - prompts;
    const hidden = x.data as Float32Array;
    const ends = {
      'head.prompt': f32([prompts, d], hidden.subarray(0, prompts * d)),
      'head.tokens': f32([tokens, d], hidden.subarray(prompts * d)),
    };
    const { dPrompt, dTokens, ...out } = await head.run({ ...withBase(head), ...ends });
    if (!backward) return out;

    const joined = new Float32Array((prompts + tokens) * d);
    if (dPrompt) joined.set(dPrompt.data as Float32Array);
    if (dTokens) joined.set(dTokens.data as Float32Array, prompts * d);
    let dy: HostTensor = f32([prompts + tokens, d], joined);
    for (let layer = layers - 1; layer >= lowest; layer--) {
      const { dx, ...slopes } = await backward.run({
        ...withBase(backward, layer),
        ...entered.pop()!,
        'layer.dy': dy,
      });
      for (const [name, slope] of Object.entries(slopes)) out[inLayer(name, layer)] = slope;
      dy = dx!;
    }
    if (embedBackward) {
      const slopes = await embedBackward.run({ ...withBase(embedBackward), 'embed.dy': dy });
      for (const [name, slope] of Object.entries(slopes)) {
        const before = out[name];
        if (before) addInto(before.data as Float32Array, slope.data as Float32Array);
        else out[name] = slope;
      }
    }
    return Object.fromEntries(this.outputs.map(({ name, shape }) => [name, out[name] ?? zeros(shape as number[])]));
  }

  async dispose(): Promise<void> {
    for (const part of Object.values(this.#parts as unknown as Record<string, Program | undefined>))
      await part?.dispose();
  }

  /** Feeds of a part: those given, and the weights of a layer under the first one's names. */
  #feedsOf(program: Program, feeds: Feeds, layer: number): Feeds {
    const own: Record<string, Feed> = {};
    for (const { name } of program.inputs) {
      const global = isLayerParameter(name) ? inLayer(name, layer) : name;
      const feed = feeds[global] ?? this.#base.feedOf(global);
      if (feed) own[name] = feed;
    }
    return own;
  }
}

function f32(shape: readonly number[], data: Float32Array): HostTensor {
  return { dtype: 'f32', shape, data };
}

function addInto(sum: Float32Array, more: Float32Array): void {
  for (let i = 0; i < sum.length; i++) sum[i]! += more[i]!;
}

/** Gradient of a parameter that the loss does not depend on. */
function zeros(shape: readonly number[]): RunTensor {
  const host = f32(shape, new Float32Array(shape.reduce((a, b) => a * b, 1)));
  return { ...host, read: async () => host, dispose: () => {} };
}
