import { expect, it, vi } from 'vitest';
import { openEngine } from '../../../src/compute/engine/open.ts';

for (const name of ['@tensorflow/tfjs-node-gpu', '@tensorflow/tfjs-node', '@tensorflow/tfjs-core']) {
  vi.doMock(name, () => {
    throw new Error('Cannot find package');
  });
}

it('reports what was looked for and how to install one of them', async () => {
  await expect(openEngine({ name: 'tfjs' })).rejects.toMatchObject({
    code: 'MISSING_ENGINE',
    message: expect.stringMatching(
      /engine tfjs is not there \(@tensorflow\/tfjs-node-gpu: .*@tensorflow\/tfjs-node: .*wasm: .*cpu: .*npm install @tensorflow\/tfjs-node-gpu/,
    ),
  });
});
