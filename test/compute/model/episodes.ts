/** Random batches of episodes for the model's programs, and a speller small enough for naive checks. */

import type { HostTensor } from '../../../src/compute/engine/engine.ts';
import type { ModelConfig } from '../../../src/compute/model/config.ts';
import { type ParamSet, parameterSpecs } from '../../../src/compute/model/parameters.ts';
import type { DecoderKind } from '../../../src/compute/model/programs.ts';
import { Rng } from '../../../src/core/rng.ts';
import {
  decisionsOf,
  type TrainDecision,
  type TrainGroup,
  trainingFeeds,
} from '../../../src/learning/learner/training-batch.ts';
import type { Codec } from '../../../src/text/reading/codec.ts';

export const VOCABULARY = 24;

/** A public checkpoint's options: causal, grouped queries, biases, an untied head. */
export const plainConfig: ModelConfig = {
  vocabSize: VOCABULARY,
  hiddenSize: 16,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  intermediateSize: 24,
  ropeTheta: 100,
  rmsNormEps: 1e-6,
  qkvBias: true,
  tieEmbeddings: false,
  maxPositions: 64,
  prefixBidirectional: false,
  tokenShift: 0,
  focusBit: false,
  embeddingScale: 1,
  choiceHead: false,
  valueHead: true,
};

/** What other families compute: windows of four tokens, two rotary bases, norms around, soft caps. */
export const slidingConfig: ModelConfig = {
  ...plainConfig,
  layers: 3,
  qkvBias: false,
  tieEmbeddings: true,
  headDim: 8,
  rotaryWidth: 6,
  ropeFactors: [1, 2, 4],
  ropeScale: 1.2,
  slidingLayers: [0, 2],
  slidingWindow: 4,
  localRopeTheta: 10,
  queryScale: 0.5,
  attentionCap: 2,
  logitCap: 3,
  centredGains: true,
  outputNorms: true,
  activation: 'gelu',
  embeddingScale: 4,
};

/** The local policy's options, all on. */
export const optionsConfig: ModelConfig = {
  ...plainConfig,
  heads: 2,
  kvHeads: 2,
  qkvBias: false,
  tieEmbeddings: true,
  prefixBidirectional: true,
  tokenShift: 2,
  focusBit: true,
  sameTokenBias: 1.5,
  sameLineBias: { bias: 2, newline: 6 },
  embeddingScale: 1.7,
  choiceHead: true,
};

/** A letter is a token: 'a' is 4, after the four special ones. */
export const letters: Pick<Codec, 'spell' | 'sampled' | 'end'> = {
  sampled: { from: 2, to: VOCABULARY },
  end: 2,
  spell: (text) => Int32Array.from(text, (letter) => 4 + ((letter.charCodeAt(0) - 97) % 20)),
};

/** Weights far enough from their start that nothing is zero or one by chance. */
export function randomParams(config: ModelConfig, seed: number): ParamSet {
  const rng = Rng.fromSeed(seed);
  const values = Object.fromEntries(
    parameterSpecs(config).map(({ name, shape, init }) => {
      const size = shape.reduce((a, b) => a * b, 1);
      const centre = init.kind === 'fill' ? init.value : 0;
      return [name, Float32Array.from({ length: size }, () => centre + 0.3 * rng.normal())];
    }),
  );
  return { version: 0, values };
}

export function weightFeeds(config: ModelConfig, { values }: ParamSet): Record<string, HostTensor> {
  return Object.fromEntries(
    parameterSpecs(config).map(({ name, shape }) => [name, { dtype: 'f32', shape, data: values[name]! }]),
  );
}

export interface BatchShape {
  readonly groups: number;
  readonly members: number;
  /** Longest prompt and longest member. */
  readonly prompt: number;
  readonly tokens: number;
}

/** A decision with a possible estimate of it. */
export interface Estimated extends TrainDecision {
  readonly estimate: { readonly advantage: number; readonly return: number; readonly weight: number };
  readonly trainsValue: boolean;
}

