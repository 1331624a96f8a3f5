/**
 * Random stream of numpy in plain numbers, its default one: SeedSequence → PCG64 (XSL-RR 128/64) →
 * `Generator.integers`, `uniform` and `shuffle`, bit for bit. A level of the original is a function of this stream
 * alone.
 *
 * The 128-bit state is kept as six 22-bit limbs, so every product and column sum is exact in a double.
 *
 * @see O'Neill 2014, PCG: https://www.pcg-random.org; Lemire 2019, https://arxiv.org/abs/1805.10941
 */

// The multiplier 0x2360ED051FC65DA44385DF649FCCF645 in 22-bit limbs, least significant first.
const M0 = 0x0cf645;
const M1 = 0x3d927f;
const M2 = 0x04385d;
const M3 = 0x319769;
const M4 = 0x2d051f;
const M5 = 0x008d83;
const LIMB = 4194304;
const LIMB_MASK = LIMB - 1;
/** Mask of the top limb, which has 18 bits. */
const TOP_MASK = 0x3ffff;

const TWO_16 = 65536;
const TWO_32 = 4294967296;

/**
 * Seed words: the first `count` 32-bit words that `SeedSequence(seed)` generates.
 *
 * @param seed integer in [0, 2⁵³)
 * @throws {RangeError} for anything else
 */
export function seedWords(seed: number, count: number): Uint32Array {
  if (!Number.isSafeInteger(seed) || seed < 0) throw new RangeError(`Pcg64: seed must be in [0, 2^53), got ${seed}`);
  const low = seed % TWO_32;
  const high = (seed - low) / TWO_32;

  let hash = 0x43b0d7e5;
  const absorb = (word: number): number => {
    let v = word ^ hash;
    hash = Math.imul(hash, 0x931e8875);
    v = Math.imul(v, hash);
    return v ^ (v >>> 16);
  };
  const mix = (x: number, y: number): number => {
    const r = (Math.imul(x, 0xca01f9dd) - Math.imul(y, 0x4973f715)) | 0;
    return r ^ (r >>> 16);
  };

  // An absent high word and a zero one hash alike: the pool of four words is padded with zeros either way.
  const pool = [absorb(low), absorb(high), absorb(0), absorb(0)];
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) if (from !== to) pool[to] = mix(pool[to]!, absorb(pool[from]!));
  }

  const out = new Uint32Array(count);
  let hash2 = 0x8b51f9dd;
  for (let i = 0; i < count; i++) {
    let v = pool[i & 3]! ^ hash2;
    hash2 = Math.imul(hash2, 0x58f38ded);
    v = Math.imul(v, hash2);
    out[i] = v ^ (v >>> 16);
  }
  return out;
}

/** `numpy.random.default_rng(seed)`, as far as level generation needs it. */
export class Pcg64 {
  #s0 = 0;
  #s1 = 0;
  #s2 = 0;
  #s3 = 0;
  #s4 = 0;
  #s5 = 0;
  readonly #inc: Float64Array;
  /** Words of the last 64-bit draw. */
  #low = 0;
  #high = 0;
  /** The upper half of a 64-bit draw waits here for the next 32-bit one; doubles neither use nor clear it. */
  #half = -1;

  /** @param seed integer in [0, 2⁵³) @throws {RangeError} for anything else */
  constructor(seed: number) {
    const w = seedWords(seed, 8);
    // 64-bit words 0 and 1 are the state's high and low half, 2 and 3 the increment's before it is doubled.
    const state = limbs(w[2]!, w[3]!, w[0]!, w[1]!);
    const inc = limbs(w[6]!, w[7]!, w[4]!, w[5]!);
    let carry = 1;
    for (let i = 0; i < 6; i++) {
      const v = inc[i]! * 2 + carry;
      inc[i] = v & (i === 5 ? TOP_MASK : LIMB_MASK);
      carry = v >>> 22;
    }
    this.#inc = inc;
    this.#step();
    this.#add(state);
    this.#step();
  }

  /** Advances the state; its output words are left in `#low` and `#high`. */
  #step(): void {
    const a0 = this.#s0;
    const a1 = this.#s1;
    const a2 = this.#s2;
    const a3 = this.#s3;
    const a4 = this.#s4;
    const a5 = this.#s5;
    const inc = this.#inc;

