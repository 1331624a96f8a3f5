/** Verdicts of preflight: rows from facts. Pure. Each row says what was found, and in one sentence what to do. */
import { duration, mean, percent } from '../../console/numbers.ts';
import { largestOf } from '../../core/extremes.ts';
import { cureOf, type FailureCause } from '../../core/failure.ts';
import { firstLineOf } from '../../core/first-line.ts';
import { episodeReturn, type Trajectory, turnsUsed } from '../../core/trajectory.ts';
import type { Estimated } from '../../learning/evaluation/intervals.ts';
import { averageOverSeeds, compareUnpaired } from '../../learning/evaluation/over-seeds.ts';
import type { Rule } from '../../policy/rule-policy.ts';
import { explainReturn, groupsOf, measureMixedShare, type Play, type PlayFacts, summarisePlay } from './episodes.ts';
import type { Estimate, EstimateInput } from './estimate.ts';

/** Verdict: go on, look at it before money is spent, or do not start. */
export type Verdict = 'ok' | 'look' | 'stop';

/** Row of the report. */
export interface Row {
  readonly part: 'plays' | 'rules' | 'toy' | 'policy' | 'estimate';
  readonly name: string;
  readonly verdict: Verdict;
  /** Finding, with its numbers. */
  readonly found: string;
  /** One sentence: what to do. */
  readonly advice: string;
}

const GO_ON = 'Nothing to do.';

