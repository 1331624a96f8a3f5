/** Model, weights and identity of a pretrained model's policy, from a configuration and a model folder. */
import { join } from 'node:path';
import { ALL_PROJECTIONS, type LoraConfig, type ModelConfig } from '../compute/model/config.ts';
import { drawParameters, type ParamSet, parameterSpecs, weightSpecs } from '../compute/model/parameters.ts';
import type { RunConfig } from '../config/run-config.ts';
import { UserError } from '../core/errors.ts';
import type { WorldPrompt } from '../core/prompt.ts';
import { seedFrom } from '../core/rng.ts';
import { type Identity, runStateOf } from '../learning/learner/run-state.ts';
import type { LoadedCheckpoint } from '../storage/checkpoint.ts';
import type { ChatCodecSpec } from '../text/reading/chat-codec.ts';
import type { Codec } from '../text/reading/codec.ts';
import { openModelCodec } from '../text/reading/codec-of.ts';
import { readAdapter } from './pretrained/adapter.ts';
import { openModel, type PretrainedFacts, type PretrainedModel, readModelFacts } from './pretrained/folder.ts';
import { freezeAs } from './pretrained/quantize.ts';
import { readWeight } from './pretrained/shards.ts';
import type { PolicySetup } from './setup.ts';

/**
 * Sets up the policy of a pretrained model.
 * @param prompt instructions of the world
 * @param dir    the run's folder; a quantised base is kept beside it
 * @param checkpoint go on from its adapter instead of a fresh one
 * @param initial a run's adapter to start afresh from
 * @throws {UserError} BAD_CHECKPOINT for a folder that cannot be used, BAD_CONFIG for options that do not fit it
 */
export function setUpCheckpointPolicy<R, H>(
  config: RunConfig,
  prompt: WorldPrompt,
  dir: string,
  checkpoint: LoadedCheckpoint | undefined,
  initial?: LoadedCheckpoint,
): PolicySetup<R, H> {
  const { policy, learner } = config;
  const pretrained = openModel(pathOf(config), policy.chat.contextTokens);
  const chat = chatReadingOf(config, prompt, pretrained);
  const codec = openCodec(config, chat);
  const start = policy.adapter.init === undefined ? undefined : readAdapter(policy.adapter.init, pretrained.config);
  // Quantised once per base, in a folder beside the runs, which all of them share.
  const model = modelOf(config, pretrained, start?.lora, join(dir, '..', 'quantised'), learner.valueCoef > 0);
  const { base } = model;
  // A checkpoint names the base by its hash: where the files lie is this machine's business, and may change.
  const named = base ? { ...model, base: { hash: base.hash, weights: {} } } : model;
  const identity: Identity = {
    env: config.env.id,
    view: codec.id,
    vocabulary: codec.hash,
    decoder: policy.decoder,
    model: named,
  };
  const saved = checkpoint && runStateOf<R, H>(checkpoint, identity);
  const params =
    saved?.params ??
    (initial
      ? { version: 0, values: runStateOf(initial, identity).params.values }
      : firstParams(config, model, pretrained, start?.values));
  return { codec, chat, model, identity, params, saved, notices: noticesOf(pretrained, pathOf(config)) };
}

/** Reader of a language model's episodes on a machine that has no weights of it: a server elsewhere samples. */
export interface ReaderSetup {
  readonly codec: Codec;
  readonly chat: ChatCodecSpec;
  /** Identity without base and adapter, which only the learner has. */
  readonly identity: Identity;
}

/**
 * Sets up what reads and writes the episodes of a policy behind a server, from the model's tokenizer and `config.json` alone.
 * @throws {UserError} BAD_CHECKPOINT for a folder that cannot be used
 */
export function setUpReader(config: RunConfig, prompt: WorldPrompt): ReaderSetup {
  const { policy, learner, env } = config;
  const facts = readModelFacts(pathOf(config), policy.chat.contextTokens);
  const chat = chatReadingOf(config, prompt, facts);
  const codec = openCodec(config, chat);
  const model = { ...facts.config, valueHead: learner.valueCoef > 0 };
  const { decoder } = policy;
  return { codec, chat, identity: { env: env.id, view: codec.id, vocabulary: codec.hash, decoder, model } };
}

