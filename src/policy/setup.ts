/** Model, weights and identity of a policy, from a configuration and a world. */

import { checkModelConfig, type ModelConfig, smallModel } from '../compute/model/config.ts';
import { initialParams, type ParamSet } from '../compute/model/parameters.ts';
import { policyKindOf } from '../config/policy-kinds.ts';
import type { RunConfig } from '../config/run-config.ts';
import { messageOf, UserError } from '../core/errors.ts';
import type { WorldPrompt } from '../core/prompt.ts';
import { seedFrom } from '../core/rng.ts';
import type { View } from '../core/view.ts';
import { type Identity, type RunState, runStateOf } from '../learning/learner/run-state.ts';
import type { LoadedCheckpoint } from '../storage/checkpoint.ts';
import type { ChatCodecSpec } from '../text/reading/chat-codec.ts';
import type { Codec } from '../text/reading/codec.ts';
import { codecOf, type Reading } from '../text/reading/codec-of.ts';
import { setUpCheckpointPolicy } from './setup-checkpoint.ts';

/** Setup of a policy that is not opened yet: its facts and weights alone. */
export interface PolicySetup<R, H> {
  /** Codec that names view and vocabulary; threads open one of their own. */
  readonly codec: Codec;
  /** Reading of a language model, from which threads open its codec; absent for others. */
  readonly chat?: ChatCodecSpec;
  readonly model: ModelConfig;
  readonly identity: Identity;
  readonly params: ParamSet;
  /** State that the checkpoint held; absent for a fresh run. */
  readonly saved: RunState<R, H> | undefined;
  /** Notices for a person, one line each. */
  readonly notices: readonly string[];
}

/**
 * Sets up the policy that the configuration names, if it has weights of its own.
 * @param world what a local policy and a language model read it by
 * @param dir the run's folder
 * @returns `undefined` for a policy without
 * @throws {UserError} as `setUpLocalPolicy` and `setUpCheckpointPolicy` do
 */
export function setUpPolicy<R, H>(
  config: RunConfig,
  world: Reading & { readonly prompt: WorldPrompt },
  dir: string,
  checkpoint: LoadedCheckpoint | undefined,
  initial?: LoadedCheckpoint,
): PolicySetup<R, H> | undefined {
  const { learns, isLanguageModel } = policyKindOf(config);
  if (!learns) return undefined;
  if (isLanguageModel) return setUpCheckpointPolicy(config, world.prompt, dir, checkpoint, initial);
  return setUpLocalPolicy(config, world.view, checkpoint, initial, world.views);
}

/**
 * Sets up the local policy.
 * @param view the world's own; absent: the default view
 * @param checkpoint go on from its weights instead of random ones
 * @param initial a run's weights to start afresh from: version, moments and all else begin anew
 * @param views of several worlds by name, in the place of `view`
 * @throws {UserError} BAD_CONFIG when the model cannot be; BAD_CHECKPOINT when the checkpoint
 *   belongs to another model
 */
export function setUpLocalPolicy<R, H>(
  config: RunConfig,
  view: View | undefined,
  checkpoint: LoadedCheckpoint | undefined,
  initial?: LoadedCheckpoint,
  views?: Reading['views'],
): PolicySetup<R, H> {
  const codec = codecOf({ view, views });
  const { decoder } = config.policy;
  const { sameLineBias, ...given } = config.policy.model;
  const overrides = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const model = smallModel(codec.vocabSize, {
    ...overrides,
    ...(sameLineBias === undefined ? {} : { sameLineBias: { bias: sameLineBias, newline: codec.spell('\n')[0]! } }),
    choiceHead: decoder === 'choice',
    valueHead: config.learner.valueCoef > 0,
  });
  try {
    checkModelConfig(model);
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `policy.${messageOf(thrown)}`);
  }
  const identity: Identity = { env: config.env.id, view: codec.id, vocabulary: codec.hash, decoder, model };
  const saved = checkpoint && runStateOf<R, H>(checkpoint, identity);
  return {
    codec,
    model,
    identity,
    params: saved?.params ?? startingParams(config, model, identity, initial),
    saved,
    notices: [],
  };
}

/** Parameters of a fresh run: random, or another run's weights as version 0, without their moments. */
function startingParams(
  config: RunConfig,
  model: ModelConfig,
  identity: Identity,
  initial: LoadedCheckpoint | undefined,
): ParamSet {
  if (!initial) return initialParams(model, seedFrom(config.seed, 'weights'));
  return { version: 0, values: runStateOf(initial, identity).params.values };
}
