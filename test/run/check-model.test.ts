import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { ALL_PROJECTIONS } from '../../src/compute/model/config.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { checkModel } from '../../src/run/check-model.ts';
import { FakeGenerationServer } from '../support/fake-generation-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-doctor-test-'));
beforeAll(() => void writeTinyChatModel(folder));
afterAll(() => rmSync(folder, { recursive: true }));

const engine = { name: 'onnxruntime-node', threads: 1 } as const;

it('a sound model and a sound server pass every check, and a server with other numbers does not', async () => {
  const { config, endTokens } = openModel(folder);
  const chat = {
    ...({ folder, vocabSize: config.vocabSize, endTokens, format: 'world', listActions: false } as const),
    world: { role: 'You answer in a sentence.', forms: [], hints: [], format: 'action' } as const,
    ...{ contextTokens: 4096, answerTokens: 64 },
  };
  const adapter = { rank: 16, alpha: 32, targets: ALL_PROJECTIONS };
  const server = await FakeGenerationServer.start('vllm', chat, adapter);
  try {
    const options = { api: 'vllm', url: server.url, model: 'base', attemptMs: 60_000 } as const;
    const checks = await checkModel(folder, 'none', engine, options);
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(checks.map(({ what }) => what)).toEqual([
      'folder',
      '64 tokens',
      'scored again as the learner does',
      'one LoRA step',
      'vllm: adapter loaded',
      'vllm: generates under it',
      'vllm: adapter unloaded',
    ]);
    expect(server.loaded.size).toBe(0);
    server.bias = -0.5;
    const wrong = await checkModel(folder, 'int8', engine, options);
    expect(wrong.filter(({ ok }) => !ok).map(({ what }) => what)).toEqual(['vllm: generates under it']);
  } finally {
    await server.stop();
  }
});

it.each([1, 16, 64, 128])(
  'a model of %i positions is checked to its end, or refused in one line',
  async (positions) => {
    const short = mkdtempSync(join(tmpdir(), 'longplay-short-'));
    try {
      writeTinyChatModel(short);
      const json = JSON.parse(readFileSync(join(short, 'config.json'), 'utf8')) as object;
      writeFileSync(join(short, 'config.json'), JSON.stringify({ ...json, max_position_embeddings: positions }));
      const checks = await checkModel(short, 'none', engine);
      expect(checks.length).toBeGreaterThan(0);
      expect(checks.at(-1)).toMatchObject({ ok: false, found: expect.stringMatching(/positions|tokens/) });
    } finally {
      rmSync(short, { recursive: true });
    }
  },
);

it('a folder that cannot be used is one line', async () => {
  const [check, ...more] = await checkModel(join(folder, 'none'), 'none', engine);
  expect(more).toEqual([]);
  expect(check).toMatchObject({ what: 'folder', ok: false, found: expect.stringContaining('there is no such file or folder') });
});

it.each(['none', 'int8'] as const)('a weight that is no number is named, in a base of %s', async (quantize) => {
  const broken = mkdtempSync(join(tmpdir(), 'longplay-broken-'));
  try {
    writeTinyChatModel(broken);
    const name = 'model.layers.0.mlp.down_proj.weight';
    const { source } = openModel(broken).shards.weights.get(name)!;
    const bytes = readFileSync(source.file);
    bytes.writeFloatLE(Number.NaN, source.offset + 40);
    writeFileSync(source.file, bytes);
    const [, check] = await checkModel(broken, quantize, engine);
    expect(check).toMatchObject({
      what: '64 tokens',
      ok: false,
      found: expect.stringContaining(`'${name}' holds NaN`),
    });
  } finally {
    rmSync(broken, { recursive: true });
  }
});
