/** Ops that read rows or elements by index, and the sums into rows that are their gradients. Indices are i32. */
import { LongplayError } from '../../../core/errors.ts';
import { BLOCK } from '../fixed.ts';
import { broadcastData, elements } from '../ndarray.ts';
import { broadcastShapes, equalShapes, type Shape, sizeOf } from '../shape.ts';
import { apply, axisOf, misfit, type OpDefinition, type Tensor } from '../tensor.ts';
import { ONNX_TYPE } from './compare.ts';
import { broadcastTo, reshape } from './layout.ts';

interface AxisAttrs {
  readonly axis: number;
}

const gatherOp: OpDefinition<AxisAttrs> = {
  name: 'gather',
  infer(inputs, { axis }) {
    const [x, ids] = inputs as [Tensor, Tensor];
    if (ids.dtype !== 'i32') throw misfit('gather', 'ids must be i32', inputs);
    return { shape: [...x.shape.slice(0, axis), ...ids.shape, ...x.shape.slice(axis + 1)], dtype: x.dtype };
  },
  gradient(_y, dy, [x, ids], { axis }) {
    const count = sizeOf(ids!.shape);
    const rows = x!.shape.map((dim, i) => (i === axis ? count : dim));
    const spread = reshape(
      ids!,
      rows.map((_, i) => (i === axis ? count : 1)),
    );
    return [scatterAdd(spread, reshape(dy, rows), axis, x!.shape), null];
  },
  onnx(emit, x, _y, { axis }) {
    const blocks = axis === 0 ? emit.blocksOf(x[0]!) : undefined;
    if (!blocks || blocks.source.offsets) return emit.node('Gather', x, { axis });
    const { rows, columns, source } = blocks;
    const { bits } = source;
    const codes = emit.external('u8', [rows, (columns * bits) / 8], source.codes);
    const scales = emit.external('f32', [rows, columns / BLOCK], source.scales);
    const attrs = { bits, block_size: BLOCK, gather_axis: 0, quantize_axis: 1 };
    return emit.microsoft('GatherBlockQuantized', [codes, x[1]!, scales], attrs);
  },
  reference([x, ids], shape, { axis }) {
    const width = elements(x!.shape.slice(axis + 1));
    const block = width * x!.shape[axis]!;
    const out = new Float64Array(elements(shape));
    let at = 0;
    for (let start = 0; start < x!.data.length; start += block) {
      for (const id of ids!.data) {
        const row = start + checkIndex('gather', id, x!.shape[axis]!) * width;
        out.set(x!.data.subarray(row, row + width), at);
        at += width;
      }
    }
    return out;
  },
};

/**
 * Gathers slices of x at `ids` along an axis: an embedding lookup is `gather(table [V, d], ids [N])` → [N, d]. The
 * result has the axes of ids in the place of the axis. Its gradient adds rows in a fixed order, at any number of
 * threads.
 * @param ids i32 of any rank, in [0, size of the axis)
 */
export function gather(x: Tensor, ids: Tensor, axis = 0): Tensor {
  return apply(gatherOp, [x, ids], { axis: axisOf('gather', x, axis) });
}

const gatherElementsOp: OpDefinition<AxisAttrs> = {
  name: 'gatherElements',
  infer(inputs, { axis }) {
    requireElementwise('pick', inputs[0]!.shape, inputs[1]!, axis, inputs);
    return { shape: inputs[1]!.shape, dtype: inputs[0]!.dtype };
  },
  gradient: (_y, dy, [x, ids], { axis }) => [scatterAdd(ids!, dy, axis, x!.shape), null],
  onnx: (emit, x, _y, { axis }) => emit.node('GatherElements', x, { axis }),
  reference([x, ids], shape, { axis }) {
    const out = new Float64Array(elements(shape));
    visitAlong('pick', shape, x!.shape, axis, ids!.data, (i, target) => {
      out[i] = x!.data[target]!;
    });
    return out;
  },
};

