/**
 * Random numbers, the one source of them: xoshiro128** seeded through splitmix32, splittable by label. Seeds and labels
 * come in as arguments; nothing in this package calls `Math.random`.
 *
 * @see Blackman & Vigna 2021, https://prng.di.unimi.it/xoshiro128starstar.c (the test vectors are that generator's)
 */

/** Snapshot of a generator: four uint32 words. */
export type RngState = readonly [number, number, number, number];

/** Random numbers from a seed, the same on every machine (xoshiro128**). */
export class Rng {
  #s: Uint32Array;

  private constructor(state: Uint32Array) {
    this.#s = state;
  }

  /** @param seed any integer; its low 32 bits count */
  static fromSeed(seed: number): Rng {
    const next = splitmix32(seed >>> 0);
    return new Rng(Uint32Array.of(next(), next(), next(), next()));
  }

  static fromState(state: RngState): Rng {
    return new Rng(Uint32Array.from(state));
  }

  get state(): RngState {
    const s = this.#s;
    return [s[0]!, s[1]!, s[2]!, s[3]!];
  }

  /** uint32 */
  next(): number {
    const s = this.#s;
    const s1 = s[1]!;
    const result = Math.imul(rotl(Math.imul(s1, 5), 7), 9) >>> 0;
    const t = s1 << 9;
    s[2]! ^= s[0]!;
    s[3]! ^= s1;
    s[1]! ^= s[2]!;
    s[0]! ^= s[3]!;
    s[2]! ^= t;
    s[3] = rotl(s[3]!, 11);
    return result;
  }

  /** Uniform in [0, 1), 32 bits fine. */
  float(): number {
    return this.next() / 4294967296;
  }

  /** Uniform integer in [0, n), without modulo bias. @param n in [1, 2³²] */
  int(n: number): number {
    const limit = 4294967296 - (4294967296 % n);
    let x = this.next();
    while (x >= limit) x = this.next();
    return x % n;
  }

  /** Standard normal (Box–Muller, one value per two draws). */
  normal(): number {
    const u = 1 - this.float();
    return Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * this.float());
  }

  /** Picks one of `items`. @throws {RangeError} when there are none */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('Rng.pick: nothing to pick from');
    return items[this.int(items.length)]!;
  }

  /** Shuffles a copy (Fisher–Yates). */
  shuffle<T>(items: readonly T[]): T[] {
    const out = items.slice();
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.int(i + 1);
      const x = out[i]!;
      out[i] = out[j]!;
      out[j] = x;
    }
    return out;
  }

  /** Splits off a generator for `label`; does not advance this one, and depends on its state at the call. */
  split(label: string | number): Rng {
    return Rng.fromSeed(seedFrom(...this.state, label));
  }
}

/** Mixes words and labels into a uint32 seed (FNV-1a over their text, finished by splitmix32). */
export function seedFrom(...parts: readonly (number | string)[]): number {
  let hash = 0x811c9dc5;
  for (const part of parts) {
    const text = `${part}|`;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return splitmix32(hash >>> 0)();
}

function rotl(x: number, k: number): number {
  return (x << k) | (x >>> (32 - k));
}

function splitmix32(seed: number): () => number {
  let a = seed | 0;
  return () => {
    a = (a + 0x9e3779b9) | 0;
    let t = a ^ (a >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t ^= t >>> 15;
    t = Math.imul(t, 0x735a2d97);
    return (t ^ (t >>> 15)) >>> 0;
  };
}
