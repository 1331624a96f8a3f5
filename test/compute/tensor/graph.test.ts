import { describe, expect, it } from 'vitest';
import { interpret } from '../../../src/compute/engine/reference.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import * as t from '../../../src/compute/tensor/ops.ts';
import { ShapeError } from '../../../src/core/errors.ts';

const x = t.input('x', ['N', 4]);
const ids = t.input('ids', ['N'], 'i32');
const w = t.parameter('w', [5, 6]);

describe('an op with operands that do not fit', () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      'matmul',
      () => t.matmul(x, w),
      /^matmul: inner sizes of a·b differ \(4 and 5\): 'x' f32\[N, 4\], 'w' f32\[5, 6\]$/,
    ],
    [
      'matmul rank',
      () => t.matmul(x, t.constant([1, 2])),
      /^matmul: operands need two axes or more: .*constant f32\[2\]/,
    ],
    [
      'matmul lead',
      () => t.matmul(t.input('a', [2, 3, 4]), t.input('b', [5, 4, 3])),
      /leading sizes of a·b do not broadcast/,
    ],
    ['add', () => t.add(x, w), /^add: shapes do not broadcast: 'x' f32\[N, 4\], 'w' f32\[5, 6\]$/],
    ['symbols', () => t.add(x, t.input('y', ['M', 4])), /^add: shapes do not broadcast/],
    [
      'dtypes',
      () => t.add(ids, t.input('y', ['N'])),
      /^add: operands must have one dtype: 'ids' i32\[N\], 'y' f32\[N\]$/,
    ],
    ['exp', () => t.exp(ids), /^exp: operands must be f32: 'ids' i32\[N\]$/],
    ['div', () => t.div(ids, 2), /^div: operands must be f32/],
    [
      'reshape',
      () => t.reshape(x, ['N', 5]),
      /^reshape: 4\*N elements do not fill \[N, 5\] \(5\*N\): 'x' f32\[N, 4\]$/,
    ],
    ['transpose', () => t.transpose(x, [0, 0]), /^transpose: \[0, 0\] is no order of the axes/],
    ['concat', () => t.concat([x, w], 0), /^concat: operands may differ on axis 0 only/],
    ['slice', () => t.slice(x, 1, 2, 5), /^slice: \[2, 5\) is not within axis 1: 'x' f32\[N, 4\]$/],
    ['broadcastTo', () => t.broadcastTo(w, ['N', 6]), /^broadcastTo: the operand does not broadcast to \[N, 6\]/],
    ['reduceSum', () => t.reduceSum(x, 2), /^reduceSum: there is no axis 2: 'x' f32\[N, 4\]$/],
    ['reduceSum twice', () => t.reduceSum(x, [1, -1]), /^reduceSum: axes \[1,1\] repeat/],
    ['gather', () => t.gather(w, x), /^gather: ids must be i32: 'w' f32\[5, 6\], 'x' f32\[N, 4\]$/],
    ['pick', () => t.pick(x, ids), /^pick: ids may differ from \[N, 4\] on axis 1 only/],
    [
      'take',
      () => t.take(x, ids, t.input('inverse', [3], 'i32')),
      /^take: expected x \[N, \.\.\.\], index \[M\], inverse \[N\]/,
    ],
    ['where', () => t.where(ids, x, 0), /^where: the condition must be bool/],
    ['constant', () => t.constant([1, 2, 3], [2, 2]), /^constant: 3 values do not fill \[2, 2\]$/],
    [
      'gradients of a vector',
      () => gradients(t.reduceSum(x, 1), [x]),
      /^gradients: the loss must be an f32 scalar \[\], got reduceSum f32\[N\]$/,
    ],
    [
      'gradients in ids',
      () => gradients(t.reduceSum(x), [ids]),
      /^gradients: only f32 tensors have gradients, got 'ids' i32\[N\]$/,
    ],
  ])('%s', (_, build, message) => {
    expect(build).toThrow(ShapeError);
    expect(build).toThrow(message);
  });
});