/** Sum of the weights, and number of decisions that train the value. */
export function meanOver(groups: readonly TrainGroup[]): { readonly policy: number; readonly value: number } {
  const decisions = decisionsOf(groups) as Estimated[];
  const policy = decisions.reduce((sum, { estimate }) => sum + estimate.weight, 0);
  return { policy, value: Math.max(1, decisions.filter(({ trainsValue }) => trainsValue).length) };
}

/** Groups of random lengths; every member has decisions at random places, some groups fewer members. */
export function randomGroups(decoder: DecoderKind, shape: BatchShape, seed: number): TrainGroup[] {
  const rng = Rng.fromSeed(seed);
  const token = () => 4 + rng.int(VOCABULARY - 4);
  return Array.from({ length: shape.groups }, () => {
    const tokens = Int32Array.from({ length: 1 + rng.int(shape.prompt) }, token);
    const mentions = new Map<string, number[]>();
    const actions = Array.from({ length: 2 + rng.int(3) }, (_, a) => {
      const text = String.fromCharCode(97 + a) + 'dog'.slice(0, rng.int(4));
      mentions.set(
        text,
        Array.from({ length: 1 + rng.int(2) }, () => rng.int(tokens.length)),
      );
      return text;
    });
    const prompt = {
      tokens,
      shared: true,
      focus: new Set([token(), token()]),
      mentions: (action: string) => mentions.get(action)!,
    };
    const members = Array.from({ length: 1 + rng.int(shape.members) }, () => {
      const length = 1 + rng.int(shape.tokens);
      const places = Array.from({ length }, (_, t) => t).filter((t) => t === length - 1 || rng.float() < 0.5);
      return {
        tokens: Array.from({ length }, token),
        decisions: places.map((at) => {
          const all = decoder === 'choice' ? actions.map((_, a) => a) : undefined;
          const allowed = all?.filter((a) => a === 0 || rng.float() < 0.7);
          const chosen = allowed ? allowed[rng.int(allowed.length)]! : token();
          const decision: Estimated = {
            trajectory: 0,
            turn: at,
            token: 0,
            at,
            allowed,
            chosen,
            logprob: -1 - rng.float(),
            value: rng.normal(),
            estimate: { advantage: rng.normal(), return: rng.normal(), weight: 0.5 + rng.float() },
            trainsValue: rng.float() < 0.8,
          };
          return decision;
        }),
      };
    });
    return { prompt, candidates: actions.map((action) => ({ action, read: action })), members };
  });
}

export const coefficients = {
  clipLow: 0.2,
  clipHigh: 0.3,
  entropyCoef: 0.01,
  valueCoef: 0.5,
  valueClip: 0.4,
  klCoef1: 0,
  klCoef2: 0,
  klCoef3: 0.05,
};

export function scalarFeeds(prefix: string, values: Readonly<Record<string, number>>): Record<string, HostTensor> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      `${prefix}.${name}`,
      { dtype: 'f32', shape: [], data: Float32Array.of(value) } as HostTensor,
    ]),
  );
}

export function episodeFeeds(
  config: ModelConfig,
  decoder: DecoderKind,
  groups: readonly TrainGroup[],
): Record<string, HostTensor> {
  const mean = meanOver(groups);
  const feedOf = (decision: TrainDecision) => {
    const { estimate, trainsValue, logprob, value } = decision as Estimated;
    return {
      oldLogprob: logprob,
      referenceLogprob: logprob, // the behaviour policy stands in for the reference
      advantage: estimate.advantage,
      weight: estimate.weight / mean.policy,
      return: estimate.return,
      oldValue: value,
      valueWeight: trainsValue ? 1 / mean.value : 0,
    };
  };
  return {
    ...trainingFeeds(config, letters, { decoder }, groups, feedOf).feeds,
    ...scalarFeeds('loss', coefficients),
  };
}
