/**
 * Prepares a batch for its first optimiser step: encodes it, estimates advantages, and measures what its trajectories
 * do not record (the reference policy, the learner itself, values at the cut).
 */
import { type Estimate, type Extras, estimate } from '../../algo/advantages.ts';
import { aggregationWeights } from '../../algo/aggregate.ts';
import { computeTeacherGain } from '../../algo/distillation.ts';
import { estimatorOf } from '../../algo/estimators.ts';
import { type Importance, importance } from '../../algo/importance.ts';
import { klEstimate } from '../../algo/kl.ts';
import type { OffPolicy } from '../../algo/off-policy.ts';
import { sharesRatio } from '../../algo/policy-loss.ts';
import { maskSecondMoment } from '../../algo/second-moment.ts';
import { type Breakage, firstNotFinite } from '../../compute/finite.ts';
import type { ParamSet } from '../../compute/model/parameters.ts';
import type { Group, Trajectory } from '../../core/trajectory.ts';
import { replayTurns } from '../../text/reading/replay-turns.ts';
import { finalValues, type Measuring, measure } from './measure.ts';
import type { TrainerOptions } from './options.ts';
import { type Remembered, surplusOf } from './self-imitation.ts';
import type { Teacher, TeacherScores } from './teacher.ts';
import { type DecisionFeed, decisionsOf, type TrainDecision, type TrainGroup, trainUnits } from './training-batch.ts';

/** Learner at the start of an update. */
export interface Learning {
  readonly options: TrainerOptions;
  readonly params: ParamSet;
  /** The reference policy's weights; present where the options have `kl`. */
  readonly reference: ParamSet | undefined;
  /** β now; 0 without `kl`. */
  readonly klCoefficient: number;
  /** Teacher, present where the options have `distillation`. */
  readonly teacher?: Teacher | undefined;
  /** Program to measure with, present where anything has to be measured. */
  readonly measuring: Measuring | undefined;
}

/** Prepared groups, with everything known of their decisions. */
export interface Prepared {
  /** Units that minibatches are made of. */
  readonly units: readonly (readonly TrainGroup[])[];
  /** Estimates in the order of the groups' trajectories, then those of remembered episodes. */
  readonly estimates: readonly Estimate[];
  /** Number of trajectories that the policy played for this update; what follows them is remembered, and no example to the critic. */
  readonly played: number;
  /** Remembered episodes as they measure now. */
  readonly imitated: readonly Remembered[];
  readonly facts: ReadonlyMap<TrainDecision, DecisionFacts>;
  readonly stats: Readonly<Record<string, number>>;
}

interface DecisionFacts {
  /** log π of the policy that the surrogate's ratio is taken against. */
  readonly old: number;
  readonly reference: number;
  /** Truncated or masked importance weight, a constant of the update. */
  readonly importance: number;
  /** Gain of a token by its teacher, added to its advantage. */
  readonly gain?: number | undefined;
  /** Teacher's log-probabilities of the allowed actions of a choice. */
  readonly teacher?: Float32Array | undefined;
}

export type ExtrasOf = (one: Trajectory) => Extras | undefined;

/** Value at the cut, and β·KL of the decisions, as far as the options ask for them. */
export async function extrasOf(learning: Learning, groups: readonly Group[]): Promise<ExtrasOf> {
  const { options, params, reference, klCoefficient, measuring } = learning;
  const { estimator, kl, minibatches } = options;
  if (kl?.in !== 'reward' && estimator.truncation !== 'bootstrap') return () => undefined;
  const all = groups.flatMap(({ trajectories }) => trajectories);
  const cutOff = estimator.truncation === 'bootstrap' ? all.filter(({ end }) => end === 'truncated') : [];
  const finals = await finalValues(measuring!, params, cutOff, minibatches);
  const penalties = new Map<Trajectory, Float64Array>();
  if (kl?.in === 'reward') {
    const units = encode(options, groups);
    const decisions = decisionsOf(units.flat());
    const { logprobs } = await measure(measuring!, reference!, units, minibatches);
    for (const one of all) penalties.set(one, new Float64Array(one.turns.length));
    decisions.forEach(({ trajectory, turn, logprob }, i) => {
      penalties.get(all[trajectory]!)![turn]! += klCoefficient * klEstimate(kl.estimator, logprob, logprobs[i]!);
    });
  }
  return (one) => {
    const finalValue = finals.get(one);
    const penalty = penalties.get(one);
    return { ...(finalValue === undefined ? {} : { finalValue }), ...(penalty ? { penalty } : {}) };
  };
}

