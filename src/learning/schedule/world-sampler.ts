/**
 * World sampler: chooses the world of the next training group, in a run of several. It is a function of the results it was given:
 * no clock and no random number. Its state is plain JSON for the checkpoint, and the same worlds follow from it.
 *
 * Shares are met by smooth weighted round-robin. Each draw adds its share to the credit of every world that is up; the world with
 * the largest credit is drawn and pays 1. Under shares that stay, no world is ever a whole group ahead of its share times the draws,
 * nor as many groups behind as there are other worlds.
 *
 * A world that is down (its server answers nothing) takes no part, and gains no credit meanwhile. A probe is drawn after
 * `MIN_REST` draws of the others, then after twice as many each time, up to `MAX_REST`. Draws count and not seconds, so that a
 * recorded run repeats.
 *
 * @see nginx, upstream round robin, "smooth weighted round-robin balancing", 2012. https://github.com/nginx/nginx/commit/52327e0627
 */
import { type RunWorld, weightAt } from '../../config/worlds.ts';
import { LongplayError } from '../../core/errors.ts';
import { largestOf } from '../../core/extremes.ts';

/** World to draw. */
export interface DrawnWorld extends Pick<RunWorld, 'schedule'> {
  readonly name: string;
}

/** Rule of the draw: the weights, or the weights times what is gained. */
export type Mixture = 'fixed' | 'progress';

/** Progress of one world: running means of its success rate. Plain JSON. */
export interface WorldProgress {
  /** Groups observed. */
  readonly groups: number;
  /** Means in [0, 1]: of the success rate, and a slower one of that mean. */
  readonly fast: number;
  readonly slow: number;
}

/** Rest of a world that is down. Plain JSON. */
export interface WorldRest {
  /** Draws of others from one probe to the next. */
  readonly length: number;
  /** Draws of others that are left until a probe. */
  readonly left: number;
  /** True while a probe is played. */
  readonly probing: boolean;
}

/** State of a sampler; plain JSON, kept in the checkpoint. By world, in the configuration's order. */
export interface WorldSamplerState {
  readonly credits: readonly number[];
  readonly progress: readonly WorldProgress[];
  /** Rests of the worlds that are down; null for those that are up. */
  readonly rests: readonly (WorldRest | null)[];
}

/** Draws of others until the first probe of a world that is down, and between two probes at most. */
const MIN_REST = 16;
const MAX_REST = 512;

/** Weights of the newest group in the running means: about the last 30 groups, and a few times as many behind them. */
const FAST = 1 / 30;
const SLOW = 1 / 90;
/** Groups of a world until its gain counts: before, it is drawn as if nothing gained more. */
const MIN_GROUPS = 60;
/** Share of its weight that a world keeps which gains nothing. */
const FLOOR = 0.2;

/** Observes the success rate of a finished group. @param success in [0, 1] */
export function observeProgress({ groups, fast, slow }: WorldProgress, success: number): WorldProgress {
  // The first groups are plain means, so that a world is not taken to gain because its means began at 0.
  const newest = fast + Math.max(FAST, 1 / (groups + 1)) * (success - fast);
  return { groups: groups + 1, fast: newest, slow: slow + Math.max(SLOW, 1 / (groups + 1)) * (newest - slow) };
}

/**
 * Shares of worlds by learning progress:
 *
 *   share_i ∝ w_i · (floor + (1 − floor) · g_i / max_j g_j)      g_i = |fast_i − slow_i|
 *
 * where fast is a running mean of the success rate of the world's groups and slow a running mean of fast, so their distance is
 * the slope of the learning curve; a loss counts like a gain, since a world that is forgotten has to be played again. A world that
 * gains nothing keeps `floor` of its weight. One with fewer than `MIN_GROUPS` groups counts as the one that gains most, and where nobody
 * gains anything the weights alone hold.
 *
 * Differs from the source: there progress is measured on a rescaled success rate and sampled through a sigmoid; here it is
 * relative to the world that gains most, so that it needs no scale.
 *
 * @param weights ≥ 0, one of them above 0
 * @returns shares, summing up to 1
 * @see Kanitscheider et al. 2021. https://arxiv.org/abs/2106.14876
 * @see Matiisen et al. 2017 (Teacher–Student Curriculum Learning): the absolute slope. https://arxiv.org/abs/1707.00183
 */
