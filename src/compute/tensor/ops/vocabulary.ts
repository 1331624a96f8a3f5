/**
 * Log-probabilities over a large frozen vocabulary, part by part: what a loss reads of [R, V] are two numbers a row, and
 * in the backward pass each part is computed again instead of being kept.
 */
import type { Emitter } from '../emitter.ts';
import { readFixedAttrs } from '../fixed.ts';
import type { NdArray } from '../ndarray.ts';
import { apply, misfit, type OpDefinition, type Tensor } from '../tensor.ts';
import { add, mul, sub } from './elementwise.ts';
import { scatterAdd } from './indexing.ts';
import { linear } from './matmul.ts';

/** Score of an id that could not be drawn: no probability in f32, and no NaN where a row has no other. */
const IMPOSSIBLE = -1e9;

/** Ids that could be drawn, in lists: rows of few among very many. */
export interface PossibleIds {
  /** i32 [R, L] ids that a row lists, none twice; whatever, where its `lift` is 0. */
  readonly allowed: Tensor;
  /** f32 [R, L]: 1e9 where the list has an id, 0 beyond its end. */
  readonly lift: Tensor;
  /** f32 [R, 1]: 1 where the row has a list, 0 where all that are `sampled` were possible. */
  readonly listed: Tensor;
  /** f32 [1, V]: 0 for an id that free sampling draws, −1e9 for any other. */
  readonly sampled: Tensor;
}

/** Mask of the ids that could be drawn. @returns [R, V]: 0 where possible, −1e9 elsewhere; no gradient flows through it */
export function possibleMask({ allowed, lift, listed, sampled }: PossibleIds): Tensor {
  const unlisted = add(mul(sub(1, listed), sampled), mul(listed, IMPOSSIBLE));
  return add(scatterAdd(allowed, lift, 1, [allowed.shape[0]!, sampled.shape[1]!]), unlisted);
}

interface ChunkAttrs {
  readonly chunks: number;
  /** Soft cap c of the logits z: c·tanh(z/c). */
  readonly cap: number | undefined;
}

const tokenScoresOp: OpDefinition<ChunkAttrs> = {
  name: 'tokenScores',
  infer(inputs) {
    const [hidden, table, chosen, ...lists] = inputs as [Tensor, Tensor, Tensor, ...Tensor[]];
    if (!readFixedAttrs(table) && table.op !== 'stopGradient')
      throw misfit('tokenScores', 'the table must be fixed, or stopGradient of it: no gradient reaches it', inputs);
    if (
      hidden.shape.length !== 2 ||
      hidden.shape[1] !== table.shape[1] ||
      chosen.shape.join() !== `${hidden.shape[0]},1`
    ) {
      throw misfit('tokenScores', 'expected hidden [R, d], table [V, d], chosen i32 [R, 1]', inputs);
    }
    if (lists.length !== 0 && lists[3]?.shape[1] !== table.shape[0])
      throw misfit('tokenScores', 'expected four tensors of possible ids, the last [1, V]', inputs);
    return { shape: [hidden.shape[0]!, 2], dtype: 'f32' };
  },
  gradient: (y, dy, [hidden, table, chosen, ...lists], attrs) => [
    apply(tokenScoresGradientOp, [hidden!, table!, chosen!, y, dy, ...lists], attrs),
    ...[table, chosen, ...lists].map(() => null),
  ],
  onnx(emit, [hidden, table, chosen, ...lists], y, { chunks, cap }) {
    const part = parts(emit, y.inputs[0]!, chunks);
    const scores = Array.from({ length: chunks }, (_, i) => {
      const { logprobs, p } = distribution(emit, part(hidden!, i), table!, partOf(lists, part, i), cap);
      const logprob = emit.node('GatherElements', [logprobs, part(chosen!, i)], { axis: 1 });
      const sum = emit.node('ReduceSum', [emit.node('Mul', [p, finite(emit, logprobs)]), emit.i64([1])], {
        keepdims: 1,
      });
      return emit.node('Concat', [logprob, emit.node('Neg', [sum])], { axis: 1 });
    });
    return emit.node('Concat', scores, { axis: 0 });
  },
  reference([hidden, table, chosen, ...lists], _shape, { cap }) {
    const out: number[] = [];
    visitRows(hidden!, table!, lists, cap, (logprobs, _slopes, r) => {
      let entropy = 0;
      for (const logprob of logprobs) entropy -= Math.exp(logprob) * logprob;
      out.push(logprobs[chosen!.data[r]!]!, entropy);
    });
    return Float64Array.from(out);
  },
};