/**
 * Estimates over all groups at once (some estimators whiten over the batch), and measures their decisions.
 * @param memory remembered episodes that are trained on besides (self-imitation.ts)
 */
export async function prepare(
  learning: Learning,
  groups: readonly Group[],
  extras: ExtrasOf,
  memory: readonly Remembered[] = [],
): Promise<Prepared | { readonly broken: Breakage }> {
  const { options, params, measuring, teacher } = learning;
  const { estimator, worlds, offPolicy, kl, distillation, minibatches } = options;
  const units = encode(options, groups);
  const { needsAnchors, objective } = estimatorOf(estimator);
  const anchors = needsAnchors ? situationsOf(options, groups) : undefined;
  const estimated = estimate(groups, estimator, extras, anchors, worlds);
  const estimates = distillation && !distillation.useRewards ? estimated.map(withoutAdvantages) : estimated;
  for (const { trajectory, advantages, returns } of estimates) {
    const bad = firstNotFinite(advantages) >= 0 || firstNotFinite(returns) >= 0;
    if (bad) return { broken: { where: 'advantage', message: `of episode ${trajectory.episode} is not finite` } };
  }
  const decisions = decisionsOf(units.flat());
  const behaviour = Float64Array.from(decisions, ({ logprob }) => logprob);
  const stats: Record<string, number> = {};
  let reference: Float64Array = behaviour;
  if (kl && decisions.length > 0) {
    reference = (await measure(measuring!, learning.reference!, units, minibatches)).logprobs;
    let sum = 0;
    for (let i = 0; i < reference.length; i++) sum += klEstimate('k3', behaviour[i]!, reference[i]!);
    stats.klReferenceStart = sum / reference.length;
  }
  const scores = decisions.length > 0 ? await teacher?.score(units, minibatches) : undefined;
  let old: Float64Array = behaviour;
  let weights: ArrayLike<number> | undefined;
  let present: Float64Array = behaviour;
  const measures = options.foreign || hasOlder(groups, params.version);
  if (offPolicy.type !== 'ratio' && objective === 'policy' && measures) {
    present = (await measure(measuring!, params, units, minibatches)).logprobs;
    if (offPolicy.type !== 'second_moment') old = present;
    const gains = scores && gainsOf(options, scores, old);
    const corrected = correct(offPolicy, present, behaviour, decisions, estimates, gains);
    weights = corrected.weights;
    if (options.foreign) {
      stats.behaviourGap = gap(decisions, present, behaviour, groups, params.version);
      if (stats.behaviourGap > LARGEST_GAP) return { broken: disagreement(stats.behaviourGap) };
    }
    stats.importanceMean = corrected.stats.mean;
    stats.importanceMax = corrected.stats.largest;
    stats.importanceTruncated = corrected.stats.truncatedShare;
    stats.effectiveShare = corrected.stats.effectiveShare;
  }
  const gains = scores && gainsOf(options, scores, old);
  if (gains)
    stats.distillationKl = decisions.reduce((sum, _, i) => sum + old[i]! - scores.logprobs[i]!, 0) / gains.length;
  const lists = [reference, old, present, weights ?? [], scores?.logprobs ?? [], ...(scores?.listed ?? [])];
  if (lists.some((list) => firstNotFinite(list) >= 0)) {
    return { broken: { where: 'measurement', message: 'a log-probability under present weights is not finite' } };
  }
  const facts = new Map(
    decisions.map((decision, i) => [
      decision,
      {
        old: old[i]!,
        reference: reference[i]!,
        importance: weights ? weights[i]! : 1,
        gain: gains?.[i],
        teacher: scores?.listed?.[i],
      },
    ]),
  );
  const played = estimates.length;
  if (options.selfImitation) Object.assign(stats, { imitatedEpisodes: 0, imitatedSurplus: 0 });
  const own = { units, estimates, played, imitated: [], facts, stats };
  return memory.length === 0 ? own : withMemory(learning, own, memory);
}

/** Estimate whose decisions earn nothing by rewards: a teacher is the only signal. */
function withoutAdvantages(one: Estimate): Estimate {
  return { ...one, advantages: new Float64Array(one.advantages.length) };
}

/** Gains of the decisions by their teacher, where they are tokens; the KL of choices is a term of the loss instead. */
function gainsOf({ distillation }: TrainerOptions, scores: TeacherScores, old: Float64Array): Float64Array | undefined {
  if (scores.listed) return undefined;
  return scores.logprobs.map((logprob, i) => computeTeacherGain(distillation!.coef, logprob, old[i]!));
}

