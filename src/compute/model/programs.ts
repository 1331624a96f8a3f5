/**
 * Graphs that a policy and a learner compile, all over the same parameter names.
 *
 * Symbols: G groups · K members per group · P prompt tokens (padded) · Np prompt tokens (packed) · T new tokens per
 * member (padded) · N new tokens (packed) · S cached tokens per member (padded) · C candidate actions per group ·
 * I different lists of mentions in a group · M mentions per list · A different action texts · U different pieces of
 * them · D decisions per group · R token decisions · L ids that a masked one lists.
 */

import type { PolicyLossType } from '../../algo/policy-loss.ts';
import { gradients } from '../tensor/gradients.ts';
import { defineGraph, type Graph } from '../tensor/graph.ts';
import { add, logSoftmax, pick, possibleMask, reshape, slice, take, tokenScores, transpose } from '../tensor/ops.ts';
import { type Shape, times } from '../tensor/shape.ts';
import { input, type Tensor } from '../tensor/tensor.ts';
import {
  attendCached,
  episodeAttention,
  type KeysValues,
  layoutInputs,
  promptAttention,
  promptIds,
  promptSteps,
} from './attention.ts';
import { checkModelConfig, headSize, type ModelConfig } from './config.ts';
import {
  actionBags,
  actionPieceInputs,
  type Candidates,
  choiceScores,
  outputTable,
  pointerKeys,
  rowsOf,
  tokenLogits,
  values,
} from './heads.ts';
import {
  type AuxiliaryLosses,
  type DecisionTerms,
  entropyOf,
  type LossOutputs,
  likelihoodLoss,
  policyLoss,
  preferenceLoss,
} from './loss.ts';
import { type AdamWConfig, adamW } from './optimizer.ts';
import { parameterSpecs, parameterTensors } from './parameters.ts';
import { type Parameters, tokenInputs, trunk } from './transformer.ts';

/** Decoder of a policy: whole actions, or token by token. */
export type DecoderKind = 'choice' | 'tokens';

/**
 * Reads prompts. Outputs per layer `k<l>`, `v<l>` [G, kvHeads, P, dh] and, with a choice head, `pointerKeys` [Np, d].
 */
export function prefillGraph(config: ModelConfig): Graph {
  checkModelConfig(config);
  const p = parameterTensors(config);
  const { hidden, layers } = readPrompts(config, p);
  const outputs: Record<string, Tensor> = {};
  layers.forEach(({ k, v }, layer) => {
    outputs[`k${layer}`] = transpose(k, [1, 0, 2, 3]);
    outputs[`v${layer}`] = transpose(v, [1, 0, 2, 3]);
  });
  if (config.choiceHead) outputs.pointerKeys = pointerKeys(p, hidden);
  return defineGraph(outputs);
}

/** Next-token logits at every token of the prompts, `logits` [Np, V]: one plain forward pass of a language model. */
export function forwardGraph(config: ModelConfig): Graph {
  checkModelConfig(config);
  const p = parameterTensors(config);
  return defineGraph({ logits: tokenLogits(config, p, readPrompts(config, p).hidden) });
}

/** Turns action texts into vectors: `bags` [A, d]. */
export function actionsGraph(config: ModelConfig): Graph {
  return defineGraph({ bags: actionBags(config, parameterTensors(config), actionPieceInputs(config, 'A')) });
}

/**
 * Reads each member's new tokens and scores the candidates of its group at its deciding position. Outputs `scores`
 * [G, K, C] (unmasked), `values` [G·K], and the new keys and values of each layer, packed: `k<l>`, `v<l>` [N, kvHeads·dh].
 */
export function chooseGraph(config: ModelConfig): Graph {
  const p = parameterTensors(config);
  const { hidden, outputs } = continueEpisodes(config, p);
  const rows = times('G', 'K');
  const layout = layoutInputs('decisions', ['G', 'K'], 'N');
  const deciding = take(hidden, layout.index, layout.inverse);
  const { hiddenSize: d } = config;
  const candidates: Candidates = {
    bags: input('candidates.bags', ['G', 'C', d]),
    keys: input('candidates.keys', ['G', times('I', 'M'), d]),
    mentionMask: input('candidates.mentionMask', ['G', 'I', 'M']),
    lists: input('candidates.lists', ['G', 'C'], 'i32'),
  };
  outputs.scores = choiceScores(config, p, reshape(deciding, ['G', 'K', d]), candidates, 'K');
  if (config.valueHead) outputs.values = values(p, deciding, rows);
  return defineGraph(outputs, { fewRows: true });
}