    let c = a0 * M0 + inc[0]!;
    const r0 = c & LIMB_MASK;
    c = (c - r0) / LIMB + a0 * M1 + a1 * M0 + inc[1]!;
    const r1 = c & LIMB_MASK;
    c = (c - r1) / LIMB + a0 * M2 + a1 * M1 + a2 * M0 + inc[2]!;
    const r2 = c & LIMB_MASK;
    c = (c - r2) / LIMB + a0 * M3 + a1 * M2 + a2 * M1 + a3 * M0 + inc[3]!;
    const r3 = c & LIMB_MASK;
    c = (c - r3) / LIMB + a0 * M4 + a1 * M3 + a2 * M2 + a3 * M1 + a4 * M0 + inc[4]!;
    const r4 = c & LIMB_MASK;
    c = (c - r4) / LIMB + a0 * M5 + a1 * M4 + a2 * M3 + a3 * M2 + a4 * M1 + a5 * M0 + inc[5]!;
    const r5 = c & TOP_MASK;

    this.#s0 = r0;
    this.#s1 = r1;
    this.#s2 = r2;
    this.#s3 = r3;
    this.#s4 = r4;
    this.#s5 = r5;

    // XSL-RR: the halves xored, then rotated right by the top six bits.
    const low = (r0 | (r1 << 22)) ^ ((r2 >>> 20) | (r3 << 2) | (r4 << 24));
    const high = ((r1 >>> 10) | (r2 << 12)) ^ ((r4 >>> 8) | (r5 << 14));
    const rotation = r5 >>> 12;
    const by = rotation & 31;
    const x = rotation & 32 ? high : low;
    const y = rotation & 32 ? low : high;
    if (by === 0) {
      this.#low = x >>> 0;
      this.#high = y >>> 0;
    } else {
      this.#low = ((x >>> by) | (y << (32 - by))) >>> 0;
      this.#high = ((y >>> by) | (x << (32 - by))) >>> 0;
    }
  }

  #add(other: Float64Array): void {
    let c = this.#s0 + other[0]!;
    this.#s0 = c & LIMB_MASK;
    this.#s1 = (c = this.#s1 + other[1]! + (c >>> 22)) & LIMB_MASK;
    this.#s2 = (c = this.#s2 + other[2]! + (c >>> 22)) & LIMB_MASK;
    this.#s3 = (c = this.#s3 + other[3]! + (c >>> 22)) & LIMB_MASK;
    this.#s4 = (c = this.#s4 + other[4]! + (c >>> 22)) & LIMB_MASK;
    this.#s5 = (this.#s5 + other[5]! + (c >>> 22)) & TOP_MASK;
  }

  /** uint32 */
  next32(): number {
    const half = this.#half;
    if (half >= 0) {
      this.#half = -1;
      return half;
    }
    this.#step();
    this.#half = this.#high;
    return this.#low;
  }

  /** Uniform in [0, 1), 53 bits fine. */
  double(): number {
    this.#step();
    return (this.#high * 2097152 + (this.#low >>> 11)) / 9007199254740992;
  }

  /** `Generator.uniform(low, high)` */
  uniform(low: number, high: number): number {
    return low + (high - low) * this.double();
  }

  /**
   * `Generator.integers(low, high)`: uniform in [low, high), by Lemire's multiplication with rejection. A range of
   * one value draws nothing.
   *
   * @throws {RangeError} unless 1 ≤ high − low ≤ 2³²
   */
  integers(low: number, high: number): number {
    const n = high - low;
    if (n === 1) return low;
    if (!(n >= 1 && n <= TWO_32)) throw new RangeError(`Pcg64.integers: empty or too wide range [${low}, ${high})`);
    if (n === TWO_32) return low + this.next32();
    let threshold = -1; // 2³² mod n, found only when needed
    for (;;) {
      const x = this.next32();
      // x·n in 64 bits: the upper word is the draw, the lower one decides whether it counts.
      const p = (x & 0xffff) * n;
      const q = (x >>> 16) * n + Math.floor(p / TWO_16);
      const lower = (q % TWO_16) * TWO_16 + (p % TWO_16);
      if (lower >= n || lower >= (threshold = threshold < 0 ? (TWO_32 - n) % n : threshold)) {
        return low + Math.floor(q / TWO_16);
      }
    }
  }

  /** `Generator.shuffle(items)` of a list, in place: Fisher–Yates from the end, bounded by masked rejection. */
  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const mask = 0xffffffff >>> Math.clz32(i);
      let j = this.next32() & mask;
      while (j >>> 0 > i) j = this.next32() & mask;
      const x = items[i]!;
      items[i] = items[j]!;
      items[j] = x;
    }
    return items;
  }
}

/** Four 32-bit words, least significant first, as limbs. */
function limbs(w0: number, w1: number, w2: number, w3: number): Float64Array {
  return Float64Array.of(
    w0 & LIMB_MASK,
    (w0 >>> 22) | ((w1 & 0xfff) << 10),
    (w1 >>> 12) | ((w2 & 3) << 20),
    (w2 >>> 2) & LIMB_MASK,
    (w2 >>> 24) | ((w3 & 0x3fff) << 8),
    w3 >>> 14,
  );
}
