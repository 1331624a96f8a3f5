/**
 * Blocks of GGUF tensors as float32, in the arithmetic of llama.cpp's reference (`ggml-quants.c`, Python's `gguf`): every
 * step is rounded to float32, so the numbers are the same to the last bit.
 */
import { fromHalf } from '../../../compute/tensor/fixed.ts';

/** Type of a tensor's blocks. */
export interface BlockType {
  /** Number of the type in the file. */
  readonly id: number;
  /** Weights of one block. */
  readonly block: number;
  /** Bytes of one block. */
  readonly bytes: number;
  /**
   * Writes a block's weights.
   * @param data bytes of many blocks
   * @param at   first byte of the block
   * @param out  float32
   * @param to   place of the block's first weight
   */
  decode(data: DataView, at: number, out: Float32Array, to: number): void;
}

const round = Math.fround;

/** Numbers of all 65,536 halves: a matrix has one or two in every block. */
let halves: Float32Array | undefined;

function half(data: DataView, at: number): number {
  halves ??= Float32Array.from({ length: 2 ** 16 }, (_, bits) => fromHalf(bits));
  return halves[data.getUint16(at, true)]!;
}

/** Writes a block of 32 whose codes lie in halves: the low four bits are the first sixteen. */
function decodeNibbles(
  data: DataView,
  at: number,
  out: Float32Array,
  to: number,
  weight: (code: number, index: number) => number,
): void {
  for (let i = 0; i < 16; i++) {
    const byte = data.getUint8(at + i);
    out[to + i] = weight(byte & 15, i);
    out[to + 16 + i] = weight(byte >> 4, 16 + i);
  }
}

/** Scales and minima of Q4_K and Q5_K: eight of six bits each, in twelve bytes. */
function scaleAt(data: DataView, at: number, i: number): readonly [scale: number, minimum: number] {
  const byte = (k: number) => data.getUint8(at + k);
  if (i < 4) return [byte(i) & 63, byte(i + 4) & 63];
  return [(byte(i + 4) & 15) | ((byte(i - 4) >> 6) << 4), (byte(i + 4) >> 4) | ((byte(i) >> 6) << 4)];
}

