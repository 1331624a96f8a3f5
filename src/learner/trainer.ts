/**
 * Weights, moments and the compiled training step: what one update does. Knows nothing of threads or messages.
 *
 * An update leaves out groups that carry no signal, measures what the trajectories do not record (the reference
 * policy, the learner itself, values at the cut), estimates advantages over all its groups, and makes `epochs` passes
 * over `minibatches` parts, one optimiser step each. Where anything is not finite (a reward, an advantage, a loss, a
 * gradient, a weight) the whole update is taken back: weights and moments are the very arrays they were before.
 */
import { type Estimate, type EstimatorConfig, type Extras, estimate, scores } from '../algo/advantages.ts';
import { aggregationWeights } from '../algo/aggregate.ts';
import { siftGroups } from '../algo/dynamic-sampling.ts';
import { importance } from '../algo/importance.ts';
import {
  createKlControl,
  type KlControl,
  type KlControlState,
  type KlEstimator,
  klEstimate,
  nextKlControl,
} from '../algo/kl.ts';
import { UserError } from '../core/errors.ts';
import { Rng, seedFrom } from '../core/rng.ts';
import type { Group, Trajectory } from '../core/trajectory.ts';
import type { View } from '../core/view.ts';
import type { Engine, Program } from '../engine/engine.ts';
import type { ModelConfig } from '../model/config.ts';
import type { LossCoefficients } from '../model/loss.ts';
import { type AdamWConfig, type LearningRate, learningRate } from '../model/optimizer.ts';
import { checkParams, type ParamSet } from '../model/parameters.ts';
import { type DecoderKind, logprobsGraph, trainGraph } from '../model/programs.ts';
import type { Tokenizer } from '../policy/tokenizer.ts';
import {
  type DecisionFeed,
  decisionsOf,
  type TrainDecision,
  type TrainGroup,
  tokenCount,
  trainingFeeds,
  trainUnits,
} from '../policy/training-batch.ts';
import { cut, finalValues, type Measuring, measure } from './measure.ts';
import {
  type Breakage,
  firstNotFinite,
  type Moments,
  optimizerFeeds,
  readStep,
  type StepResult,
  scalars,
  zeroMoments,
} from './weights.ts';

export type { Breakage, Moments } from './weights.ts';

/**
 * What is done about decisions made by older weights:
 * - `ratio`: the surrogate's ratio is taken against the policy that decided, and its clip is all there is;
 * - `truncated`: the ratio is taken against the learner at the start of the update, and each loss is weighed by
 *   min(π_learner/π_behaviour, cap), shared by a token, a decision or a trajectory (algo/importance.ts). Costs a
 *   forward pass where any decision is older than the learner; without one both are the same.
 */
export type OffPolicy =
  | { readonly type: 'ratio' }
  | { readonly type: 'truncated'; readonly cap: number; readonly per: 'token' | 'decision' | 'trajectory' };

/** KL to the weights the run started from. */
export interface ReferenceKl {
  readonly in: 'loss' | 'reward';
  readonly estimator: KlEstimator;
  readonly control: KlControl;
}

export interface TrainerOptions {
  readonly model: ModelConfig;
  readonly tokenizer: Tokenizer;
  readonly view: View;
  readonly decoder: DecoderKind;
  readonly estimator: EstimatorConfig;
  /** Passes over an update's groups, ≥ 1. */
  readonly epochs: number;
  /** Optimiser steps per pass, ≥ 1. */
  readonly minibatches: number;
  readonly coefficients: Omit<LossCoefficients, 'klCoef1' | 'klCoef2' | 'klCoef3'>;
  readonly offPolicy: OffPolicy;
  /** Absent: no reference policy. */
  readonly kl?: ReferenceKl;
  readonly learningRate: LearningRate;
  /** Gradients are scaled down to this global norm. */
  readonly maxGradNorm: number;
  readonly adamW: AdamWConfig;
  /** Leave out groups whose members all scored the same, where the estimator only compares trajectories. */
  readonly filterGroups: boolean;
  /** uint32; orders the minibatches. */
  readonly seed: number;
}

