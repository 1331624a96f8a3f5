/**
 * Rotary positions as `config.json` describes them, in both dialects: transformers 4 (`rope_theta`, `rope_scaling`,
 * `partial_rotary_factor`) and 5 (`rope_parameters`). A scaling that is not computed here is refused by name.
 */
import { describeValue } from '../../core/describe-value.ts';
import { UserError } from '../../core/errors.ts';
import { isRecord } from '../../core/record.ts';
import type { Json } from '../../text/templates/model-text.ts';

export interface Rope {
  /** Rotary base θ. */
  readonly theta: number;
  /** Divisors of the frequencies; undefined: none. */
  readonly factors?: readonly number[];
  /** Factor on cosines and sines; undefined: 1. */
  readonly scale?: number;
  /** Numbers of a head that are turned; undefined: all. */
  readonly width?: number;
  /** Longest context that these positions are made for; undefined: the model's own. */
  readonly positions?: number;
  /** Rotary base of sliding layers, where they have one of their own. */
  readonly localTheta?: number;
}

/** Facts of a model that its positions depend on. */
export interface RopeFacts {
  /** Path of the file, for errors. */
  readonly source: string;
  readonly headDim: number;
  /** `max_position_embeddings`. */
  readonly maxPositions: number;
  /** Rotary base of other layers and of sliding ones, where the file names none. */
  readonly theta: number;
  readonly localTheta: number | undefined;
  /** True where only the first part of a head may be turned. */
  readonly isPartial: boolean;
}

/**
 * Reads the rotary positions.
 * @throws {UserError} BAD_CHECKPOINT naming the field, what was expected and what came
 */
export function readRope(json: Json, facts: RopeFacts): Rope {
  const { source } = facts;
  const name = json.rope_parameters ? 'rope_parameters' : 'rope_scaling';
  const nested = json[name];
  if (nested != null && !isRecord(nested)) return refuseRope(source, name, nested, 'an object or null');
  const theta = positive(json.rope_theta ?? facts.theta, source, 'rope_theta');
  if (facts.localTheta === undefined) return readScaling(json, nested ?? {}, name, theta, facts);
  // Layers of two kinds have a field each in one dialect; in the other only the base of the sliding ones is said.
  const kinds = isRecord(nested?.full_attention) || isRecord(nested?.sliding_attention);
  const near = kinds ? (nested?.sliding_attention ?? {}) : {};
  const wide = kinds ? (nested?.full_attention ?? {}) : (nested ?? {});
  if (!isRecord(near)) return refuseRope(source, `${name}.sliding_attention`, near, 'an object');
  if (!isRecord(wide)) return refuseRope(source, `${name}.full_attention`, wide, 'an object');
  const local = positive(json.rope_local_base_freq ?? facts.localTheta, source, 'rope_local_base_freq');
  const sliding = readScaling(json, near, `${name}.sliding_attention`, local, facts);
  if (sliding.factors) return refuseRope(source, `${name}.sliding_attention`, near, 'rope_type "default"');
  return {
    ...readScaling(json, wide, kinds ? `${name}.full_attention` : name, theta, facts),
    localTheta: sliding.theta,
  };
}

