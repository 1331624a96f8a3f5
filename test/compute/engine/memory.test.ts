import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { trainGraph } from '../../../src/compute/model/programs.ts';
import { plainConfig } from '../model/episodes.ts';
import { lossCurve } from '../model/loss-curve.ts';

const long = process.env.LONGPLAY_LONG === '1';
const STEPS = long ? 10_000 : 1_000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes this process holds once nothing can be collected. */
function held(): { readonly rss: number; readonly buffers: number } {
  for (let i = 0; i < 3; i++) collect();
  const { rss, arrayBuffers, external } = process.memoryUsage();
  return { rss, buffers: Math.max(arrayBuffers, external) };
}

it.each(long ? [true, false] : [true])(
  `${STEPS} training steps hold no more memory than a few, outputs disposed of: %s`,
  { timeout: 600_000 },
  async (disposing) => {
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    const graph = trainGraph(plainConfig, { decoder: 'tokens', objective: 'policy', adamW: defaultAdamW });
    const program = await engine.compile(graph);
    await lossCurve(program, plainConfig, 'tokens', STEPS / 5, disposing);
    const before = held();
    await lossCurve(program, plainConfig, 'tokens', STEPS, disposing);
    const after = held();
    // One leaked set of weights and moments per step would be 100 kB each.
    expect(after.buffers - before.buffers).toBeLessThan(1e6);
    expect(after.rss - before.rss).toBeLessThan(STEPS * 5e3 + 8e6);
    await engine.dispose();
  },
);
