/**
 * Parameters of a model: names as in the Qwen2 family's safetensors files (projections stored [out, in]), shapes, and
 * how each is drawn at the start. Extras of the local policy have names of their own.
 */
import { UserError } from '../../core/errors.ts';
import { Rng } from '../../core/rng.ts';
import { createFixed, readFixed } from '../tensor/fixed.ts';
import { parameter, type Tensor } from '../tensor/tensor.ts';
import type { ModelConfig } from './config.ts';
import { headSize } from './config.ts';
import { adapterNames, loraScale, loraSpecs } from './lora.ts';
import type { Parameters } from './transformer.ts';

type Init =
  | { readonly kind: 'normal'; readonly std: number }
  | { readonly kind: 'uniform'; readonly bound: number }
  | { readonly kind: 'fill'; readonly value: number }
  /** value · I */
  | { readonly kind: 'identity'; readonly value: number };

export interface ParameterSpec {
  readonly name: string;
  readonly shape: readonly number[];
  readonly init: Init;
  /** True where decoupled weight decay applies: matrices yes, gains and biases no. */
  readonly decay: boolean;
}

/** Values of all parameters by name; arrays are row-major. `version` is the number of updates they have seen. */
export interface ParamSet {
  readonly version: number;
  readonly values: Readonly<Record<string, Float32Array>>;
}

/**
 * Trained parameters of a model, in a fixed order: all its weights, or its adapters and the heads that are no part of a
 * pretrained model.
 */
export function parameterSpecs(config: ModelConfig): ParameterSpec[] {
  const weights = weightSpecs(config);
  if (!config.adapter) return weights;
  return [...loraSpecs(weights, config.adapter), ...weights.filter(({ name }) => isHead(name))];
}

/** All weights of a model but its adapters, in a fixed order. */
export function weightSpecs(config: ModelConfig): ParameterSpec[] {
  const { hiddenSize: d, intermediateSize, vocabSize, layers, heads, kvHeads } = config;
  const dh = headSize(config);
  const specs: ParameterSpec[] = [];
  const matrix = (name: string, shape: number[], init: Init) => specs.push({ name, shape, init, decay: true });
  const vector = (name: string, shape: number[], value: number) =>
    specs.push({ name, shape, init: { kind: 'fill', value }, decay: false });
  const fanIn = (inputs: number): Init => ({ kind: 'uniform', bound: 1 / Math.sqrt(inputs) });
  const small: Init = { kind: 'normal', std: 0.02 };
  const gain = config.centredGains ? 0 : 1;

  matrix('model.embed_tokens.weight', [vocabSize, d], { kind: 'normal', std: 1 / Math.sqrt(d) });
  for (let layer = 0; layer < layers; layer++) {
    const at = `model.layers.${layer}`;
    vector(`${at}.input_layernorm.weight`, [d], gain);
    for (const [name, width] of [
      ['q', heads * dh],
      ['k', kvHeads * dh],
      ['v', kvHeads * dh],
    ] as const) {
      matrix(`${at}.self_attn.${name}_proj.weight`, [width, d], fanIn(d));
      if (config.qkvBias) vector(`${at}.self_attn.${name}_proj.bias`, [width], 0);
    }
    if (config.qkNorm) for (const name of ['q', 'k']) vector(`${at}.self_attn.${name}_norm.weight`, [dh], gain);
    matrix(`${at}.self_attn.o_proj.weight`, [d, heads * dh], small);
    vector(`${at}.post_attention_layernorm.weight`, [d], gain);
    if (config.outputNorms)
      for (const side of ['pre', 'post']) vector(`${at}.${side}_feedforward_layernorm.weight`, [d], gain);
    matrix(`${at}.mlp.gate_proj.weight`, [intermediateSize, d], fanIn(d));
    matrix(`${at}.mlp.up_proj.weight`, [intermediateSize, d], fanIn(d));
    matrix(`${at}.mlp.down_proj.weight`, [d, intermediateSize], small);
  }
  vector('model.norm.weight', [d], config.choiceHead ? 0.5 : gain);
  if (!config.tieEmbeddings) matrix('lm_head.weight', [vocabSize, d], { kind: 'normal', std: 1 / Math.sqrt(d) });
  if (config.tokenShift > 0) vector('token_shift.weight', [config.tokenShift, d], 0.5);
  if (config.focusBit) matrix('focus_embedding.weight', [1, d], { kind: 'normal', std: 0.5 / Math.sqrt(d) });
  if (config.choiceHead) {
    matrix('choice_head.bag_in.weight', [2 * d, d], fanIn(d));
    vector('choice_head.bag_in.bias', [2 * d], 0);
    matrix('choice_head.bag_out.weight', [d, 2 * d], small);
    matrix('choice_head.bag_query.weight', [d, d], { kind: 'identity', value: 0.5 });
    matrix('choice_head.pointer_query.weight', [d, d], { kind: 'identity', value: 1 });
    matrix('choice_head.pointer_key.weight', [d, d], { kind: 'identity', value: 1 });
  }
  if (config.valueHead) {
    specs.push({ name: 'value_head.weight', shape: [1, d], init: { kind: 'fill', value: 0 }, decay: false });
    vector('value_head.bias', [1], 0);
  }
  return specs;
}