/** What a trainer goes on from; a fresh one has only `params`. */
export interface TrainerStart {
  readonly params: ParamSet;
  readonly moments?: Moments;
  /** The reference policy's weights; by default `params`. */
  readonly reference?: ParamSet;
  readonly state?: TrainerState;
}

/** Plain JSON; keep it in the checkpoint. */
export interface TrainerState {
  /** Factor on the learning rate; rollbacks shrink it. */
  readonly rateScale: number;
  readonly kl?: KlControlState;
}

export interface UpdateResult {
  /** Means over the update's optimiser steps: loss, policyLoss, entropy, klOld, clipFraction, gradNorm, … */
  readonly stats: Readonly<Record<string, number>>;
  readonly optimizerSteps: number;
  /** Set where the update was taken back. */
  readonly broken: Breakage | undefined;
  readonly decisions: number;
  /** Tokens read by training passes, all epochs, padding left out. */
  readonly tokens: number;
  /** Groups that carried no signal. */
  readonly filtered: readonly number[];
  /** Advantages of the groups trained on, for the record. */
  readonly credit: readonly GroupCredit[];
}

/** [member][decision] advantages of a group, members in the order of its trajectories. */
export interface GroupCredit {
  readonly group: number;
  readonly advantages: readonly Float32Array[];
}

/** Groups with all that is known of their decisions. */
interface Prepared {
  readonly units: readonly (readonly TrainGroup[])[];
  readonly estimates: readonly Estimate[];
  readonly facts: ReadonlyMap<TrainDecision, DecisionFacts>;
  readonly stats: Readonly<Record<string, number>>;
}

interface DecisionFacts {
  /** log π of the policy that the surrogate's ratio is taken against. */
  readonly old: number;
  readonly reference: number;
  /** Truncated importance weight. */
  readonly importance: number;
}

export class Trainer {
  readonly #options: TrainerOptions;
  readonly #program: Program;
  readonly #measuring: Measuring | undefined;
  readonly #reference: ParamSet | undefined;
  #params: ParamSet;
  #moments: Moments;
  #rateScale: number;
  #kl: KlControlState | undefined;

  private constructor(
    options: TrainerOptions,
    program: Program,
    measuring: Measuring | undefined,
    start: TrainerStart,
  ) {
    this.#options = options;
    this.#program = program;
    this.#measuring = measuring;
    this.#params = start.params;
    this.#moments = start.moments ?? zeroMoments(options.model);
    this.#reference = options.kl && (start.reference ?? start.params);
    this.#rateScale = start.state?.rateScale ?? 1;
    this.#kl = options.kl && (start.state?.kl ?? createKlControl(options.kl.control));
  }

  /**
   * @throws {UserError} BAD_WEIGHTS when the weights do not fit the model; BAD_CONFIG when the estimator needs a value
   *   head that the model does not have
   */
  static async create(engine: Engine, options: TrainerOptions, start: TrainerStart): Promise<Trainer> {
    checkParams(options.model, start.params);
    const { decoder, adamW, model, estimator, offPolicy, kl } = options;
    const critic = estimator.algorithm === 'ppo' || estimator.truncation === 'bootstrap';
    if (critic && !model.valueHead) {
      const why = estimator.algorithm === 'ppo' ? 'algorithm ppo' : 'truncation bootstrap';
      throw new UserError('BAD_CONFIG', `learner: ${why} needs a critic; set learner.valueCoef above 0, e.g. 0.5`);
    }
    const objective = estimator.algorithm === 'agent_evol' ? 'likelihood' : 'policy';
    if (objective === 'likelihood' && kl) {
      throw new UserError('BAD_CONFIG', 'learner.kl: agent_evol imitates and has no KL term; leave kl out');
    }
    const program = await engine.compile(trainGraph(model, { decoder, objective, adamW }));
    const looks = kl || offPolicy.type === 'truncated' || estimator.truncation === 'bootstrap';
    const measuring = looks && { ...options, program: await engine.compile(logprobsGraph(model, decoder)) };
    return new Trainer(options, program, measuring || undefined, start);
  }

  get params(): ParamSet {
    return this.#params;
  }

