/**
 * A training step in parts: token embeddings, one layer forward, one layer backward, and the head with the loss. All
 * layers share the two layer programs, whose weights are inputs under the first layer's names, so a model of thirty layers compiles
 * as fast as one of one: engines need more than linear time in the number of nodes.
 *
 * Hidden states are those of prompts and tokens together, [Np + N, d]: the prompts' rows, then the tokens'. Symbols are those of
 * programs.ts.
 */
import { gradients, pullBack } from '../tensor/gradients.ts';
import { defineGraph, type Graph, topological } from '../tensor/graph.ts';
import { concat, slice, stopGradient } from '../tensor/ops.ts';
import { plus } from '../tensor/shape.ts';
import { splitComputation } from '../tensor/split.ts';
import { input, type Tensor } from '../tensor/tensor.ts';
import {
  episodeAttention,
  type KeysValues,
  layoutInputs,
  promptAttention,
  promptIds,
  promptSteps,
} from './attention.ts';
import { checkModelConfig, type LoraConfig, type ModelConfig } from './config.ts';
import { type ParameterSpec, parameterSpecs, parameterTensors } from './parameters.ts';
import { type Decoding, decisionTerms, measureTerms, objectiveLoss, type TrainOptions } from './programs.ts';
import { type Attend, block, embed, finalNorm, type Parameters, rotaryTables, tokenInputs } from './transformer.ts';

const ROWS = plus('Np', 'N');

/** Graphs of a training step. */
export interface LayerGraphs {
  /** `x` [Np + N, d]. */
  readonly embed: Graph;
  /** `layer.x` → `x`, both [Np + N, d], and `kept.…` where activations are kept. */
  readonly forward: Graph;
  /** `layer.dy` and `layer.x` or `kept.…` → `dx` [Np + N, d] and `d/<name>` of the first layer's trained parameters. */
  readonly backward: Graph;
  /** `layer.x` → `x` of a layer below the adapters, where the adapter leaves some out: nothing of it is trained. */
  readonly trunk: Graph | undefined;
  /** `head.prompt` [Np, d] and `head.tokens` [N, d] → `loss`, statistics, `dPrompt`, `dTokens` and `d/<name>`. */
  readonly head: Graph;
  /** `embed.dy` [Np + N, d] → `d/<name>`; absent where no embedding is trained. */
  readonly embedBackward: Graph | undefined;
}

/** Graphs of a forward pass over recorded decisions: as those of a training step, but the head only measures. */
export type MeasuringGraphs = Pick<LayerGraphs, 'embed' | 'forward' | 'trunk' | 'head'>;

/** True for a parameter of a layer. */
export function isLayerParameter(name: string): boolean {
  return name.includes('model.layers.');
}

/** Name of a first layer's parameter in another layer. */
export function inLayer(name: string, layer: number): string {
  return name.replace('model.layers.0.', `model.layers.${layer}.`);
}

/** Builds the graphs of a training step. */
export function layerGraphs(config: ModelConfig, options: Omit<TrainOptions, 'adamW'>): LayerGraphs {
  const { p, one, trained } = openParts(config);
  const rest = trained.filter(({ name }) => !isLayerParameter(name));

  const x = input('layer.x', [ROWS, config.hiddenSize]);
  const y = layerOf(one, p, x);
  const own = trained.filter(({ name }) => isLayerParameter(name));
  const [dx, ...slopes] = pullBack(y, input('layer.dy', y.shape), [x, ...own.map(({ name }) => p(name))]);
  const { kept, later } = options.recompute
    ? { kept: {}, later: [dx!, ...slopes] }
    : splitComputation([y], [dx!, ...slopes], [x]);

  const { prompt, tokens, terms } = headOf(config, p, options);
  const { loss, stats } = objectiveLoss(terms, options);
  const reached = new Set(topological([loss]));
  const ends = [prompt, tokens].filter((end) => reached.has(end));
  const heads = rest.filter(({ name }) => reached.has(p(name)));
  const headSlopes = gradients(loss, [...ends, ...heads.map(({ name }) => p(name))]);

  const embedded = embedOf(config, p);
  const reachedByEmbed = new Set(topological([embedded]));
  const tables = rest.filter(({ name }) => reachedByEmbed.has(p(name)));
  const tableSlopes = pullBack(
    embedded,
    input('embed.dy', embedded.shape),
    tables.map(({ name }) => p(name)),
  );
  return {
    embed: defineGraph({ x: embedded }),
    forward: defineGraph({ x: y, ...kept }),
    trunk: trunkOf(config),
    backward: defineGraph({ dx: later[0]!, ...named(own, later.slice(1)) }),
    head: defineGraph({
      loss,
      ...stats,
      ...Object.fromEntries(ends.map((end, i) => [end === prompt ? 'dPrompt' : 'dTokens', headSlopes[i]!])),
      ...named(heads, headSlopes.slice(ends.length)),
    }),
    embedBackward: tables.length > 0 ? defineGraph(named(tables, tableSlopes)) : undefined,
  };
}

