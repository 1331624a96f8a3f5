/** Tiny models of each family: what transformers computes of the same weights, recorded by test/support/record-families.py. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { promptsOf } from '../../../experiments/parity/llm-feeds.ts';
import { generateGreedily } from '../../../experiments/parity/llm-greedy.ts';
import type { Engine } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { decodeGraph, forwardGraph, prefillGraph } from '../../../src/compute/model/programs.ts';
import { freeze } from '../../../src/policy/pretrained/base.ts';
import { FAMILIES } from '../../../src/policy/pretrained/families.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { readLines } from '../../support/json-lines.ts';

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