export function progressShares(weights: readonly number[], progress: readonly WorldProgress[]): number[] {
  const gains = progress.map(({ fast, slow }) => Math.abs(fast - slow));
  const isKnown = (i: number) => progress[i]!.groups >= MIN_GROUPS;
  const most = largestOf(
    gains.filter((_, i) => isKnown(i) && weights[i]! > 0),
    0,
  );
  return normalise(
    weights.map((weight, i) => {
      const relative = !isKnown(i) || most === 0 ? 1 : gains[i]! / most;
      return weight * (FLOOR + (1 - FLOOR) * relative);
    }),
  );
}

/** Draws the worlds of training groups; see the head of the file. */
export class WorldSampler {
  readonly #worlds: readonly DrawnWorld[];
  readonly #mixture: Mixture;
  #credits: number[];
  #progress: WorldProgress[];
  #rests: (WorldRest | null)[];

  /** @param worlds at least one; at every update one of them has a weight above 0 */
  constructor(worlds: readonly DrawnWorld[], mixture: Mixture) {
    this.#worlds = worlds;
    this.#mixture = mixture;
    this.#credits = worlds.map(() => 0);
    this.#progress = worlds.map(() => ({ groups: 0, fast: 0, slow: 0 }));
    this.#rests = worlds.map(() => null);
  }

  /** Shares of the worlds at an update, those that are down included; they sum up to 1. */
  shares(update: number): number[] {
    const weights = this.#worlds.map(({ schedule }) => weightAt(schedule, update));
    return this.#mixture === 'progress' ? progressShares(weights, this.#progress) : normalise(weights);
  }

  /** Draws the world of the next group. @param update policy version under which it starts @returns its index */
  next(update: number): number {
    const shares = this.shares(update);
    // Where all that have a share are down, each of their groups is a probe.
    const isUp = this.#rests.map((rest) => rest === null);
    const anyUp = shares.some((share, i) => share > 0 && isUp[i]);
    const probe = this.#rests.findIndex((rest, i) => rest !== null && rest.left === 0 && shares[i]! > 0);
    if (anyUp && probe >= 0) {
      const { length } = this.#rests[probe]!;
      this.#rests[probe] = { length, left: length, probing: true };
      return probe;
    }
    const takes = shares.map((share, i) => (anyUp && !isUp[i] ? 0 : share));
    const total = takes.reduce((sum, share) => sum + share, 0);
    let drawn = -1;
    for (const [i, share] of takes.entries()) {
      if (share === 0) continue;
      this.#credits[i]! += share / total;
      if (drawn < 0 || this.#credits[i]! > this.#credits[drawn]! + EQUAL) drawn = i;
    }
    this.#credits[drawn]! -= 1;
    this.#rests = this.#rests.map((rest) => rest && { ...rest, left: Math.max(0, rest.left - 1) });
    return drawn;
  }

  /** Records the success rate of a finished group, in [0, 1]. An answer: the world is up. */
  observe(world: number, success: number): void {
    this.#progress[world] = observeProgress(this.#progress[world]!, success);
    this.#rests[world] = null;
  }

  /** Records that a world did not answer. @returns true where it was up until now */
  rest(world: number): boolean {
    const rest = this.#rests[world];
    if (!rest) this.#rests[world] = { length: MIN_REST, left: MIN_REST, probing: false };
    else if (rest.probing) {
      const length = Math.min(MAX_REST, 2 * rest.length);
      this.#rests[world] = { length, left: length, probing: false };
    } // else a group from before the outage
    return !rest;
  }

  /** True for a world that answers, as far as is known. */
  isUp(world: number): boolean {
    return this.#rests[world] === null;
  }

  get state(): WorldSamplerState {
    return { credits: [...this.#credits], progress: [...this.#progress], rests: [...this.#rests] };
  }

  /** Resumes where `saved` was taken. @throws {LongplayError} BAD_CHECKPOINT where it is of another number of worlds */
  restore({ credits, progress, rests }: WorldSamplerState): void {
    if ([credits, progress, rests].some(({ length }) => length !== this.#worlds.length)) {
      throw new LongplayError('BAD_CHECKPOINT', 'world sampler: the saved state is of another number of worlds');
    }
    this.#credits = [...credits];
    this.#progress = [...progress];
    this.#rests = [...rests];
  }
}

/** Difference of credits that is rounding: equal ones are drawn in the worlds' order. */
const EQUAL = 1e-9;

function normalise(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}
