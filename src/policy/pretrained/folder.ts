/**
 * Model folders as Hugging Face writes them: `config.json`, weights, `tokenizer.json`, `tokenizer_config.json`,
 * `generation_config.json`, maybe `chat_template.jinja`. A model in another form is one too, once it is located
 * (locate.ts).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelConfig } from '../../compute/model/config.ts';
import { UserError } from '../../core/errors.ts';
import { readJson } from '../../text/templates/model-text.ts';
import { fileSpecs, splitFused } from './fused.ts';
import { locateModel } from './locate.ts';
import { readModelConfig } from './model-config.ts';
import { findShards, type Shards } from './shards.ts';

/** Pretrained model as its folder describes it. */
export interface PretrainedFacts {
  /** Absolute path of the folder. */
  readonly folder: string;
  readonly config: ModelConfig;
  /** Ids that end a turn, by `generation_config.json` and `config.json`; empty where neither names any. */
  readonly endTokens: readonly number[];
  /** Sampling that `generation_config.json` asks for, e.g. `temperature 0.7`; none of it is done here. */
  readonly sampling: readonly string[];
}

/** Pretrained model and the places of its weights, none of which is read yet. */
export interface PretrainedModel extends PretrainedFacts {
  readonly shards: Shards;
}

/** Values at which a key of sampling changes nothing. */
const NEUTRAL: Readonly<Record<string, number>> = {
  temperature: 1,
  top_p: 1,
  top_k: 0,
  min_p: 0,
  typical_p: 1,
  repetition_penalty: 1,
};

/**
 * Reads the facts of a model from its folder. Its weights need not be there.
 * @param model a folder, or another form that {@link locateModel} knows
 * @param maxPositions longest sequence wanted; the model's own limit by default
 * @throws {UserError} BAD_CHECKPOINT naming the file or the field
 */
export function readModelFacts(model: string, maxPositions?: number): PretrainedFacts {
  const path = locateModel(model);
  const json = readJson(path, 'config.json');
  const config = readModelConfig(json, join(path, 'config.json'), maxPositions);
  const generation = existsSync(join(path, 'generation_config.json')) ? readJson(path, 'generation_config.json') : {};
  const sampling = Object.entries(NEUTRAL)
    .filter(([key, neutral]) => typeof generation[key] === 'number' && generation[key] !== neutral)
    .map(([key]) => `${key} ${generation[key]}`);
  return { folder: path, config, endTokens: endTokens(generation.eos_token_id ?? json.eos_token_id), sampling };
}

/**
 * Opens a model and checks that its weights are all there, in the right shapes.
 * @param model a folder, or another form that {@link locateModel} knows
 * @param maxPositions longest sequence wanted; the model's own limit by default
 * @throws {UserError} BAD_CHECKPOINT naming the file or the field
 */
export function openModel(model: string, maxPositions?: number): PretrainedModel {
  const facts = readModelFacts(model, maxPositions);
  const { folder: path, config } = facts;
  const shards = findShards(path);
  const specs = fileSpecs(config);
  for (const { name, shape } of specs) {
    const stored = shards.weights.get(name);
    if (!stored) {
      throw new UserError('BAD_CHECKPOINT', `${path}: weight ${name} [${shape.join(', ')}] is missing from its files`);
    }
    if (stored.shape.join() !== shape.join()) {
      throw new UserError(
        'BAD_CHECKPOINT',
        `${path}: weight ${name} is [${stored.shape.join(', ')}], expected [${shape.join(', ')}] by config.json`,
      );
    }
  }
  const known = new Set(specs.map(({ name }) => name));
  const extra = [...shards.weights.keys()].find((name) => !known.has(name) && !isIgnored(name, config));
  if (extra) {
    throw new UserError(
      'BAD_CHECKPOINT',
      `${path}: weight ${extra} is no part of the model that config.json describes`,
    );
  }
  return { ...facts, shards: { ...shards, weights: splitFused(config, shards.weights) } };
}

/** Stored values that follow from others: rotary tables of old files, and a head that is the embedding table. */
function isIgnored(name: string, { tieEmbeddings }: ModelConfig): boolean {
  return name.endsWith('.rotary_emb.inv_freq') || (tieEmbeddings && name === 'lm_head.weight');
}

function endTokens(value: unknown): readonly number[] {
  return (Array.isArray(value) ? value : [value]).filter((id): id is number => Number.isInteger(id));
}
