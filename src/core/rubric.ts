/**
 * Rubrics: rewards that are a weighted sum of named parts. A part is a function, a check that is true or false, or a judge's score
 * (judge.ts). The parts' scores are metrics beside the reward.
 *
 * A part that fails makes the whole fail, so the episode fails: a missing score is never counted as 0 or 1.
 */
import { describeValue } from './describe-value.ts';
import type { MaybePromise } from './env.ts';
import { LongplayError, messageOf } from './errors.ts';

/** Part of a reward. @template E what is scored: an episode, a transcript, an answer */
export interface RewardPart<E> {
  /** Name of its metric. */
  readonly name: string;
  /** Weight in the sum, finite; 0 where it is only measured. Default 1. */
  readonly weight?: number | undefined;
  /** Scores an episode: a finite number, or true (1) and false (0). */
  score(episode: E): MaybePromise<number | boolean>;
}

/** Score of a rubric. An agent may return it as its outcome. */
export interface RubricScore {
  /** Weighted sum of the parts. */
  readonly reward: number;
  /** Score of each part, unweighted, by name. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Reward of named parts. */
export class Rubric<E> {
  readonly #parts: readonly RewardPart<E>[];

  /** @throws {RangeError} without parts, for a name that comes twice, and for a weight that is not finite */
  constructor(parts: readonly RewardPart<E>[]) {
    if (parts.length === 0) throw new RangeError('rubric: expected one part or more, got none');
    for (const [i, { name, weight = 1 }] of parts.entries()) {
      if (name === '') throw new RangeError(`rubric: expected a name of part ${i}, got ""`);
      if (parts.findIndex((other) => other.name === name) < i) {
        throw new RangeError(`rubric: expected different names, got "${name}" twice`);
      }
      if (!Number.isFinite(weight)) {
        throw new RangeError(`rubric: expected a finite weight of "${name}", got ${describeValue(weight)}`);
      }
    }
    // Summed up in the order of their names: the reward does not depend on the order in which they were given.
    this.#parts = [...parts].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Scores an episode by all parts, which are computed at once.
   * @throws {Error} naming the first part that failed
   */
  async score(episode: E): Promise<RubricScore> {
    const scores = await Promise.all(this.#parts.map((part) => scorePart(part, episode)));
    const reward = this.#parts.reduce((sum, { weight = 1 }, i) => sum + weight * scores[i]!, 0);
    return { reward, metrics: Object.fromEntries(this.#parts.map(({ name }, i) => [name, scores[i]!])) };
  }
}

async function scorePart<E>(part: RewardPart<E>, episode: E): Promise<number> {
  let score: number | boolean;
  try {
    score = await part.score(episode);
  } catch (thrown) {
    const message = `the part "${part.name}" of the reward failed: ${messageOf(thrown)}`;
    // The code stays: a server that does not answer is another failure than a bug.
    if (thrown instanceof LongplayError) throw new LongplayError(thrown.code, message, { cause: thrown });
    throw new Error(message, { cause: thrown });
  }
  const number = typeof score === 'boolean' ? Number(score) : score;
  if (Number.isFinite(number)) return number;
  throw new TypeError(
    `the part "${part.name}" of the reward: expected a finite number or a boolean, got ${describeValue(score)}`,
  );
}