describe('defineGraph', () => {
  it('lists weights apart and leaves out what no output needs', () => {
    const graph = defineGraph({ y: t.matmul(t.concat([x, x], 1), t.parameter('v', [8, 2])), z: t.reduceSum(x) });
    expect(graph.inputs).toEqual([{ name: 'x', shape: ['N', 4], dtype: 'f32' }]);
    expect(graph.parameters).toEqual([{ name: 'v', shape: [8, 2], dtype: 'f32' }]);
    expect(graph.outputs).toEqual([
      { name: 'y', shape: ['N', 2], dtype: 'f32' },
      { name: 'z', shape: [], dtype: 'f32' },
    ]);
  });

  it('merges equal nodes, and only those', () => {
    const ops = (outputs: Record<string, t.Tensor>) => defineGraph(outputs).nodes.length;
    expect(ops({ y: t.add(t.exp(x), t.mul(t.exp(x), 2)), z: t.mul(t.exp(x), t.constant(2)) })).toBe(5);
    expect(ops({ y: t.add(t.reduceSum(x, 0, true), t.reduceSum(x, 1, true)) })).toBe(4);
    expect(ops({ y: t.mul(x, 2), z: t.mul(x, 3) })).toBe(5);
  });

  it('refuses two inputs of one name', () => {
    expect(() => defineGraph({ y: t.add(t.input('x', [4]), x) })).toThrow(
      /two inputs of one name: 'x' f32\[4\], 'x' f32\[N, 4\]/,
    );
  });
});

describe('gradients', () => {
  const at = (outputs: Record<string, t.Tensor>, data: number[]) => {
    const shape = [data.length / 4, 4];
    const feeds = new Map([['x', { shape, data: Float64Array.from(data) }]]);
    return interpret(defineGraph(outputs), feeds, new Map([['N', shape[0]!]]));
  };

  it('are zeros where the loss does not depend on a tensor', () => {
    const [dw, dx] = gradients(t.reduceSum(t.exp(x)), [w, x]);
    const results = at({ dw: dw!, dx: dx! }, [0, 0, 0, 0]);
    expect(results.get('dw')).toEqual({ shape: [5, 6], data: new Float64Array(30) });
    expect(results.get('dx')!.data).toEqual(Float64Array.of(1, 1, 1, 1));
  });

  it('do not flow through stopGradient', () => {
    const [dx] = gradients(t.reduceSum(t.mul(x, t.stopGradient(t.mul(x, x)))), [x]);
    expect(at({ dx: dx! }, [1, 2, 3, 4]).get('dx')!.data).toEqual(Float64Array.of(1, 4, 9, 16));
  });

  it('are taken of tensors in the middle of a graph, and of gradients', () => {
    const square = t.mul(x, x);
    const loss = t.reduceSum(t.mul(square, x));
    const [dSquare] = gradients(loss, [square]);
    const [dx] = gradients(loss, [x]);
    const [ddx] = gradients(t.reduceSum(dx!), [x]);
    const results = at({ dSquare: dSquare!, dx: dx!, ddx: ddx! }, [1, 2, 3, 4]);
    expect(results.get('dSquare')!.data).toEqual(Float64Array.of(1, 2, 3, 4));
    expect(results.get('dx')!.data).toEqual(Float64Array.of(3, 12, 27, 48));
    expect(results.get('ddx')!.data).toEqual(Float64Array.of(6, 12, 18, 24));
  });

  it('share a tie for the maximum', () => {
    const [dx] = gradients(t.reduceSum(t.reduceMax(x, 1)), [x]);
    expect(at({ dx: dx! }, [5, 5, 1, 2]).get('dx')!.data).toEqual(Float64Array.of(0.5, 0.5, 0, 0));
  });

  it('expand nothing where the next op broadcasts by itself', () => {
    const loss = t.reduceMean(t.reduceSum(t.mul(t.exp(x), t.sigmoid(x)), 1));
    const [dx] = gradients(loss, [x]);
    expect(defineGraph({ dx: dx! }).nodes.filter((node) => node.op === 'broadcastTo')).toEqual([]);
  });

  it('reach through graphs deeper than the call stack', () => {
    let y: t.Tensor = x;
    for (let i = 0; i < 20_000; i++) y = t.add(y, x);
    const [dx] = gradients(t.reduceSum(y), [x]);
    expect(at({ dx: dx! }, [1, 1, 1, 1]).get('dx')!.data[0]).toBe(20_001);
  });
});