/** Prepared groups with remembered episodes: (R − V)₊ is their advantage, the present policy the one that decided. */
async function withMemory(
  { options, params, reference, measuring }: Learning,
  own: Prepared,
  memory: readonly Remembered[],
): Promise<Prepared | { readonly broken: Breakage }> {
  const { codec, estimator, kl, minibatches } = options;
  const { weight } = options.selfImitation!;
  const units = memory.flatMap(({ trajectory }, i) => trainUnits(codec, [trajectory], own.played + i));
  const decisions = decisionsOf(units.flat());
  const { logprobs, values } = await measure(measuring!, params, units, minibatches);
  const references = kl ? (await measure(measuring!, reference!, units, minibatches)).logprobs : logprobs;
  if ([logprobs, values, references].some((list) => firstNotFinite(list) >= 0)) {
    return { broken: { where: 'measurement', message: 'of a remembered episode under present weights is not finite' } };
  }
  const facts = new Map(own.facts);
  const valuesOf = memory.map((): number[] => []);
  for (const [i, decision] of decisions.entries()) {
    facts.set(decision, { old: logprobs[i]!, reference: references[i]!, importance: 1 });
    if (decision.token === 0) valuesOf[decision.trajectory - own.played]!.push(values[i]!);
  }
  const imitated: Remembered[] = [];
  const estimates = memory.map(({ trajectory }, i): Estimate => {
    const { columns, returns, surplus, mean } = surplusOf(trajectory, estimator.gamma, valuesOf[i]);
    const { turns, tokens } = columns;
    imitated.push({ trajectory, priority: mean });
    const advantages = surplus.map((one) => weight * one);
    const trained = Uint8Array.from(surplus, (one) => (one > 0 ? 1 : 0));
    return { trajectory, turns, advantages, returns, weights: new Float64Array(turns.length), tokens, trained };
  });
  const surplus = imitated.reduce((sum, { priority }) => sum + priority, 0) / imitated.length;
  return {
    units: [...own.units, ...units],
    estimates: [...own.estimates, ...estimates],
    played: own.played,
    imitated,
    facts,
    stats: { ...own.stats, imitatedEpisodes: imitated.length, imitatedSurplus: surplus },
  };
}

/**
 * Inputs of the loss for each decision of a minibatch; weights refer to it alone, so that every step sees one scale.
 * @returns `undefined` when none of its decisions is trained on
 */
export function feedOf(
  { estimator, policyLoss }: TrainerOptions,
  groups: readonly TrainGroup[],
  { estimates, played, facts }: Prepared,
): ((decision: TrainDecision) => DecisionFeed) | undefined {
  const decisions = decisionsOf(groups);
  const present = [...new Set(decisions.map(({ trajectory }) => trajectory))];
  const weights = aggregationWeights(
    present.map((i) => estimates[i]!.tokens),
    present.map((i) => estimates[i]!.trained),
    estimator.aggregation,
  );
  const rowOf = new Map(present.map((i, n) => [i, weights[n]!]));
  let [trained, valued] = [0, 0];
  for (const { trajectory, turn, token } of decisions) {
    if (token !== 0 || !estimates[trajectory]!.trained[turn]) continue;
    trained++;
    if (trajectory < played) valued++;
  }
  if (trained === 0) return undefined;
  const sequenceFeed = sharesRatio(policyLoss) ? sequenceFeedOf(decisions, estimates) : () => ({});
  return (decision) => {
    const { trajectory, turn, token } = decision;
    const { advantages, returns, trained: mask } = estimates[trajectory]!;
    const { old, reference, importance, gain = 0, teacher } = facts.get(decision)!;
    return {
      oldLogprob: old,
      referenceLogprob: reference,
      // Importance belongs to the surrogate alone: w·min(rA, clip(r)A) = min(r·wA, clip(r)·wA) for w ≥ 0. What does not
      // depend on the action taken (entropy) or has its own measure (KL) keeps the batch's weights.
      advantage: (advantages[turn]! + gain) * importance,
      weight: rowOf.get(trajectory)![turn]!,
      return: returns[turn]!,
      oldValue: decision.value,
      valueWeight: token === 0 && mask[turn] && trajectory < played ? 1 / valued : 0, // a run has one value, at its first token
      ...sequenceFeed(decision),
      ...(teacher ? { teacher } : {}),
    };
  };
}

/**
 * Feeds of the sequence that a decision shares its ratio with: its trajectory.
 * @param decisions of a minibatch, which parts no trajectory
 */