function readScaling(json: Json, scaling: Json, name: string, plain: number, facts: RopeFacts): Rope {
  const { source, headDim, isPartial } = facts;
  const { rope_type: type, type: old, rope_theta: own, partial_rotary_factor: nestedShare, ...rest } = scaling;
  const theta = own === undefined ? plain : positive(own, source, `${name}.rope_theta`);
  const share = positive(nestedShare ?? json.partial_rotary_factor ?? 1, source, 'partial_rotary_factor');
  const turned = Math.trunc(headDim * share);
  if (share !== 1 && !isPartial) refuseRope(source, `${name}.partial_rotary_factor`, share, '1');
  if (share > 1 || turned < 2 || turned % 2 !== 0) {
    return refuseRope(source, 'partial_rotary_factor', share, `at most 1, and an even part of ${headDim}`);
  }
  const width = turned === headDim ? {} : { width: turned };
  const kind = type ?? old ?? 'default';
  const read = (field: string) => positive(rest[field], source, `${name}.${field}`);
  if (kind === 'llama3') return { theta, factors: llama3Factors(rest, theta, turned, source, name), ...width };
  // Older files of Phi-3 call it so.
  if (kind === 'longrope' || kind === 'su') return { theta, ...longRope(json, rest, turned, name, facts), ...width };
  if (kind === 'linear') return { theta, factors: Array(turned / 2).fill(read('factor')), ...width };
  if (kind !== 'default') refuseRope(source, `${name}.rope_type`, kind, '"default", "linear", "llama3", "longrope"');
  const more = Object.entries(rest).find(([, value]) => value !== null);
  if (more) refuseRope(source, `${name}.${more[0]}`, more[1], 'nothing');
  return { theta, ...width };
}

function refuseRope(source: string, field: string, value: unknown, expected: string): never {
  throw new UserError('BAD_CHECKPOINT', `${source}: ${field} is ${describeValue(value)}, expected ${expected}`);
}

function positive(value: unknown, source: string, field: string): number {
  if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value;
  return refuseRope(source, field, value, 'a positive number');
}

/**
 * Scaling of Llama 3.1: long waves are stretched by `factor`, short ones stay, and those between are blended.
 * @see transformers' `modeling_rope_utils.py`
 */
function llama3Factors(rest: Json, theta: number, turned: number, source: string, name: string): readonly number[] {
  const number = (field: string): number => positive(rest[field], source, `${name}.${field}`);
  const factor = number('factor');
  const low = number('low_freq_factor');
  const high = number('high_freq_factor');
  const context = number('original_max_position_embeddings');
  if (high <= low) refuseRope(source, `${name}.high_freq_factor`, high, `more than low_freq_factor, ${low}`);
  return Array.from({ length: turned / 2 }, (_, i) => {
    const wave = 2 * Math.PI * theta ** ((2 * i) / turned);
    if (wave < context / high) return 1;
    if (wave > context / low) return factor;
    const blend = (context / wave - low) / (high - low);
    return 1 / ((1 - blend) / factor + blend);
  });
}

/**
 * Divisors of LongRoPE: one list up to the context of the first training, another beyond it. A context ends where the second
 * would begin, because it would change the angles of every token before it. Cosines and sines are scaled in both.
 * @see Ding et al. 2024, https://arxiv.org/abs/2402.13753; transformers' `modeling_rope_utils.py`
 */
function longRope(json: Json, rest: Json, turned: number, name: string, { source, maxPositions }: RopeFacts) {
  const { short_factor: short, long_factor: long, attention_factor: attention, factor } = rest;
  const list = (field: string, value: unknown): readonly number[] => {
    const fits = Array.isArray(value) && value.length * 2 === turned;
    if (fits && value.every((one) => typeof one === 'number' && one > 0 && Number.isFinite(one))) return value;
    return refuseRope(source, `${name}.${field}`, value, `${turned / 2} positive numbers`);
  };
  const factors = list('short_factor', short);
  const isOne = list('long_factor', long).join() === factors.join();
  const original = rest.original_max_position_embeddings ?? json.original_max_position_embeddings;
  if (isOne && original == null && attention === 1) return { factors };
  const positions = positive(original, source, `${name}.original_max_position_embeddings`);
  if (!Number.isInteger(positions) || positions < 2) {
    return refuseRope(source, `${name}.original_max_position_embeddings`, positions, 'a whole number of at least 2');
  }
  const stretch = factor == null ? maxPositions / positions : positive(factor, source, `${name}.factor`);
  const scale =
    attention == null
      ? Math.sqrt(1 + Math.log(Math.max(1, stretch)) / Math.log(positions))
      : positive(attention, source, `${name}.attention_factor`);
  return { factors, ...(scale === 1 ? {} : { scale }), ...(isOne ? {} : { positions }) };
}