/** Number in three digits, without an exponent where it is large. */
export function brief(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

const interval = ({ value, low, high }: Estimated) =>
  Number.isFinite(low) ? `${brief(value)} [${brief(low)}, ${brief(high)}]` : brief(value);

/** Share of failed attempts from which a run is not worth its start: every second episode. */
const FAILED_STOP = 0.5;

/** Judges the play at random: what fails, and what an episode is. @param env id of the world */
export function judgePlay(random: Play, env: string): readonly Row[] {
  const facts = summarisePlay(random);
  return [judgeFailures(random, facts, env), ...(facts.episodes === 0 ? [] : [judgeRandom(facts)])];
}

function judgeFailures({ failed, failure }: Play, { episodes, failed: count }: PlayFacts, env: string): Row {
  const row = { part: 'plays', name: 'failures' } as const;
  const causes = Object.entries(failed) as [FailureCause, number][];
  const [worst] = causes.sort((a, b) => b[1] - a[1]);
  if (!worst && episodes > 0) {
    return { ...row, verdict: 'ok', found: `${episodes} episodes at random, none failed`, advice: GO_ON };
  }
  if (!worst) {
    const why = failure === undefined ? 'none was finished within the time' : firstLineOf(failure);
    return { ...row, verdict: 'stop', found: `no episode: ${why}`, advice: 'Make it play, or give more --minutes.' };
  }
  const listed = causes.map(([cause, n]) => `${cause} ${n}`).join(', ');
  const last = failure === undefined ? '' : `; the last: ${firstLineOf(failure)}`;
  const found = `${count} of ${count + episodes} attempts failed (${listed})${last}`;
  if (worst[0] === 'policy' && episodes === 0) {
    return {
      ...{ ...row, verdict: 'look', found },
      advice: 'Nothing is listed to choose from, so only a language model can play: read the rows of the policy.',
    };
  }
  const verdict = count / (count + episodes) >= FAILED_STOP ? 'stop' : 'look';
  return { ...row, verdict, found, advice: `Mend what fails first: ${cureOf(worst[0], env)}.` };
}

function judgeRandom({ success, meanReturn, turns, truncated, secondsPerStep, episodes }: PlayFacts): Row {
  const found = `success ${percent(success)}, return ${brief(meanReturn)}, ${brief(turns)} turns, ${percent(truncated)} cut by the horizon, ${brief(secondsPerStep)} s an env step, ${episodes} episodes`;
  const row = { part: 'plays', name: 'random', found } as const;
  if (success > 0.8) {
    return { ...row, verdict: 'look', advice: 'Chance nearly solves it: take harder tasks, or a stricter success.' };
  }
  return { ...row, verdict: 'ok', advice: GO_ON };
}

/**
 * Judges the horizon beside the oracle, which played with many more turns: a task whose solver needs more turns than the horizon
 * has cannot be solved. @param oracle play of the world's solver
 */
export function judgeHorizon(oracle: Play, horizon: number): Row {
  const row = { part: 'plays', name: 'horizon' } as const;
  const solved = oracle.episodes.filter(({ success }) => success).map(({ turns }) => turnsUsed(turns));
  if (solved.length === 0) {
    const found = `the oracle solved none of ${oracle.episodes.length} tasks`;
    return {
      ...row,
      verdict: 'look',
      found,
      advice: 'See that the oracle and the reward agree: play a task by longplay play, where hint asks the oracle.',
    };
  }
  const beyond = solved.filter((turns) => turns > horizon).length;
  const longest = largestOf(solved);
  const found = `${horizon} turns; the oracle takes ${brief(mean(solved))}, at most ${longest}; ${beyond} of ${solved.length} tasks need more than the horizon`;
  if (beyond === 0) return { ...row, verdict: 'ok', found, advice: GO_ON };
  const advice = `Raise the horizon (to ${longest} for all), or leave out the tasks that cannot be solved.`;
  return { ...row, verdict: beyond > solved.length / 2 ? 'stop' : 'look', found, advice };
}

/** Play of a rule. */
export interface RulePlay {
  readonly rule: Rule;
  readonly play: Play;
}

/** Descriptions of the rules. */
const RULE_TEXTS: Readonly<Record<Rule, string>> = {
  first: 'always the first listed action',
  last: 'always the last listed action',
  same: 'the same action again and again',
  empty: 'an empty reply',
  word: 'a reply of one word',
  end: 'ends at once',
};

/**
 * Judges trivial rules: the audit of a reward that can be had without skill. A rule is looked at where it comes more than half of the
 * way from random play to the best that was seen, in return or in success, beyond what the noise allows.
 * @param others plays of the oracle and of the trained toy, where there are some
 */
export function judgeRules(random: Play, rules: readonly RulePlay[], others: readonly Play[]): readonly Row[] {
  const plays = [random, ...rules.map(({ play }) => play), ...others].filter(({ episodes }) => episodes.length > 0);
  const measures = [
    (episode: Trajectory) => episodeReturn(episode),
    (episode: Trajectory) => (episode.success ? 1 : 0),
  ];
  const base = summarisePlay(random);
  return rules.map(({ rule, play }) => {
    const { success, meanReturn, episodes, failed } = summarisePlay(play);
    const row = { part: 'rules', name: rule } as const;
    if (episodes === 0) {
      const found = `${RULE_TEXTS[rule]}: no episode finished${failed > 0 ? `, ${failed} failed` : ''}`;
      return { ...row, verdict: 'ok', found, advice: GO_ON };
    }
    const isClose = measures.some((measure) => {
      const [own, chance] = [play.episodes.map(measure), random.episodes.map(measure)];
      const best = largestOf(plays.map((one) => mean(one.episodes.map(measure))));
      const from = chance.length > 0 ? mean(chance) : 0;
      if (!(mean(own) - from > 0.5 * (best - from)) || best <= from) return false;
      return own.length < 2 || chance.length < 2 || compareUnpaired(own, chance).low > 0;
    });
    const found = `${RULE_TEXTS[rule]}: success ${percent(success)}, return ${brief(meanReturn)} (random ${percent(base.success)}, ${brief(base.meanReturn)})`;
    if (!isClose) return { ...row, verdict: 'ok', found, advice: GO_ON };
    const advice =
      'It earns more than half of the way to the best seen, without skill: change the reward, the tasks or the order of the list.';
    return { ...row, verdict: 'look', found, advice };
  });
}

/** Groups below which a first and a last tenth say nothing: two of each. */
const MIN_GROUPS = 20;
/** Share of mixed groups below which most of the play teaches nothing. */
const MIN_MIXED = 0.2;
/** Ratio of turns, last tenth to first, that is a drift. */
const DRIFT = 1.5;

/**
 * Judges the training of a toy policy: groups with a signal, learning, drift of the length.
 * @param toy its episodes, in the order in which they finished
 * @param before plays before it, to tell a world that never rewards from one that a beginner does not solve
 */
export function judgeToy(toy: Play, before: readonly Play[]): readonly Row[] {
  const groups = groupsOf(toy.episodes);
  const everything = [toy, ...before].flatMap(({ episodes }) => episodes);
  const rows: Row[] = [judgeSignal(groups, everything, toy.failure)];
  if (groups.length === 0) return rows;
  const tenth = Math.floor(groups.length / 10);
  const ends = groups.length < MIN_GROUPS ? undefined : ([groups.slice(0, tenth), groups.slice(-tenth)] as const);
  rows.push(judgeLearning(ends, groups.length));
  if (ends) rows.push(judgeLength(ends));
  return rows;
}

type Groups = readonly (readonly Trajectory[])[];

function judgeSignal(groups: Groups, everything: readonly Trajectory[], failure: string | undefined): Row {
  const row = { part: 'toy', name: 'signal' } as const;
  // What a beginner meets counts too: groups of a toy that has learnt it are all alike.
  const start = measureMixedShare(groups.slice(0, MIN_GROUPS));
  const share = measureMixedShare(groups);
  const returns = new Set(everything.map(episodeReturn));
  if (everything.length > 1 && returns.size === 1) {
    const found = `all of ${everything.length} episodes, of every policy tried, have return ${brief([...returns][0]!)}`;
    const advice = 'No difference, nothing to learn: see that the reward is given, or take easier tasks.';
    return { ...row, verdict: 'stop', found, advice };
  }
  if (groups.length === 0) {
    const found = `the toy finished no group${failure === undefined ? '' : `: ${firstLineOf(failure)}`}`;
    return { ...row, verdict: 'look', found, advice: 'Give more --minutes, or a smaller rollout.groupSize.' };
  }
  const found = `${percent(share)} of ${groups.length} groups have different returns, ${percent(start)} of the first ${MIN_GROUPS}`;
  if (Math.max(share, start) >= MIN_MIXED) return { ...row, verdict: 'ok', found, advice: GO_ON };
  const advice =
    'Few groups teach: raise rollout.groupSize, take other tasks (tasks.sampling type learnable), or begin by warmStart.';
  return { ...row, verdict: 'look', found, advice };
}

function judgeLearning(ends: readonly [Groups, Groups] | undefined, count: number): Row {
  const row = { part: 'toy', name: 'learning' } as const;
  if (!ends) {
    const found = `${count} groups are too few for a first and a last tenth, which need ${MIN_GROUPS}`;
    return { ...row, verdict: 'look', found, advice: 'Give more --minutes.' };
  }
  // Episodes of a group share their task: the group is the unit.
  const [first, last] = ends.map((groups) => groups.map((group) => mean(group.map(episodeReturn)))) as [
    number[],
    number[],
  ];
  const { low, high } = compareUnpaired(last, first);
  const found = `return ${interval(averageOverSeeds(first))} in the first tenth of ${count} groups, ${interval(averageOverSeeds(last))} in the last`;
  if (low > 0) return { ...row, verdict: 'ok', found, advice: 'It can be learnt from.' };
  if (high < 0) {
    return {
      ...row,
      verdict: 'look',
      found,
      advice: 'It got worse: lower learner.learningRate before you scale it up.',
    };
  }
  const solved = mean(ends[1].flat().map(({ success }) => (success ? 1 : 0)));
  if (solved > 0.9) return { ...row, verdict: 'ok', found, advice: 'It is nearly solved already: take harder tasks.' };
  const advice = 'No learning beyond the noise: give more --minutes, or begin by easier tasks or a better view.';
  return { ...row, verdict: 'look', found, advice };
}

function judgeLength([first, last]: readonly [Groups, Groups]): Row {
  const row = { part: 'toy', name: 'length' } as const;
  const [from, to] = [first, last].map((groups) => mean(groups.flat().map(({ turns }) => turnsUsed(turns)))) as [
    number,
    number,
  ];
  const [was, is] = [first, last].map((groups) => mean(groups.flat().map(episodeReturn))) as [number, number];
  const found = `${brief(from)} turns in the first tenth, ${brief(to)} in the last`;
  const isDrift = to / from > DRIFT || from / to > DRIFT;
  if (!isDrift || is > was) return { ...row, verdict: 'ok', found, advice: GO_ON };
  const advice = 'Episodes change their length without earning more: see what the reward pays for in longplay view.';
  return { ...row, verdict: 'look', found, advice };
}

/** Share of the variance that one part explains to dominate, and the share that the next one does not reach then. */
const DOMINATES = 0.8;
const LEFT_OVER = 0.2;

/** Judges the parts of the reward; no row where episodes report fewer than two numbers. */
export function judgeParts(plays: readonly Play[]): readonly Row[] {
  const parts = explainReturn(plays.flatMap(({ episodes }) => episodes));
  const [top, next] = parts;
  if (!top || !next) return [];
  const row = { part: 'toy', name: 'parts' } as const;
  const list = parts.slice(0, 6).map(({ name, explains }) => `${name} ${percent(explains)}`);
  const found = `of the return's variance ${list.join(', ')}`;
  if (top.explains < DOMINATES || next.explains > LEFT_OVER) return [{ ...row, verdict: 'ok', found, advice: GO_ON }];
  const advice = `${top.name} alone decides the return: if that is not what you train for, weigh the parts anew.`;
  return [{ ...row, verdict: 'look', found, advice }];
}

/** Tokens of a language model's episodes, by its own tokenizer and prompt. */
export interface TokenFacts {
  /** Source: episodes that the model played, or the random ones, read as the model would. */
  readonly from: 'played' | 'read';
  readonly episodes: number;
  readonly perTurn: number;
  readonly perEpisode: number;
  /** Longest context that a turn was decided in, room for an answer included. */
  readonly longest: number;
  readonly contextTokens: number;
  /** Share of turns that did not fit. */
  readonly refused: number;
}

/** Judges the tokens of a model's episodes. */
export function judgeTokens(facts: TokenFacts): Row {
  const { from, episodes, perTurn, perEpisode, longest, contextTokens, refused } = facts;
  const source = from === 'played' ? 'episodes that it played' : 'random episodes read by its tokenizer';
  const found = `${brief(perTurn)} tokens a turn, ${brief(perEpisode)} an episode, longest context with an answer ${brief(longest)} of ${brief(contextTokens)}, ${episodes} ${source}`;
  const row = { part: 'policy', name: 'tokens', found } as const;
  if (refused === 0 && longest <= contextTokens) return { ...row, verdict: 'ok', advice: GO_ON };
  const advice = `${percent(refused)} of turns do not fit: raise policy.chat.contextTokens, or lower policy.maxTokens or the horizon.`;
  return { ...row, verdict: refused > 0.5 ? 'stop' : 'look', advice };
}

/** Answers of a model's turns: those that name an action, and a listed one. */
export interface AnswerFacts {
  readonly episodes: number;
  readonly turns: number;
  readonly read: number;
  readonly listed: number;
  readonly solved: number;
}

/** Judges what the model answers. @param isListing false where the world lists nothing, so that any action is one */
export function judgeAnswers({ episodes, turns, read, listed, solved }: AnswerFacts, isListing: boolean): Row {
  const of = (n: number) => percent(n / turns);
  const names = isListing
    ? `${of(read)} of answers name an action, ${of(listed)} a listed one`
    : `${of(read)} of answers name an action`;
  const row = { part: 'policy', name: 'answers', found: `${names}; ${solved} of ${episodes} episodes solved` } as const;
  if ((isListing ? listed : read) >= turns / 2) return { ...row, verdict: 'ok', advice: GO_ON };
  const advice =
    'Let only listed actions be answered (policy.masked), or imitate first (warmStart.episodes, or longplay sft).';
  return { ...row, verdict: 'look', advice };
}

/** Judges memory: the base, a learner beside it, and the memory of this machine. @param bytes base and learner */
export function judgeMemory(bytes: number, total: number, what: string): Row {
  const mib = (n: number) => `${Math.round(n / 2 ** 20).toLocaleString('en-US')} MiB`;
  const found = `${mib(bytes)} computed for ${what}, this machine has ${mib(total)}`;
  const row = { part: 'policy', name: 'memory', found } as const;
  const advice =
    'Take policy.quantize, learner.recompute or fewer policy.adapter.topLayers; see longplay models --memory.';
  if (bytes > total) return { ...row, verdict: 'stop', advice };
  return bytes > 0.7 * total ? { ...row, verdict: 'look', advice } : { ...row, verdict: 'ok', advice: GO_ON };
}

/** Hours of a run here from which it is looked at. */
const LONG_HOURS = 48;

/** Judges the estimate of the whole run on this machine. */
export function judgeEstimate(estimate: Estimate, input: EstimateInput): Row {
  const row = { part: 'estimate', name: 'this machine' } as const;
  const { updates, episodes, tokens, secondsPerUpdate, seconds, endedBy } = estimate;
  if (secondsPerUpdate === undefined && seconds === undefined) {
    const found = 'no update was measured';
    return {
      ...row,
      verdict: 'look',
      found,
      advice: 'Give more --minutes; without a measured update there is no estimate.',
    };
  }
  const perUpdate =
    input.update?.from === 'tokens'
      ? `${brief(secondsPerUpdate ?? Number.NaN)} s an update, computed: tokens × (1 + 3 × ${input.epochs} epochs) / ${brief(input.update.tokensPerSecond)} tokens/s measured`
      : `${brief(secondsPerUpdate ?? Number.NaN)} s an update, measured`;
  const size = [
    ...(updates === undefined ? [] : [`${brief(updates)} updates (ended by stop.${endedBy})`]),
    ...(episodes === undefined ? [] : [`${brief(episodes)} episodes`]),
    ...(tokens === undefined ? [] : [`${brief(tokens)} tokens`]),
  ];
  const found = `${[...size, perUpdate].join(', ')}; the whole run ${seconds === undefined ? '–' : duration(seconds)} here`;
  if (seconds !== undefined && seconds > 3600 * LONG_HOURS) {
    return {
      ...row,
      verdict: 'look',
      found,
      advice: 'Days on this machine: take a smaller model, a shorter stop, or --hardware.',
    };
  }
  return { ...row, verdict: 'ok', found, advice: GO_ON };
}

/** Exit code of rows: 1 where one of them says stop, else 0. */
export function exitCodeOf(rows: readonly Row[]): 0 | 1 {
  return rows.some(({ verdict }) => verdict === 'stop') ? 1 : 0;
}
