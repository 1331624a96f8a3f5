/** Weights as bytes: a safetensors file, the same for the same numbers, and its digest. */
import { createHash } from 'node:crypto';
import type { ModelConfig } from '../../compute/model/config.ts';
import { type ParamSet, parameterSpecs } from '../../compute/model/parameters.ts';
import { decodeSafetensors, encodeSafetensors } from '../../storage/safetensors.ts';

/** Encodes the weights that are trained. The version is not among the bytes. */
export function encodeWeights(model: ModelConfig, { values }: ParamSet): Uint8Array {
  const tensors = parameterSpecs(model).map(({ name, shape }) => [name, { shape, data: values[name]! }] as const);
  return encodeSafetensors(Object.fromEntries(tensors));
}

/**
 * Decodes weights.
 * @param source named in errors
 * @throws {LongplayError} BAD_CHECKPOINT for bytes that are no weights; a model that they do not fit refuses them itself
 */
export function decodeWeights(bytes: Uint8Array, version: number, source: string): ParamSet {
  const tensors = Object.entries(decodeSafetensors(bytes, source));
  return { version, values: Object.fromEntries(tensors.map(([name, { data }]) => [name, data as Float32Array])) };
}

/** Digest of weights by their bytes: SHA-256, hexadecimal. */
export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
