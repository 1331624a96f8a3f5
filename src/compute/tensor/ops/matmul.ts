/** Matrix product, batched, with transposed operands. */
import type { Emitter, OnnxBlocks } from '../emitter.ts';
import { BLOCK } from '../fixed.ts';
import { broadcastStrides, elements, stridesOf, walk } from '../ndarray.ts';
import { broadcastShapes, type Dim, type Shape, sizeOf } from '../shape.ts';
import { apply, misfit, type OpDefinition, requireDType, type Tensor } from '../tensor.ts';
import { reshape } from './layout.ts';
import { sumTo } from './reduce.ts';

export interface MatmulOptions {
  /** True to swap the last two axes of the operand first. */
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  /** Factor on the product, 1 by default. */
  readonly scale?: number;
}

interface MatmulAttrs {
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  readonly scale: number;
}

const matmulOp: OpDefinition<MatmulAttrs> = {
  name: 'matmul',
  infer(inputs, { transposeA, transposeB }) {
    const [a, b] = inputs as [Tensor, Tensor];
    requireDType('matmul', inputs, 'f32');
    if (a.shape.length < 2 || b.shape.length < 2) throw misfit('matmul', 'operands need two axes or more', inputs);
    const how = `${transposeA ? 'aᵀ' : 'a'}·${transposeB ? 'bᵀ' : 'b'}`;
    const [rows, inner] = lastTwo(a.shape, transposeA);
    const [innerB, columns] = lastTwo(b.shape, transposeB);
    if (inner !== innerB) throw misfit('matmul', `inner sizes of ${how} differ (${inner} and ${innerB})`, inputs);
    const leading = broadcastShapes(a.shape.slice(0, -2), b.shape.slice(0, -2));
    if (leading === undefined) throw misfit('matmul', `leading sizes of ${how} do not broadcast`, inputs);
    return { shape: [...leading, rows, columns], dtype: 'f32' };
  },
  /** With A = op(a) and B = op(b): dA = dy·Bᵀ and dB = Aᵀ·dy, each written so that only the product transposes. */
  gradient(_y, dy, [a, b], { transposeA, transposeB, scale }) {
    const da = transposeA
      ? matmul(b!, dy, { transposeA: transposeB, transposeB: true, scale })
      : matmul(dy, b!, { transposeB: !transposeB, scale });
    return [sumTo(da, a!.shape), weightGradient(a!, b!, dy, { transposeA, transposeB, scale })];
  },
  onnx(emit, x, y, { transposeA, transposeB, scale }) {
    const [a, b] = x as [string, string];
    const blocks = transposeB && !transposeA ? emit.blocksOf(b) : undefined;
    if (blocks) return byBlocks(emit, a, blocks, scale);
    if (!transposeA && !transposeB && scale === 1) return emit.node('MatMul', [a, b]);
    const [rankA, rankB] = y.inputs.map((operand) => operand.shape.length) as [number, number];
    const flags = { transA: Number(transposeA), transB: Number(transposeB), alpha: { float: scale } };
    // Not Gemm for aᵀ: onnxruntime would turn a product that is turned round below back again.
    const gemm = rankA === 2 && rankB === 2;
    if (gemm && !(transposeA && emit.options.contrib)) return emit.node('Gemm', [a, b], flags);
    if (emit.options.contrib && transposeA && !transposeB && rankA === rankB && turnsRound(y, emit.options.oneThread)) {
      const turned = emit.microsoft('FusedMatMul', [b, a], flags);
      return emit.node('Transpose', [turned], { perm: swapLastTwo(rankA) });
    }
    if (emit.options.contrib) return emit.microsoft('FusedMatMul', [a, b], flags);
    const emitSwap = (name: string, rank: number) => emit.node('Transpose', [name], { perm: swapLastTwo(rank) });
    const product = emit.node('MatMul', [transposeA ? emitSwap(a, rankA) : a, transposeB ? emitSwap(b, rankB) : b]);
    return scale === 1 ? product : emit.node('Mul', [product, emit.scalar(scale)]);
  },
  reference([a, b], shape, { transposeA, transposeB, scale }) {
    const leading = shape.slice(0, -2);
    const [rows, inner] = lastTwo(a!.shape, transposeA) as [number, number];
    const columns = shape.at(-1)!;
    const [strideRow, strideInnerA] = lastTwo(stridesOf(a!.shape), transposeA) as [number, number];
    const [strideInnerB, strideColumn] = lastTwo(stridesOf(b!.shape), transposeB) as [number, number];
    const startsB: number[] = [];
    walk(leading, matrixStrides(b!.shape, leading), (_i, offset) => startsB.push(offset));
    const out = new Float64Array(elements(shape));
    walk(leading, matrixStrides(a!.shape, leading), (i, startA) => {
      for (let r = 0; r < rows; r++) {
        for (let c = 0; c < columns; c++) {
          let sum = 0;
          for (let k = 0; k < inner; k++) {
            sum +=
              a!.data[startA + r * strideRow + k * strideInnerA]! *
              b!.data[startsB[i]! + k * strideInnerB + c * strideColumn]!;
          }
          out[(i * rows + r) * columns + c] = sum * scale;
        }
      }
    });
    return out;
  },
};

