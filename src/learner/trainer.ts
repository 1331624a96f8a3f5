/**
 * Weights, moments and the compiled training step: what one update does. Knows nothing of threads or messages.
 *
 * An update estimates advantages over its groups, leaves out what carries no signal, and makes `epochs` passes over
 * `minibatches` parts, one optimiser step each. A step whose loss, gradient or weights are not finite is not applied:
 * weights and moments stay bit-identical.
 */
import { type EstimatorConfig, estimate, scores } from '../algo/advantages.ts';
import { siftGroups } from '../algo/dynamic-sampling.ts';
import { Rng, seedFrom } from '../core/rng.ts';
import type { Group } from '../core/trajectory.ts';
import type { View } from '../core/view.ts';
import type { Engine, HostTensor, Program } from '../engine/engine.ts';
import type { ModelConfig } from '../model/config.ts';
import type { LossCoefficients } from '../model/loss.ts';
import { type AdamWConfig, type LearningRate, learningRate } from '../model/optimizer.ts';
import { checkParams, type ParamSet, parameterSpecs } from '../model/parameters.ts';
import { type DecoderKind, trainGraph } from '../model/programs.ts';
import type { Tokenizer } from '../policy/tokenizer.ts';
import {
  decisionCount,
  meanOver,
  type TrainGroup,
  type TurnEstimate,
  tokenCount,
  trainGroups,
  trainingFeeds,
} from '../policy/training-batch.ts';

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
  readonly coefficients: LossCoefficients;
  readonly learningRate: LearningRate;
  /** Gradients are scaled down to this global norm. */
  readonly maxGradNorm: number;
  readonly adamW: AdamWConfig;
  /** Leave out groups whose members all scored the same. */
  readonly filterGroups: boolean;
  /** uint32; orders the minibatches. */
  readonly seed: number;
}

/** Optimiser moments, by parameter. */
export interface Moments {
  /** Optimiser steps taken. */
  readonly steps: number;
  readonly m: Readonly<Record<string, Float32Array>>;
  readonly v: Readonly<Record<string, Float32Array>>;
}

export interface UpdateResult {
  /** Means over the update's optimiser steps: loss, policyLoss, entropy, klOld, clipFraction, gradNorm, … */
  readonly stats: Readonly<Record<string, number>>;
  readonly optimizerSteps: number;
  /** Steps not applied because something was not finite. */
  readonly skipped: number;
  readonly decisions: number;
  /** Tokens read by forward passes, all epochs, padding left out. */
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
  readonly #program: Program;
  #params: ParamSet;
  #moments: Moments;

  private constructor(options: TrainerOptions, program: Program, params: ParamSet, moments: Moments) {
    this.#options = options;
    this.#program = program;
    this.#params = params;
    this.#moments = moments;
  }

  /** @throws {UserError} BAD_WEIGHTS when the weights do not fit the model */
  static async create(engine: Engine, options: TrainerOptions, params: ParamSet, moments?: Moments): Promise<Trainer> {
    checkParams(options.model, params);
    const { decoder, adamW, model } = options;
    const program = await engine.compile(trainGraph(model, { decoder, objective: 'policy', adamW }));
    return new Trainer(options, program, params, moments ?? zeroMoments(model));
  }

  get params(): ParamSet {
    return this.#params;
  }

  get moments(): Moments {
    return this.#moments;
  }

