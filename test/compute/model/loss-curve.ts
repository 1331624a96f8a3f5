import type { Feed, Program } from '../../../src/compute/engine/engine.ts';
import type { ModelConfig } from '../../../src/compute/model/config.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { initialParams, parameterSpecs } from '../../../src/compute/model/parameters.ts';
import type { DecoderKind } from '../../../src/compute/model/programs.ts';
import { episodeFeeds, randomGroups, scalarFeeds, weightFeeds } from './episodes.ts';

/**
 * Weights and moments fed back step after step; returns the loss of each. It starts as a run does, from initial weights
 * and with a moderate rate: from wild ones, steps over the clipped loss's kinks are chaotic, and weights that differ by
 * 1e-7 at first part by 3e-2 within 200 steps on one and the same engine.
 */
export async function lossCurve(
  program: Program,
  config: ModelConfig,
  decoder: DecoderKind,
  steps: number,
  disposing = false,
  keeping = false,
): Promise<number[]> {
  const batches = [1, 2, 3].map((seed) => {
    const groups = randomGroups(decoder, { groups: 3, members: 3, prompt: 8, tokens: 8 }, seed);
    return episodeFeeds(config, decoder, groups);
  });
  const adam = defaultAdamW;
  let state: Record<string, Feed> = weightFeeds(config, initialParams(config, 1));
  for (const { name, shape } of parameterSpecs(config)) {
    const size = shape.reduce((a, b) => a * b, 1);
    state[`m/${name}`] = { dtype: 'f32', shape, data: new Float32Array(size) };
    state[`v/${name}`] = { dtype: 'f32', shape, data: new Float32Array(size) };
  }
  const losses: number[] = [];
  for (let t = 1; t <= steps; t++) {
    const scalars = scalarFeeds('adam', {
      lr: 1e-3,
      maxGradNorm: 1,
      correction1: 1 - adam.beta1 ** t,
      correction2: 1 - adam.beta2 ** t,
    });
    const nameOf = (name: string) => (/^[mv]\//.test(name) ? name : `w/${name}`);
    const keep = keeping ? Object.keys(state).map(nameOf) : [];
    const out = await program.run({ ...batches[t % 3]!, ...scalars, ...state }, { keep });
    const next: Record<string, Feed> = {};
    for (const name of Object.keys(state)) next[name] = out[nameOf(name)]!;
    if (disposing) for (const old of Object.values(state)) if ('dispose' in old) (old as { dispose(): void }).dispose();
    state = next;
    losses.push(out.loss!.data[0]!);
  }
  return losses;
}