/**
 * Picks elements of x [..., V] at `ids` [..., J] of the last axis → [..., J]: the log-probability of each chosen token.
 * @param ids i32 in [0, V); its leading sizes are those of x
 */
export function pick(x: Tensor, ids: Tensor): Tensor {
  return apply(gatherElementsOp, [x, ids], { axis: axisOf('pick', x, -1) });
}

interface ScatterAttrs extends AxisAttrs {
  readonly shape: Shape;
}

const scatterAddOp: OpDefinition<ScatterAttrs> = {
  name: 'scatterAdd',
  infer(inputs, { axis, shape }) {
    const [ids, updates] = inputs as [Tensor, Tensor];
    if (updates.dtype !== 'f32') throw misfit('scatterAdd', 'updates must be f32', inputs);
    const joined = broadcastShapes(ids.shape, updates.shape);
    if (ids.shape.length !== updates.shape.length || ids.shape[axis] !== updates.shape[axis] || !joined) {
      throw misfit('scatterAdd', 'ids must have the shape of updates, or 1 on other axes than its own', inputs);
    }
    requireElementwise('scatterAdd', shape, broadcastTo(ids, updates.shape), axis, inputs);
    return { shape, dtype: 'f32' };
  },
  gradient: (_y, dy, [ids, updates], { axis }) => [
    null,
    apply(gatherElementsOp, [dy, broadcastTo(ids!, updates!.shape)], { axis }),
  ],
  onnx(emit, [ids, updates], y, { axis, shape }) {
    const [from, to] = y.inputs.map((x) => x.shape) as [Shape, Shape];
    const zeros = emit.node('ConstantOfShape', [emit.dims(shape)]);
    if (emit.options.oneThread && axis === 0 && to.length > 1 && from.slice(1).every((dim) => dim === 1)) {
      const rows = emit.node('Reshape', [emit.node('Cast', [ids!], { to: ONNX_TYPE.i64 }), emit.i64([-1, 1])]);
      return emit.node('ScatterND', [zeros, rows, updates!], { reduction: 'add' });
    }
    // ScatterND adds whole rows, several times as fast, but its additions race as soon as there are two threads.
    const each = equalShapes(from, to) ? ids! : emit.node('Expand', [ids!, emit.node('Shape', [updates!])]);
    return emit.node('ScatterElements', [zeros, each, updates!], { axis, reduction: 'add' });
  },
  reference([ids, updates], shape, { axis }) {
    const out = new Float64Array(elements(shape));
    visitAlong('scatterAdd', updates!.shape, shape, axis, broadcastData(ids!, updates!.shape), (i, target) => {
      out[target]! += updates!.data[i]!;
    });
    return out;
  },
};

/**
 * Scatters: zeros of `shape` with each element of `updates` added at its id along an axis; values of equal
 * ids are summed.
 * @param ids i32 of the shape of `updates`, in [0, shape[axis]); a size of 1 off the axis stands for all of them
 * @param updates f32; its other sizes are those of `shape`
 */
export function scatterAdd(ids: Tensor, updates: Tensor, axis: number, shape: Shape): Tensor {
  return apply(scatterAddOp, [ids, updates], { axis, shape });
}

/** Facts known of a `take`, each sparing a copy. */
export interface TakeOptions {
  /** Zeros in the rows of index −1 (the default); false where these are never read, or there are none. */
  readonly zeros?: boolean;
  /**
   * True when every row of x is taken (`inverse` holds no −1), so that no zeros are needed on the way back. Off by
   * default.
   */
  readonly total?: boolean;
}

interface TakeAttrs {
  readonly zeros: boolean;
  readonly total: boolean;
}