/** Types that are read here, by llama.cpp's names. */
export const BLOCK_TYPES = {
  F32: {
    id: 0,
    block: 1,
    bytes: 4,
    decode(data, at, out, to) {
      out[to] = data.getFloat32(at, true);
    },
  },
  F16: {
    id: 1,
    block: 1,
    bytes: 2,
    decode(data, at, out, to) {
      out[to] = half(data, at);
    },
  },
  BF16: {
    id: 30,
    block: 1,
    bytes: 2,
    decode(data, at, out, to) {
      scratch.setUint32(0, data.getUint16(at, true) << 16);
      out[to] = scratch.getFloat32(0);
    },
  },
  Q8_0: {
    id: 8,
    block: 32,
    bytes: 34,
    decode(data, at, out, to) {
      const scale = half(data, at);
      for (let i = 0; i < 32; i++) out[to + i] = data.getInt8(at + 2 + i) * scale;
    },
  },
  Q4_0: {
    id: 2,
    block: 32,
    bytes: 18,
    decode(data, at, out, to) {
      const scale = half(data, at);
      decodeNibbles(data, at + 2, out, to, (code) => scale * (code - 8));
    },
  },
  Q4_1: {
    id: 3,
    block: 32,
    bytes: 20,
    decode(data, at, out, to) {
      const scale = half(data, at);
      const minimum = half(data, at + 2);
      decodeNibbles(data, at + 4, out, to, (code) => round(scale * code) + minimum);
    },
  },
  Q5_0: {
    id: 6,
    block: 32,
    bytes: 22,
    decode(data, at, out, to) {
      const scale = half(data, at);
      const high = data.getUint32(at + 2, true);
      decodeNibbles(data, at + 6, out, to, (code, i) => scale * ((code | (((high >>> i) & 1) << 4)) - 16));
    },
  },
  Q5_1: {
    id: 7,
    block: 32,
    bytes: 24,
    decode(data, at, out, to) {
      const scale = half(data, at);
      const minimum = half(data, at + 2);
      const high = data.getUint32(at + 4, true);
      decodeNibbles(data, at + 8, out, to, (code, i) => round(scale * (code | (((high >>> i) & 1) << 4))) + minimum);
    },
  },
  Q2_K: {
    id: 10,
    block: 256,
    bytes: 84,
    decode(data, at, out, to) {
      const scale = half(data, at + 80);
      const minimum = half(data, at + 82);
      for (let group = 0; group < 16; group++) {
        const packed = data.getUint8(at + group);
        const d = round(scale * (packed & 15));
        const m = round(minimum * (packed >> 4));
        // 128 weights lie in 32 bytes, two bits of each byte for every 32.
        const bytes = at + 16 + (group >> 3) * 32 + (group & 1) * 16;
        const shift = ((group & 7) >> 1) * 2;
        for (let i = 0; i < 16; i++) {
          out[to + group * 16 + i] = round(d * ((data.getUint8(bytes + i) >> shift) & 3)) - m;
        }
      }
    },
  },
  Q3_K: {
    id: 11,
    block: 256,
    bytes: 110,
    decode(data, at, out, to) {
      const scale = half(data, at + 108);
      for (let group = 0; group < 16; group++) {
        const low = (data.getUint8(at + 96 + (group & 7)) >> (group < 8 ? 0 : 4)) & 15;
        const high = (data.getUint8(at + 104 + (group & 3)) >> (2 * (group >> 2))) & 3;
        const d = round(scale * ((low | (high << 4)) - 32));
        const place = (group & 1) * 16;
        const bytes = at + 32 + (group >> 3) * 32 + place;
        const shift = ((group & 7) >> 1) * 2;
        const bit = group >> 1;
        for (let i = 0; i < 16; i++) {
          const code = (data.getUint8(bytes + i) >> shift) & 3;
          const isHigh = (data.getUint8(at + place + i) >> bit) & 1;
          out[to + group * 16 + i] = d * (code - (isHigh ? 0 : 4));
        }
      }
    },
  },
  Q4_K: {
    id: 12,
    block: 256,
    bytes: 144,
    decode(data, at, out, to) {
      const scale = half(data, at);
      const minimum = half(data, at + 2);
      for (let group = 0; group < 8; group++) {
        const [s, m] = scaleAt(data, at + 4, group);
        const d = round(scale * s);
        const dm = round(minimum * m);
        const bytes = at + 16 + (group >> 1) * 32;
        const shift = (group & 1) * 4;
        for (let i = 0; i < 32; i++) {
          out[to + group * 32 + i] = round(d * ((data.getUint8(bytes + i) >> shift) & 15)) - dm;
        }
      }
    },
  },
  Q5_K: {
    id: 13,
    block: 256,
    bytes: 176,
    decode(data, at, out, to) {
      const scale = half(data, at);
      const minimum = half(data, at + 2);
      for (let group = 0; group < 8; group++) {
        const [s, m] = scaleAt(data, at + 4, group);
        const d = round(scale * s);
        const dm = round(minimum * m);
        const bytes = at + 48 + (group >> 1) * 32;
        const shift = (group & 1) * 4;
        for (let i = 0; i < 32; i++) {
          const code = (data.getUint8(bytes + i) >> shift) & 15;
          const high = (data.getUint8(at + 16 + i) >> group) & 1;
          out[to + group * 32 + i] = round(d * (code | (high << 4))) - dm;
        }
      }
    },
  },
  Q6_K: {
    id: 14,
    block: 256,
    bytes: 210,
    decode(data, at, out, to) {
      const scale = half(data, at + 208);
      for (let group = 0; group < 16; group++) {
        const d = round(scale * data.getInt8(at + 192 + group));
        // 128 weights: low halves in 64 bytes (the first 64, then the high nibbles of the same), two high bits in 32.
        const within = (group & 7) * 16;
        const low = at + (group >> 3) * 64 + (within & 63);
        const lowShift = within < 64 ? 0 : 4;
        const high = at + 128 + (group >> 3) * 32 + (within & 31);
        const highShift = (within >> 5) * 2;
        for (let i = 0; i < 16; i++) {
          const code =
            ((data.getUint8(low + i) >> lowShift) & 15) | (((data.getUint8(high + i) >> highShift) & 3) << 4);
          out[to + group * 16 + i] = d * (code - 32);
        }
      }
    },
  },
} as const satisfies Readonly<Record<string, BlockType>>;

export type BlockTypeName = keyof typeof BLOCK_TYPES;

const scratch = new DataView(new ArrayBuffer(4));

/** Decodes whole blocks. @param bytes a number of blocks of the type, back to back */
export function decodeBlocks(type: BlockTypeName, bytes: Uint8Array): Float32Array {
  const { block, bytes: each, decode } = BLOCK_TYPES[type] as BlockType;
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = Math.floor(bytes.length / each);
  const out = new Float32Array(count * block);
  for (let i = 0; i < count; i++) decode(data, i * each, out, i * block);
  return out;
}
