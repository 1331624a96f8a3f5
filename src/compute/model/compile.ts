/** Choice of the form in which a learner's programs are compiled: one graph, or layer by layer. */
import type { Engine, Program } from '../engine/engine.ts';
import type { ModelConfig } from './config.ts';
import { compileFlatAdamW } from './flat-adamw.ts';
import { compileLayeredGradients, compileLayeredLogprobs } from './layered-program.ts';
import type { AdamWConfig } from './optimizer.ts';
import { adamWGraph, type Decoding, gradientGraph, logprobsGraph, type TrainOptions } from './programs.ts';

/**
 * Layers above which a model is trained layer by layer. Measured with onnxruntime 1.30: sessions take more than linear time in
 * the nodes of a graph, so thirty layers in one graph compile for a minute; below this number the whole graph compiles within a
 * second, and a step is one call.
 */
const MAX_LAYERS_IN_ONE_GRAPH = 8;

/**
 * True where a model is trained layer by layer. Not on devices with memory of their own: every call would carry the weights
 * there and the hidden states back.
 */
export function runsByLayers({ device }: Engine, { layers }: ModelConfig): boolean {
  return device === 'cpu' && layers > MAX_LAYERS_IN_ONE_GRAPH;
}

/** Compiles a program of a loss and its gradients, as `gradientGraph` describes it. */
export function compileGradients(
  engine: Engine,
  config: ModelConfig,
  options: Omit<TrainOptions, 'adamW'>,
): Promise<Program> {
  return runsByLayers(engine, config)
    ? compileLayeredGradients(engine, config, options)
    : engine.compile(gradientGraph(config, options));
}

/** Compiles a program that measures recorded decisions, as `logprobsGraph` describes it. */
export function compileLogprobs(engine: Engine, config: ModelConfig, decoding: Decoding): Promise<Program> {
  return runsByLayers(engine, config)
    ? compileLayeredLogprobs(engine, config, decoding)
    : engine.compile(logprobsGraph(config, decoding));
}

/** Compiles a program of AdamW over summed gradients, as `adamWGraph` describes it. */
export function compileAdamW(engine: Engine, config: ModelConfig, options: AdamWConfig): Promise<Program> {
  return runsByLayers(engine, config)
    ? compileFlatAdamW(engine, config, options)
    : engine.compile(adamWGraph(config, options));
}
