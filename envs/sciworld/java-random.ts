/**
 * Random numbers of `java.util.Random`: a 48-bit linear congruential generator, kept as two 24-bit halves so that every
 * product stays exact. One generator belongs to one session; the valid list, bees and genes all draw from it.
 */
export class JavaRandom {
  #hi = 0;
  #lo = 0;
  /** Steps of the generator so far, for tests that compare with the original's. */
  draws = 0;

  /** @param seed an integer below 2³¹, as `new java.util.Random(seed)` takes it */
  constructor(seed: number) {
    this.seed(seed);
  }

  /** Starts again from `seed`. */
  seed(seed: number): void {
    this.#hi = 0x5de ^ Math.floor(seed / 0x1000000);
    this.#lo = (0xece66d ^ (seed & 0xffffff)) & 0xffffff;
  }

  /** Advances by `count` steps. */
  skip(count: number): void {
    for (let i = 0; i < count; i++) this.#advance();
  }

  #advance(): void {
    const product = this.#lo * 0xece66d + 0xb;
    const carry = Math.floor(product / 0x1000000);
    this.#hi = (this.#hi * 0xece66d + this.#lo * 0x5de + carry) % 0x1000000;
    this.#lo = product % 0x1000000;
    this.draws++;
  }

  /** Uniform integer in [0, n). @param n in [1, 2³¹) */
  int(n: number): number {
    if ((n & (n - 1)) === 0) {
      this.#advance();
      return Math.floor((n * this.#bits31()) / 0x80000000);
    }
    for (;;) {
      this.#advance();
      const bits = this.#bits31();
      const value = bits % n;
      if (bits - value + (n - 1) < 0x80000000) return value;
    }
  }

  #bits31(): number {
    return this.#hi * 128 + (this.#lo >>> 17);
  }

  boolean(): boolean {
    this.#advance();
    return this.#hi >>> 23 === 1;
  }

  /** Uniform in [0, 1), 24 bits fine. */
  float(): number {
    this.#advance();
    return this.#hi / 0x1000000;
  }

  /** A shuffled copy, in the order of `scala.util.Random.shuffle`. */
  shuffle<T>(items: readonly T[]): T[] {
    const out = items.slice();
    for (let n = out.length; n > 1; n--) {
      const k = this.int(n);
      const x = out[n - 1]!;
      out[n - 1] = out[k]!;
      out[k] = x;
    }
    return out;
  }
}