/**
 * d loss / d hidden. With a = d loss/d logprob, b = d loss/d entropy and H the entropy,
 *
 *   dh = a·W[chosen] − Σⱼ pⱼ·(a + b·(log pⱼ + H))·Wⱼ
 *
 * where under a soft cap each Wⱼ counts 1 − (zⱼ/c)², zⱼ being the capped logit.
 */
const tokenScoresGradientOp: OpDefinition<ChunkAttrs> = {
  name: 'tokenScoresGradient',
  infer: ([hidden]) => ({ shape: hidden!.shape, dtype: 'f32' }),
  onnx(emit, [hidden, table, chosen, y, dy, ...lists], node, { chunks, cap }) {
    const part = parts(emit, node.inputs[0]!, chunks);
    const column = (x: string, at: number) =>
      emit.node('Slice', [x, emit.i64([at]), emit.i64([at + 1]), emit.i64([1])]);
    const gradients = Array.from({ length: chunks }, (_, i) => {
      const a = column(part(dy!, i), 0);
      const b = column(part(dy!, i), 1);
      // Reads a too, so that it cannot be mistaken for what the forward pass computed and be kept since then.
      const emitCopy = (x: string) => emit.node('Add', [x, emit.node('Mul', [a, emit.scalar(0)])]);
      const own = partOf(lists, part, i);
      const possibleAgain = own && { ...own, listed: emitCopy(own.listed) };
      const { logprobs, p, logits } = distribution(emit, emitCopy(part(hidden!, i)), table!, possibleAgain, cap);
      const surprise = emit.node('Add', [finite(emit, logprobs), column(part(y!, i), 1)]);
      let slope = emit.node('Mul', [p, emit.node('Add', [emit.node('Mul', [surprise, b]), a])]);
      let reach = a;
      if (cap !== undefined) {
        const capped = emit.node('Mul', [logits, emit.scalar(1 / cap)]);
        const slopes = emit.node('Sub', [emit.scalar(1), emit.node('Mul', [capped, capped])]);
        slope = emit.node('Mul', [slope, slopes]);
        reach = emit.node('Mul', [a, emit.node('GatherElements', [slopes, part(chosen!, i)], { axis: 1 })]);
      }
      const rows = emit.node('Squeeze', [part(chosen!, i), emit.i64([1])]);
      const towards = emit.node('Mul', [emit.node('Gather', [table!, rows], { axis: 0 }), reach]);
      return emit.node('Sub', [towards, emit.node('MatMul', [slope, table!])]);
    });
    return emit.node('Concat', gradients, { axis: 0 });
  },
  reference([hidden, table, chosen, y, dy, ...lists], shape, { cap }) {
    const d = shape[1]!;
    const out = new Float64Array(shape[0]! * d);
    visitRows(hidden!, table!, lists, cap, (logprobs, slopes, r) => {
      const [a, b, entropy] = [dy!.data[2 * r]!, dy!.data[2 * r + 1]!, y!.data[2 * r + 1]!];
      for (const [j, logprob] of logprobs.entries()) {
        const slope = (j === chosen!.data[r]! ? a : 0) - Math.exp(logprob) * (a + b * (logprob + entropy));
        for (let k = 0; k < d; k++) out[r * d + k]! += slope * slopes[j]! * table!.data[j * d + k]!;
      }
    });
    return out;
  },
};

/**
 * Log-probability of each row's chosen token and entropy of its distribution softmax(hidden·tableᵀ).
 * @param hidden f32 [R, d]
 * @param table  [V, d], a fixed tensor or what `stopGradient` returned
 * @param chosen i32 [R, 1] in [0, V)
 * @param chunks parts of nearly equal size that the rows are taken in; only one part's [R/chunks, V] lives at a time
 * @param ids     ids that could be drawn; all where absent
 * @param cap     soft cap of the logits; none where absent
 * @returns [R, 2]: log-probability, entropy
 */