/** Opens the codec. @throws {UserError} BAD_CONFIG where no prompt at all fits the context */
function openCodec({ env, policy }: RunConfig, chat: ChatCodecSpec): Codec {
  const codec = openModelCodec(chat);
  const { contextTokens, answerTokens } = chat;
  const needed = codec.shortestPrompt + answerTokens;
  if (needed <= contextTokens) return codec;
  const asked = policy.chat.contextTokens > contextTokens ? 'the model reads' : 'policy.chat.contextTokens is';
  throw new UserError(
    'BAD_CONFIG',
    `${chat.folder}: the instructions of ${env.id} take ${codec.shortestPrompt} tokens and an answer ${answerTokens} (policy.maxTokens), and ${asked} ${contextTokens}; expected at least ${needed} and room for observations`,
  );
}

function chatReadingOf(
  { policy: { chat, maxTokens } }: RunConfig,
  world: WorldPrompt,
  { folder, config, endTokens }: PretrainedFacts,
): ChatCodecSpec {
  return {
    ...{ folder, vocabSize: config.vocabSize, endTokens, world },
    ...{ format: chat.format, listActions: chat.listActions, instructions: chat.instructions },
    ...(chat.system === undefined ? {} : { system: chat.system }),
    ...(world.tools ? { agent: true as const } : {}),
    contextTokens: config.maxPositions,
    // Kept free at the end of the context, or an episode would fill it and have no room to answer.
    answerTokens: maxTokens,
  };
}

/** Notices: where a GGUF file's weights lie, and sampling that a model folder asks for and that is not done: it would change what is trained on. */
function noticesOf({ folder, sampling }: PretrainedModel, model: string): readonly string[] {
  const converted = /\.gguf$/i.test(model) ? [`${model} is read from ${folder}, which it was converted into`] : [];
  if (sampling.length === 0) return converted;
  return [
    ...converted,
    `${join(folder, 'generation_config.json')} asks for ${sampling.join(', ')}: ignored, tokens are drawn from the whole distribution, at temperature 1 in training; evaluation.sampling sets it for evaluations`,
  ];
}

/** Place of the model, as it is configured. @throws {UserError} BAD_CONFIG where none is named */
function pathOf({ policy }: RunConfig): string {
  if (policy.path === undefined) {
    throw new UserError(
      'BAD_CONFIG',
      'policy.path: kind checkpoint needs a model: a folder or a GGUF file, e.g. /models/Qwen2.5-0.5B-Instruct',
    );
  }
  return policy.path;
}

/** Model to train: every weight, or an adapter beside a frozen base. @throws {UserError} BAD_CONFIG */
function modelOf(
  { policy }: RunConfig,
  pretrained: PretrainedModel,
  given: LoraConfig | undefined,
  cache: string,
  valueHead: boolean,
): ModelConfig {
  const { full, quantize, adapter } = policy;
  if (full && quantize !== 'none') {
    throw new UserError(
      'BAD_CONFIG',
      `policy.quantize: full training needs none, got ${quantize}; or train an adapter`,
    );
  }
  if (full) return { ...pretrained.config, valueHead };
  const { rank, alpha, targets, topLayers } = adapter;
  const lora = given ?? {
    rank,
    alpha,
    targets: targets === 'all' ? ALL_PROJECTIONS : targets,
    ...(topLayers === undefined ? {} : { topLayers }),
  };
  const model = { ...freezeAs(pretrained, quantize, cache), adapter: lora, valueHead };
  // Projections that the model does not have show here first, where the configuration can still be blamed.
  try {
    parameterSpecs(model);
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `policy.adapter: ${(thrown as Error).message}`, { cause: thrown });
  }
  return model;
}

/** Parameters of a fresh run. */
function firstParams(
  { seed }: RunConfig,
  model: ModelConfig,
  { shards, config }: PretrainedModel,
  adapter: Readonly<Record<string, Float32Array>> | undefined,
): ParamSet {
  // Full training starts from the stored weights; beside an adapter only the adapter, and heads of ours, are drawn.
  const own = model.adapter ? new Set<string>() : new Set(weightSpecs(config).map(({ name }) => name));
  const drawn = drawParameters(
    parameterSpecs(model).filter(({ name }) => !own.has(name)),
    seedFrom(seed, 'weights'),
  );
  const read = [...own].map((name) => [name, readWeight(shards.weights.get(name)!)]);
  return { version: 0, values: { ...drawn, ...Object.fromEntries(read), ...adapter } };
}
