/** An actor whose start is one long native call, as the compilation of a language model's programs is. */
import { openEngine } from '../../src/compute/engine/open.ts';
import { defineGraph } from '../../src/compute/tensor/graph.ts';
import { input, matmul } from '../../src/compute/tensor/ops.ts';
import type { BehaviorFactory } from '../../src/runtime/actor.ts';
import type { Gate } from './gate.ts';

const SIZE = 2500;
const PRODUCTS = 12;

export default function nativeCall({ called }: { readonly called: Gate }): BehaviorFactory<{ readonly type: 'none' }> {
  return async () => {
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    const x = input('x', [SIZE, SIZE]);
    let y = x;
    for (let i = 0; i < PRODUCTS; i++) y = matmul(y, x);
    const program = await engine.compile(defineGraph({ y }));
    const data = new Float32Array(SIZE * SIZE);
    Atomics.store(called, 0, 1);
    await program.run({ x: { dtype: 'f32', shape: [SIZE, SIZE], data } });
    await engine.dispose();
    return { handlers: { none: () => {} } };
  };
}
