/** State of a run between two updates, and the content of a checkpoint that keeps it. Checked where it is loaded (run-checkpoint.ts). */

import type { ModelConfig } from '../../compute/model/config.ts';
import { type ParamSet, parameterSpecs } from '../../compute/model/parameters.ts';
import { describeValue } from '../../core/describe-value.ts';
import { UserError } from '../../core/errors.ts';
import type { CheckpointContent, Json, LoadedCheckpoint } from '../../storage/checkpoint.ts';
import type { StoredTensors } from '../../storage/safetensors.ts';
import type { Moments, TrainerState } from './trainer.ts';

export const RUN_STATE_FORMAT = 2;

/** Identity of weights: the conditions under which they are valid. */
export interface Identity {
  readonly env: string;
  readonly view: string;
  readonly vocabulary: string;
  readonly decoder: string;
  readonly model: ModelConfig;
}

/** State of a learner besides weights and moments; plain JSON. */
export interface LearnerState {
  readonly trainer: TrainerState;
  /** Updates in a row that were taken back. */
  readonly brokenInARow: number;
}

/** State of a run between two updates. `rollout` and `horizon` are plain JSON of the actors that own them. */
export interface RunState<R, H> {
  /** Identity of the run (src/storage/run-identity.ts); absent in a folder that has none. */
  readonly run?: string | undefined;
  readonly identity: Identity;
  readonly params: ParamSet;
  readonly moments: Moments;
  /** Reference policy's weights, where the run has one. */
  readonly reference?: ParamSet | undefined;
  /** Average of the weights that teaches the run, where it has such a teacher. */
  readonly average?: ParamSet | undefined;
  readonly learner: LearnerState;
  readonly rollout: R;
  readonly horizon: H;
}

/**
 * Content of a checkpoint: tensors `<name>`, `m/<name>`, `v/<name>`, of a reference policy `reference/<name>` and of an average
 * that teaches `average/<name>`; everything else as JSON.
 */
export function checkpointContent<R, H>(run: RunState<R, H>): CheckpointContent {
  const tensors: Record<string, { shape: readonly number[]; data: Float32Array }> = {};
  for (const { name, shape } of parameterSpecs(run.identity.model)) {
    tensors[name] = { shape, data: run.params.values[name]! };
    tensors[`m/${name}`] = { shape, data: run.moments.m[name]! };
    tensors[`v/${name}`] = { shape, data: run.moments.v[name]! };
    if (run.reference) tensors[`reference/${name}`] = { shape, data: run.reference.values[name]! };
    if (run.average) tensors[`average/${name}`] = { shape, data: run.average.values[name]! };
  }
  const state = {
    format: RUN_STATE_FORMAT,
    ...(run.run === undefined ? {} : { run: run.run }),
    identity: run.identity,
    version: run.params.version,
    optimizerSteps: run.moments.steps,
    ...(run.reference ? { referenceVersion: run.reference.version } : {}),
    learner: run.learner,
    rollout: run.rollout,
    horizon: run.horizon,
  };
  return { tensors: tensors as StoredTensors, state: state as unknown as Json };
}

/**
 * Reads the state of a run.
 * @param checkpoint as `loadNewestOf` gave it
 * @param expected what the configuration asks for; absent to take the checkpoint as it is
 * @throws {UserError} BAD_CHECKPOINT when it belongs to another world, view, vocabulary, decoder or model
 */
export function runStateOf<R, H>(checkpoint: LoadedCheckpoint, expected?: Identity): RunState<R, H> {
  const state = checkpoint.state as unknown as {
    readonly format: number;
    readonly identity: Identity;
    readonly version: number;
    readonly optimizerSteps: number;
    readonly referenceVersion?: number;
    readonly learner: LearnerState;
    readonly rollout: R;
    readonly horizon: H;
  };
  if (state?.format !== RUN_STATE_FORMAT) {
    throw new UserError(
      'BAD_CHECKPOINT',
      `${checkpoint.path}: expected run state format ${RUN_STATE_FORMAT}, got ${state?.format}; it was written by another version of longplay`,
    );
  }
  if (expected) checkIdentity(checkpoint.path, state.identity, expected);
  const specs = parameterSpecs(state.identity.model);
  const column = (prefix: string) =>
    Object.fromEntries(
      specs.map(({ name }) => {
        const tensor = checkpoint.tensors[`${prefix}${name}`];
        if (!tensor) throw new UserError('BAD_CHECKPOINT', `${checkpoint.path}: tensor '${prefix}${name}' is missing`);
        return [name, tensor.data as Float32Array];
      }),
    );
  return {
    identity: state.identity,
    params: { version: state.version, values: column('') },
    moments: { steps: state.optimizerSteps, m: column('m/'), v: column('v/') },
    ...(state.referenceVersion === undefined
      ? {}
      : { reference: { version: state.referenceVersion, values: column('reference/') } }),
    ...(state.learner.trainer.teacher?.type === 'ema'
      ? { average: { version: state.version, values: column('average/') } }
      : {}),
    learner: state.learner,
    rollout: state.rollout,
    horizon: state.horizon,
  };
}

function checkIdentity(path: string, found: Identity, expected: Identity): void {
  const differs = (key: string, a: unknown, b: unknown) => {
    throw new UserError(
      'BAD_CHECKPOINT',
      `${path}: it is of another model: ${key} is ${describeValue(a)} there, ${describeValue(b)} here; use the configuration it was trained with`,
    );
  };
  for (const key of ['env', 'view', 'vocabulary', 'decoder'] as const) {
    if (found[key] === expected[key]) continue;
    // A user's module may have been moved; its view and vocabulary show whether it is the same.
    if (key === 'env' && [found, expected].every(({ env }) => /[\\/]/.test(env))) continue;
    differs(key, found[key], expected[key]);
  }
  for (const key of Object.keys(expected.model) as (keyof ModelConfig)[]) {
    if (JSON.stringify(found.model[key]) === JSON.stringify(expected.model[key])) continue;
    differs(`model.${key}`, found.model[key], expected.model[key]);
  }
}
