import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import type { LoraConfig } from '../../../src/compute/model/config.ts';
import { parameterSpecs } from '../../../src/compute/model/parameters.ts';
import { readAdapter, writeAdapter } from '../../../src/policy/pretrained/adapter.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { readModelConfig } from '../../../src/policy/pretrained/model-config.ts';
import { readWeight } from '../../../src/policy/pretrained/shards.ts';
import { openText } from '../../../src/text/templates/model-text.ts';

const tinyConfig = {
  model_type: 'qwen2',
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  intermediate_size: 160,
  vocab_size: 640,
  max_position_embeddings: 512,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  hidden_act: 'silu',
  torch_dtype: 'float32',
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'longplay-model-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('config.json', () => {
  it('is read in both dialects alike', () => {
    const { rope_theta, torch_dtype, ...rest } = tinyConfig;
    const nested = { ...rest, dtype: torch_dtype, rope_parameters: { rope_type: 'default', rope_theta } };
    expect(readModelConfig(nested, 'c')).toEqual(readModelConfig(tinyConfig, 'c'));
    expect(readModelConfig(tinyConfig, 'c')).toMatchObject({
      ropeTheta: 10_000,
      qkvBias: true,
      kvHeads: 2,
      maxPositions: 512,
    });
    expect(readModelConfig(tinyConfig, 'c', 100).maxPositions).toBe(100);
  });

  it('names the layers that see a window, where a context may be longer than it', () => {
    const json = { ...tinyConfig, model_type: 'mistral', sliding_window: 100 };
    expect(readModelConfig(json, 'c')).toMatchObject({ slidingLayers: [0, 1], slidingWindow: 100, maxPositions: 512 });
    const whole = readModelConfig({ ...json, sliding_window: null }, 'c');
    expect(whole.slidingLayers ?? whole.slidingWindow).toBeUndefined();
    expect(readModelConfig(json, 'c', 100)).toEqual({ ...whole, maxPositions: 100 });
    const { hidden_act: _, sliding_window: __, ...rest } = json;
    const gemma = { ...rest, model_type: 'gemma2', num_hidden_layers: 4 };
    expect(readModelConfig(gemma, 'c').slidingLayers).toBeUndefined();
    expect(readModelConfig({ ...gemma, sliding_window: 7 }, 'c').slidingLayers).toEqual([0, 2]);
    const listed = ['full_attention', 'full_attention', 'sliding_attention', 'full_attention'];
    expect(readModelConfig({ ...gemma, sliding_window: 7, layer_types: listed }, 'c').slidingLayers).toEqual([2]);
    expect(() => readModelConfig({ ...gemma, layer_types: ['full_attention'] }, 'c')).toThrow('c: layer_types');
  });

  it('of Gemma 3 has two rotary bases, in both dialects alike', () => {
    const { rope_theta: _, hidden_act: __, ...rest } = tinyConfig;
    const gemma = { ...rest, model_type: 'gemma3_text', num_hidden_layers: 7, sliding_window: 8 };
    const scaling = { rope_type: 'linear', factor: 8 };
    const old = readModelConfig({ ...gemma, rope_theta: 1e6, rope_local_base_freq: 1e4, rope_scaling: scaling }, 'c');
    const rope_parameters = {
      full_attention: { ...scaling, rope_theta: 1e6 },
      sliding_attention: { rope_type: 'default', rope_theta: 1e4 },
    };
    const types = Array.from({ length: 7 }, (_, i) => (i === 5 ? 'full_attention' : 'sliding_attention'));
    expect(readModelConfig({ ...gemma, rope_parameters, layer_types: types }, 'c')).toEqual(old);
    expect(old).toMatchObject({ ropeTheta: 1e6, localRopeTheta: 1e4, slidingLayers: [0, 1, 2, 3, 4, 6] });
    const broken = { ...rope_parameters, sliding_attention: scaling };
    expect(() => readModelConfig({ ...gemma, rope_parameters: broken }, 'c')).toThrow('sliding_attention');
    expect(readModelConfig({ ...gemma, sliding_window_pattern: 2 }, 'c').slidingLayers).toEqual([0, 2, 4, 6]);
  });

  it('of LongRoPE ends where its second list would begin, and scales what is turned', () => {
    const scaling = { type: 'longrope', short_factor: Array(6).fill(2), long_factor: Array(6).fill(3) };
    const json = {
      ...{ ...tinyConfig, model_type: 'phi3', partial_rotary_factor: 0.75, rope_scaling: scaling },
      ...{ max_position_embeddings: 512, original_max_position_embeddings: 128 },
    };
    const read = readModelConfig(json, 'c');
    expect(read).toMatchObject({ maxPositions: 128, rotaryWidth: 12, ropeFactors: Array(6).fill(2) });
    expect(read.ropeScale).toBeCloseTo(Math.sqrt(1 + Math.log(4) / Math.log(128)), 12);
    const shorter = { ...json, rope_scaling: { ...scaling, short_factor: [1] } };
    expect(() => readModelConfig(shorter, 'c')).toThrow(/c: rope_scaling.short_factor .* expected 6 positive numbers/);
    expect(() => readModelConfig({ ...json, partial_rotary_factor: 2 }, 'c')).toThrow('c: partial_rotary_factor');
    expect(() => readModelConfig({ ...json, original_max_position_embeddings: 1 }, 'c')).toThrow('original_max');
  });

  it.each([
    ['model_type', 'gpt2'],
    ['rope_scaling', { type: 'yarn', factor: 4 }],
    ['rope_scaling', { rope_type: 'llama3' }],
    [
      'rope_scaling',
      { rope_type: 'llama3', factor: 8, low_freq_factor: 4, high_freq_factor: 1, original_max_position_embeddings: 64 },
    ],
    ['rope_scaling', { rope_type: 'longrope', short_factor: [1], long_factor: [1], attention_factor: 1 }],
    [
      'rope_scaling',
      { rope_type: 'longrope', short_factor: Array(8).fill(2), long_factor: Array(8).fill(3), attention_factor: 1 },
    ],
    ['rope_scaling', { rope_type: 'longrope', short_factor: Array(8).fill(2), long_factor: Array(8).fill(2) }],
    ['rope_scaling', 'linear'],
    ['no_rope_layers', [1]],
    ['no_rope_layers', [1, 2]],
    ['no_rope_layers', 'none'],
    ['mlp_bias', true],
    ['rope_parameters', { rope_type: 'dynamic', rope_theta: 1e4 }],
    ['rope_parameters', { rope_type: 'default', partial_rotary_factor: 0.5 }],
    ['use_sliding_window', true],
    ['layer_types', ['full_attention', 'sliding_attention']],
    ['quantization_config', { bits: 4 }],
    ['hidden_act', 'gelu'],
    ['num_hidden_layers', 0],
    ['num_hidden_layers', 1_000_000],
    ['vocab_size', 2 ** 40],
    ['max_position_embeddings', 2 ** 31],
    ['layer_types', 'full_attention'],
    ['layer_types', { every: 1 }],
    ['rope_theta', Number.POSITIVE_INFINITY],
    ['rope_parameters', { rope_type: 'default', rope_theta: Number.POSITIVE_INFINITY }],
    ['rms_norm_eps', Number.POSITIVE_INFINITY],
    ['num_key_value_heads', 3],
    ['vocab_size', '640'],
    ['rms_norm_eps', -1],
    ['final_logit_softcapping', 30],
    ['partial_rotary_factor', 0.5],
    ['rope_scaling', { rope_type: 'linear' }],
    ['rope_scaling', { rope_type: 'linear', factor: -1 }],
    ['query_pre_attn_scalar', 256],
    ['full_attn_mod', 2],
  ])('with %s %j is refused by that name', (field, value) => {
    expect(() => readModelConfig({ ...tinyConfig, [field]: value }, 'here/config.json')).toThrow(
      field === 'num_key_value_heads' ? /here\/config\.json: .*kvHeads/ : new RegExp(`here/config\\.json: ${field}`),
    );
  });
});

