/** The real file of `../shared/models`, where it is at hand: what transformers computes from the same weights. */
import { closeSync, existsSync, mkdtempSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { promptsOf } from '../../../../experiments/parity/llm-feeds.ts';
import { generateGreedily } from '../../../../experiments/parity/llm-greedy.ts';
import { openEngine } from '../../../../src/compute/engine/open.ts';
import { decodeGraph, forwardGraph, prefillGraph } from '../../../../src/compute/model/programs.ts';
import { openFile } from '../../../../src/core/bounded-file.ts';
import { freeze } from '../../../../src/policy/pretrained/base.ts';
import { openModel } from '../../../../src/policy/pretrained/folder.ts';
import { decodeBlocks } from '../../../../src/policy/pretrained/gguf/blocks.ts';
import { exportGguf } from '../../../../src/policy/pretrained/gguf/export.ts';
import { type GgufFile, readGguf } from '../../../../src/policy/pretrained/gguf/file.ts';
import { locateGguf } from '../../../../src/policy/pretrained/locate.ts';
import { openTrainedRows } from '../../../../src/policy/pretrained/merge.ts';
import { openText } from '../../../../src/text/templates/model-text.ts';

import { readLines } from '../../../support/json-lines.ts';

const models = process.env.LONGPLAY_MODELS ?? resolve(import.meta.dirname, '../../../../../shared/models');
const file = join(models, 'SmolLM2-135M-Instruct.Q4_1.gguf');
if (!existsSync(file)) console.log(`skipped: no ${file} (set LONGPLAY_MODELS to the folder of models)`);

interface Recorded {
  readonly prompt: string;
  /** Conversation as the template renders it, and its ids. */
  readonly text: string;
  readonly ids: readonly number[];
  /** 64 most likely ids, one after another. */
  readonly greedy: readonly number[];
  /** Largest logits behind the last of them, by id. */
  readonly logits: readonly (readonly [id: number, logit: number])[];
}

/** Made by test/support/record-gguf-greedy.py. */
const recorded = readLines(
  new URL('../../../fixtures/gguf/smollm2-135m.jsonl', import.meta.url),
) as readonly Recorded[];

/** Made by test/support/record-tokenizers.py. */
const strings = readLines(
  new URL('../../../fixtures/tokenizers/smollm2.jsonl', import.meta.url),
) as readonly (readonly [text: string, ids: readonly number[], decoded: string])[];

describe.skipIf(!existsSync(file))('SmolLM2-135M-Instruct as a GGUF file', () => {
  let cache: string;
  beforeAll(() => {
    cache = mkdtempSync(join(tmpdir(), 'longplay-real-'));
    vi.stubEnv('LONGPLAY_CACHE', cache);
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(cache, { recursive: true, force: true });
  });

  it('renders and encodes a conversation as transformers does', () => {
    const { tokenizer, template } = openText(openModel(file).folder);
    for (const { prompt, text, ids, greedy } of recorded) {
      expect(template!.render([{ role: 'user', content: prompt }], { addGenerationPrompt: true })).toBe(text);
      expect(tokenizer.encode(text)).toEqual(ids);
      expect(tokenizer.encode(tokenizer.decode(ids))).toEqual(ids);
      expect(tokenizer.decode(greedy).length).toBeGreaterThan(30);
    }
  });

  it('is the tensors of its file again, written as float32 without training', { timeout: 120_000 }, () => {
    const base = openModel(file);
    const out = join(cache, 'again.gguf');
    exportGguf(out, base, { type: 'f32', rows: openTrainedRows(base, {}), name: '', source: locateGguf(file) });
    const [ours, theirs] = [readGguf(out), readGguf(file)];
    expect([...ours.tensors.keys()]).toEqual([...theirs.tensors.keys()]);
    expect(ours.tensors.size).toBeGreaterThan(200);
    const [a, b] = [openFile(out), openFile(file)];
    const bytesOf = (fd: number, { offset, bytes }: { readonly offset: number; readonly bytes: number }) => {
      const data = Buffer.alloc(bytes);
      expect(readSync(fd, data, 0, bytes, offset)).toBe(bytes);
      return data;
    };
    for (const [name, tensor] of theirs.tensors) {
      const expected = decodeBlocks(tensor.type, bytesOf(b, tensor));
      const found = bytesOf(a, ours.tensors.get(name)!);
      expect(Buffer.compare(found, Buffer.from(expected.buffer)), name).toBe(0);
    }
    const changed = /^general\.(file_type|quantization_version)$/;
    const entriesOf = ({ metadata }: GgufFile) => [...metadata].filter(([key]) => !changed.test(key));
    expect(entriesOf(ours)).toEqual(entriesOf(theirs));
    expect(entriesOf(ours).length).toBeGreaterThan(20);
    closeSync(a);
    closeSync(b);
    rmSync(out);
  });

  it('encodes strings of all kinds as the library in Rust does', () => {
    const { tokenizer } = openText(openModel(file).folder);
    expect(strings.length).toBeGreaterThan(100);
    for (const [text, ids, decoded] of strings) {
      expect(tokenizer.encode(text), JSON.stringify(text)).toEqual(ids);
      expect(tokenizer.decode(ids), JSON.stringify(ids)).toBe(decoded);
    }
  });

  it('has its logits to 1e-4, and its 64 greedy tokens', { timeout: 300_000 }, async () => {
    const config = freeze(openModel(file, 256));
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    const forward = await engine.compile(forwardGraph(config));
    for (const { ids, greedy, logits } of recorded) {
      const whole = [...ids, ...greedy];
      const found = (await forward.run(promptsOf([whole]))).logits!;
      const data = (found.data ?? (await found.read()).data) as Float32Array;
      const row = (t: number) => data.subarray(t * config.vocabSize, (t + 1) * config.vocabSize);
      for (const [id, logit] of logits) expect(Math.abs(row(whole.length - 1)[id]! - logit)).toBeLessThan(1e-4);
      const best = greedy.map((_, i) =>
        row(ids.length - 1 + i).reduce((top, x, id, all) => (x > all[top]! ? id : top), 0),
      );
      expect(best).toEqual(greedy);
    }
    await forward.dispose();
    await engine.dispose();
  });

  it.runIf(process.env.LONGPLAY_LONG === '1')('writes them through the cache too', { timeout: 600_000 }, async () => {
    const config = freeze(openModel(file, 256));
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    const programs = {
      prefill: await engine.compile(prefillGraph(config)),
      decode: await engine.compile(decodeGraph(config)),
    };
    const prompts = recorded.map(({ ids }) => ids);
    expect(await generateGreedily(config, programs, {}, prompts, 64)).toEqual(recorded.map(({ greedy }) => greedy));
    await engine.dispose();
  });
});