/**
 * Reads whole windows, nothing cached, and scores the candidates of each, for a view that is rendered anew every turn.
 * It does what {@link prefillGraph}, {@link actionsGraph} and {@link chooseGraph} do, in one call and without carrying
 * keys and values back and forth. Outputs `scores` [G, D, C] (unmasked) and, with a value head, `values` [G·D].
 */
export function windowGraph(config: ModelConfig): Graph {
  checkModelConfig(config);
  const p = parameterTensors(config);
  const { prompts, hidden } = readEpisodes(config, p);
  const { scores, deciding } = scoreChoices(config, p, prompts.hidden, hidden);
  return defineGraph({ scores, ...(config.valueHead ? { values: values(p, deciding, times('G', 'D')) } : {}) });
}

/** Decodes as {@link chooseGraph} chooses, but with next-token `logits` [G·K, V] at each member's last new token. */
export function decodeGraph(config: ModelConfig): Graph {
  const p = parameterTensors(config);
  const { hidden, outputs } = continueEpisodes(config, p);
  const rows = times('G', 'K');
  const layout = layoutInputs('decisions', ['G', 'K'], 'N');
  const deciding = take(hidden, layout.index, layout.inverse);
  outputs.logits = tokenLogits(config, p, deciding);
  if (config.valueHead) outputs.values = values(p, deciding, rows);
  return defineGraph(outputs, { fewRows: true });
}

/** Kind of the decisions, and the part of the vocabulary that is looked at at once. */
export interface Decoding {
  readonly decoder: DecoderKind;
  /**
   * Masked token decisions: only some of the ids could be drawn. They are fed as lists, `decisions.allowed` [R, L] and what
   * goes with it ({@link possibleMask}), never as [R, V]. True by default.
   */
  readonly masked?: boolean | undefined;
  /** Parts that token decisions over a frozen vocabulary are computed in, so that [R, V] is never kept; 1. */
  readonly chunks?: number | undefined;
  /** True when a layer's activations are computed again in the backward pass instead of being kept. */
  readonly recompute?: boolean | undefined;
  /** True where a program that measures choices also gives the log-probabilities of all listed actions. */
  readonly listsAll?: boolean | undefined;
}

export interface TrainOptions extends Decoding, AuxiliaryLosses {
  readonly objective: 'policy' | 'likelihood' | 'preference';
  /** Surrogate of the objective `policy`; `ppo_clip` by default. */
  readonly policyLoss?: PolicyLossType | undefined;
  readonly adamW: AdamWConfig;
}

/**
 * Training step over whole episodes (the prompt of a group computed once): forward, backward and AdamW. Outputs `loss`,
 * the loss's statistics, `gradNorm`, and `w/`, `m/`, `v/` for every parameter that is trained.
 */
export function trainGraph(config: ModelConfig, options: TrainOptions): Graph {
  const p = parameterTensors(config);
  const { loss, stats } = episodeLoss(config, p, options);
  const specs = parameterSpecs(config);
  const weights = specs.map(({ name }) => p(name));
  const updated = adamW(specs, weights, gradients(loss, weights), options.adamW);
  return defineGraph({ loss, ...stats, ...updated });
}

/** Gradients alone, for checks: outputs `loss`, statistics and `d/<name>`. */
export function gradientGraph(config: ModelConfig, options: Omit<TrainOptions, 'adamW'>): Graph {
  const p = parameterTensors(config);
  const { loss, stats } = episodeLoss(config, p, options);
  const specs = parameterSpecs(config);
  const grads = gradients(
    loss,
    specs.map(({ name }) => p(name)),
  );
  return defineGraph({ loss, ...stats, ...Object.fromEntries(specs.map(({ name }, i) => [`d/${name}`, grads[i]!])) });
}

/** AdamW alone, over gradients that are fed: `d/<name>` for every parameter. Outputs as {@link trainGraph}, less the loss. */
export function adamWGraph(config: ModelConfig, options: AdamWConfig): Graph {
  const p = parameterTensors(config);
  const specs = parameterSpecs(config);
  const grads = specs.map(({ name, shape }) => input(`d/${name}`, shape));
  const weights = specs.map(({ name }) => p(name));
  return defineGraph(adamW(specs, weights, grads, options));
}

/**
 * AdamW of one parameter of any shape, laid out flat: inputs `w`, `d/w`, `m/w`, `v/w` [n], the scalars of {@link adamW} and the
 * global norm `adam.gradNorm`; outputs `w/w`, `m/w`, `v/w` [n].
 * @param decay true where weight decay applies to it
 */