describe('a model folder', () => {
  it('is opened with its weights in place, through links too', () => {
    const weights = writeTinyChatModel(folder);
    const { config, shards, endTokens } = openModel(folder);
    expect(endTokens).toEqual([258, 256]);
    for (const { name } of parameterSpecs(config)) expect(readWeight(shards.weights.get(name)!)).toEqual(weights[name]);
    const linked = mkdtempSync(join(tmpdir(), 'longplay-links-'));
    try {
      for (const name of readdirSync(folder)) symlinkSync(join(folder, name), join(linked, name));
      expect(openModel(linked).shards.hash).toBe(shards.hash);
    } finally {
      rmSync(linked, { recursive: true });
    }
  });

  it.each([
    ['no folder', () => rmSync(folder, { recursive: true }), /there is no such file or folder/],
    ['no config', () => rmSync(join(folder, 'config.json')), /config\.json is missing/],
    ['no weights', () => rmSync(join(folder, 'model.safetensors')), /found neither/],
    ['a config that is not JSON', () => writeFileSync(join(folder, 'config.json'), '{'), /config\.json: /],
    ['a truncated shard', () => truncate(-10), /model\.safetensors: cut short: .* ends at byte/],
    ['a shard without a header', () => truncate(-1e9), /cut short: 5 bytes/],
    ['another width', () => configure({ intermediate_size: 64 }), /mlp\.\w+\.weight is \[.*\], expected \[.*64/],
    ['a missing weight', () => configure({ tie_word_embeddings: false }), /weight lm_head\.weight .* is missing/],
    ['a weight too many', () => configure({ num_hidden_layers: 1 }), /layers\.1\..* is no part of the model/],
    ['a missing shard', () => index('model-2.safetensors'), /shard model-2\.safetensors is missing/],
    ['a shard outside', () => index('../model.safetensors'), /is no shard's name/],
    [
      'a folder for weights',
      () => folderFor('model.safetensors'),
      /model\.safetensors: expected a file, found a folder/,
    ],
  ])('with %s is refused in one line', (_what, harm, message) => {
    writeTinyChatModel(folder);
    harm();
    const opening = () => openModel(folder);
    expect(opening).toThrow(message);
    expect(opening).toThrow(
      expect.objectContaining({ code: 'BAD_CHECKPOINT', message: expect.not.stringContaining('\n') }),
    );
  });

  it('without tokenizer or template is refused', () => {
    writeTinyChatModel(folder);
    expect(openText(folder).template).toBeDefined();
    rmSync(join(folder, 'chat_template.jinja'));
    expect(openText(folder).template).toBeUndefined();
    rmSync(join(folder, 'tokenizer.json'));
    expect(() => openText(folder)).toThrow(/tokenizer\.json is missing/);
  });

  it('with a template that is cut off is refused with that reason, not the parser’s', () => {
    writeTinyChatModel(folder);
    writeFileSync(join(folder, 'chat_template.jinja'), '{% for message in messages %}{{ message.');
    expect(() => openText(folder)).toThrow(/the chat template cannot be read: it ends in the middle of/);
  });

  it('with a template that does not end is refused', () => {
    writeTinyChatModel(folder);
    const endless = '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}';
    writeFileSync(join(folder, 'chat_template.jinja'), endless);
    const { template } = openText(folder);
    expect(() => template!.render([])).toThrow(/the chat template fails: it did not end within 0.7 s/);
  });

  function folderFor(name: string): void {
    rmSync(join(folder, name));
    mkdirSync(join(folder, name));
  }
  function truncate(by: number): void {
    const file = join(folder, 'model.safetensors');
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.subarray(0, Math.max(5, bytes.length + by)));
  }
  function configure(change: Record<string, unknown>): void {
    const file = join(folder, 'config.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...change }));
  }
  function index(name: string): void {
    const map = { weight_map: { 'model.norm.weight': name } };
    writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify(map));
  }
});

describe('an adapter', () => {
  const adapter = { rank: 2, alpha: 8, targets: ['q_proj', 'v_proj'], rslora: true };

  function written(lora: LoraConfig = adapter) {
    writeTinyChatModel(folder);
    const config = { ...openModel(folder).config, adapter: lora };
    const values = Object.fromEntries(
      parameterSpecs(config).map(({ name, shape }, i) => [name, new Float32Array(shape[0]! * shape[1]!).fill(i + 0.5)]),
    );
    const out = join(folder, 'adapter');
    writeAdapter(out, config, values, folder);
    return { config, values, out };
  }

  it('that was written is read again', () => {
    const { config, values, out } = written();
    expect(readAdapter(out, config)).toEqual({ lora: adapter, baseModel: folder, values });
  });

  it('of the top layers alone is read again, and names them as peft does', () => {
    const { config, values, out } = written({ ...adapter, topLayers: 1 });
    const { layers } = config;
    const stored = JSON.parse(readFileSync(join(out, 'adapter_config.json'), 'utf8'));
    expect(stored.layers_to_transform).toEqual([layers - 1]);
    expect(Object.keys(values).every((name) => name.includes(`layers.${layers - 1}.`))).toBe(true);
    expect(readAdapter(out, config).lora).toEqual({ ...adapter, topLayers: 1 });
  });

  it.each([
    [{ layers_to_transform: [0] }, /layers_to_transform is \[0\], expected nothing, or the top layers of \d/],
    [{ layers_to_transform: 'top' }, /layers_to_transform is "top"/],
    [{ use_dora: true }, /use_dora is true, expected false/],
    [{ bias: 'all' }, /bias is "all"/],
    [{ modules_to_save: ['lm_head'] }, /modules_to_save/],
    [{ rank_pattern: { q_proj: 4 } }, /rank_pattern/],
    [{ peft_type: 'IA3' }, /peft_type/],
    [{ r: 4 }, /is \[2, \d+\], the model and rank 4 expect \[4, \d+\]/],
    [{ target_modules: ['q_proj'] }, /v_proj.* belongs to none of the targets/],
    [{ target_modules: ['q_proj', 'v_proj', 'w_proj'] }, /no projection called w_proj/],
    [{ target_modules: 'all-linear' }, /target_modules/],
  ])('with %j is refused in one line', (change, message) => {
    const { config, out } = written();
    const file = join(out, 'adapter_config.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...change }));
    expect(() => readAdapter(out, config)).toThrow(message);
  });
});
