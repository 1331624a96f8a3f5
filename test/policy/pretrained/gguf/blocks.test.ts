import { describe, expect, it } from 'vitest';
import { readJsonFile } from '../../../../src/core/bounded-file.ts';
import { BLOCK_TYPES, type BlockTypeName, decodeBlocks } from '../../../../src/policy/pretrained/gguf/blocks.ts';

interface Recorded {
  readonly type: BlockTypeName;
  /** Blocks, in base64. */
  readonly bytes: string;
  /** Their weights as Python's `gguf` computes them: float32, in base64. */
  readonly values: string;
}

/** Made by test/support/record-gguf-blocks.py. */
const recorded = readJsonFile(new URL('../../../fixtures/gguf/blocks.json', import.meta.url)) as Recorded[];

describe('blocks of a GGUF file', () => {
  it('of every type that is read are recorded', () => {
    expect(recorded.map(({ type }) => type).sort()).toEqual(Object.keys(BLOCK_TYPES).sort());
  });

  it.each(recorded)('of type $type are the same float32 as in Python, to the last bit', ({ type, bytes, values }) => {
    const expected = Buffer.from(values, 'base64');
    const found = decodeBlocks(type, Buffer.from(bytes, 'base64'));
    expect(found.length).toBe(expected.length / 4);
    expect(found.length).toBeGreaterThan(60);
    expect(Buffer.compare(Buffer.from(found.buffer), expected)).toBe(0);
  });
});