export function flatAdamWGraph(options: AdamWConfig, decay: boolean): Graph {
  const own = input('w', ['n']);
  const { gradNorm: _, ...updated } = adamW(
    [{ name: 'w', decay }],
    [own],
    [input('d/w', ['n'])],
    options,
    input('adam.gradNorm', []),
  );
  return defineGraph(updated);
}

/**
 * Log-probabilities of recorded decisions under other weights: `logprob`, `entropy`, with a value head `value`, and with
 * `listsAll` those of all listed actions, `logprobs` [G, D, C].
 */
export function logprobsGraph(config: ModelConfig, decoding: Decoding): Graph {
  return defineGraph(measureTerms(episodeTerms(config, parameterTensors(config), decoding), decoding));
}

function episodeLoss(config: ModelConfig, p: Parameters, options: Omit<TrainOptions, 'adamW'>): LossOutputs {
  return objectiveLoss(episodeTerms(config, p, options), options);
}

type TermsOptions = Pick<TrainOptions, 'decoder' | 'objective' | 'policyLoss' | keyof AuxiliaryLosses>;

/** Loss of an objective over the terms of recorded decisions. */
export function objectiveLoss(
  { terms, shape }: EpisodeTerms,
  { decoder, objective, policyLoss: type, ...auxiliary }: TermsOptions,
): LossOutputs {
  if (objective === 'preference') return preferenceLoss(terms, decoder === 'choice' ? times('G', 'D') : 'R');
  return objective === 'policy' ? policyLoss(terms, shape, type, auxiliary) : likelihoodLoss(terms, shape);
}

/** Terms of the decisions of whole episodes, and the decisions' shape. */
export interface EpisodeTerms {
  readonly terms: DecisionTerms;
  readonly shape: Shape;
}

/** Terms of whole episodes, nothing cached: what each recorded decision is worth under the current weights. */
function episodeTerms(config: ModelConfig, p: Parameters, decoding: Decoding): EpisodeTerms {
  const { prompts, hidden } = readEpisodes(config, p, decoding.recompute);
  return decisionTerms(config, p, prompts.hidden, hidden, decoding);
}

/**
 * Terms of recorded decisions, from the trunk's outputs.
 * @param promptHidden [Np, d] @param hidden [N, d] of the tokens after the prompts
 */
export function decisionTerms(
  config: ModelConfig,
  p: Parameters,
  promptHidden: Tensor,
  hidden: Tensor,
  decoding: Decoding,
): EpisodeTerms {
  return decoding.decoder === 'choice'
    ? choiceTerms(config, p, promptHidden, hidden)
    : tokenTerms(config, p, hidden, decoding);
}

/** Outputs of a program that measures decisions. */
export function measureTerms(
  { terms: { logprob, entropy, value, logprobs } }: EpisodeTerms,
  { listsAll }: Pick<Decoding, 'listsAll'>,
): Record<string, Tensor> {
  return { logprob, entropy, ...(value ? { value } : {}), ...(listsAll && logprobs ? { logprobs } : {}) };
}

/** Scores [G, D, C] of each group's candidates at its deciding positions, whose hidden states are `deciding` [G·D, d]. */
function scoreChoices(config: ModelConfig, p: Parameters, promptHidden: Tensor, hidden: Tensor) {
  const { hiddenSize: d } = config;
  const layout = layoutInputs('decisions', ['G', 'D'], 'N');
  const deciding = take(hidden, layout.index, layout.inverse);
  const bags = actionBags(config, p, actionPieceInputs(config, 'A'));
  // Text of each candidate, by number: groups list the same actions over and over, and a text is read once.
  const texts = input('candidates.texts', [times('G', 'C')], 'i32');
  // Packed rows of the prompt in each list of mentions; rows repeat, so this is a gather.
  const mentions = input('candidates.mentions', [times('G', 'I', 'M')], 'i32');
  const candidates: Candidates = {
    bags: reshape(rowsOf(bags, texts), ['G', 'C', d]),
    keys: reshape(rowsOf(pointerKeys(p, promptHidden), mentions), ['G', times('I', 'M'), d]),
    mentionMask: input('candidates.mentionMask', ['G', 'I', 'M']),
    lists: input('candidates.lists', ['G', 'C'], 'i32'),
  };
  return { scores: choiceScores(config, p, reshape(deciding, ['G', 'D', d]), candidates, 'D'), deciding };
}

