/**
 * llama.cpp reads what is exported, where it is at hand: `LONGPLAY_LLAMA` names a folder in which
 * `npm install node-llama-cpp` has put its prebuilt program. Nothing of it is a dependency here.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { promptsOf } from '../../../../experiments/parity/llm-feeds.ts';
import { generateGreedily } from '../../../../experiments/parity/llm-greedy.ts';
import { openEngine } from '../../../../src/compute/engine/open.ts';
import { decodeGraph, forwardGraph, prefillGraph } from '../../../../src/compute/model/programs.ts';
import { freeze } from '../../../../src/policy/pretrained/base.ts';
import { openModel } from '../../../../src/policy/pretrained/folder.ts';
import { EXPORT_TYPES, exportGguf } from '../../../../src/policy/pretrained/gguf/export.ts';
import { readTokenizer, WORD_RULES } from '../../../../src/policy/pretrained/gguf/tokenizer.ts';
import { locateGguf } from '../../../../src/policy/pretrained/locate.ts';
import { openTrainedRows } from '../../../../src/policy/pretrained/merge.ts';
import { type Json, openText } from '../../../../src/text/templates/model-text.ts';
import { BpeTokenizer } from '../../../../src/text/templates/tokenizer.ts';
import { readLines } from '../../../support/json-lines.ts';
import { writeVariedModel } from '../../../support/varied-model.ts';

const llama = process.env.LONGPLAY_LLAMA;
if (!llama)
  console.log('skipped: LONGPLAY_LLAMA names no folder with node-llama-cpp; exports are read back by us alone');

const models = process.env.LONGPLAY_MODELS ?? resolve(import.meta.dirname, '../../../../../shared/models');
const real = join(models, 'SmolLM2-135M-Instruct.Q4_1.gguf');

const LLAMA3 = {
  rope_type: 'llama3',
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 64,
};

interface Found {
  readonly greedy: readonly (readonly number[])[];
  readonly ids: readonly (readonly number[])[];
}

function ask(file: string, prompts: readonly (readonly number[])[], strings: readonly string[]): Found {
  const script = fileURLToPath(new URL('../../../support/llama-greedy.mjs', import.meta.url));
  const asked = JSON.stringify({ prompts, strings, length: 64 });
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, llama!, file, asked], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`llama.cpp: ${stderr}`);
  return JSON.parse(stdout) as Found;
}

const strings = ['the dog sat on 1234 oak logs\n½', ' \n\n  two  spaces, "quotes" and don\'t', 'café Ωmega 東京 👩‍🚀'];

describe.skipIf(!llama)('llama.cpp', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'longplay-llama-'));
    vi.stubEnv('LONGPLAY_CACHE', join(dir, 'cache'));
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(dir, { recursive: true, force: true });
  });

  it.each([
    ['llama', { model_type: 'llama', tie_word_embeddings: false }],
    ['llama 3.1', { model_type: 'llama', rope_theta: 500_000, rope_scaling: LLAMA3 }],
    ['qwen2', { model_type: 'qwen2' }],
    ['qwen3', { model_type: 'qwen3', head_dim: 32 }],
    ['smollm3', { model_type: 'smollm3', num_hidden_layers: 4, no_rope_layers: [1, 1, 1, 0] }],
    ['mistral', { model_type: 'mistral', sliding_window: 512 }],
  ])('writes 64 tokens of %s as we do, and encodes as we do', { timeout: 120_000 }, async (name, config) => {
    const folder = join(dir, name);
    writeVariedModel(folder, config);
    const base = openModel(folder, 256);
    const file = join(dir, `${name}.gguf`);
    exportGguf(file, openModel(folder), { type: 'f32', rows: openTrainedRows(base, {}), name });
    const { tokenizer } = openText(folder);
    const prompts = strings.map((text) => tokenizer.encode(text));
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    const frozen = freeze(base);
    const programs = {
      prefill: await engine.compile(prefillGraph(frozen)),
      decode: await engine.compile(decodeGraph(frozen)),
    };
    const expected = await generateGreedily(frozen, programs, {}, prompts, 64);
    await engine.dispose();
    const { greedy, ids } = ask(file, prompts, strings);
    expect(ids).toEqual(prompts);
    expect(new Set(expected.flat()).size).toBeGreaterThan(10);
    expect(greedy).toEqual(expected);
  });

  it.each([0, 1])('encodes as SentencePiece does (recording %i)', (which) => {
    const recorded = readLines(new URL('../../../fixtures/tokenizers/sentence-pieces.jsonl', import.meta.url));
    const { entries, strings } = recorded[which] as {
      readonly entries: Readonly<Record<string, string>>;
      readonly strings: readonly (readonly [text: string, ids: readonly number[]])[];
    };
    const folder = join(dir, `pieces ${which}`);
    writeVariedModel(folder, { model_type: 'llama', vocab_size: 448 });
    const { tokenizer, config } = readTokenizer({ file: 'here', metadata: new Map(Object.entries(entries)) });
    writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
    writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
    const base = openModel(folder);
    const file = join(dir, `pieces-${which}.gguf`);
    exportGguf(file, base, { type: 'f32', rows: openTrainedRows(base, {}), name: 'pieces' });
    const { ids } = ask(
      file,
      [],
      strings.map(([text]) => text),
    );
    expect(strings.length).toBeGreaterThan(100);
    expect(ids).toEqual(strings.map(([, expected]) => expected));
  });

  it.each(['gpt-2', 'smollm', 'qwen2', 'llama-bpe', 'smaug-bpe', 'tekken', 'gpt-4o'])(
    'cuts words as we do by the rule %s',
    (rule) => {
      type Strings = readonly (readonly [text: string, ...rest: unknown[]])[];
      const [first, ...variants] = readLines(
        new URL('../../../fixtures/tokenizers/byte-level.jsonl', import.meta.url),
      ) as readonly [{ readonly base: Json }, ...{ readonly strings: Strings }[]];
      const { normalizer, preTokenizer, ignoreMerges = false } = WORD_RULES[rule]!;
      const model = { ...(first.base.model as Json), ignore_merges: ignoreMerges };
      const json = { ...first.base, normalizer, pre_tokenizer: preTokenizer, model };
      const folder = join(dir, `rule ${rule}`);
      writeVariedModel(folder, { model_type: 'llama', vocab_size: 1024 });
      writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(json));
      writeFileSync(join(folder, 'tokenizer_config.json'), '{}');
      const base = openModel(folder);
      const file = join(dir, `rule-${rule}.gguf`);
      exportGguf(file, base, { type: 'f16', rows: openTrainedRows(base, {}), name: rule });
      // llama.cpp composes no letters, and in two rules it takes marks and the long s for no letters.
      const strange = ['tekken', 'gpt-4o'].includes(rule) ? /[\u017f\p{M}]/u : /^(?!)/;
      const texts = [...new Set(variants.flatMap(({ strings }) => strings.map(([text]) => text)))].filter(
        (text) => (normalizer === null || text === text.normalize('NFC')) && !strange.test(text),
      );
      expect(texts.length).toBeGreaterThan(500);
      const { ids } = ask(file, [], texts);
      const tokenizer = new BpeTokenizer(json, {}, rule);
      for (const [i, text] of texts.entries()) expect(ids[i], JSON.stringify(text)).toEqual(tokenizer.encode(text));
    },
  );

  it.skipIf(!existsSync(real)).each(EXPORT_TYPES)(
    'writes 64 tokens of the real model as we do (%s)',
    { timeout: 300_000 },
    async (type) => {
      const base = openModel(real);
      const file = join(dir, `${type}.gguf`);
      exportGguf(file, base, { type, rows: openTrainedRows(base, {}), name: '', source: locateGguf(real) });
      const recorded = readLines(new URL('../../../fixtures/gguf/smollm2-135m.jsonl', import.meta.url)) as readonly {
        readonly text: string;
        readonly ids: readonly number[];
        readonly greedy: readonly number[];
      }[];
      const prompts = recorded.map(({ ids }) => ids);
      const { greedy, ids } = ask(file, prompts, [...recorded.map(({ text }) => text), ...strings]);
      const { tokenizer } = openText(openModel(file).folder);
      expect(ids).toEqual([...prompts, ...strings.map((text) => tokenizer.encode(text))]);
      if (type === 'f32') {
        // What transformers computes of the same weights, and we (real.test.ts).
        expect(greedy).toEqual(recorded.map((one) => one.greedy));
      } else {
        const frozen = freeze(openModel(file, 256));
        const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
        const forward = await engine.compile(forwardGraph(frozen));
        let [compared, equal] = [0, 0];
        for (const [i, prompt] of prompts.entries()) {
          const found = (await forward.run(promptsOf([[...prompt, ...greedy[i]!]]))).logits!;
          const data = (found.data ?? (await found.read()).data) as Float32Array;
          // llama.cpp rounds activations to the type of the weights, so a close one may be another one.
          for (const [t, id] of greedy[i]!.entries()) {
            const at = (prompt.length - 1 + t) * frozen.vocabSize;
            const row = data.subarray(at, at + frozen.vocabSize);
            const best = row.reduce((top, x) => Math.max(top, x), -Infinity);
            expect(best - row[id]!).toBeLessThan(0.2);
            compared++;
            if (row[id] === best) equal++;
          }
        }
        expect(compared).toBeGreaterThanOrEqual(128);
        expect(equal / compared).toBeGreaterThan(0.95);
        await forward.dispose();
        await engine.dispose();
      }
      rmSync(file);
      rmSync(join(dir, 'cache'), { recursive: true });
    },
  );
});
