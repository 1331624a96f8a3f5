/**
 * Direct preference optimisation: over pairs of episodes of one task the better one is made likelier than the worse
 * one, measured against the weights it started from.
 */

import type { Engine, HostTensor, Program } from '../../compute/engine/engine.ts';
import type { Breakage } from '../../compute/finite.ts';
import { compileAdamW, compileGradients, compileLogprobs, runsByLayers } from '../../compute/model/compile.ts';
import type { ModelConfig } from '../../compute/model/config.ts';
import { f32 } from '../../compute/model/feeds.ts';
import { type AdamWConfig, type LearningRate, learningRate } from '../../compute/model/optimizer.ts';
import { checkParams, type ParamSet } from '../../compute/model/parameters.ts';
import { trainGraph } from '../../compute/model/programs.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import { cut, type Measuring, measure } from '../../learning/learner/measure.ts';
import { sumPasses, unitBatches } from '../../learning/learner/micro-batches.ts';
import type { TrainerOptions } from '../../learning/learner/options.ts';
import { openReplicas, type Replica } from '../../learning/learner/replica.ts';
import { decisionsOf, type TrainGroup, trainingFeeds, trainUnits } from '../../learning/learner/training-batch.ts';
import { type Moments, optimizerFeeds, readStep, scalars, zeroMoments } from '../../learning/learner/weights.ts';
import type { OfflineStep } from './step.ts';

/** Pair of episodes of one task. */
export interface Pair {
  readonly chosen: Trajectory;
  readonly rejected: Trajectory;
}

export interface PreferenceOptions
  extends Pick<TrainerOptions, 'codec' | 'decoder' | 'masked' | 'chunks' | 'recompute' | 'maxTokens' | 'replicas'> {
  readonly model: ModelConfig;
  /** Strength of the pull to the starting weights, > 0; smaller lets the policy move farther. */
  readonly beta: number;
  readonly epochs: number;
  readonly pairsPerStep: number;
  readonly learningRate: LearningRate;
  readonly maxGradNorm: number;
  readonly adamW: AdamWConfig;
  /** Seed of the order of pairs, uint32. */
  readonly seed: number;
  /** Called after each optimiser step. */
  readonly onStep?: (step: OfflineStep) => void;
}

/** Epoch statistics: means over its optimiser steps. */
export interface PreferenceEpoch {
  readonly loss: number;
  /** Share of pairs whose better episode has become relatively likelier. */
  readonly accuracy: number;
  /** Margin: β times the mean difference of the log-ratios. */
  readonly margin: number;
}

/**
 * Trains on pairs.
 * @param onEpoch called after each epoch
 * @returns the new weights, or what was not finite (nothing is changed then)
 * @see Rafailov et al. 2023, https://arxiv.org/abs/2305.18290
 */
export async function trainOnPairs(
  engine: Engine,
  options: PreferenceOptions,
  start: ParamSet,
  pairs: readonly Pair[],
  onEpoch: (epoch: PreferenceEpoch) => void = () => {},
): Promise<{ readonly params: ParamSet; readonly moments: Moments } | { readonly broken: Breakage }> {
  const { model, codec, epochs, pairsPerStep, seed } = options;
  checkParams(model, start);
  const programs = await compile(engine, options);
  const measuring = { ...options, program: programs.logprobs };
  try {
    const units = pairs.map(({ chosen, rejected }) => trainUnits(codec, [chosen, rejected], 0).flat());
    const signs = units.map((unit, i) => signsOf(unit, pairs[i]!));
    const references = await sumSigned(measuring, start, units, signs);
    let params = start;
    let moments = zeroMoments(model);
    const rng = Rng.fromSeed(seedFrom(seed, 'pairs'));
    const indices = units.map((_, i) => i);
    const steps = Math.ceil(units.length / pairsPerStep);
    for (let epoch = 0; epoch < epochs; epoch++) {
      const sums = { loss: 0, accuracy: 0, margin: 0 };
      for (const [s, part] of cut(rng.shuffle(indices), steps).entries()) {
        const progress = (epoch * steps + s) / (epochs * steps);
        const batch = part.map((i) => ({ groups: units[i]!, signs: signs[i]!, reference: references[i]! }));
        const step = await pairStep(programs, options, params, moments, batch, progress);
        if ('broken' in step) return step;
        ({ params, moments } = step);
        for (const name of ['loss', 'accuracy', 'margin'] as const) sums[name] += step.stats[name]! / steps;
        options.onStep?.({ done: epoch * steps + s + 1, total: epochs * steps, loss: step.stats.loss! });
      }
      onEpoch(sums);
    }
    return { params: { version: start.version + epochs * steps, values: params.values }, moments };
  } finally {
    for (const program of [...programs.replicas, programs.step, programs.optimizer, programs.logprobs]) {
      await program?.dispose();
    }
  }
}

/** Programs of the training: of a step in one pass, or of passes that are summed up and of AdamW over their sums. */
interface Programs {
  readonly step: Program;
  readonly replicas: readonly Replica[];
  readonly optimizer: Program | undefined;
  readonly logprobs: Program;
}

