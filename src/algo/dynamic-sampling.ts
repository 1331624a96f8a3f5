/**
 * Dynamic sampling of DAPO: groups in which every trajectory scored the same teach a group-relative method nothing.
 * They are left out of the update, and others are sampled in their place until the update is full.
 *
 * @see Yu et al. 2025 (DAPO), §3.2. https://arxiv.org/abs/2503.14476
 */
import type { Group } from '../core/trajectory.ts';
import { configFor, scores, type WorldEstimators } from './advantages.ts';
import { type EstimatorConfig, estimatorOf } from './estimators.ts';

/** Groups worth training on, and those left out on purpose (they count as filtered). */
export interface FilteredGroups {
  readonly kept: readonly Group[];
  readonly filtered: readonly Group[];
}

/**
 * True when a group's scores differ, so that comparing them is informative: largest − smallest > tolerance. Scores that
 * are not finite count as a signal: the circuit breaker has to see them.
 *
 * @param tolerance in units of the score; sums of the same rewards in another order may differ in the last bits
 */
export function hasSignal(scores: ArrayLike<number>, tolerance = 1e-9): boolean {
  let least = Number.POSITIVE_INFINITY;
  let largest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < scores.length; i++) {
    if (!Number.isFinite(scores[i]!)) return true;
    least = Math.min(least, scores[i]!);
    largest = Math.max(largest, scores[i]!);
  }
  return largest - least > tolerance;
}

/**
 * Leaves out groups in which every trajectory scored the same, whose group-relative advantages are all zero.
 *
 * @param scoresOf scores as the estimator compares them, e.g. `scores` of advantages.ts: under γ < 1 successes of
 *   different lengths differ
 */
export function filterBySignal(
  groups: readonly Group[],
  scoresOf: (group: Group) => ArrayLike<number>,
): FilteredGroups {
  const kept: Group[] = [];
  const filtered: Group[] = [];
  for (const group of groups) (hasSignal(scoresOf(group)) ? kept : filtered).push(group);
  return { kept, filtered };
}

/** Settings that decide which groups are left out. */
export interface Filtering {
  readonly estimator: EstimatorConfig;
  /** Estimators of the worlds of a run of several. */
  readonly worlds?: WorldEstimators | undefined;
  /** Leaves out groups whose members all scored the same when true. */
  readonly filterGroups: boolean;
  readonly kl?: { readonly in: 'loss' | 'reward' } | undefined;
  /** Present where a teacher scores decisions. */
  readonly distillation?: object | undefined;
  /** Weight of the loss on the world's tokens. */
  readonly observationCoef?: number | undefined;
}

/**
 * True when groups are left out at all: only an estimator that compares whole trajectories learns nothing from equal
 * scores. One that compares turns (`credit: 'turn'`, GiGPO) may find a signal in them, and a critic needs no comparison. A
 * teacher, and the world's tokens, teach whatever the scores.
 */
export function filtersGroups({ estimator, filterGroups, distillation, observationCoef }: Filtering): boolean {
  if (distillation || observationCoef !== undefined) return false;
  return filterGroups && estimatorOf(estimator).comparesTrajectories(estimator);
}

/**
 * True when an update will train on a group, judged by its trajectories alone. What the learner has to measure first
 * (KL in the reward, the value at a cut) sets scores apart, so such groups count as informative. One of them may still
 * be left out, and is then not replaced.
 */
export function isInformative(group: Group, filtering: Filtering): boolean {
  if (!filtersGroups(filtering)) return true;
  const { estimator, worlds, kl } = filtering;
  const cut = group.trajectories.some(({ end }) => end === 'truncated');
  const measured = kl?.in === 'reward' || (estimator.truncation === 'bootstrap' && cut);
  return measured || hasSignal(scores(group, configFor(group, estimator, worlds)));
}

/** Number of groups an update takes. */
export interface BatchSize {
  /** Groups with a signal that an update is meant to have, ≥ 1. */
  readonly groupsPerUpdate: number;
  /**
   * Groups that an update may consume while it looks for them, in units of `groupsPerUpdate`; whole, ≥ 1. At 1 what is left
   * out is not replaced. The bound is what ends a world in which every group is solved, or none.
   */
  readonly oversampling: number;
}

/** Largest number of groups that one update consumes. */
export function maxGroups({ groupsPerUpdate, oversampling }: BatchSize): number {
  return oversampling * groupsPerUpdate;
}

/**
 * Next batch, the groups of the next update in order of arrival: the fewest that hold `groupsPerUpdate` with a signal,
 * or as many as an update may consume.
 *
 * @param waiting in order of arrival
 * @returns the first of `waiting`; undefined while too few have arrived
 */
export function nextBatch(
  waiting: readonly Group[],
  size: BatchSize,
  informative: (group: Group) => boolean,
): Group[] | undefined {
  const most = maxGroups(size);
  let found = 0;
  for (const [i, group] of waiting.entries()) {
    if (informative(group)) found++;
    if (found === size.groupsPerUpdate || i + 1 === most) return waiting.slice(0, i + 1);
  }
  return undefined;
}
