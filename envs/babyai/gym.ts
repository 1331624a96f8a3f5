/**
 * Gym interface, in numbers: many grid worlds in one thread, observed as Minigrid's images and driven by its seven
 * actions. Buffers are allocated once and overwritten by every call.
 *
 * Unlike the text world, Minigrid's own step limit counts here: `truncated` is its flag.
 */
import { IMAGE_BYTES, VIEW } from './grid.ts';
import { generate } from './levels.ts';
import type { World } from './world.ts';

export interface VectorOptions {
  /** Level in [1, 40]. */
  readonly level: number;
  /** Number of worlds, ≥ 1. */
  readonly numEnvs: number;
  /** Seed: world i begins with `seed + i`. Default 0. */
  readonly seed?: number;
  /**
   * Restarts a world that ended, with its seed raised by `numEnvs`, in the same call: its flags and reward are those of
   * the end, its image and direction those of the new beginning. Default true.
   */
  readonly autoReset?: boolean;
}

/** Vector of `numEnvs` worlds that are stepped together. */
export class VectorBabyAI {
  static readonly numActions = 7;
  /** Shape of one image. */
  static readonly imageShape = [VIEW, VIEW, 3] as const;
  readonly numEnvs: number;
  /** [numEnvs, 7, 7, 3] */
  readonly images: Uint8Array;
  /** [numEnvs] 0 right, 1 down, 2 left, 3 up */
  readonly directions: Uint8Array;
  /** [numEnvs] */
  readonly rewards: Float64Array;
  /** [numEnvs] 1 where the mission is fulfilled or failed. */
  readonly terminated: Uint8Array;
  /** [numEnvs] 1 where the step limit is reached. */
  readonly truncated: Uint8Array;
  readonly worlds: World[];
  readonly #level: number;
  readonly #seeds: Float64Array;
  readonly #autoReset: boolean;

  /** @throws {RangeError} for a level, seed or number of worlds out of range */
  constructor({ level, numEnvs, seed = 0, autoReset = true }: VectorOptions) {
    if (!Number.isInteger(numEnvs) || numEnvs < 1)
      throw new RangeError(`VectorBabyAI: numEnvs must be ≥ 1, got ${numEnvs}`);
    this.#level = level;
    this.#autoReset = autoReset;
    this.numEnvs = numEnvs;
    this.images = new Uint8Array(numEnvs * IMAGE_BYTES);
    this.directions = new Uint8Array(numEnvs);
    this.rewards = new Float64Array(numEnvs);
    this.terminated = new Uint8Array(numEnvs);
    this.truncated = new Uint8Array(numEnvs);
    this.#seeds = Float64Array.from({ length: numEnvs }, (_, i) => seed + i);
    this.worlds = Array.from(this.#seeds, (each) => generate(level, each));
    for (let i = 0; i < numEnvs; i++) this.#observe(i);
  }

  /** Missions in words, [numEnvs]. */
  get missions(): string[] {
    return this.worlds.map((world) => world.mission);
  }

  /** Resets world i. @param seed integer in [0, 2⁵³) */
  reset(i: number, seed: number): void {
    this.#seeds[i] = seed;
    this.worlds[i] = generate(this.#level, seed);
    this.#observe(i);
  }

  /**
   * Takes one action in every world.
   *
   * @param actions [numEnvs] in [0, 6]
   * @throws {RangeError} for another number of actions, or an action out of range
   */
  step(actions: ArrayLike<number>): void {
    if (actions.length !== this.numEnvs) {
      throw new RangeError(`VectorBabyAI.step: expected ${this.numEnvs} actions, got ${actions.length}`);
    }
    for (let i = 0; i < this.numEnvs; i++) {
      const world = this.worlds[i]!;
      world.step(actions[i]!);
      this.rewards[i] = world.reward;
      this.terminated[i] = world.terminated ? 1 : 0;
      this.truncated[i] = world.truncated ? 1 : 0;
      if (this.#autoReset && (world.terminated || world.truncated)) this.reset(i, this.#seeds[i]! + this.numEnvs);
      else this.#observe(i);
    }
  }

  #observe(i: number): void {
    const world = this.worlds[i]!;
    world.observe(this.images, i * IMAGE_BYTES);
    if (world.staleImage && world.stepCount === 0) this.images.set(world.staleImage, i * IMAGE_BYTES);
    this.directions[i] = world.agentDir;
  }
}
