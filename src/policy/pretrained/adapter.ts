/**
 * Adapters in peft's form: a folder with `adapter_config.json` and `adapter_model.safetensors`, as peft, vLLM and SGLang
 * read it.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LoraConfig, ModelConfig } from '../../compute/model/config.ts';
import { loraSpecs } from '../../compute/model/lora.ts';
import { describeValue } from '../../core/describe-value.ts';
import { UserError } from '../../core/errors.ts';
import { makeFolder } from '../../storage/atomic-file.ts';
import { encodeSafetensors } from '../../storage/safetensors.ts';
import type { Json } from '../../text/templates/model-text.ts';
import { readJson } from '../../text/templates/model-text.ts';
import { fileSpecs, fuseAdapter, splitAdapter } from './fused.ts';
import { readShard, readWeight } from './shards.ts';

const ADAPTER_CONFIG = 'adapter_config.json';
export const ADAPTER_WEIGHTS = 'adapter_model.safetensors';

export interface StoredAdapter {
  readonly lora: LoraConfig;
  /** Base model as the adapter names it: a path or a hub's name. */
  readonly baseModel: string | undefined;
  /** Values of A and B by name, as float32. */
  readonly values: Readonly<Record<string, Float32Array>>;
}

/** Features of peft that change what an adapter computes, with what they are where they are off. */
const OFF: Readonly<Record<string, readonly unknown[]>> = {
  peft_type: ['LORA'],
  bias: [undefined, 'none'],
  use_dora: [undefined, false],
  use_qalora: [undefined, false],
  use_bdlora: [undefined, null, false],
  lora_bias: [undefined, false],
  fan_in_fan_out: [undefined, false],
};

/** Fields that must hold nothing: null, an empty list or an empty object. */
const EMPTY = [
  'modules_to_save',
  'rank_pattern',
  'alpha_pattern',
  'layers_pattern',
  'layer_replication',
  'exclude_modules',
  'target_parameters',
  'trainable_token_indices',
  'alora_invocation_tokens',
];

/**
 * Reads an adapter for a model.
 * @throws {UserError} BAD_CHECKPOINT for a feature that is not computed here, or matrices that do not fit the model
 */
export function readAdapter(folder: string, config: ModelConfig): StoredAdapter {
  const json = readJson(folder, ADAPTER_CONFIG);
  const lora = readLora(json, join(folder, ADAPTER_CONFIG), config.layers);
  const file = join(folder, ADAPTER_WEIGHTS);
  if (!existsSync(file)) throw new UserError('BAD_CHECKPOINT', `${folder}: ${ADAPTER_WEIGHTS} is missing`);
  const stored = new Map(readShard(file).entries);
  const values: Record<string, Float32Array> = {};
  for (const { name, shape } of specsOf(config, lora, folder)) {
    const found = stored.get(name);
    if (!found) throw new UserError('BAD_CHECKPOINT', `${file}: ${name} [${shape.join(', ')}] is missing`);
    if (found.shape.join() !== shape.join()) {
      throw new UserError(
        'BAD_CHECKPOINT',
        `${file}: ${name} is [${found.shape.join(', ')}], the model and rank ${lora.rank} expect [${shape.join(', ')}]`,
      );
    }
    values[name] = readWeight(found);
    stored.delete(name);
  }
  const [extra] = stored.keys();
  if (extra) throw new UserError('BAD_CHECKPOINT', `${file}: ${extra} belongs to none of the targets`);
  const baseModel = json.base_model_name_or_path;
  return {
    ...splitAdapter(config, { lora, values }),
    baseModel: typeof baseModel === 'string' ? baseModel : undefined,
  };
}

function specsOf(config: ModelConfig, lora: LoraConfig, folder: string) {
  try {
    return loraSpecs(fileSpecs(config), lora);
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', `${folder}: ${(thrown as Error).message}`, { cause: thrown });
  }
}

/** Number of top layers that a list names; undefined for none, which means all; null for any other list. */
function readTopLayers(listed: unknown, layers: number): number | undefined | null {
  if (listed == null || (Array.isArray(listed) && listed.length === 0)) return undefined;
  const numbers = typeof listed === 'number' ? [listed] : listed;
  if (!Array.isArray(numbers)) return null;
  const sorted = [...(numbers as number[])].sort((a, b) => a - b);
  return sorted.every((one, i) => one === layers - sorted.length + i) ? sorted.length : null;
}

function readLora(json: Json, source: string, layers: number): LoraConfig {
  const refuse = (field: string, expected: string): never => {
    throw new UserError('BAD_CHECKPOINT', `${source}: ${field} is ${describeValue(json[field])}, expected ${expected}`);
  };
  for (const [field, allowed] of Object.entries(OFF)) {
    if (!allowed.includes(json[field])) refuse(field, JSON.stringify(allowed.at(-1)));
  }
  for (const field of EMPTY) {
    const value = json[field];
    if (value != null && Object.keys(value as object).length > 0) refuse(field, 'nothing: it is not computed here');
    if (typeof value === 'number' || (typeof value === 'string' && value !== '')) refuse(field, 'nothing');
  }
  const { r, lora_alpha: alpha, target_modules: targets } = json;
  if (!Number.isInteger(r) || (r as number) < 1) refuse('r', 'a positive integer');
  if (typeof alpha !== 'number') refuse('lora_alpha', 'a number');
  if (!Array.isArray(targets) || targets.some((one) => typeof one !== 'string' || !/^\w+$/.test(one))) {
    refuse('target_modules', 'a list of plain names such as "q_proj"');
  }
  const rslora = json.use_rslora === true;
  const topLayers = readTopLayers(json.layers_to_transform, layers);
  if (topLayers === null) refuse('layers_to_transform', `nothing, or the top layers of ${layers}`);
  return {
    rank: r as number,
    alpha: alpha as number,
    targets: [...(targets as string[])].sort(),
    ...(rslora ? { rslora } : {}),
    ...(topLayers == null ? {} : { topLayers }),
  };
}

/**
 * Writes an adapter folder. What is written is complete only when this returns; give a server the path after it.
 * @param baseModel the base's path or name, for the program that loads the adapter
 */
export function writeAdapter(
  folder: string,
  config: ModelConfig & { readonly adapter: LoraConfig },
  values: Readonly<Record<string, Float32Array>>,
  baseModel: string,
): void {
  const { lora, values: whole } = fuseAdapter(config, { lora: config.adapter, values });
  const { rank, alpha, targets, rslora = false, topLayers } = lora;
  const specs = loraSpecs(fileSpecs(config), lora);
  const tensors = Object.fromEntries(specs.map(({ name, shape }) => [name, { shape, data: whole[name]! }]));
  const json = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: baseModel,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    bias: 'none',
    target_modules: targets,
    layers_to_transform:
      topLayers === undefined ? null : Array.from({ length: topLayers }, (_, i) => config.layers - topLayers + i),
    modules_to_save: null,
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    use_rslora: rslora,
    use_dora: false,
  };
  makeFolder(folder);
  writeFileSync(join(folder, ADAPTER_WEIGHTS), encodeSafetensors(tensors, { format: 'pt' }));
  writeFileSync(join(folder, ADAPTER_CONFIG), `${JSON.stringify(json, null, 2)}\n`);
}
