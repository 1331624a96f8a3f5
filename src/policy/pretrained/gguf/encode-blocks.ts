/**
 * Blocks of GGUF tensors made from float32, in the arithmetic of llama.cpp's reference (`ggml-quants.c`, Python's `gguf`):
 * every step is rounded to float32, so the bytes are the same.
 */
import { toBfloat16, toFloat16 } from '../../../compute/tensor/fixed.ts';

/** Types that are written, by llama.cpp's names. */
export const WRITTEN_TYPES = ['F32', 'F16', 'BF16', 'Q8_0'] as const;

export type WrittenType = (typeof WRITTEN_TYPES)[number];

/** Weights of a block of Q8_0. */
const BLOCK = 32;
/** Bytes of it: a scale as half, and a code each. */
const BLOCK_BYTES = 34;

const round = Math.fround;

/** Encodes weights. @param values finite; for Q8_0 whole blocks of 32 */
export function encodeBlocks(type: WrittenType, values: Float32Array): Uint8Array {
  if (type === 'F32') return bytesOf(values);
  if (type === 'F16') return bytesOf(toFloat16(values));
  if (type === 'BF16') return bytesOf(toBfloat16(values));
  return encodeQ8(values);
}

/** Largest weight, by its size, that a type can hold. */
export function largestOf(type: WrittenType): number {
  // Above the middle between the largest half and the next one, rounding makes infinity of it.
  if (type === 'F16') return MAX_HALF;
  // Its scale is a half. Of bfloat16 the last bits round up to infinity.
  return type === 'Q8_0' ? MAX_HALF * 127 : type === 'BF16' ? 3.39e38 : Number.MAX_VALUE;
}

const MAX_HALF = 65_504;

/** Q8_0: scale = max|w| / 127, code = w / scale, rounded to the nearest and from zero in the middle. */
function encodeQ8(values: Float32Array): Uint8Array {
  const blocks = values.length / BLOCK;
  const out = new Uint8Array(blocks * BLOCK_BYTES);
  const codes = new Int8Array(out.buffer);
  const scales = new Float32Array(blocks);
  for (let block = 0; block < blocks; block++) {
    const start = block * BLOCK;
    let peak = 0;
    for (let i = start; i < start + BLOCK; i++) peak = Math.max(peak, Math.abs(values[i]!));
    const scale = round(peak / 127);
    scales[block] = scale;
    // The reference multiplies by the inverse. That of a scale below 2^-128 is infinite in float32.
    const inverse = scale === 0 ? 0 : round(1 / scale);
    const at = block * BLOCK_BYTES + 2;
    for (let i = 0; i < BLOCK; i++) codes[at + i] = awayFromZero(round(values[start + i]! * inverse));
  }
  const halves = new DataView(out.buffer);
  for (const [block, half] of toFloat16(scales).entries()) halves.setUint16(block * BLOCK_BYTES, half, true);
  return out;
}

/** Rounds as C's `roundf` does. Adding a half first would round 0.49999997 up. */
function awayFromZero(x: number): number {
  const size = Math.abs(x);
  const whole = Math.floor(size);
  const rounded = size - whole >= 0.5 ? whole + 1 : whole;
  return x < 0 ? -rounded : rounded;
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array | Uint16Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