export function tokenScores(
  hidden: Tensor,
  table: Tensor,
  chosen: Tensor,
  chunks: number,
  ids?: PossibleIds | undefined,
  cap?: number | undefined,
): Tensor {
  const lists = ids ? [ids.allowed, ids.lift, ids.listed, ids.sampled] : [];
  return apply(tokenScoresOp, [hidden, table, chosen, ...lists], { chunks, cap });
}

/** Names of a part's values. */
type PossibleNames = Readonly<Record<keyof PossibleIds, string>>;

function partOf(
  lists: readonly string[],
  part: (x: string, i: number) => string,
  i: number,
): PossibleNames | undefined {
  const [allowed, lift, listed, sampled] = lists;
  if (sampled === undefined) return undefined;
  return { allowed: part(allowed!, i), lift: part(lift!, i), listed: part(listed!, i), sampled };
}

/** Part i of a value's rows. */
function parts(emit: Emitter, hidden: Tensor, chunks: number): (x: string, i: number) => string {
  const rows = emit.dims([hidden.shape[0]!]);
  const size = emit.node('Div', [emit.node('Add', [rows, emit.i64([chunks - 1])]), emit.i64([chunks])]);
  const at = (i: number) => emit.node('Mul', [size, emit.i64([i])]);
  return (x, i) => emit.node('Slice', [x, at(i), at(i + 1), emit.i64([0])]);
}

function distribution(
  emit: Emitter,
  hidden: string,
  table: string,
  ids: PossibleNames | undefined,
  cap: number | undefined,
) {
  const logits = capLogits(emit, linear(emit, hidden, table), cap);
  const masked = ids ? emit.node('Add', [logits, maskOf(emit, ids)]) : logits;
  const logprobs = emit.node('LogSoftmax', [masked], { axis: -1 });
  return { logprobs, p: emit.node('Exp', [logprobs]), logits };
}

function capLogits(emit: Emitter, logits: string, cap: number | undefined): string {
  if (cap === undefined) return logits;
  const bent = emit.node('Tanh', [emit.node('Mul', [logits, emit.scalar(1 / cap)])]);
  return emit.node('Mul', [bent, emit.scalar(cap)]);
}

/** Mask of a part, as `possibleMask` makes it. */
function maskOf(emit: Emitter, { allowed, lift, listed, sampled }: PossibleNames): string {
  const free = emit.node('Mul', [emit.node('Sub', [emit.scalar(1), listed]), sampled]);
  const unlisted = emit.node('Add', [free, emit.node('Mul', [listed, emit.scalar(IMPOSSIBLE)])]);
  return emit.node('ScatterElements', [unlisted, allowed, lift], { axis: 1, reduction: 'add' });
}

/** Log-probabilities that times a vanished probability are 0, not NaN. */
function finite(emit: Emitter, logprobs: string): string {
  return emit.node('Max', [logprobs, emit.scalar(-1000)]);
}

/** The log-probabilities [V] of each row, and the slopes of its capped logits, in float64. */
function visitRows(
  hidden: NdArray,
  table: NdArray,
  [allowed, lift, listed, sampled]: readonly NdArray[],
  cap: number | undefined,
  visit: (logprobs: Float64Array, slopes: Float64Array, row: number) => void,
): void {
  const [rows, d] = hidden.shape as [number, number];
  const vocabulary = table.shape[0]!;
  for (let r = 0; r < rows; r++) {
    const logits = new Float64Array(vocabulary);
    const slopes = new Float64Array(vocabulary).fill(1);
    for (let j = 0; j < vocabulary; j++) {
      for (let k = 0; k < d; k++) logits[j]! += hidden.data[r * d + k]! * table.data[j * d + k]!;
      if (cap !== undefined) {
        const bent = Math.tanh(logits[j]! / cap);
        logits[j] = cap * bent;
        slopes[j] = 1 - bent * bent;
      }
      if (sampled) logits[j]! += listed!.data[r]! === 1 ? IMPOSSIBLE : sampled.data[j]!;
    }
    const most = allowed?.shape[1] ?? 0;
    for (let k = r * most; k < (r + 1) * most; k++) logits[allowed!.data[k]!]! += lift!.data[k]!;
    const peak = logits.reduce((a, b) => Math.max(a, b));
    const norm = peak + Math.log(logits.reduce((sum, z) => sum + Math.exp(z - peak), 0));
    visit(
      logits.map((z) => z - norm),
      slopes,
      r,
    );
  }
}
