import { describe, expect, it } from 'vitest';
import type { EngineName } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import type { ModelConfig } from '../../../src/compute/model/config.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { type DecoderKind, trainGraph } from '../../../src/compute/model/programs.ts';
import { optionsConfig, plainConfig } from './episodes.ts';
import { lossCurve } from './loss-curve.ts';

const long = process.env.LONGPLAY_LONG === '1';
const STEPS = long ? 200 : 20;
const size = long ? {} : { layers: 1 };

async function trained(name: EngineName, threads: number, config: ModelConfig, decoder: DecoderKind) {
  const engine = await openEngine({ name, threads, spinning: threads > 1 });
  const graph = trainGraph(config, { decoder, objective: 'policy', adamW: { ...defaultAdamW, weightDecay: 0.01 } });
  const losses = await lossCurve(await engine.compile(graph), config, decoder, STEPS);
  await engine.dispose();
  return losses;
}

describe.each([
  ['tokens', { ...plainConfig, ...size }],
  ['choice', { ...optionsConfig, ...size }],
] as const)('training, %s decoder', (decoder, config) => {
  it('follows one loss curve on every engine, and it falls', { timeout: 300_000 }, async () => {
    const [node, web, tfjs] = [
      await trained('onnxruntime-node', 1, config, decoder),
      await trained('onnxruntime-web', 1, config, decoder),
      await trained('tfjs', 1, config, decoder),
    ];
    const sameBatch = STEPS - 1 - ((STEPS - 1) % 3); // three batches take turns
    expect(node[sameBatch]!).toBeLessThan(node[0]!);
    node.forEach((loss, t) => {
      expect(Math.abs(web[t]! - loss), `onnxruntime-web, step ${t}`).toBeLessThanOrEqual(1e-3);
      expect(Math.abs(tfjs[t]! - loss), `tfjs, step ${t}`).toBeLessThanOrEqual(1e-3);
    });
  });

  it.each([1, 2])('is bit-identical twice with %i threads', { timeout: 60_000 }, async (threads) => {
    const first = await trained('onnxruntime-node', threads, config, decoder);
    expect(await trained('onnxruntime-node', threads, config, decoder)).toEqual(first);
  });
});
