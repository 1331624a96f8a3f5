import { expect, it } from 'vitest';
import type { HostTensor } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { drawParameters, parameterSpecs } from '../../../src/compute/model/parameters.ts';
import { gradientGraph, logprobsGraph, trainGraph } from '../../../src/compute/model/programs.ts';
import { Rng } from '../../../src/core/rng.ts';
import { episodeFeeds, plainConfig, randomGroups, randomParams, scalarFeeds, weightFeeds } from './episodes.ts';

const adapter = { rank: 2, alpha: 4, targets: ['q_proj', 'v_proj'] };
const adapted = { ...plainConfig, adapter };

it('trains adapters beside a frozen model, starting from the model itself', async () => {
  const specs = parameterSpecs(adapted);
  const [adapters, heads] = [specs.slice(0, -2), specs.slice(-2)];
  expect(adapters.length).toBe(2 * 2 * plainConfig.layers);
  expect(heads.map(({ name }) => name)).toEqual(['value_head.weight', 'value_head.bias']); // no base model has one
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

it('is the model whose projections are W + (α/r)·B·A', async () => {
  const { rank, alpha } = adapter;
  const engine = await openEngine({ name: 'reference' });
  const groups = randomGroups('tokens', { groups: 1, members: 2, prompt: 4, tokens: 5 }, 3);
  const feeds = episodeFeeds(plainConfig, 'tokens', groups);
  const base = randomParams(plainConfig, 3);
  const rng = Rng.fromSeed(4);
  const drawn = Object.fromEntries(
    parameterSpecs(adapted).map(({ name, shape }) => [
      name,
      Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => rng.normal() / 4),
    ]),
  );
  const merged: Record<string, Float32Array> = { ...base.values };
  for (const [name, down] of Object.entries(drawn)) {
    if (!name.endsWith('.lora_A.weight')) continue;
    const up = drawn[name.replace('lora_A', 'lora_B')]!;
    const weight = `${name.slice('base_model.model.'.length, -'.lora_A.weight'.length)}.weight`;
    const inputs = down.length / rank;
    merged[weight] = Float32Array.from(base.values[weight]!, (w, i) => {
      const [row, column] = [Math.floor(i / inputs), i % inputs];
      let sum = 0;
      for (let r = 0; r < rank; r++) sum += up[row * rank + r]! * down[r * inputs + column]!;
      return w + (alpha / rank) * sum;
    });
  }
  const adapters = Object.fromEntries(
    parameterSpecs(adapted).map(({ name, shape }) => [name, { dtype: 'f32' as const, shape, data: drawn[name]! }]),
  );
  const own = await (await engine.compile(logprobsGraph(adapted, { decoder: 'tokens' }))).run({
    ...feeds,
    ...weightFeeds(plainConfig, base),
    ...adapters,
  });
  const plain = await (await engine.compile(logprobsGraph(plainConfig, { decoder: 'tokens' }))).run({
    ...feeds,
    ...weightFeeds(plainConfig, { version: 0, values: merged }),
  });
  const [got, want] = [own.logprob!.data, plain.logprob!.data];
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) expect(got[i]).toBeCloseTo(want[i]!, 5);
});

it('refuses a target that the model does not have', () => {
  expect(() => parameterSpecs({ ...plainConfig, adapter: { ...adapter, targets: ['z_proj'] } })).toThrow(
    'no projection called z_proj',
  );
});
