/** Mutated folders of models: configuration, weights' headers, adapters and tokenizers are read, or refused in one line. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readAdapter } from '../../src/policy/pretrained/adapter.ts';
import { openModel, readModelFacts } from '../../src/policy/pretrained/folder.ts';
import { openText } from '../../src/text/templates/model-text.ts';
import { amount, campaign, orMistake } from './campaign.ts';
import { type Json, mutatedJson } from './mutations.ts';

const golden = new URL('../../../shared/golden/llm/', import.meta.url).pathname;
const dir = mkdtempSync(join(tmpdir(), 'longplay-attack-models-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
cpSync(join(golden, 'models/tied-f32'), dir, { recursive: true });
cpSync(join(golden, 'tokenizer'), dir, { recursive: true });
cpSync(join(golden, 'adapters/tied-f32-lora-all'), dir, { recursive: true });

const COUNT = amount(50_000, 500);
const { config } = readModelFacts(dir);

/** Safetensors file with another header over the same data. */
function withHeader(bytes: Buffer, json: string): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(json)));
  return Buffer.concat([length, Buffer.from(json), bytes.subarray(8 + Number(bytes.readBigUInt64LE(0)))]);
}

function headerOf(bytes: Buffer): Json {
  return JSON.parse(bytes.toString('utf8', 8, 8 + Number(bytes.readBigUInt64LE(0)))) as Json;
}

const readers: Readonly<Record<string, () => unknown>> = {
  'config.json': () => openModel(dir),
  'generation_config.json': () => openModel(dir),
  'model.safetensors': () => openModel(dir),
  'adapter_config.json': () => readAdapter(dir, config),
  'adapter_model.safetensors': () => readAdapter(dir, config),
  'tokenizer.json': () => openText(dir).tokenizer.encode('look around'),
  'tokenizer_config.json': () => openText(dir).tokenizer.encode('look around'),
};

for (const [name, read] of Object.entries(readers)) {
  it(`${COUNT} mutated ${name} are read, or refused in one line`, { timeout: 3_600_000 }, async () => {
    const path = join(dir, name);
    const good = readFileSync(path);
    const isWeights = name.endsWith('.safetensors');
    const value = isWeights ? headerOf(good) : (JSON.parse(good.toString('utf8')) as Json);
    let used = 0;
    try {
      await campaign(name, COUNT, (rng) => {
        const text = mutatedJson(value, rng);
        writeFileSync(path, isWeights ? withHeader(good, text) : text);
        if (orMistake(read) !== undefined) used++;
      });
    } finally {
      writeFileSync(path, good);
    }
    expect(used).toBeLessThan(COUNT);
    expect(read()).toBeDefined();
  });
}
