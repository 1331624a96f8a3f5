/** Log-probabilities and values of recorded decisions under given weights; one forward pass, nothing changed. */

import type { Program } from '../../compute/engine/engine.ts';
import type { ModelConfig } from '../../compute/model/config.ts';
import type { ParamSet } from '../../compute/model/parameters.ts';
import type { DecoderKind } from '../../compute/model/programs.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import type { Codec } from '../../text/reading/codec.ts';
import { microBatches } from './micro-batches.ts';
import { decisionCount, decisionsOf, finalGroup, type TrainGroup, trainingFeeds } from './training-batch.ts';
import { floats, weightFeeds } from './weights.ts';

/** Program and codec of a measurement. */
export interface Measuring {
  readonly model: ModelConfig;
  readonly codec: Codec;
  readonly decoder: DecoderKind;
  readonly masked?: boolean | undefined;
  /** Tokens of one pass, padding included; absent: there are as many passes as asked for. */
  readonly maxTokens?: number | undefined;
  /** A compiled `logprobsGraph`. */
  readonly program: Program;
}

/** Measurements by decision, in the order of `decisionsOf`. */
export interface Measured {
  readonly logprobs: Float64Array;
  /** V at the deciding position; 0 without a value head. */
  readonly values: Float64Array;
  /** Log-probabilities of the allowed actions of each choice, in their order; where the program lists all. */
  readonly listed: readonly Float32Array[] | undefined;
}

/**
 * Log-probabilities and values of recorded decisions under `params`.
 * @param parts passes to spread the work over, ≥ 1: as many as an epoch has minibatches, so that no pass is larger
 */
export async function measure(
  measuring: Measuring,
  params: ParamSet,
  units: readonly (readonly TrainGroup[])[],
  parts = 1,
): Promise<Measured> {
  const { model, codec, program, maxTokens } = measuring;
  // Passes may take groups in another order, and part their members.
  const placeOf = new Map(decisionsOf(units.flat()).map((decision, at) => [decision, at]));
  const logprobs = new Float64Array(placeOf.size);
  const values = new Float64Array(placeOf.size);
  const listed = new Array<Float32Array>(placeOf.size);
  const passes =
    maxTokens === undefined ? cut(units, parts).map((part) => part.flat()) : microBatches(units.flat(), maxTokens);
  for (const groups of passes) {
    if (decisionCount(groups) === 0) continue;
    const { feeds, rows } = trainingFeeds(model, codec, measuring, groups);
    const out = await program.run({ ...feeds, ...weightFeeds(model, params) });
    const logprob = floats(out.logprob);
    const value = model.valueHead ? floats(out.value) : undefined;
    const all = out.logprobs;
    for (const [i, decision] of decisionsOf(groups).entries()) {
      const at = placeOf.get(decision)!;
      logprobs[at] = logprob[rows[i]!]!;
      if (value) values[at] = value[rows[i]!]!;
      if (!all) continue;
      const first = rows[i]! * all.shape.at(-1)!;
      listed[at] = Float32Array.from(decision.allowed!, (id) => (all.data as Float32Array)[first + id]!);
    }
  }
  return { logprobs, values, listed: program.outputs.some(({ name }) => name === 'logprobs') ? listed : undefined };
}

/** V of the final observation of each trajectory under `params`. */
export async function finalValues(
  measuring: Measuring,
  params: ParamSet,
  trajectories: readonly Trajectory[],
  parts = 1,
): Promise<Map<Trajectory, number>> {
  const units = trajectories.map((trajectory, i) => [
    finalGroup(measuring.codec, trajectory, i, measuring.model.maxPositions),
  ]);
  const { values } = await measure(measuring, params, units, parts);
  return new Map(trajectories.map((trajectory, i) => [trajectory, values[i]!]));
}

/** Cuts a list into at most `parts` consecutive parts of nearly equal length, none empty. */
export function cut<T>(items: readonly T[], parts: number): T[][] {
  const count = Math.min(parts, items.length);
  return Array.from({ length: count }, (_, i) =>
    items.slice(Math.floor((i * items.length) / count), Math.floor(((i + 1) * items.length) / count)),
  );
}
