/** Arrays of float64, dense and row-major: the reference meaning of an op reads and writes them. Naive on purpose. */

/** Array value of the reference engine; i32 and bool values are kept as exact float64 numbers. */
export interface NdArray {
  readonly shape: readonly number[];
  readonly data: Float64Array;
}

export function elements(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

/** Strides of a row-major array, in elements. */
export function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  for (let i = shape.length - 1, step = 1; i >= 0; i--) {
    strides[i] = step;
    step *= shape[i]!;
  }
  return strides;
}

/**
 * Calls `visit(i, offset)` for every element i of `shape` in row-major order, where offset = Σ index[d] · strides[d].
 * A stride of 0 repeats an axis (broadcasting), permuted strides transpose, a reduced axis accumulates.
 */
export function walk(
  shape: readonly number[],
  strides: readonly number[],
  visit: (i: number, offset: number) => void,
): void {
  const index = new Array<number>(shape.length).fill(0);
  const total = elements(shape);
  for (let i = 0, offset = 0; i < total; i++) {
    visit(i, offset);
    for (let d = shape.length - 1; d >= 0; d--) {
      offset += strides[d]!;
      if (++index[d]! < shape[d]!) break;
      offset -= strides[d]! * shape[d]!;
      index[d] = 0;
    }
  }
}

/** Strides with which an array of shape `from` is read as if it had the broadcast shape `to`. */
export function broadcastStrides(from: readonly number[], to: readonly number[]): number[] {
  const strides = stridesOf(from);
  return to.map((_, i) => {
    const axis = i - (to.length - from.length);
    return axis < 0 || from[axis] === 1 ? 0 : strides[axis]!;
  });
}

/** `x` copied out to a broadcast shape; `x.data` itself where it already has that shape. */
export function broadcastData(x: NdArray, shape: readonly number[]): Float64Array {
  if (x.shape.length === shape.length && x.shape.every((dim, i) => dim === shape[i])) return x.data;
  const out = new Float64Array(elements(shape));
  walk(shape, broadcastStrides(x.shape, shape), (i, offset) => {
    out[i] = x.data[offset]!;
  });
  return out;
}
