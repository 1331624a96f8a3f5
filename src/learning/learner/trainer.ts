/**
 * Trainer: weights and moments, and what one update makes of them. It knows nothing of threads or messages; what a single
 * optimiser step computes is in training-step.ts.
 *
 * An update leaves out groups that carry no signal, measures what the trajectories do not record (the reference
 * policy, the learner itself, values at the cut), estimates advantages over all its groups, and makes `epochs` passes
 * over `minibatches` parts, one optimiser step each. Where anything is not finite (a reward, an advantage, a loss, a
 * gradient, a weight) the whole update is taken back: weights and moments are the very arrays they were before.
 */
import { configFor, type Estimate, scores } from '../../algo/advantages.ts';
import { filterBySignal, filtersGroups } from '../../algo/dynamic-sampling.ts';
import { estimatorOf } from '../../algo/estimators.ts';
import { createKlControl, type KlControlState, nextKlControl } from '../../algo/kl.ts';
import { policyLossNumbers } from '../../algo/policy-loss.ts';
import type { Engine } from '../../compute/engine/engine.ts';
import { type Breakage, findBrokenRecord } from '../../compute/finite.ts';
import { compileLogprobs } from '../../compute/model/compile.ts';
import { learningRate } from '../../compute/model/optimizer.ts';
import { checkParams, type ParamSet } from '../../compute/model/parameters.ts';
import { UserError } from '../../core/errors.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import type { Group } from '../../core/trajectory.ts';
import { cut, type Measuring } from './measure.ts';
import type { TrainerOptions } from './options.ts';
import { type ExtrasOf, extrasOf, feedOf, type Learning, type Prepared, prepare } from './prepare.ts';
import { drawRemembered, plainMemory, type Remembered, reviveMemory, updateMemory } from './self-imitation.ts';
import { openTeacher, type Teacher, type TeacherIdentity, type TeacherSpec } from './teacher.ts';
import { type TrainGroup, tokenCount } from './training-batch.ts';
import { TrainingStep } from './training-step.ts';
import { type Moments, optimizerFeeds, readStep, type StepResult, scalars, zeroMoments } from './weights.ts';

export type { Breakage } from '../../compute/finite.ts';
export type { ReferenceKl, TrainerOptions } from './options.ts';
export type { Moments } from './weights.ts';

/** Start of a trainer; a fresh one has only `params`. */
export interface TrainerStart {
  readonly params: ParamSet;
  readonly moments?: Moments | undefined;
  /** The reference policy's weights; by default `params`. */
  readonly reference?: ParamSet | undefined;
  /** Teacher, where the options have `distillation`. */
  readonly teacher?: TeacherSpec | undefined;
  readonly state?: TrainerState | undefined;
}

/** State of a trainer; plain JSON, kept in the checkpoint. */
export interface TrainerState {
  /** Factor on the learning rate; rollbacks shrink it. */
  readonly rateScale: number;
  readonly kl?: KlControlState;
  /** Teacher that decisions are scored by. */
  readonly teacher?: TeacherIdentity;
  /** Remembered episodes, as plain JSON. */
  readonly memory?: readonly Remembered[];
}

export interface UpdateResult {
  /** Means over the update's optimiser steps: loss, policyLoss, entropy, klOld, clipFraction, gradNorm, … */
  readonly stats: Readonly<Record<string, number>>;
  readonly optimizerSteps: number;
  /** Breakage, set where the update was taken back. */
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

export class Trainer {
  readonly #options: TrainerOptions;
  readonly #trainingStep: TrainingStep;
  readonly #measuring: Measuring | undefined;
  readonly #reference: ParamSet | undefined;
  readonly #teacher: Teacher | undefined;
  #params: ParamSet;
  #moments: Moments;
  #rateScale: number;
  #kl: KlControlState | undefined;
  #memory: readonly Remembered[];