  get moments(): Moments {
    return this.#moments;
  }

  /** The reference policy's weights; absent where nothing is compared with them. */
  get reference(): ParamSet | undefined {
    return this.#reference;
  }

  get state(): TrainerState {
    return { rateScale: this.#rateScale, ...(this.#kl ? { kl: this.#kl } : {}) };
  }

  /** Takes earlier weights and moments back, under the present version, and goes on with `shrink` times the step. */
  rollBack(values: ParamSet['values'], moments: Moments, shrink: number): void {
    this.#params = { version: this.#params.version, values };
    this.#moments = moments;
    this.#rateScale *= shrink;
  }

  /**
   * Makes one update; the policy version grows by one, whatever was left out or taken back.
   * @param progress share of the run that is done, in [0, 1], for the learning rate
   */
  async update(groups: readonly Group[], progress: number): Promise<UpdateResult> {
    const before = { params: this.#params, moments: this.#moments };
    const result = await this.#attempt(groups, progress);
    const { params, moments } = result.broken ? before : { params: this.#params, moments: this.#moments };
    this.#params = { version: before.params.version + 1, values: params.values };
    this.#moments = moments;
    return result;
  }

  async dispose(): Promise<void> {
    await this.#program.dispose();
    await this.#measuring?.program.dispose();
  }

  async #attempt(groups: readonly Group[], progress: number): Promise<UpdateResult> {
    const { estimator, kl, epochs, minibatches, seed } = this.#options;
    const nothing = { stats: {}, optimizerSteps: 0, decisions: 0, tokens: 0, filtered: [], credit: [] };
    const broken = brokenRecord(groups);
    if (broken) return { ...nothing, broken };

    // Scores need what is in the reward and at the cut; everything else is only measured of what is kept.
    const early = kl?.in === 'reward' || estimator.truncation === 'bootstrap';
    const extras = early ? await this.#extras(groups) : () => undefined;
    const { kept, filtered } = this.#sift(groups, extras);
    const left = { ...nothing, filtered: filtered.map(({ group }) => group) };
    const prepared = await this.#prepare(kept, extras);
    if ('broken' in prepared) return { ...left, ...prepared };

    const sums: Record<string, number> = {};
    let steps = 0;
    const rng = Rng.fromSeed(seedFrom(seed, 'update', this.#params.version));
    for (let epoch = 0; epoch < epochs; epoch++) {
      for (const part of cut(minibatches > 1 ? rng.shuffle(prepared.units) : prepared.units, minibatches)) {
        const step = await this.#step(part.flat(), prepared, progress);
        if (!step) continue;
        if ('broken' in step) return { ...left, broken: step.broken };
        this.#params = step.params;
        this.#moments = step.moments;
        steps++;
        for (const [name, value] of Object.entries(step.stats)) sums[name] = (sums[name] ?? 0) + value;
      }
    }
    const stats: Record<string, number> = { learningRate: this.#rate(progress), ...prepared.stats };
    for (const [name, value] of Object.entries(sums)) stats[name] = value / Math.max(1, steps);
    if (!this.#kl) delete stats.klReference;
    else {
      stats.klCoefficient = this.#kl.coefficient;
      const episodes = kept.reduce((sum, { trajectories }) => sum + trajectories.length, 0);
      this.#kl = nextKlControl(this.#kl, prepared.stats.klReferenceStart ?? Number.NaN, episodes);
    }
    const all = prepared.units.flat();
    const decisions = prepared.facts.size;
    const tokens = tokenCount(all) * epochs;
    const credit = creditOf(kept, prepared.estimates);
    return { ...left, broken: undefined, stats, optimizerSteps: steps, decisions, tokens, credit };
  }

  /** Only an estimator that compares whole trajectories of a group learns nothing from equal scores. */
  #sift(groups: readonly Group[], extras: (one: Trajectory) => Extras | undefined) {
    const { estimator, filterGroups } = this.#options;
    const compares = 'credit' in estimator && estimator.credit === 'trajectory';
    return filterGroups && compares
      ? siftGroups(groups, (group) => scores(group, estimator, extras))
      : { kept: groups, filtered: [] };
  }

  /** Value at the cut, and β·KL of the decisions, as far as the configuration asks for them. */
  async #extras(groups: readonly Group[]): Promise<(one: Trajectory) => Extras | undefined> {
    const { estimator, kl, minibatches } = this.#options;
    const all = groups.flatMap(({ trajectories }) => trajectories);
    const cutOff = estimator.truncation === 'bootstrap' ? all.filter(({ end }) => end === 'truncated') : [];
    const finals = await finalValues(this.#measuring!, this.#params, cutOff, minibatches);
    const penalties = new Map<Trajectory, Float64Array>();
    if (kl?.in === 'reward') {
      const units = this.#encode(groups);
      const decisions = decisionsOf(units.flat());
      const { logprobs } = await measure(this.#measuring!, this.#reference!, units, minibatches);
      for (const one of all) penalties.set(one, new Float64Array(one.turns.length));
      decisions.forEach(({ trajectory, turn, logprob }, i) => {
        const estimate = klEstimate(kl.estimator, logprob, logprobs[i]!);
        penalties.get(all[trajectory]!)![turn]! += this.#kl!.coefficient * estimate;
      });
    }
    return (one) => {
      const finalValue = finals.get(one);
      const penalty = penalties.get(one);
      return { ...(finalValue === undefined ? {} : { finalValue }), ...(penalty ? { penalty } : {}) };
    };
  }

  #encode(groups: readonly Group[]): TrainGroup[][] {
    const { view, tokenizer } = this.#options;
    let first = 0;
    return groups.flatMap(({ trajectories }) => {
      const units = trainUnits(view, tokenizer, trajectories, first);
      first += trajectories.length;
      return units;
    });
  }

  /** Estimates over all groups at once (some estimators whiten over the batch). */
  async #prepare(
    groups: readonly Group[],
    extras: (one: Trajectory) => Extras | undefined,
  ): Promise<Prepared | { readonly broken: Breakage }> {
    const { estimator, offPolicy, kl, minibatches } = this.#options;
    const units = this.#encode(groups);
    const estimates = estimate(groups, estimator, extras);
    for (const { trajectory, advantages, returns } of estimates) {
      const bad = firstNotFinite(advantages) >= 0 || firstNotFinite(returns) >= 0;
      if (bad) return { broken: { where: 'advantage', message: `of episode ${trajectory.episode} is not finite` } };
    }
    const decisions = decisionsOf(units.flat());
    const behaviour = Float64Array.from(decisions, ({ logprob }) => logprob);
    const stats: Record<string, number> = {};
    let reference: Float64Array = behaviour;
    if (kl && decisions.length > 0) {
      reference = (await measure(this.#measuring!, this.#reference!, units, minibatches)).logprobs;
      let sum = 0;
      for (let i = 0; i < reference.length; i++) sum += klEstimate('k3', behaviour[i]!, reference[i]!);
      stats.klReferenceStart = sum / reference.length;
    }
    let old: Float64Array = behaviour;
    let weights: ArrayLike<number> | undefined;
    const older = groups.some(({ trajectories }) =>
      trajectories.some(({ turns }) => turns.some(({ decision }) => decision!.version < this.#params.version)),
    );
    if (offPolicy.type === 'truncated' && older && estimator.algorithm !== 'agent_evol') {
      old = (await measure(this.#measuring!, this.#params, units, minibatches)).logprobs;
      const corrected = importance(old, behaviour, offPolicy.cap, segments(decisions, offPolicy.per));
      weights = corrected.weights;
      stats.importanceMean = corrected.stats.mean;
      stats.importanceMax = corrected.stats.largest;
      stats.importanceTruncated = corrected.stats.truncatedShare;
      stats.effectiveShare = corrected.stats.effectiveShare;
    }
    if (firstNotFinite(reference) >= 0 || firstNotFinite(old) >= 0 || (weights && firstNotFinite(weights) >= 0)) {
      return { broken: { where: 'measurement', message: 'a log-probability under present weights is not finite' } };
    }
    const facts = new Map(
      decisions.map((decision, i) => [
        decision,
        { old: old[i]!, reference: reference[i]!, importance: weights ? weights[i]! : 1 },
      ]),
    );
    return { units, estimates, facts, stats };
  }

  /** @returns `undefined` when none of the groups' decisions is trained on */
  async #step(groups: readonly TrainGroup[], prepared: Prepared, progress: number): Promise<StepResult | undefined> {
    const { model, tokenizer, decoder, coefficients, maxGradNorm, adamW, kl } = this.#options;
    const feedOf = this.#feedOf(groups, prepared);
    if (!feedOf) return undefined;
    const t = this.#moments.steps + 1;
    const beta = kl?.in === 'loss' ? this.#kl!.coefficient : 0;
    const out = await this.#program.run({
      ...trainingFeeds(model, tokenizer, decoder, groups, feedOf).feeds,
      ...scalars('loss', {
        ...coefficients,
        klCoef1: kl?.estimator === 'k1' ? beta : 0,
        klCoef2: kl?.estimator === 'k2' ? beta : 0,
        klCoef3: kl?.estimator === 'k3' ? beta : 0,
      }),
      ...scalars('adam', {
        lr: this.#rate(progress),
        maxGradNorm,
        correction1: 1 - adamW.beta1 ** t,
        correction2: 1 - adamW.beta2 ** t,
      }),
      ...optimizerFeeds(model, this.#params, this.#moments),
    });
    return readStep(model, this.#params.version, t, out);
  }

  /** What the loss is told of each decision; weights refer to this minibatch alone, so that every step sees one scale. */
  #feedOf(
    groups: readonly TrainGroup[],
    { estimates, facts }: Prepared,
  ): ((decision: TrainDecision) => DecisionFeed) | undefined {
    const decisions = decisionsOf(groups);
    const present = [...new Set(decisions.map(({ trajectory }) => trajectory))];
    const weights = aggregationWeights(
      present.map((i) => estimates[i]!.tokens),
      present.map((i) => estimates[i]!.trained),
      this.#options.estimator.aggregation,
    );
    const rowOf = new Map(present.map((i, n) => [i, weights[n]!]));
    let trained = 0;
    for (const { trajectory, turn, token } of decisions) {
      if (token === 0 && estimates[trajectory]!.trained[turn]) trained++;
    }
    if (trained === 0) return undefined;
    return (decision) => {
      const { trajectory, turn, token } = decision;
      const { advantages, returns, trained: mask } = estimates[trajectory]!;
      const { old, reference, importance } = facts.get(decision)!;
      return {
        oldLogprob: old,
        referenceLogprob: reference,
        advantage: advantages[turn]!,
        weight: rowOf.get(trajectory)![turn]! * importance,
        return: returns[turn]!,
        oldValue: decision.value,
        valueWeight: token === 0 && mask[turn] ? 1 / trained : 0, // a run has one value, at its first token
      };
    };
  }

  #rate(progress: number): number {
    return this.#rateScale * learningRate(this.#options.learningRate, this.#moments.steps, progress);
  }
}

/** @param estimates in the order of the groups' trajectories */
function creditOf(groups: readonly Group[], estimates: readonly Estimate[]): GroupCredit[] {
  let next = 0;
  return groups.map(({ group, trajectories }) => ({
    group,
    advantages: trajectories.map(() => Float32Array.from(estimates[next++]!.advantages)),
  }));
}

/** What came in broken. */
function brokenRecord(groups: readonly Group[]): Breakage | undefined {
  for (const { trajectories } of groups) {
    for (const { episode, turns } of trajectories) {
      for (const [t, { reward, decision }] of turns.entries()) {
        const at = `of episode ${episode}, turn ${t}`;
        if (!Number.isFinite(reward)) return { where: 'reward', message: `${at} is ${reward}` };
        if (!decision) continue;
        const logprobs = decision.kind === 'choice' ? [decision.logprob] : decision.logprobs;
        if (!Number.isFinite(decision.value))
          return { where: 'behaviour', message: `value ${at} is ${decision.value}` };
        if (firstNotFinite(logprobs) >= 0)
          return { where: 'behaviour', message: `a log-probability ${at} is not finite` };
      }
    }
  }
  return undefined;
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