async function compile(engine: Engine, options: PreferenceOptions): Promise<Programs> {
  const { model, decoder, masked, chunks, recompute, maxTokens, replicas = 1, adamW } = options;
  const decoding = { decoder, masked, chunks, recompute };
  const graph = { ...decoding, objective: 'preference', adamW } as const;
  const more = maxTokens === undefined ? 0 : replicas - 1;
  const inOne = maxTokens === undefined && !runsByLayers(engine, model);
  return {
    replicas: await openReplicas(more, engine, { model, options: { ...decoding, objective: 'preference' } }),
    step: inOne ? await engine.compile(trainGraph(model, graph)) : await compileGradients(engine, model, graph),
    optimizer: inOne ? undefined : await compileAdamW(engine, model, adamW),
    logprobs: await compileLogprobs(engine, model, decoding),
  };
}

/** Sign of each decision of a pair: 1 in the chosen episode, −1 in the rejected one, 0 where it is not trained on. */
function signsOf(unit: readonly TrainGroup[], { chosen, rejected }: Pair): number[] {
  return decisionsOf(unit).map(({ trajectory, turn }) => {
    const [episode, sign] = trajectory === 0 ? [chosen, 1] : [rejected, -1];
    return episode.turns[turn]!.untrained ? 0 : sign;
  });
}

/** Signed sums log π(chosen) − log π(rejected) of each pair. */
async function sumSigned(
  measuring: Measuring,
  params: ParamSet,
  units: readonly (readonly TrainGroup[])[],
  signs: readonly (readonly number[])[],
): Promise<number[]> {
  const { logprobs } = await measure(measuring, params, units, units.length);
  let at = 0;
  return signs.map((own) => own.reduce((sum, sign) => sum + sign * logprobs[at++]!, 0));
}

/** Pair as an optimiser step reads it. */
interface ReadPair {
  readonly groups: readonly TrainGroup[];
  readonly signs: readonly number[];
  readonly reference: number;
}

async function pairStep(
  { step, replicas, optimizer }: Programs,
  options: PreferenceOptions,
  params: ParamSet,
  moments: Moments,
  pairs: readonly ReadPair[],
  progress: number,
) {
  const { model, beta, maxGradNorm, adamW, learningRate: rate, maxTokens } = options;
  const t = moments.steps + 1;
  const rates = scalars('adam', {
    lr: learningRate(rate, moments.steps, progress),
    maxGradNorm,
    correction1: 1 - adamW.beta1 ** t,
    correction2: 1 - adamW.beta2 ** t,
  });
  const weights = optimizerFeeds(model, params, moments);
  const pass = (part: readonly ReadPair[]) => ({
    ...pairFeeds(options, part),
    ...scalars('loss', { beta, pairs: pairs.length }),
  });
  if (!optimizer) return readStep(model, params.version, t, await step.run({ ...pass(pairs), ...weights, ...rates }));
  const sums = await sumPasses(
    { program: step, replicas },
    weights,
    (maxTokens === undefined ? [pairs] : unitBatches(pairs, maxTokens)).map((part) => () => pass(part)),
  );
  const out = await optimizer.run({ ...sums, ...weights, ...rates });
  const stats = Object.fromEntries(Object.entries(sums).filter(([, { shape }]) => shape.length === 0));
  return readStep(model, params.version, t, { ...stats, ...out });
}

/** Inputs of a pass over some pairs of a step. */
function pairFeeds(options: PreferenceOptions, pairs: readonly ReadPair[]): Record<string, HostTensor> {
  const { model, codec } = options;
  const groups = pairs.flatMap((pair) => pair.groups);
  const { feeds, rows } = trainingFeeds(model, codec, options, groups);
  const width = feeds['decisions.chosen']!.data.length;
  const sign = new Float32Array(pairs.length * width);
  let at = 0;
  pairs.forEach(({ signs }, b) => {
    for (const one of signs) sign[b * width + rows[at++]!] = one;
  });
  return {
    ...feeds,
    'pairs.sign': f32([pairs.length, width], sign),
    'pairs.reference': f32(
      [pairs.length],
      Float32Array.from(pairs, ({ reference }) => reference),
    ),
  };
}

/**
 * Pairs within each task: its best episode with its worst, its second best with its second worst, and so on. Their
 * scores must differ, and `sameStart` must return true for them.
 */
export function pairUp<T extends { readonly task: string; readonly score: number }>(
  episodes: readonly T[],
  sameStart: (a: T, b: T) => boolean = () => true,
): { readonly chosen: T; readonly rejected: T }[] {
  const byTask = new Map<string, T[]>();
  for (const one of episodes) byTask.set(one.task, [...(byTask.get(one.task) ?? []), one]);
  return [...byTask.values()].flatMap((own) => {
    const ranked = own.toSorted((a, b) => b.score - a.score);
    const pairs: { chosen: T; rejected: T }[] = [];
    for (let i = 0, j = ranked.length - 1; i < j; i++, j--) {
      const [chosen, rejected] = [ranked[i]!, ranked[j]!];
      if (chosen.score > rejected.score && sameStart(chosen, rejected)) pairs.push({ chosen, rejected });
    }
    return pairs;
  });
}