  private constructor(
    options: TrainerOptions,
    trainingStep: TrainingStep,
    measuring: Measuring | undefined,
    teacher: Teacher | undefined,
    start: TrainerStart,
  ) {
    this.#options = options;
    this.#trainingStep = trainingStep;
    this.#measuring = measuring;
    this.#params = start.params;
    this.#moments = start.moments ?? zeroMoments(options.model);
    this.#reference = options.kl && (start.reference ?? start.params);
    this.#teacher = teacher;
    this.#rateScale = start.state?.rateScale ?? 1;
    this.#kl = options.kl && (start.state?.kl ?? createKlControl(options.kl.control));
    const kept = options.selfImitation ? (start.state?.memory ?? []) : [];
    this.#memory = reviveMemory(kept, options.codec, options.estimator.gamma);
  }

  /**
   * Creates a trainer and compiles its programs.
   * @throws {UserError} BAD_WEIGHTS when the weights do not fit the model; BAD_CONFIG when the estimator needs a value
   *   head that the model does not have, or distillation has no teacher
   */
  static async create(engine: Engine, options: TrainerOptions, start: TrainerStart): Promise<Trainer> {
    checkParams(options.model, start.params);
    const { decoder, model, estimator, offPolicy, kl, masked, chunks } = options;
    const { needsCritic, objective } = estimatorOf(estimator);
    const critical = [
      needsCritic && `algorithm ${estimator.algorithm}`,
      estimator.truncation === 'bootstrap' && 'truncation bootstrap',
      options.selfImitation && 'selfImitation',
    ].find(Boolean);
    if (critical && !model.valueHead) {
      throw new UserError('BAD_CONFIG', `learner: ${critical} needs a critic; set learner.valueCoef above 0, e.g. 0.5`);
    }
    if (objective === 'likelihood' && kl) {
      throw new UserError('BAD_CONFIG', `learner.kl: ${estimator.algorithm} imitates and has no KL term; leave kl out`);
    }
    if (objective === 'likelihood' && options.selfImitation) {
      throw new UserError(
        'BAD_CONFIG',
        `learner.selfImitation: ${estimator.algorithm} imitates already; leave selfImitation out`,
      );
    }
    if (objective === 'likelihood' && (options.distillation || options.observationCoef !== undefined)) {
      const key = options.distillation ? 'distillation' : 'observationCoef';
      throw new UserError('BAD_CONFIG', `learner.${key}: ${estimator.algorithm} imitates already; leave ${key} out`);
    }
    if (options.distillation && !start.teacher) {
      throw new UserError('BAD_CONFIG', 'learner.distillation: expected a teacher to start with, got none');
    }
    if (objective === 'likelihood' && options.policyLoss) {
      throw new UserError(
        'BAD_CONFIG',
        `learner.policyLoss: ${estimator.algorithm} imitates and has no policy loss; leave policyLoss out`,
      );
    }
    const trainingStep = await TrainingStep.create(engine, options);
    const looks = kl || options.selfImitation || offPolicy.type !== 'ratio' || estimator.truncation === 'bootstrap';
    const measuring = looks && {
      ...options,
      program: await compileLogprobs(engine, model, { decoder, masked, chunks }),
    };
    const teacher =
      options.distillation && start.teacher && (await openTeacher(engine, options, start.teacher, start.params));
    return new Trainer(options, trainingStep, measuring || undefined, teacher, start);
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

  /** Average of its own weights that teaches it; absent where it has no such teacher. */
  get average(): ParamSet | undefined {
    return this.#teacher?.average;
  }

  get state(): TrainerState {
    return {
      rateScale: this.#rateScale,
      ...(this.#kl ? { kl: this.#kl } : {}),
      ...(this.#teacher ? { teacher: this.#teacher.identity } : {}),
      ...(this.#options.selfImitation ? { memory: plainMemory(this.#memory) } : {}),
    };
  }

  /**
   * Rolls back to earlier weights and moments, under the present version, and continues with `shrink` times the
   * learning rate.
   */
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
    if (!result.broken) this.#teacher?.follow(this.#params);
    return result;
  }

  async dispose(): Promise<void> {
    await this.#trainingStep.dispose();
    await this.#measuring?.program.dispose();
    await this.#teacher?.dispose();
  }

  async #attempt(groups: readonly Group[], progress: number): Promise<UpdateResult> {
    const { epochs, minibatches, seed } = this.#options;
    const nothing = { stats: {}, optimizerSteps: 0, decisions: 0, tokens: 0, filtered: [], credit: [] };
    const broken = findBrokenRecord(groups);
    if (broken) return { ...nothing, broken };

    // Scores need what is in the reward and at the cut; everything else is only measured of what is kept.
    const learning = this.#learning();
    const extras = await extrasOf(learning, groups);
    const { kept, filtered } = this.#filter(groups, extras);
    const left = { ...nothing, filtered: filtered.map(({ group }) => group) };
    const prepared = await prepare(learning, kept, extras, this.#drawRemembered());
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
    this.#remember(groups, prepared.imitated);
    const all = prepared.units.flat();
    const decisions = prepared.facts.size;
    const tokens = tokenCount(all) * epochs;
    const credit = creditOf(kept, prepared.estimates);
    return { ...left, broken: undefined, stats, optimizerSteps: steps, decisions, tokens, credit };
  }

  #learning(): Learning {
    return {
      options: this.#options,
      params: this.#params,
      reference: this.#reference,
      klCoefficient: this.#kl?.coefficient ?? 0,
      teacher: this.#teacher,
      measuring: this.#measuring,
    };
  }

  /** Remembered episodes that this update trains on besides. */
  #drawRemembered(): Remembered[] {
    const { selfImitation, seed } = this.#options;
    if (!selfImitation) return [];
    const rng = Rng.fromSeed(seedFrom(seed, 'self-imitation', this.#params.version));
    return drawRemembered(this.#memory, selfImitation.episodes, rng);
  }

  #remember(groups: readonly Group[], imitated: readonly Remembered[]): void {
    const { selfImitation, estimator } = this.#options;
    if (!selfImitation) return;
    const played = groups.flatMap(({ trajectories }) => trajectories);
    this.#memory = updateMemory(this.#memory, imitated, played, selfImitation, estimator.gamma);
  }

  #filter(groups: readonly Group[], extras: ExtrasOf) {
    const options = this.#options;
    return filtersGroups(options)
      ? filterBySignal(groups, (group) => scores(group, configFor(group, options.estimator, options.worlds), extras))
      : { kept: groups, filtered: [] };
  }

  /**
   * Makes one optimiser step.
   * @returns `undefined` when none of the groups' decisions is trained on
   */
  async #step(groups: readonly TrainGroup[], prepared: Prepared, progress: number): Promise<StepResult | undefined> {
    const { model, coefficients, policyLoss, maxGradNorm, adamW, kl, distillation, observationCoef } = this.#options;
    const feeds = feedOf(this.#options, groups, prepared);
    if (!feeds) return undefined;
    const t = this.#moments.steps + 1;
    const beta = kl?.in === 'loss' ? this.#kl!.coefficient : 0;
    const weights = optimizerFeeds(model, this.#params, this.#moments);
    const coefficient = scalars('loss', {
      ...coefficients,
      ...(policyLoss && policyLossNumbers(policyLoss)),
      klCoef1: kl?.estimator === 'k1' ? beta : 0,
      klCoef2: kl?.estimator === 'k2' ? beta : 0,
      klCoef3: kl?.estimator === 'k3' ? beta : 0,
      ...(distillation ? { distillationCoef: distillation.coef } : {}),
      ...(observationCoef === undefined ? {} : { observationCoef }),
    });
    const rates = scalars('adam', {
      lr: this.#rate(progress),
      maxGradNorm,
      correction1: 1 - adamW.beta1 ** t,
      correction2: 1 - adamW.beta2 ** t,
    });
    const out = await this.#trainingStep.run(groups, feeds, { ...coefficient, ...weights }, rates);
    return readStep(model, this.#params.version, t, out);
  }

  #rate(progress: number): number {
    return this.#rateScale * learningRate(this.#options.learningRate, this.#moments.steps, progress);
  }
}

/**
 * Credit of the groups, for the record.
 * @param estimates in the order of the groups' trajectories
 */
function creditOf(groups: readonly Group[], estimates: readonly Estimate[]): GroupCredit[] {
  let next = 0;
  return groups.map(({ group, trajectories }) => ({
    group,
    advantages: trajectories.map(() => Float32Array.from(estimates[next++]!.advantages)),
  }));
}