/** x·Wᵀ of two matrices by name: by W's blocks where it is quantised. */
export function linear(emit: Emitter, x: string, w: string): string {
  const blocks = emit.blocksOf(w);
  return blocks ? byBlocks(emit, x, blocks, 1) : emit.node('Gemm', [x, w], { transB: 1 });
}

/**
 * x·Wᵀ with W quantised and x in float32, so that every program that computes with W computes the same function. A kernel that
 * rounds x to 8 bits (level 4) is faster, but rounding makes leaps of float32's noise: over thirty layers two programs then differ by
 * as much as the rounding itself, tenths of a nat with a real model, and neither can be trained by the other's log-probabilities.
 *
 * Offsets o of blocks add Σ over blocks of (sum of x in the block)·o, a product of a 32th of the size. For few rows and 8 bits
 * the kernel with float32 has no fast form on a cpu: there x is a sum of three numbers of 8 bits, each what was rounded off before.
 */
function byBlocks(emit: Emitter, x: string, { rows, columns, source }: OnnxBlocks, scale: number): string {
  const { bits } = source;
  const perRow = columns / BLOCK;
  const codes = emit.external('u8', [rows, perRow, (BLOCK * bits) / 8], source.codes);
  const scales = emit.external('f32', [rows * perRow], source.scales);
  const multiply = (x: string, level: number) =>
    emit.microsoft('MatMulNBits', [x, codes, scales], {
      ...{ K: columns, N: rows, bits, block_size: BLOCK, accuracy_level: level },
    });
  const inBlocks = () => emit.node('Reshape', [x, emit.i64([-1, perRow, BLOCK])]);
  let product: string;
  if (bits === 8 && emit.options.fewRows) {
    const bytes = splitInBytes(emit, inBlocks(), columns).map((part) => multiply(part, ROUNDED));
    product = bytes.reduce((a, b) => emit.node('Add', [a, b]));
  } else product = multiply(x, FLOAT32);
  if (source.offsets) {
    const sums = emit.node('ReduceSum', [inBlocks(), emit.i64([2])], { keepdims: 0 });
    const offsets = emit.external('f32', [rows, perRow], source.offsets);
    product = emit.node('Add', [product, emit.node('Gemm', [sums, offsets], { transB: 1 })]);
  }
  return scale === 1 ? product : emit.node('Mul', [product, emit.scalar(scale)]);
}

/** Accuracy levels of MatMulNBits: activations in float32, and rounded to 8 bits in blocks. */
const FLOAT32 = 1;
const ROUNDED = 4;

/**
 * Parts of x whose sum it is, each exactly as the rounding kernel reads it but for the last, which is smaller than x by 2⁻¹⁵: its
 * own rounding, at 2⁻²², is float32's.
 */
