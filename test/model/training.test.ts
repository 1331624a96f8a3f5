import { describe, expect, it } from 'vitest';
import type { EngineName, HostTensor, Program } from '../../src/engine/engine.ts';
import { openEngine } from '../../src/engine/open.ts';
import type { ModelConfig } from '../../src/model/config.ts';
import { defaultAdamW } from '../../src/model/optimizer.ts';
import { parameterSpecs } from '../../src/model/parameters.ts';
import { type DecoderKind, trainGraph } from '../../src/model/programs.ts';
import {
  episodeFeeds,
  optionsConfig,
  plainConfig,
  randomGroups,
  randomParams,
  scalarFeeds,
  weightFeeds,
} from './episodes.ts';

const long = process.env.LONGPLAY_LONG === '1';
const STEPS = long ? 200 : 20;

/** Weights and moments fed back step after step; returns the loss of each. */
export async function lossCurve(
  program: Program,
  config: ModelConfig,
  decoder: DecoderKind,
  steps: number,
  disposing = false,
): Promise<number[]> {
  const batches = [1, 2, 3].map((seed) => {
    const groups = randomGroups(decoder, { groups: 3, members: 3, prompt: 8, tokens: 8 }, seed);
    return episodeFeeds(config, decoder, groups);
  });
  const adam = defaultAdamW;
  let state: Record<string, HostTensor> = weightFeeds(config, randomParams(config, 1));
  for (const { name, shape } of parameterSpecs(config)) {
    const size = shape.reduce((a, b) => a * b, 1);
    state[`m/${name}`] = { dtype: 'f32', shape, data: new Float32Array(size) };
    state[`v/${name}`] = { dtype: 'f32', shape, data: new Float32Array(size) };
  }
  const losses: number[] = [];
  for (let t = 1; t <= steps; t++) {
    const scalars = scalarFeeds('adam', {
      lr: 3e-3,
      maxGradNorm: 1,
      correction1: 1 - adam.beta1 ** t,
      correction2: 1 - adam.beta2 ** t,
    });
    const out = await program.run({ ...batches[t % 3]!, ...scalars, ...state });
    const next: Record<string, HostTensor> = {};
    for (const name of Object.keys(state)) next[name] = out[/^[mv]\//.test(name) ? name : `w/${name}`]!;
    if (disposing) for (const old of Object.values(state)) if ('dispose' in old) (old as { dispose(): void }).dispose();
    state = next;
    losses.push(out.loss!.data[0]!);
  }
  return losses;
}

async function trained(name: EngineName, threads: number, config: ModelConfig, decoder: DecoderKind) {
  const engine = await openEngine({ name, threads, spinning: threads > 1 });
  const graph = trainGraph(config, { decoder, objective: 'policy', adamW: { ...defaultAdamW, weightDecay: 0.01 } });
  const losses = await lossCurve(await engine.compile(graph), config, decoder, STEPS);
  await engine.dispose();
  return losses;
}

describe.each([
  ['tokens', plainConfig],
  ['choice', optionsConfig],
] as const)('training, %s decoder', (decoder, config) => {
  it('follows one loss curve on every engine, and it falls', { timeout: 300_000 }, async () => {
    const [node, web, tfjs] = [
      await trained('onnxruntime-node', 1, config, decoder),
      await trained('onnxruntime-web', 1, config, decoder),
      await trained('tfjs', 1, config, decoder),
    ];
    expect(node.at(-1)!).toBeLessThan(node[0]! - 0.01);
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
