import { expect, it, vi } from 'vitest';
import { chooseEngine, openEngine } from '../../../src/compute/engine/open.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import { input, neg } from '../../../src/compute/tensor/ops.ts';

vi.mock('onnxruntime-node', () => {
  throw new Error('Cannot find package');
});

it('falls back to onnxruntime-web where the native package is absent, and reports it', async () => {
  const engine = await openEngine({ name: 'auto', threads: 1 });
  expect(engine.name).toBe('onnxruntime-web');
  expect(engine.reason).toMatch(/onnxruntime-node is not there \(.*\).*npm install onnxruntime-node/);
  const program = await engine.compile(defineGraph({ y: neg(input('x', [1])) }));
  const { y } = await program.run({ x: { dtype: 'f32', shape: [1], data: Float32Array.of(2) } });
  expect(y!.data[0]).toBe(-2);
  // The WebAssembly module is started once: later engines have the first one's threads, and report it.
  const second = await openEngine({ name: 'onnxruntime-web', threads: 2 });
  expect([second.threads, second.reason]).toEqual([
    1,
    'asked for by name; on the threads (1) of the first engine opened here',
  ]);
  await engine.dispose();
});

it('warns before a run that it will be slower, with the cure', async () => {
  expect(await chooseEngine({ name: 'auto' })).toMatchObject({
    engine: 'onnxruntime-web/cpu',
    notice: expect.stringMatching(
      /^engine onnxruntime-web\/cpu, several times slower .*Cure: npm install onnxruntime-node --ignore-scripts$/,
    ),
  });
});

it('names the install command where it is chosen by name', async () => {
  await expect(openEngine({ name: 'onnxruntime-node' })).rejects.toMatchObject({
    code: 'MISSING_ENGINE',
    message: expect.stringMatching(/onnxruntime-node is not there .*Install it: npm install onnxruntime-node/),
  });
});
