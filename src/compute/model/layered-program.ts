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
  return LayeredProgram.create(engine, config, (kind) => layerGraphs(kind, options));
}

/** Compiles a program that does what `logprobsGraph` does, layer by layer. */
export async function compileLayeredLogprobs(
  engine: Engine,
  config: ModelConfig,
  decoding: Decoding,
): Promise<Program> {
  return LayeredProgram.create(engine, config, (kind) => measuringGraphs(kind, decoding));
}

/** Compiled programs of a layer. */
interface LayerPrograms {
  readonly forward: Program;
  readonly trunk: Program | undefined;
  readonly backward: Program | undefined;
}

/** Compiled parts. */
interface Parts {
  readonly embed: Program;
  readonly head: Program;
  readonly embedBackward: Program | undefined;
  /** Programs of each layer; layers that are alike share theirs. */
  readonly layers: readonly LayerPrograms[];
}

/** All programs of the parts, each once. */
function listPrograms({ embed, head, embedBackward, layers }: Parts): Program[] {
  const all = [
    embed,
    head,
    embedBackward,
    ...layers.flatMap(({ forward, trunk, backward }) => [forward, trunk, backward]),
  ];
  return [...new Set(all)].filter((one) => one !== undefined);
}

/** Lists of layers that differ from the others. */
const LAYER_LISTS = ['unrotatedLayers', 'slidingLayers'] as const;

/** Configuration whose first layer is as this one: what it is by its number is all that layers differ in. */
function withLayerFirst(config: ModelConfig, layer: number): ModelConfig {
  const lists = LAYER_LISTS.map((list) => [list, config[list]?.includes(layer) ? [0] : []]);
  return { ...config, ...Object.fromEntries(lists) };
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
    const made = /^(?:layer|head|embed|kept)\.|^model\./;
    const inputs = new Map<string, ValueInfo>();
    for (const part of listPrograms(parts))
      for (const one of part.inputs) if (!made.test(one.name)) inputs.set(one.name, one);
    const trained = parameterSpecs(config).map(({ name, shape }): ValueInfo => ({ name, shape, dtype: 'f32' }));
    for (const one of trained) inputs.delete(one.name);
    const firstLayer = [...inputs.values()].filter(({ name }) => !isLayerParameter(name));
    this.inputs = [...firstLayer, ...trained];
    const reported = parts.head.outputs.filter(({ name }) => !/^d\/|^dPrompt$|^dTokens$/.test(name));
    this.outputs = parts.layers[0]!.backward
      ? [...reported, ...trained.map((one) => ({ ...one, name: `d/${one.name}` }))]
      : reported;
  }

  /** @param build builds the graphs of a model whose layers are all as its first */
  static async create(
    engine: Engine,
    config: ModelConfig,
    build: (kind: ModelConfig) => LayerGraphs | MeasuringGraphs,
  ): Promise<Program> {
    const compileOr = (graph: Graph | undefined) => (graph ? engine.compile(graph) : undefined);
    const kinds = new Map<string, LayerPrograms>();
    const layers: LayerPrograms[] = [];
    const first = build(withLayerFirst(config, 0));
    for (let layer = 0; layer < config.layers; layer++) {
      const kind = withLayerFirst(config, layer);
      const key = JSON.stringify(LAYER_LISTS.map((list) => kind[list]));
      let programs = kinds.get(key);
      if (!programs) {
        const graphs = layer === 0 ? first : build(kind);
        programs = {
          forward: await engine.compile(graphs.forward),
          trunk: await compileOr(graphs.trunk),
          backward: await compileOr((graphs as Partial<LayerGraphs>).backward),
        };
        kinds.set(key, programs);
      }
      layers.push(programs);
    }
    const parts = {
      embed: await engine.compile(first.embed),
      head: await engine.compile(first.head),
      embedBackward: await compileOr((first as Partial<LayerGraphs>).embedBackward),
      layers,
    };
    const base = new BaseTensors(config);
    base.load();
    return new LayeredProgram(config, parts, base);
  }

  async run(feeds: Feeds): Promise<Outputs> {
    const { embed, head, embedBackward, layers: programs } = this.#parts;
    const learns = programs[0]!.backward !== undefined;
    const lowest = firstTrainedLayer(this.#config);
    const { layers, hiddenSize: d } = this.#config;
    const withBase = (program: Program, layer = 0): Feeds => this.#feedsOf(program, feeds, layer);

    let x = (await embed.run(withBase(embed))).x!;
    // What each layer's backward pass reads: its input, or what it kept.
    const entered: Feeds[] = [];
    for (let layer = 0; layer < lowest; layer++) {
      const trunk = programs[layer]!.trunk!;
      x = (await trunk.run({ ...withBase(trunk, layer), 'layer.x': x })).x!;
    }
    for (let layer = lowest; layer < layers; layer++) {
      const { forward } = programs[layer]!;
      const { x: y, ...kept } = await forward.run({ ...withBase(forward, layer), 'layer.x': x });
      entered.push({ 'layer.x': x, ...kept });
      x = y!;
      if (!learns) entered.length = 0;
    }
    const prompts = feeds['prompt.ids']!.shape[0]!;
    const tokens = x.shape[0]! - prompts;
    const hidden = x.data as Float32Array;
    const ends = {
      'head.prompt': f32([prompts, d], hidden.subarray(0, prompts * d)),
      'head.tokens': f32([tokens, d], hidden.subarray(prompts * d)),
    };
    const { dPrompt, dTokens, ...out } = await head.run({ ...withBase(head), ...ends });
    if (!learns) return out;

    const joined = new Float32Array((prompts + tokens) * d);
    if (dPrompt) joined.set(dPrompt.data as Float32Array);
    if (dTokens) joined.set(dTokens.data as Float32Array, prompts * d);
    let dy: HostTensor = f32([prompts + tokens, d], joined);
    for (let layer = layers - 1; layer >= lowest; layer--) {
      const backward = programs[layer]!.backward!;
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
    for (const program of listPrograms(this.#parts)) await program.dispose();
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
