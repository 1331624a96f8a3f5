/**
 * Admission: the number of groups that may start now, so that hardly any is too old when the learner reaches it. Beside
 * it stands a hard check: none that is too old is ever trained on.
 *
 * Lag is the learner's version at the moment of training minus the version that produced a decision. The pace alone
 * keeps lag ≤ maxLag as long as groups are consumed in the order in which they were started. Groups finish in another
 * order, so a slow one can be overtaken: it then fails `withinLag` and counts as stale. Both are needed; the second
 * alone bounds the lag.
 */
import { UserError } from '../../core/errors.ts';
import { type Group, oldestVersion, type Trajectory, versionRuns } from '../../core/trajectory.ts';

export interface AdmissionInput {
  /** K, in updates, ≥ 0. At 0 the run is synchronous: every token is trained by the version that sampled it. */
  readonly maxLag: number;
  /** The learner's policy version: updates seen. */
  readonly version: number;
  /** Groups one update consumes, ≥ 1. */
  readonly groupsPerUpdate: number;
  /**
   * `groupsPerUpdate` for each update that made `version`, plus groups finished and waiting for one. Stale, failed and
   * quarantined groups are not among them: they have to be replaced.
   */
  readonly accepted: number;
  /** Groups started and not finished. */
  readonly running: number;
  /** Groups waiting for an update that it will leave out and that are to be replaced (dynamic sampling); default 0. */
  readonly uninformative?: number;
  /** Most groups one update consumes, ≥ groupsPerUpdate, by default that: then nothing is replaced. */
  readonly maxPerUpdate?: number;
  /** Most groups running at once, for memory's sake; unbounded when absent. */
  readonly maxRunning?: number;
}

/**
 * Groups that may start now:
 *
 *   min(maxRunning − running, (maxLag + version + 1)·groupsPerUpdate − (accepted + running)), at least 0
 *
 * With dynamic sampling groups without a signal do not count towards the batch, and what the next updates may consume
 * bounds all (updates that end at that bound train on fewer, so with maxLag > 0 a few groups may then come too late):
 *
 *   min(maxRunning − running,
 *       (maxLag + version + 1)·groupsPerUpdate − (accepted − uninformative + running),
 *       (maxLag + 1)·maxPerUpdate + version·groupsPerUpdate − (accepted + running)), at least 0
 *
 * Counted from the whole run's totals, so it holds unchanged after a resume as long as those come from the checkpoint.
 *
 * @throws {UserError} BAD_ARGUMENT for a count that is negative or not whole
 * @see Fu et al. 2025 (AReaL), staleness control. https://arxiv.org/abs/2505.24298
 */
export function groupsToStart(input: AdmissionInput): number {
  const { maxLag, version, groupsPerUpdate, accepted, running } = input;
  const { uninformative = 0, maxPerUpdate = groupsPerUpdate, maxRunning = Number.MAX_SAFE_INTEGER } = input;
  const counts = { maxLag, version, groupsPerUpdate, accepted, running, uninformative, maxPerUpdate, maxRunning };
  for (const [name, value] of Object.entries(counts)) {
    const least = name === 'groupsPerUpdate' ? 1 : name === 'maxPerUpdate' ? groupsPerUpdate : 0;
    if (!Number.isSafeInteger(value) || value < least) {
      throw new UserError('BAD_ARGUMENT', `admission: ${name} must be a whole number in range, got ${value}`);
    }
  }
  const consumed = version * groupsPerUpdate;
  const informative = consumed + (maxLag + 1) * groupsPerUpdate - (accepted - uninformative + running);
  const all = consumed + (maxLag + 1) * maxPerUpdate - (accepted + running);
  return Math.max(0, Math.min(maxRunning - running, informative, all));
}

/**
 * Largest lag among a trajectory's decisions, in updates; `undefined` when no versioned policy decided anything.
 * Negative when a decision comes from a version that was rolled back.
 */
export function lagOf(trajectory: Trajectory, version: number): number | undefined {
  const oldest = oldestVersion(trajectory);
  return oldest === undefined ? undefined : version - oldest;
}

/**
 * True when every decision of a trajectory, and every token of a run, may be trained on by a learner at `version`:
 * 0 ≤ lag ≤ maxLag for each.
 * A decision from the future (its weights were rolled back) belongs to a policy that no longer exists.
 */
export function isWithinLag(trajectory: Trajectory, version: number, maxLag: number): boolean {
  for (const { decision } of trajectory.turns) {
    if (!decision) continue;
    for (const run of versionRuns(decision)) {
      if (run.version > version || version - run.version > maxLag) return false;
    }
  }
  return true;
}

/** `withinLag` for all of a group: a group is trained whole or not at all, or its baseline would change. */
export function groupWithinLag(group: Group, version: number, maxLag: number): boolean {
  return group.trajectories.every((trajectory) => isWithinLag(trajectory, version, maxLag));
}

/**
 * Lag (least, mean and largest) of what groups are trained on, in updates: of every token of a run, a choice counting
 * as one.
 */
export function lagOfTokens(
  groups: readonly Group[],
  version: number,
): { readonly min: number; readonly mean: number; readonly max: number } {
  let min = Number.POSITIVE_INFINITY;
  let max = 0;
  let sum = 0;
  let count = 0;
  for (const { trajectories } of groups) {
    for (const { turns } of trajectories) {
      for (const run of turns.flatMap(({ decision }) => (decision ? versionRuns(decision) : []))) {
        const lag = version - run.version;
        min = Math.min(min, lag);
        max = Math.max(max, lag);
        sum += lag * run.tokens;
        count += run.tokens;
      }
    }
  }
  return count === 0 ? { min: 0, mean: 0, max: 0 } : { min, mean: sum / count, max };
}
