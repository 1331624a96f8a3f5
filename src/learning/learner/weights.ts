/** Weights and moments, and how they become feeds and come back from a step. Arrays are replaced, never written to. */
import type { HostTensor } from '../../compute/engine/engine.ts';
import { type Breakage, firstNotFinite } from '../../compute/finite.ts';
import type { ModelConfig } from '../../compute/model/config.ts';
import { type ParamSet, parameterSpecs } from '../../compute/model/parameters.ts';

/** Optimiser moments, by parameter. */
export interface Moments {
  /** Optimiser steps taken. */
  readonly steps: number;
  readonly m: Readonly<Record<string, Float32Array>>;
  readonly v: Readonly<Record<string, Float32Array>>;
}

/** Moments before the first step. */
export function zeroMoments(model: ModelConfig): Moments {
  const zeros = () =>
    Object.fromEntries(
      parameterSpecs(model).map(({ name, shape }) => [name, new Float32Array(shape.reduce((a, b) => a * b, 1))]),
    );
  return { steps: 0, m: zeros(), v: zeros() };
}

/** Feeds of the weights under their own names. */
export function weightFeeds(model: ModelConfig, { values }: ParamSet): Record<string, HostTensor> {
  const feeds: Record<string, HostTensor> = {};
  for (const { name, shape } of parameterSpecs(model)) feeds[name] = { dtype: 'f32', shape, data: values[name]! };
  return feeds;
}

/** Feeds of a training program: weights, `m/<name>` and `v/<name>`. */
export function optimizerFeeds(model: ModelConfig, params: ParamSet, moments: Moments): Record<string, HostTensor> {
  const feeds = weightFeeds(model, params);
  for (const { name, shape } of parameterSpecs(model)) {
    feeds[`m/${name}`] = { dtype: 'f32', shape, data: moments.m[name]! };
    feeds[`v/${name}`] = { dtype: 'f32', shape, data: moments.v[name]! };
  }
  return feeds;
}

/** Scalar feeds `<prefix>.<name>`. */
export function scalars(prefix: string, values: Readonly<Record<string, number>>): Record<string, HostTensor> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      `${prefix}.${name}`,
      { dtype: 'f32', shape: [], data: Float32Array.of(value) },
    ]),
  );
}

/** Outcome of a step. `broken` names what was not finite; nothing else is then to be used. */
export type StepResult =
  | { readonly params: ParamSet; readonly moments: Moments; readonly stats: Readonly<Record<string, number>> }
  | { readonly broken: Breakage };

/** Reads a training program's outputs, and looks at every number of them. */
export function readStep(
  model: ModelConfig,
  version: number,
  steps: number,
  out: Readonly<Record<string, HostTensor>>,
): StepResult {
  const stats: Record<string, number> = {};
  for (const [name, tensor] of Object.entries(out)) if (tensor.shape.length === 0) stats[name] = floats(tensor)[0]!;
  for (const [name, value] of Object.entries(stats)) {
    if (Number.isFinite(value)) continue;
    return { broken: { where: name === 'gradNorm' ? 'gradient' : 'loss', message: `${name} is ${value}` } };
  }
  const columns = { w: {}, m: {}, v: {} } as Record<'w' | 'm' | 'v', Record<string, Float32Array>>;
  for (const { name } of parameterSpecs(model)) {
    for (const kind of ['w', 'm', 'v'] as const) {
      const values = floats(out[`${kind}/${name}`]);
      const bad = firstNotFinite(values);
      if (bad >= 0) return { broken: { where: 'weights', message: `${kind}/${name} holds ${values[bad]} at ${bad}` } };
      columns[kind][name] = values;
    }
  }
  const { w, m, v } = columns;
  return { params: { version, values: w }, moments: { steps, m, v }, stats };
}

export function floats(tensor: HostTensor | undefined): Float32Array {
  return tensor!.data as Float32Array;
}
