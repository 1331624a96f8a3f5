/** Tiny models of each family: what transformers computes of the same weights, recorded by test/support/record-families.py. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { promptsOf } from '../../../experiments/parity/llm-feeds.ts';
import { generateGreedily } from '../../../experiments/parity/llm-greedy.ts';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import type { Engine } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { decodeGraph, forwardGraph, prefillGraph } from '../../../src/compute/model/programs.ts';
import { freeze } from '../../../src/policy/pretrained/base.ts';
import { FAMILIES } from '../../../src/policy/pretrained/families.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { checkModel } from '../../../src/run/check-model.ts';
import { readLines } from '../../support/json-lines.ts';

const LLAMA3 = {
  rope_type: 'llama3',
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 64,
};

const LONGROPE = {
  type: 'longrope',
  short_factor: Array(6).fill(1.5),
  long_factor: Array(6).fill(4),
  original_max_position_embeddings: 1024,
};
const GEMMA = { hidden_act: undefined, hidden_activation: 'gelu_pytorch_tanh' };

const fixtures = new URL('../../fixtures/families/', import.meta.url);
const names = readdirSync(fixtures);

interface Recorded {
  readonly prompt: readonly number[];
  /** 64 most likely ids, one after another. */
  readonly greedy: readonly number[];
  /** Logits at positions 0, 19, 50 and 83 of prompt and continuation. */
  readonly logits: readonly (readonly number[])[];
}

describe('a family of language models', () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  });
  afterAll(() => engine.dispose());

  it('of every kind is recorded, here or in ../shared/golden', () => {
    const types = names.map(
      (name) => JSON.parse(readFileSync(new URL(`${name}/config.json`, fixtures), 'utf8')).model_type,
    );
    expect([...new Set([...types, 'qwen2'])].sort()).toEqual(FAMILIES.map(({ modelType }) => modelType).sort());
  });

  it('of every kind is on the page', () => {
    const page = readFileSync(new URL('../../../src/policy/pretrained/README.md', import.meta.url), 'utf8');
    for (const { modelType, models, gguf, limits } of FAMILIES) {
      const forms = gguf === undefined ? 'folder' : 'folder, GGUF';
      expect(page).toContain(`| \`${modelType}\` | ${models} | ${forms} |${limits === '' ? '' : ` ${limits}`} |`);
    }
  });

  it.each([
    { model_type: 'qwen3', head_dim: 32 },
    { model_type: 'smollm3', num_hidden_layers: 4, no_rope_layers: [1, 1, 1, 0] },
    { model_type: 'llama', rope_scaling: { ...LLAMA3 } },
    { model_type: 'mistral', sliding_window: 16 },
    { model_type: 'phi3', sliding_window: 16, partial_rotary_factor: 0.75, rope_scaling: LONGROPE },
    { model_type: 'gemma2', num_hidden_layers: 10, sliding_window: 16, head_dim: 16, ...GEMMA },
    { model_type: 'gemma3_text', num_hidden_layers: 10, sliding_window: 16, head_dim: 32, ...GEMMA },
  ])('$model_type generates what its learner scores, and takes a LoRA step', async (config) => {
    const folder = mkdtempSync(join(tmpdir(), 'longplay-family-'));
    try {
      writeTinyChatModel(folder, { config });
      const checks = await checkModel(folder, 'none', { name: 'onnxruntime-node', threads: 1 });
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
      expect(checks.length).toBe(4);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.each([
    ['int8', { model_type: 'phi3', sliding_window: 16 }],
    ['int4', { model_type: 'gemma2', sliding_window: 16, head_dim: 16, ...GEMMA }],
  ] as const)('quantised to %s, %j, generates what its learner scores', async (quantize, config) => {
    const folder = mkdtempSync(join(tmpdir(), 'longplay-family-'));
    try {
      writeTinyChatModel(folder, { config });
      const checks = await checkModel(folder, quantize, { name: 'onnxruntime-node', threads: 1 });
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
      expect(checks.length).toBe(4);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.each(names)('%s has the logits of transformers to 1e-4, and its 64 greedy tokens', async (name) => {
    const [recorded] = readLines(new URL(`${name}/expected.jsonl`, fixtures)) as readonly [Recorded];
    const { prompt, greedy, logits } = recorded;
    const config = freeze(openModel(new URL(name, fixtures).pathname));
    const forward = await engine.compile(forwardGraph(config));
    const { data } = (await forward.run(promptsOf([[...prompt, ...greedy]]))).logits!;
    for (const [i, t] of [0, 19, 50, 83].entries()) {
      const row = (data as Float32Array).subarray(t * config.vocabSize, (t + 1) * config.vocabSize);
      const worst = logits[i]!.reduce((most, x, id) => Math.max(most, Math.abs(x - row[id]!)), 0);
      expect(worst).toBeLessThan(1e-4);
    }
    const programs = {
      prefill: await engine.compile(prefillGraph(config)),
      decode: await engine.compile(decodeGraph(config)),
    };
    expect(await generateGreedily(config, programs, {}, [prompt], 64)).toEqual([greedy]);
  });
});