const takeOp: OpDefinition<TakeAttrs> = {
  name: 'take',
  infer(inputs) {
    const [x, index, inverse] = inputs as [Tensor, Tensor, Tensor];
    if (x.dtype !== 'f32' || index.dtype !== 'i32' || inverse.dtype !== 'i32') {
      throw misfit('take', 'expected x f32, index i32, inverse i32', inputs);
    }
    if (x.shape.length === 0 || index.shape.length !== 1 || !equalShapes(inverse.shape, x.shape.slice(0, 1))) {
      throw misfit('take', 'expected x [N, ...], index [M], inverse [N]', inputs);
    }
    return { shape: [index.shape[0]!, ...x.shape.slice(1)], dtype: 'f32' };
  },
  gradient: (_y, dy, [, index, inverse], { total }) => [take(dy, inverse!, index!, { zeros: !total }), null, null],
  onnx(emit, [x, index], y, { zeros }) {
    // To Gather, index −1 is the last row: whatever that holds will do, or it is a row of zeros put there for this.
    if (!zeros) return emit.node('Gather', [x!, index!], { axis: 0 });
    const row = y.shape.slice(1);
    const fixed = row.filter((dim) => typeof dim === 'number');
    const nothing =
      fixed.length === row.length
        ? emit.constant(new Float32Array(elements(fixed)), [1, ...fixed], 'f32')
        : emit.node('ConstantOfShape', [emit.dims([1, ...row])]);
    return emit.node('Gather', [emit.node('Concat', [x!, nothing], { axis: 0 }), index!], { axis: 0 });
  },
  reference([x, index], shape, { zeros }) {
    const width = elements(shape.slice(1));
    const out = new Float64Array(elements(shape));
    const last = x!.shape[0]! - 1;
    for (const [i, at] of index!.data.entries()) {
      if (at === -1 && zeros) continue;
      const row = at === -1 ? last : checkIndex('take', at, x!.shape[0]!);
      out.set(x!.data.subarray(row * width, (row + 1) * width), i * width);
    }
    return out;
  },
};

/**
 * Takes rows of x, or zeros: y[i] = x[index[i]], and 0 where index[i] = -1. It carries packed tokens [N, d] to a padded
 * layout [B·T, d] and back. No row is taken twice, so its gradient is `take` by the inverse, without any addition.
 * @param x       f32 [N, ...]
 * @param index   i32 [M], each in [-1, N)
 * @param inverse i32 [N]; inverse[index[i]] = i, and -1 for a row that is not taken
 */
export function take(
  x: Tensor,
  index: Tensor,
  inverse: Tensor,
  { zeros = true, total = false }: TakeOptions = {},
): Tensor {
  return apply(takeOp, [x, index, inverse], { zeros, total });
}

/** Checks that `ids` is i32 and differs from `shape` on `axis` only. @throws {ShapeError} */
function requireElementwise(op: string, shape: Shape, ids: Tensor, axis: number, inputs: readonly Tensor[]): void {
  if (ids.dtype !== 'i32') throw misfit(op, 'ids must be i32', inputs);
  const rest = (dims: Shape) => dims.map((dim, i) => (i === axis ? 0 : dim));
  if (!equalShapes(rest(ids.shape), rest(shape))) {
    throw misfit(op, `ids may differ from [${shape.join(', ')}] on axis ${axis} only`, inputs);
  }
}

/** Visits element i of `ids` with the offset in an array of shape `shape` that its id names along `axis`. */
function visitAlong(
  op: string,
  idShape: readonly number[],
  shape: readonly number[],
  axis: number,
  ids: Float64Array,
  visit: (i: number, target: number) => void,
): void {
  const width = elements(shape.slice(axis + 1));
  const block = idShape[axis]! * width;
  for (const [i, id] of ids.entries()) {
    const target =
      Math.floor(i / block) * shape[axis]! * width + checkIndex(op, id, shape[axis]!) * width + (i % width);
    visit(i, target);
  }
}

function checkIndex(op: string, id: number, size: number): number {
  if (!Number.isInteger(id) || id < 0 || id >= size) {
    throw new LongplayError('BAD_ARGUMENT', `${op}: index ${id} is not in [0, ${size})`);
  }
  return id;
}