function splitInBytes(emit: Emitter, blocks: string, columns: number): string[] {
  const parts: string[] = [];
  let rest = blocks;
  for (let part = 1; part < PARTS; part++) {
    const peak = emit.node('ReduceMax', [emit.node('Abs', [rest]), emit.i64([2])], { keepdims: 1 });
    const step = emit.node('Max', [emit.node('Mul', [peak, emit.scalar(1 / 127)]), emit.scalar(1e-30)]);
    const rounded = emit.node('Mul', [emit.node('Round', [emit.node('Div', [rest, step])]), step]);
    parts.push(rounded);
    rest = emit.node('Sub', [rest, rounded]);
  }
  return [...parts, rest].map((x) => emit.node('Reshape', [x, emit.i64([-1, columns])]));
}

const PARTS = 3;

/**
 * Matrix product over the last two axes, op(a) [..., M, K] · op(b) [..., K, N] → [..., M, N]; the leading axes are
 * equal or broadcast. A transposition of the last two axes of an operand becomes an option of the product.
 * @throws {ShapeError} if the inner sizes differ or the leading ones do not broadcast
 */
export function matmul(a: Tensor, b: Tensor, options: MatmulOptions = {}): Tensor {
  const { transposeA = false, transposeB = false, scale = 1 } = options;
  const left = stripSwap(a);
  const right = stripSwap(b);
  return apply(matmulOp, [left, right], {
    transposeA: transposeA !== (left !== a),
    transposeB: transposeB !== (right !== b),
    scale,
  });
}

/** d loss/d b. For one b under many leading axes, folding these into the rows turns a sum of products into one. */
function weightGradient(
  a: Tensor,
  b: Tensor,
  dy: Tensor,
  { transposeA, transposeB, scale }: Required<MatmulOptions>,
): Tensor {
  const fold = b.shape.length === 2 && a.shape.length > 2 && !transposeA;
  const x = fold ? asRows(a) : a;
  const g = fold ? asRows(dy) : dy;
  const db = transposeB
    ? matmul(g, x, { transposeA: true, transposeB: transposeA, scale })
    : matmul(x, g, { transposeA: !transposeA, scale });
  return sumTo(db, b.shape);
}

/**
 * True when onnxruntime computes aᵀ·b faster as (bᵀ·a)ᵀ. Measured on one and two cores: among matrices the wider operand
 * should be the one that it transposes while it multiplies; among stacks, on one thread, the narrower one, and on more
 * threads it makes no difference worth a transposition. Where only one width is a number, that one counts as narrower.
 */
function turnsRound({ inputs: [a, b] }: Tensor, oneThread: boolean): boolean {
  const [m, n] = [a!.shape.at(-1)!, b!.shape.at(-1)!];
  const widerFirst = typeof n === 'number' && (typeof m !== 'number' || m > n);
  const widerSecond = typeof m === 'number' && (typeof n !== 'number' || n > m);
  return a!.shape.length === 2 ? widerSecond : oneThread && widerFirst;
}

/** [..., M, K] → [...·M, K] */
function asRows(x: Tensor): Tensor {
  return reshape(x, [sizeOf(x.shape.slice(0, -1)), x.shape.at(-1)!]);
}

function stripSwap(x: Tensor): Tensor {
  if (x.op !== 'transpose') return x;
  const { perm } = x.attrs as { readonly perm: readonly number[] };
  return swapLastTwo(perm.length).every((axis, i) => axis === perm[i]) ? x.inputs[0]! : x;
}

function swapLastTwo(rank: number): number[] {
  return [...Array(rank - 2).keys(), rank - 1, rank - 2];
}

function lastTwo(shape: Shape, swap: boolean): [Dim, Dim] {
  const [first, second] = shape.slice(-2) as [Dim, Dim];
  return swap ? [second, first] : [first, second];
}

/** Strides that step from matrix to matrix of a stack broadcast to `leading`. */
function matrixStrides(shape: readonly number[], leading: readonly number[]): number[] {
  const matrix = shape.at(-1)! * shape.at(-2)!;
  return broadcastStrides(shape.slice(0, -2), leading).map((stride) => stride * matrix);
}
