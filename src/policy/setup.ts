/** From a configuration and a world's view to the small policy's model, weights and identity. */
import type { RunConfig } from '../config/run-config.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { seedFrom } from '../core/rng.ts';
import type { View } from '../core/view.ts';
import { checkModelConfig, type ModelConfig, smallModel } from '../model/config.ts';
import { initialParams, type ParamSet } from '../model/parameters.ts';
import type { LoadedCheckpoint } from '../record/checkpoint.ts';
import { type Identity, type RunState, runStateOf } from '../record/run-checkpoint.ts';
import { Tokenizer } from './tokenizer.ts';

export interface SmallPolicySetup<R, H> {
  readonly view: View;
  readonly model: ModelConfig;
  readonly identity: Identity;
  readonly params: ParamSet;
  /** What the checkpoint held; absent for a fresh run. */
  readonly saved: RunState<R, H> | undefined;
}

/**
 * @param checkpoint go on from its weights instead of random ones
 * @param initial a run's weights to start afresh from: version, moments and all else begin anew
 * @throws {UserError} BAD_CONFIG when the world has no view or the model cannot be; BAD_CHECKPOINT when the checkpoint
 *   belongs to another model
 */
export function setUpSmallPolicy<R, H>(
  config: RunConfig,
  view: View | undefined,
  checkpoint: LoadedCheckpoint | undefined,
  initial?: LoadedCheckpoint,
): SmallPolicySetup<R, H> {
  if (!view) {
    throw new UserError('BAD_CONFIG', `env.id: '${config.env.id}' has no view, so the small policy cannot read it`);
  }
  const tokenizer = new Tokenizer(view);
  const { decoder } = config.policy;
  const overrides = Object.fromEntries(Object.entries(config.policy.model).filter(([, value]) => value !== undefined));
  const model = smallModel(tokenizer.size, {
    ...overrides,
    choiceHead: decoder === 'choice',
    valueHead: config.learner.valueCoef > 0,
  });
  try {
    checkModelConfig(model);
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `policy.${messageOf(thrown)}`);
  }
  const identity: Identity = { env: config.env.id, view: view.id, vocabulary: tokenizer.hash, decoder, model };
  const saved = checkpoint && runStateOf<R, H>(checkpoint, identity);
  return {
    view,
    model,
    identity,
    params: saved?.params ?? startingParams(config, model, identity, initial),
    saved,
  };
}

function startingParams(
  config: RunConfig,
  model: ModelConfig,
  identity: Identity,
  initial: LoadedCheckpoint | undefined,
): ParamSet {
  if (!initial) return initialParams(model, seedFrom(config.seed, 'weights'));
  return { version: 0, values: runStateOf(initial, identity).params.values };
}