/** Builds the graphs of a forward pass over recorded decisions. */
export function measuringGraphs(config: ModelConfig, decoding: Decoding): MeasuringGraphs {
  const { p, one } = openParts(config);
  return {
    embed: defineGraph({ x: embedOf(config, p) }),
    forward: defineGraph({ x: layerOf(one, p, input('layer.x', [ROWS, config.hiddenSize])) }),
    trunk: trunkOf(config),
    head: defineGraph(measureTerms(headOf(config, p, decoding).terms, decoding)),
  };
}

/** Parameters as inputs all, those of a frozen base too, into which no gradient flows; of the layers, the first one's. */
function openParts({ base, ...config }: ModelConfig) {
  checkModelConfig(config);
  const { topLayers: _, ...lora } = config.adapter ?? {};
  const one = { ...config, layers: 1, ...(config.adapter ? { adapter: lora as LoraConfig } : {}) };
  const trained = parameterSpecs(one);
  const inputs = parameterTensors(one);
  const learns = new Set(trained.map(({ name }) => name));
  const p: Parameters = Object.assign(
    (name: string) => (base && !learns.has(name) ? stopGradient(inputs(name)) : inputs(name)),
    inputs.adapter ? { adapter: inputs.adapter } : {},
  );
  return { p, one, trained };
}

/** Layer without an adapter; undefined where every layer has one. */
function trunkOf(whole: ModelConfig): Graph | undefined {
  if (firstTrainedLayer(whole) === 0) return undefined;
  const { adapter: _, ...config } = whole;
  const { p, one } = openParts(config);
  return defineGraph({ x: layerOf(one, p, input('layer.x', [ROWS, config.hiddenSize])) });
}

/** Lowest layer that has an adapter, or is trained whole. */
export function firstTrainedLayer({ layers, adapter }: Pick<ModelConfig, 'layers' | 'adapter'>): number {
  return layers - (adapter?.topLayers ?? layers);
}

function embedOf(config: ModelConfig, p: Parameters): Tensor {
  return concat(
    [embed(config, p, tokenInputs(config, 'prompt', 'Np')), embed(config, p, tokenInputs(config, 'tokens', 'N'))],
    0,
  );
}

/** One layer over prompts and episodes together: their projections are one product each. */
function layerOf(config: ModelConfig, p: Parameters, x: Tensor): Tensor {
  const mask = input('prompt.mask', ['G', 'P']);
  const ids = promptIds(config);
  const places = promptSteps();
  const kept: KeysValues[] = [];
  const attendPrompt = promptAttention(config, layoutInputs('prompt', ['G', 'P'], 'Np'), mask, ids, places, kept);
  const steps = input('episodes.steps', ['T'], 'i32');
  const attend: Attend = (layer, { q, k, v }) => {
    const part = (start: number | string, end: number | string) => ({
      q: slice(q, 0, start, end),
      k: slice(k, 0, start, end),
      v: slice(v, 0, start, end),
    });
    const prompt = attendPrompt(layer, part(0, 'Np'));
    const layout = layoutInputs('episodes', ['G', 'K', 'T'], 'N');
    const context = { layout, prompt: kept, promptMask: mask, promptIds: ids, promptSteps: places, steps };
    return concat([prompt, episodeAttention(config, context)(layer, part('Np', ROWS))], 0);
  };
  const positions = concat([input('prompt.positions', ['Np'], 'i32'), input('tokens.positions', ['N'], 'i32')], 0);
  return block(config, p, 0, x, rotaryTables(config, positions), attend);
}

function headOf(config: ModelConfig, p: Parameters, decoding: Decoding) {
  const prompt = input('head.prompt', ['Np', config.hiddenSize]);
  const tokens = input('head.tokens', ['N', config.hiddenSize]);
  const terms = decisionTerms(config, p, finalNorm(config, p, prompt), finalNorm(config, p, tokens), decoding);
  return { prompt, tokens, terms };
}

function named(specs: readonly ParameterSpec[], slopes: readonly Tensor[]): Record<string, Tensor> {
  return Object.fromEntries(specs.map(({ name }, i) => [`d/${name}`, slopes[i]!]));
}