  /**
   * Makes one update; the policy version grows by one, whatever was left out.
   * @param progress share of the run that is done, in [0, 1], for the learning rate
   */
  async update(groups: readonly Group[], progress: number): Promise<UpdateResult> {
    const options = this.#options;
    const { kept, filtered } = options.filterGroups
      ? siftGroups(groups, (group) => scores(group, options.estimator))
      : { kept: groups, filtered: [] };
    const { prepared, credit } = this.#prepare(kept);
    const sums: Record<string, number> = {};
    let steps = 0;
    let skipped = 0;
    const rng = Rng.fromSeed(seedFrom(options.seed, 'update', this.#params.version));
    for (let epoch = 0; epoch < options.epochs; epoch++) {
      for (const part of split(options.minibatches > 1 ? rng.shuffle(prepared) : prepared, options.minibatches)) {
        const stats = await this.#step(part, progress);
        if (!stats) {
          skipped++;
          continue;
        }
        steps++;
        for (const [name, value] of Object.entries(stats)) sums[name] = (sums[name] ?? 0) + value;
      }
    }
    this.#params = { version: this.#params.version + 1, values: this.#params.values };
    const stats: Record<string, number> = { learningRate: this.#rate(progress) };
    for (const [name, value] of Object.entries(sums)) stats[name] = value / Math.max(1, steps);
    return {
      stats,
      optimizerSteps: steps,
      skipped,
      decisions: decisionCount(prepared),
      tokens: tokenCount(prepared) * options.epochs,
      filtered: filtered.map(({ group }) => group),
      credit,
    };
  }

  async dispose(): Promise<void> {
    await this.#program.dispose();
  }

  /** Estimates over all groups at once (some estimators whiten over the batch), then encodes group by group. */
  #prepare(groups: readonly Group[]): { prepared: TrainGroup[]; credit: GroupCredit[] } {
    const { estimator, view, tokenizer } = this.#options;
    const estimates = estimate(groups, estimator);
    let next = 0;
    const credit: GroupCredit[] = [];
    const prepared = groups.flatMap(({ group, trajectories }) => {
      const own = estimates.slice(next, next + trajectories.length);
      credit.push({ group, advantages: own.map(({ advantages }) => Float32Array.from(advantages)) });
      const turns = trajectories.map((): TurnEstimate[] => {
        const { advantages, returns, weights } = estimates[next++]!;
        return Array.from(advantages, (advantage, d) => ({ advantage, return: returns[d]!, weight: weights[d]! }));
      });
      return trainGroups(view, tokenizer, trajectories, turns);
    });
    return { prepared, credit };
  }

  /** @returns statistics, or `undefined` when the step was not finite and nothing was changed */
  async #step(groups: readonly TrainGroup[], progress: number): Promise<Record<string, number> | undefined> {
    if (decisionCount(groups) === 0) return undefined;
    const { model, tokenizer, decoder, coefficients, maxGradNorm, adamW, estimator } = this.#options;
    const mean = meanOver(groups);
    const normalisation = estimator.aggregation.type === 'constant' ? { ...mean, policy: 1 } : mean;
    const t = this.#moments.steps + 1;
    const feeds = {
      ...trainingFeeds(model, tokenizer, decoder, groups, normalisation),
      ...scalars('loss', coefficients),
      ...scalars('adam', {
        lr: this.#rate(progress),
        maxGradNorm,
        correction1: 1 - adamW.beta1 ** t,
        correction2: 1 - adamW.beta2 ** t,
      }),
    };
    const specs = parameterSpecs(model);
    for (const { name, shape } of specs) {
      feeds[name] = { dtype: 'f32', shape, data: this.#params.values[name]! };
      feeds[`m/${name}`] = { dtype: 'f32', shape, data: this.#moments.m[name]! };
      feeds[`v/${name}`] = { dtype: 'f32', shape, data: this.#moments.v[name]! };
    }
    const out = await this.#program.run(feeds);
    const stats: Record<string, number> = {};
    const values: Record<string, Float32Array> = {};
    const m: Record<string, Float32Array> = {};
    const v: Record<string, Float32Array> = {};
    for (const { name } of specs) {
      values[name] = floats(out[`w/${name}`]);
      m[name] = floats(out[`m/${name}`]);
      v[name] = floats(out[`v/${name}`]);
    }
    for (const [name, tensor] of Object.entries(out)) if (tensor.shape.length === 0) stats[name] = floats(tensor)[0]!;
    const finite = Object.values(stats).every(Number.isFinite) && Object.values(values).every(allFinite);
    if (!finite) return undefined;
    this.#params = { version: this.#params.version, values };
    this.#moments = { steps: t, m, v };
    return stats;
  }

  #rate(progress: number): number {
    return learningRate(this.#options.learningRate, this.#moments.steps, progress);
  }
}

function zeroMoments(model: ModelConfig): Moments {
  const zeros = () =>
    Object.fromEntries(
      parameterSpecs(model).map(({ name, shape }) => [name, new Float32Array(shape.reduce((a, b) => a * b, 1))]),
    );
  return { steps: 0, m: zeros(), v: zeros() };
}

/** Cuts into at most `parts` consecutive parts of nearly equal length, none empty. */
function split<T>(items: readonly T[], parts: number): T[][] {
  const count = Math.min(parts, items.length);
  return Array.from({ length: count }, (_, i) =>
    items.slice(Math.floor((i * items.length) / count), Math.floor(((i + 1) * items.length) / count)),
  );
}

function scalars(prefix: string, values: Readonly<Record<string, number>>): Record<string, HostTensor> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      `${prefix}.${name}`,
      { dtype: 'f32', shape: [], data: Float32Array.of(value) },
    ]),
  );
}

function floats(tensor: HostTensor | undefined): Float32Array {
  return tensor!.data as Float32Array;
}

function allFinite(values: Float32Array): boolean {
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i]!)) return false;
  return true;
}
