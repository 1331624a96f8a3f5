/**
 * Output heads: whole-action scores (choice), next-token logits (tokens), and the value.
 */
import { add, broadcastTo, gather, logSumExp, matmul, mul, pick, reshape, silu, softCap } from '../tensor/ops.ts';
import type { Dim } from '../tensor/shape.ts';
import { constant, input, type Tensor } from '../tensor/tensor.ts';
import type { ModelConfig } from './config.ts';
import { embed, type Parameters, projection, type TokenInputs } from './transformer.ts';

/**
 * Action texts in pieces: a piece is a token with the tokens before it that it is embedded with, and its focus bit. Lists
 * of actions repeat the same pieces, so each of the U different ones is read once.
 */
export interface ActionPieces extends Pick<TokenInputs, 'ids' | 'previous' | 'focus'> {
  /** [rows, U] f32: how often each piece stands in each text. */
  readonly counts: Tensor;
}

/** Declares `actions.ids`, `.previous1`, `.previous2`, `.focus`, `.counts`. */
export function actionPieceInputs(config: ModelConfig, rows: Dim): ActionPieces {
  return {
    ids: input('actions.ids', ['U'], 'i32'),
    previous: Array.from({ length: config.tokenShift }, (_, i) => input(`actions.previous${i + 1}`, ['U'], 'i32')),
    focus: config.focusBit ? input('actions.focus', ['U', 1]) : undefined,
    counts: input('actions.counts', [rows, 'U']),
  };
}

/**
 * Bags, one vector per action: the sum over its tokens of xₜ + W₂·silu(W₁·xₜ + b), scaled.
 * @returns [rows, d]
 */
export function actionBags(config: ModelConfig, p: Parameters, actions: ActionPieces): Tensor {
  const x = embed(config, p, actions);
  const refined = projection(p, 'choice_head.bag_out', silu(projection(p, 'choice_head.bag_in', x, true)));
  return mul(matmul(actions.counts, add(x, refined)), constant(BAG_SCALE));
}

/** Scale that keeps a bag of about ten tokens at the size of one. */
const BAG_SCALE = 0.3;

/** Pointer keys of the prompt's tokens, packed. @param hidden [N, d] @returns [N, d] */
export function pointerKeys(p: Parameters, hidden: Tensor): Tensor {
  return projection(p, 'choice_head.pointer_key', hidden);
}

/**
 * Candidates of each group: C actions, each mentioned at up to M places of the prompt. Many are mentioned at the same
 * places (an action in other amounts, or restated by what was read since), so each of the I different lists of places is
 * scored once.
 */
export interface Candidates {
  /** [G, C, d] */
  readonly bags: Tensor;
  /** [G, I·M, d] pointer keys at the mentions of each list. */
  readonly keys: Tensor;
  /** [G, I, M] f32: 0 for a mention, −1e9 for padding; every list has at least one mention. */
  readonly mentionMask: Tensor;
  /** [G, C] i32 list of each action, in [0, I). */
  readonly lists: Tensor;
}

/**
 * Scores every candidate of the group at every deciding position.
 *
 *   score(a) = (W_b·h)·bag(a)/√d + logsumexp over a's mentions m of (W_p·h)·key(m)/√d
 *
 * @param hidden [G, D, d] trunk output where decisions are made
 * @returns [G, D, C] unmasked scores
 */
export function choiceScores(
  config: ModelConfig,
  p: Parameters,
  hidden: Tensor,
  candidates: Candidates,
  d: Dim,
): Tensor {
  const scale = constant(1 / Math.sqrt(config.hiddenSize));
  const query = (name: string) => mul(projection(p, name, hidden), scale);
  const bag = matmul(query('choice_head.bag_query'), candidates.bags, { transposeB: true });
  const pointers = reshape(matmul(query('choice_head.pointer_query'), candidates.keys, { transposeB: true }), [
    'G',
    d,
    'I',
    'M',
  ]);
  const pointed = logSumExp(add(pointers, reshape(candidates.mentionMask, ['G', 1, 'I', 'M']))); // [G, D, I]
  return add(bag, pick(pointed, broadcastTo(reshape(candidates.lists, ['G', 1, 'C']), ['G', d, 'C'])));
}

/** Next-token logits. @param hidden [rows, d] @returns [rows, V] */
export function tokenLogits(config: ModelConfig, p: Parameters, hidden: Tensor): Tensor {
  return softCap(matmul(hidden, outputTable(config, p), { transposeB: true }), config.logitCap);
}

/** Output table [V, d], whose rows are the tokens' directions. */
export function outputTable({ tieEmbeddings }: ModelConfig, p: Parameters): Tensor {
  return p(tieEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight');
}

/** Value V(s). @param hidden [rows, d] @returns [rows] */
export function values(p: Parameters, hidden: Tensor, rows: Dim): Tensor {
  return reshape(projection(p, 'value_head', hidden, true), [rows]);
}

/** Rows of a packed tensor; `ids` may repeat. @returns [rows, d] */
export function rowsOf(packed: Tensor, ids: Tensor): Tensor {
  return gather(packed, ids);
}
