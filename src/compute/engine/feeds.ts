import { LongplayError, ShapeError } from '../../core/errors.ts';
import type { Graph, ValueInfo } from '../tensor/graph.ts';
import { evaluate, multipleOf } from '../tensor/shape.ts';
import { formatShape } from '../tensor/tensor.ts';
import type { Feed, HostTensor } from './engine.ts';

const DATA = { f32: Float32Array, i32: Int32Array, bool: Uint8Array } as const;

/** Inputs that a graph must be fed, ordinary ones first. */
export function feedsOf(graph: Graph): readonly ValueInfo[] {
  return [...graph.inputs, ...graph.parameters];
}

/**
 * Checks the feeds of a run against the inputs of its graph and binds the symbolic sizes. Numbers are not looked at.
 * @returns value of each symbol
 * @throws {ShapeError} naming the input, what was expected and what came
 */
export function bindFeeds(inputs: readonly ValueInfo[], feeds: Readonly<Record<string, Feed>>): Map<string, number> {
  const bindings = new Map<string, number>();
  let compound = false;
  for (const info of inputs) {
    const feed = feeds[info.name];
    if (feed === undefined)
      throw new ShapeError(`input '${info.name}': expected ${describeExpected(info)}, got nothing`);
    const { shape } = feed;
    if (feed.dtype !== info.dtype || shape.length !== info.shape.length) throw mismatch(info, feed);
    for (let axis = 0; axis < shape.length; axis++) {
      const want = info.shape[axis]!;
      const size = shape[axis]!;
      if (typeof want === 'number') {
        if (want !== size) throw mismatch(info, feed);
        continue;
      }
      const bound = bindings.get(want);
      if (bound === size) continue;
      if (bound !== undefined) throw mismatch(info, feed, `'${want}' is ${bound} in another input`);
      if (want.includes('*') || want.includes('+') || want.includes('-')) compound = true;
      else bindings.set(want, size);
    }
  }
  if (compound) bindCompound(inputs, feeds, bindings);
  return bindings;
}

/** Binds sizes such as '8*G' or 'P+T': each gives its symbol a value where it has none yet, and must then agree. */
function bindCompound(
  inputs: readonly ValueInfo[],
  feeds: Readonly<Record<string, Feed>>,
  bindings: Map<string, number>,
): void {
  for (const info of inputs) {
    for (const [axis, want] of info.shape.entries()) {
      const known = multipleOf(want);
      const size = feeds[info.name]!.shape[axis]!;
      if (known === undefined || bindings.has(known.symbol)) continue;
      if (size % known.multiple !== 0)
        throw mismatch(info, feeds[info.name]!, `${size} is no multiple of ${known.multiple}`);
      bindings.set(known.symbol, size / known.multiple);
    }
  }
  for (const info of inputs) {
    for (const [axis, want] of info.shape.entries()) {
      const size = evaluate(want, bindings);
      if (size !== feeds[info.name]!.shape[axis]) throw mismatch(info, feeds[info.name]!, `'${want}' is ${size}`);
    }
  }
}

/** Checks that a host tensor's array is of its dtype's class and fills its shape. @throws {ShapeError} @throws {LongplayError} */
export function checkData(name: string, { dtype, shape, data }: HostTensor): void {
  if (!(data instanceof DATA[dtype])) {
    throw new ShapeError(`input '${name}': ${dtype} wants ${DATA[dtype].name}, got ${className(data)}`);
  }
  const size = shape.reduce((product, dim) => product * dim, 1);
  if (data.length !== size) {
    throw new ShapeError(`input '${name}': ${formatShape(shape)} holds ${size} elements, got ${data.length}`);
  }
  if (data.buffer instanceof SharedArrayBuffer) {
    throw new LongplayError('BAD_ARGUMENT', `input '${name}': its memory is shared between threads; feed a copy`);
  }
}

function className(value: unknown): string {
  return (value as object | undefined)?.constructor?.name ?? typeof value;
}

function describeExpected({ dtype, shape }: ValueInfo): string {
  return `${dtype}${formatShape(shape)}`;
}

function mismatch(info: ValueInfo, feed: Feed, why?: string): ShapeError {
  const got = `${feed.dtype}${formatShape(feed.shape)}`;
  return new ShapeError(
    `input '${info.name}': expected ${describeExpected(info)}, got ${got}${why === undefined ? '' : ` (${why})`}`,
  );
}
