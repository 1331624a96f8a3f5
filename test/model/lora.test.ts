import { expect, it } from 'vitest';
import type { HostTensor } from '../../src/engine/engine.ts';
import { openEngine } from '../../src/engine/open.ts';
import { defaultAdamW } from '../../src/model/optimizer.ts';
import { drawParameters, parameterSpecs } from '../../src/model/parameters.ts';
import { gradientGraph, trainGraph } from '../../src/model/programs.ts';
import { episodeFeeds, plainConfig, randomGroups, randomParams, scalarFeeds, weightFeeds } from './episodes.ts';

const adapter = { rank: 2, alpha: 4, targets: ['q_proj', 'v_proj'] };
const adapted = { ...plainConfig, adapter };

it('trains adapters beside a frozen model, starting from the model itself', async () => {
  const specs = parameterSpecs(adapted);
  expect(specs.length).toBe(2 * 2 * plainConfig.layers);
  expect(specs[0]!.name).toBe('base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight');

  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  const options = { decoder: 'tokens', objective: 'likelihood', adamW: defaultAdamW } as const;
  const groups = randomGroups('tokens', { groups: 3, members: 2, prompt: 6, tokens: 8 }, 1);
  const feeds = {
    ...episodeFeeds(plainConfig, 'tokens', groups),
    ...weightFeeds(plainConfig, randomParams(plainConfig, 1)),
  };
  const base = await (await engine.compile(gradientGraph(plainConfig, options))).run(feeds);

  const program = await engine.compile(trainGraph(adapted, options));
  const drawn = drawParameters(specs, 1);
  let state: Record<string, HostTensor> = {};
  for (const { name, shape } of specs) {
    const zeros = (): HostTensor => ({ dtype: 'f32', shape, data: new Float32Array(drawn[name]!.length) });
    state[name] = { dtype: 'f32', shape, data: drawn[name]! };
    state[`m/${name}`] = zeros();
    state[`v/${name}`] = zeros();
  }
  expect(program.outputs.filter(({ name }) => name.startsWith('w/')).length).toBe(specs.length);
  const losses: number[] = [];
  for (let t = 1; t <= 30; t++) {
    const scalars = { lr: 0.02, maxGradNorm: 1, correction1: 1 - 0.9 ** t, correction2: 1 - 0.98 ** t };
    const out = await program.run({ ...feeds, ...scalarFeeds('adam', scalars), ...state });
    losses.push(out.loss!.data[0]!);
    const next: Record<string, HostTensor> = {};
    for (const name of Object.keys(state)) next[name] = out[/^[mv]\//.test(name) ? name : `w/${name}`]!;
    state = next;
  }
  expect(losses[0]).toBeCloseTo(base.loss!.data[0]!, 5);
  expect(losses.at(-1)!).toBeLessThan(losses[0]! * 0.9);
  await engine.dispose();
});

it('refuses a target that the model does not have', () => {
  expect(() => parameterSpecs({ ...plainConfig, adapter: { ...adapter, targets: ['z_proj'] } })).toThrow(
    'no projection called z_proj',
  );
});