/** Draws the initial weights; each parameter has a stream of its own, so that adding one changes no other. */
export function initialParams(config: ModelConfig, seed: number): ParamSet {
  return { version: 0, values: drawParameters(parameterSpecs(config), seed) };
}

/** Initial values of parameters, by name. */
export function drawParameters(specs: readonly ParameterSpec[], seed: number): Record<string, Float32Array> {
  const rng = Rng.fromSeed(seed);
  return Object.fromEntries(specs.map(({ name, shape, init }) => [name, draw(shape, init, rng.split(name))]));
}

function draw(shape: readonly number[], init: Init, rng: Rng): Float32Array {
  const out = new Float32Array(shape.reduce((a, b) => a * b, 1));
  if (init.kind === 'fill') out.fill(init.value);
  else if (init.kind === 'identity') for (let i = 0; i < shape[0]!; i++) out[i * shape[1]! + i] = init.value;
  else if (init.kind === 'uniform') for (let i = 0; i < out.length; i++) out[i] = (2 * rng.float() - 1) * init.bound;
  else for (let i = 0; i < out.length; i++) out[i] = rng.normal() * init.std;
  return out;
}

/** Heads of ours: no pretrained model has them, so they are trained beside an adapter. */
function isHead(name: string): boolean {
  return name.startsWith('value_head.');
}

/** Weights as tensors of a graph, looked up by name: inputs, but for those that lie in files. */
export function parameterTensors(config: ModelConfig): Parameters {
  const { base, adapter } = config;
  const tensors = new Map<string, Tensor>();
  for (const { name, shape } of weightSpecs(config)) {
    const source = base && !isHead(name) ? base.weights[name] : undefined;
    if (base && !isHead(name) && !source) throw new RangeError(`model: the base has no weight called '${name}'`);
    tensors.set(name, source ? createFixed(name, shape, source) : parameter(name, shape));
  }
  if (adapter) for (const { name, shape } of parameterSpecs(config)) tensors.set(name, parameter(name, shape));
  const collectLayers = (name: string) => {
    const found = tensors.get(name);
    if (!found) throw new RangeError(`model: no parameter is called '${name}'`);
    return found;
  };
  return Object.assign(collectLayers, {
    adapter(projection: string) {
      const { down, up } = adapterNames(projection);
      const [a, b] = [tensors.get(down), tensors.get(up)];
      return a && b && { down: a, up: b, scale: loraScale(adapter!) };
    },
  });
}

/**
 * Checks that `params` are exactly the parameters of `config`, all finite.
 * @throws {UserError} BAD_WEIGHTS naming the parameter, what was expected and what came
 */
export function checkParams(config: ModelConfig, params: ParamSet): void {
  const specs = parameterSpecs(config);
  for (const { name, shape } of specs) {
    const values = params.values[name];
    const size = shape.reduce((a, b) => a * b, 1);
    if (!values) throw new UserError('BAD_WEIGHTS', `weights: parameter '${name}' [${shape}] is missing`);
    if (values.length !== size) {
      throw new UserError(
        'BAD_WEIGHTS',
        `weights: parameter '${name}' expected [${shape}] = ${size} values, got ${values.length}`,
      );
    }
    requireFinite(name, values);
  }
  const known = new Set(specs.map(({ name }) => name));
  const extra = Object.keys(params.values).find((name) => !known.has(name));
  if (extra) throw new UserError('BAD_WEIGHTS', `weights: '${extra}' is no parameter of this model`);
}

/**
 * Checks that the weights of a frozen base are finite. Reads all of them: done where something was not, not at every start.
 * @throws {UserError} BAD_WEIGHTS naming the weight and what it holds
 */
export function checkBase({ base, ...config }: ModelConfig): void {
  for (const { name, shape } of weightSpecs(config)) {
    const source = base?.weights[name];
    if (source) requireFinite(name, readFixed(shape, source));
  }
}

function requireFinite(name: string, values: Float32Array): void {
  let at = 0;
  while (at < values.length && Number.isFinite(values[at])) at++; // a callback a value would take ten times as long
  if (at === values.length) return;
  throw new UserError(
    'BAD_WEIGHTS',
    `weights: parameter '${name}' holds ${values[at]} at ${at}; expected finite values`,
  );
}

/**
 * Checks that a model reads the vocabulary of a codec.
 * @throws {UserError} BAD_WEIGHTS for a model of another one
 */
export function checkVocabulary({ vocabSize }: ModelConfig, size: number): void {
  if (vocabSize === size) return;
  throw new UserError(
    'BAD_WEIGHTS',
    `policy: the model has ${vocabSize} tokens, the world's vocabulary ${size}; train a new policy for this world`,
  );
}