function sequenceFeedOf(
  decisions: readonly TrainDecision[],
  estimates: readonly Estimate[],
): (decision: TrainDecision) => Pick<DecisionFeed, 'sequence' | 'sequenceShare'> {
  const numbers = new Map<number, number>();
  const lengths: number[] = [];
  const numberOf = ({ trajectory }: TrainDecision): number => {
    const number = numbers.get(trajectory) ?? numbers.size;
    numbers.set(trajectory, number);
    return number;
  };
  const isTrained = ({ trajectory, turn }: TrainDecision) => estimates[trajectory]!.trained[turn] !== 0;
  for (const decision of decisions) {
    const number = numberOf(decision);
    lengths[number] = (lengths[number] ?? 0) + (isTrained(decision) ? 1 : 0);
  }
  return (decision) => {
    const sequence = numberOf(decision);
    return { sequence, sequenceShare: isTrained(decision) ? 1 / lengths[sequence]! : 0 };
  };
}

/** Importance weights of the decisions, by the correction. */
function correct(
  offPolicy: Exclude<OffPolicy, { type: 'ratio' }>,
  present: Float64Array,
  behaviour: Float64Array,
  decisions: readonly TrainDecision[],
  estimates: readonly Estimate[],
  gains: Float64Array | undefined,
): Importance {
  if (offPolicy.type === 'second_moment') {
    const advantages = decisions.map(({ trajectory, turn }, i) => {
      const { advantages, trained } = estimates[trajectory]!;
      return trained[turn] ? advantages[turn]! + (gains?.[i] ?? 0) : 0;
    });
    return maskSecondMoment(present, behaviour, advantages, offPolicy.threshold);
  }
  const { type, cap, per, geometricMean } = offPolicy;
  const bounds = type === 'masked' ? { low: offPolicy.low, mask: true } : {};
  return importance(present, behaviour, cap, segments(decisions, per), { ...bounds, geometricMean });
}

function encode({ codec }: TrainerOptions, groups: readonly Group[]): TrainGroup[][] {
  let first = 0;
  return groups.flatMap(({ trajectories }) => {
    const units = trainUnits(codec, trajectories, first);
    first += trajectories.length;
    return units;
  });
}

/** Names of the states that an estimator compares decisions in: the view's situation where it names one, else what was observed. */
function situationsOf(
  { codec }: TrainerOptions,
  groups: readonly Group[],
): (trajectory: Trajectory, turn: number) => string {
  const named = new Map<Trajectory, string[]>();
  for (const { trajectories } of groups) {
    for (const one of trajectories) {
      const names: string[] = [];
      replayTurns(codec, one, ({ situation }, turn) => {
        names.push(situation ?? one.turns[turn]!.observation);
      });
      named.set(one, names);
    }
  }
  return (trajectory, turn) => named.get(trajectory)![turn]!;
}

/**
 * Nats per token that another engine's log-probabilities may be off on average, of decisions under the learner's
 * present weights. Servers in 16-bit precision are off by some hundredths. More means another model, another adapter or
 * a temperature.
 */
const LARGEST_GAP = 0.2;

function disagreement(nats: number): Breakage {
  const message = `the server's log-probabilities are off by ${nats.toFixed(3)} nats a token, expected at most ${LARGEST_GAP}: it has another base or adapter, or reports them before its own temperature`;
  return { where: 'measurement', message };
}

/** Mean |log π_learner − log π_behaviour| over the tokens that the present weights sampled; 0 without any. */
function gap(
  decisions: readonly TrainDecision[],
  own: Float64Array,
  behaviour: Float64Array,
  groups: readonly Group[],
  version: number,
): number {
  const all = groups.flatMap(({ trajectories }) => trajectories);
  let [sum, count] = [0, 0];
  for (const [i, { trajectory, turn }] of decisions.entries()) {
    if (all[trajectory]!.turns[turn]!.decision!.version !== version) continue;
    sum += Math.abs(own[i]! - behaviour[i]!);
    count++;
  }
  return count === 0 ? 0 : sum / count;
}

/** True when any decision was made by other weights than the learner's present ones. */
function hasOlder(groups: readonly Group[], version: number): boolean {
  return groups.some(({ trajectories }) =>
    trajectories.some(({ turns }) => turns.some(({ decision }) => decision!.version < version)),
  );
}

/** Lengths of the stretches of decisions that share an importance ratio; `undefined` for one each. */
function segments(decisions: readonly TrainDecision[], per: 'token' | 'decision' | 'trajectory'): number[] | undefined {
  if (per === 'token') return undefined;
  const lengths: number[] = [];
  decisions.forEach(({ trajectory, turn }, i) => {
    const before = decisions[i - 1];
    const same = before?.trajectory === trajectory && (per === 'trajectory' || before.turn === turn);
    if (same) lengths[lengths.length - 1]!++;
    else lengths.push(1);
  });
  return lengths;
}
