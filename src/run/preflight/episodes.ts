/** Facts of played episodes that preflight's verdicts are made of. Pure. */
import { mean } from '../../console/numbers.ts';
import { readReport } from '../../core/agent-call.ts';
import { countFailed, type FailureCause } from '../../core/failure.ts';
import { episodeReturn, type Trajectory, turnsUsed } from '../../core/trajectory.ts';

/** Play: episodes that one policy played, and those that failed. */
export interface Play {
  readonly episodes: readonly Trajectory[];
  /** Failed attempts by cause. */
  readonly failed: Readonly<Partial<Record<FailureCause, number>>>;
  /** Message of the last failure, or of what ended the play; absent where nothing failed. */
  readonly failure?: string | undefined;
  /** Seconds by the clock, the start of the hosts left out. */
  readonly seconds: number;
  /** Tokens that the policy computed. */
  readonly tokens: number;
}

/** Facts of a play, averaged over its episodes; NaN where there is none. */
export interface PlayFacts {
  readonly episodes: number;
  readonly failed: number;
  readonly success: number;
  readonly meanReturn: number;
  /** Mean turns of the horizon that an episode used. */
  readonly turns: number;
  /** Mean turns of a solved episode. */
  readonly turnsSolved: number;
  /** Share of episodes that the horizon cut. */
  readonly truncated: number;
  /** Mean seconds from an action to the env's answer. */
  readonly secondsPerStep: number;
}

/** Sums up a play. */
export function summarisePlay(play: Play): PlayFacts {
  const { episodes } = play;
  const solved = episodes.filter(({ success }) => success);
  const used = (of: readonly Trajectory[]) => mean(of.map(({ turns }) => turnsUsed(turns)));
  return {
    episodes: episodes.length,
    failed: countFailed(play),
    success: solved.length / episodes.length,
    meanReturn: mean(episodes.map(episodeReturn)),
    turns: used(episodes),
    turnsSolved: used(solved),
    truncated: mean(episodes.map(({ end }) => (end === 'truncated' ? 1 : 0))),
    secondsPerStep: mean(episodes.flatMap(({ turns }) => turns.map(({ envMs }) => envMs / 1000))),
  };
}

/** Groups of episodes by their group's number, in the order in which they finished. */
export function groupsOf(episodes: readonly Trajectory[]): readonly (readonly Trajectory[])[] {
  const groups = new Map<number, Trajectory[]>();
  for (const episode of episodes) {
    const group = groups.get(episode.group);
    if (group) group.push(episode);
    else groups.set(episode.group, [episode]);
  }
  return [...groups.values()];
}

/** Share of groups of two or more whose returns differ, which alone teach something; NaN without such a group. */
export function measureMixedShare(groups: readonly (readonly Trajectory[])[]): number {
  const compared = groups.filter(({ length }) => length > 1);
  return mean(compared.map((group) => (new Set(group.map(episodeReturn)).size > 1 ? 1 : 0)));
}

/** Part of a reward: a number that episodes report, and the share of the return's variance that it explains. */
export interface PartFacts {
  readonly name: string;
  readonly mean: number;
  /** Squared correlation with the return, in [0, 1]; 0 for a constant. */
  readonly explains: number;
}

/**
 * Measures how much each reported number explains of the return: r² of one number alone, so that shares of correlated parts add up
 * to more than 1. Episodes that report nothing count as 0 of it. A number that always equals the return is left out.
 */
export function explainReturn(episodes: readonly Trajectory[]): readonly PartFacts[] {
  const returns = episodes.map(episodeReturn);
  const reports = episodes.map(({ finalObservation }) => readReport(finalObservation).metrics);
  const names = [...new Set(reports.flatMap((report) => Object.keys(report)))];
  return names
    .map((name) => ({ name, values: reports.map((report) => report[name] ?? 0) }))
    .filter(({ values }) => values.some((value, i) => Math.abs(value - returns[i]!) > 1e-9))
    .map(({ name, values }) => ({ name, mean: mean(values), explains: squaredCorrelation(values, returns) }))
    .sort((a, b) => b.explains - a.explains);
}

/** Squared correlation of two lists of the same length; 0 where one of them is constant. */
function squaredCorrelation(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  a.forEach((value, i) => {
    ab += (value - meanA) * (b[i]! - meanB);
    aa += (value - meanA) ** 2;
    bb += (b[i]! - meanB) ** 2;
  });
  return aa > 1e-12 && bb > 1e-12 ? (ab * ab) / (aa * bb) : 0;
}
