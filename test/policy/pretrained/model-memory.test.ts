/** Memory of language models: counts against what is published, what is allocated, and the page. */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { smallModel } from '../../../src/compute/model/config.ts';
import { drawParameters, parameterSpecs } from '../../../src/compute/model/parameters.ts';
import { KvCache } from '../../../src/policy/kv-cache.ts';
import { commonMemory, countMemory, memoryRows } from '../../../src/policy/pretrained/model-memory.ts';
import { quantizeMatrix } from '../../../src/policy/pretrained/quantize.ts';

const page = new URL('../../../src/policy/pretrained/MODELS.md', import.meta.url);

const common = commonMemory();

it('of common models has the parameters that their makers publish', () => {
  const millions = common.map(({ model, parameters }) => [model, Math.round(parameters / 1e6)]);
  expect(millions).toEqual([
    ['SmolLM2-135M', 135],
    ['Qwen2.5-0.5B', 494],
    ['Qwen3-0.6B', 596],
    ['Qwen2.5-1.5B', 1544],
    ['Qwen2.5-3B', 3086],
  ]);
});

describe('of a small model', () => {
  const config = {
    ...smallModel(96, { hiddenSize: 32, layers: 3, heads: 2, kvHeads: 1, intermediateSize: 64, maxPositions: 64 }),
    ...({ prefixBidirectional: false, tokenShift: 0, focusBit: false, choiceHead: false, valueHead: false } as const),
  };
  const memory = countMemory(config);

  it('is what its weights take, float32 and in blocks', () => {
    const values = drawParameters(parameterSpecs(config), 1);
    const arrays = Object.values(values);
    expect(memory.parameters).toBe(arrays.reduce((sum, { length }) => sum + length, 0));
    expect(memory.baseBytes.none).toBe(arrays.reduce((sum, { byteLength }) => sum + byteLength, 0));
    const quantized = (bits: (name: string) => 4 | 8) =>
      Object.entries(values).reduce((sum, [name, array]) => {
        if (array.length % 32 !== 0 || name.includes('norm')) return sum + array.byteLength;
        const { codes, scales, offsets } = quantizeMatrix(array, bits(name));
        return sum + codes.byteLength + scales.byteLength + (offsets?.byteLength ?? 0);
      }, 0);
    // Besides them the file has a header, and zeros that the blocks of all matrices share: as many as the largest has.
    const shared = 96 * 32 + (96 * 32) / 2;
    for (const [found, expected] of [
      [memory.baseBytes.int8, quantized(() => 8)],
      [memory.baseBytes.int4, quantized((name) => (name.includes('embed') ? 8 : 4))],
    ] as const) {
      expect(found).toBeGreaterThan(expected);
      expect(found - expected).toBeLessThan(shared + 16_384);
    }
  });

  it('is what a cache holds of a token', () => {
    const cache = new KvCache(config, 1, 1);
    const numbers = [...cache.pastK, ...cache.pastV].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(memory.cacheBytesPerToken).toBe(numbers / cache.past);
  });

  it('is of a learner what its adapters are, four times, and what its layers keep', () => {
    expect(memory.learner.map(({ topLayers }) => topLayers)).toEqual([3]);
    const [all] = memory.learner;
    const projections = 2 * (32 + 32) + 2 * (32 + 16) + 3 * (32 + 64); // q, o; k, v; gate, up, down: inputs and outputs
    expect(all!.trained).toBe(3 * 16 * projections);
    expect(all!.stateBytes).toBe(16 * all!.trained);
    expect(all!.recomputedBytes).toBe(3 * 512 * 32 * 4); // each layer's input
    expect(all!.keptBytes).toBeGreaterThan(5 * all!.recomputedBytes);
  });
});

it('the page has the table that is computed', () => {
  const [header, ...rows] = memoryRows(common).map((cells) => `| ${cells.join(' | ')} |`);
  const rule = `| ${header!
    .split('|')
    .slice(1, -1)
    .map(() => '---')
    .join(' | ')} |`;
  const table = [header, rule, ...rows].join('\n');
  const text = readFileSync(page, 'utf8');
  const [head, , tail] = text.split(/<!-- \/?memory -->/);
  if (process.env.UPDATE_FIXTURES) writeFileSync(page, `${head}<!-- memory -->\n\n${table}\n\n<!-- /memory -->${tail}`);
  else expect(text.split(/<!-- \/?memory -->/)[1]!.trim()).toBe(table);
});