function choiceTerms(config: ModelConfig, p: Parameters, promptHidden: Tensor, hidden: Tensor) {
  const { scores, deciding } = scoreChoices(config, p, promptHidden, hidden);
  const logprobs = logSoftmax(add(scores, input('decisions.mask', ['G', 'D', 'C'])));
  const chosen = input('decisions.chosen', ['G', 'D', 1], 'i32');
  const shape = ['G', 'D'];
  const terms: DecisionTerms = {
    logprob: reshape(pick(logprobs, chosen), shape),
    entropy: entropyOf(logprobs),
    value: config.valueHead ? reshape(values(p, deciding, times('G', 'D')), shape) : undefined,
    logprobs,
  };
  return { terms, shape };
}

function tokenTerms(config: ModelConfig, p: Parameters, hidden: Tensor, { masked = true, chunks = 1 }: Decoding) {
  const layout = layoutInputs('decisions', ['R'], 'N');
  const deciding = take(hidden, layout.index, layout.inverse);
  const chosen = input('decisions.chosen', ['R', 1], 'i32');
  const shape = ['R'];
  const value = config.valueHead ? values(p, deciding, 'R') : undefined;
  const lists = masked
    ? {
        allowed: input('decisions.allowed', ['R', 'L'], 'i32'),
        lift: input('decisions.lift', ['R', 'L']),
        listed: input('decisions.listed', ['R', 1]),
        sampled: input('decisions.sampled', [1, config.vocabSize]),
      }
    : undefined;
  if (chunks > 1) {
    const both = tokenScores(deciding, outputTable(config, p), chosen, chunks, lists, config.logitCap);
    const column = (at: number) => reshape(slice(both, 1, at, at + 1), shape);
    return { terms: { logprob: column(0), entropy: column(1), value } satisfies DecisionTerms, shape };
  }
  const logits = tokenLogits(config, p, deciding);
  const logprobs = logSoftmax(lists ? add(logits, possibleMask(lists)) : logits);
  const terms: DecisionTerms = {
    logprob: reshape(pick(logprobs, chosen), shape),
    entropy: entropyOf(logprobs),
    value,
  };
  return { terms, shape };
}

/** Reads prompts and the tokens after them. @returns the hidden states [N, d] of the latter */
function readEpisodes(config: ModelConfig, p: Parameters, again = false) {
  const prompts = readPrompts(config, p, again);
  const tokens = tokenInputs(config, 'tokens', 'N');
  const attend = episodeAttention(config, {
    layout: layoutInputs('episodes', ['G', 'K', 'T'], 'N'),
    prompt: prompts.layers,
    promptMask: prompts.mask,
    promptIds: prompts.ids,
    promptSteps: prompts.steps,
    steps: input('episodes.steps', ['T'], 'i32'),
  });
  return { prompts, hidden: trunk(config, p, tokens, attend, again ? config.layers + 2 : undefined) };
}

function readPrompts(config: ModelConfig, p: Parameters, again = false) {
  const tokens = tokenInputs(config, 'prompt', 'Np');
  const mask = input('prompt.mask', ['G', 'P']);
  const layers: KeysValues[] = [];
  const ids = promptIds(config);
  const steps = promptSteps();
  const attend = promptAttention(config, layoutInputs('prompt', ['G', 'P'], 'Np'), mask, ids, steps, layers);
  const hidden = trunk(config, p, tokens, attend, again ? 1 : undefined);
  return { hidden, layers, mask, ids, steps };
}

function continueEpisodes(config: ModelConfig, p: Parameters) {
  const dh = headSize(config);
  const { kvHeads } = config;
  const declareCached = (name: string, shape: (number | string)[]): KeysValues[] =>
    Array.from({ length: config.layers }, (_, layer) => ({
      k: input(`${name}.k${layer}`, shape),
      v: input(`${name}.v${layer}`, shape),
    }));
  const attend = attendCached(config, {
    layout: layoutInputs('episodes', ['G', 'K', 'T'], 'N'),
    prompt: declareCached('prompt', ['G', kvHeads, 'P', dh]),
    promptMask: input('prompt.mask', ['G', 'P']),
    promptIds: promptIds(config),
    promptSteps: promptSteps(),
    past: declareCached('past', ['G', kvHeads, 'K', 'S', dh]),
    pastMask: input('past.mask', ['G', 'K', 'S']),
    steps: input('episodes.steps', ['T'], 'i32'),
  });
  const outputs: Record<string, Tensor> = {};
  const hidden = trunk(config, p, tokenInputs(config, 'tokens', 'N'), (layer, heads) => {
    outputs[`k${layer}`] = heads.k;
    outputs[`v${layer}`] = heads.v;
    return attend(layer, heads);
  });
  return { hidden, outputs };
}
