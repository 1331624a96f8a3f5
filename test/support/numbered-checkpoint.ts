import type { CheckpointContent } from '../../src/storage/checkpoint.ts';

/** Content of which every byte depends on the update it belongs to, large enough to be written in several pieces. */
export function checkpointOf(update: number): CheckpointContent {
  const data = new Float32Array(50_000);
  for (let i = 0; i < data.length; i++) data[i] = update + i / 65536;
  return { tensors: { weights: { shape: [500, 100], data } }, state: { update } };
}
