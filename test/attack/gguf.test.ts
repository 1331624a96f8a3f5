/** Mutated GGUF files: read, or refused in one line. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import type { Rng } from '../../src/core/rng.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { openText } from '../../src/text/templates/model-text.ts';
import { encodeGguf, ggufOf } from '../support/write-gguf.ts';
import { amount, campaign, orMistake } from './campaign.ts';

const dir = mkdtempSync(join(tmpdir(), 'longplay-attack-gguf-'));
vi.stubEnv('LONGPLAY_CACHE', join(dir, 'cache'));
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});
writeTinyChatModel(join(dir, 'folder'), { config: { model_type: 'llama' } });
const { metadata, tensors } = ggufOf(join(dir, 'folder'), 'llama');
const good = encodeGguf(metadata, tensors);
/** Bytes of the header: beyond it lie numbers, of which any are good. */
const header = encodeGguf(metadata, {}).length + Object.keys(tensors).length * 64;

const COUNT = amount(50_000, 500);

/** Changes some bytes of the header, puts a number of 64 bits into it, or cuts the file. */
function mutated(rng: Rng): Buffer {
  const bytes = Buffer.from(good);
  const kind = rng.int(4);
  if (kind === 0) return bytes.subarray(0, rng.int(bytes.length));
  if (kind === 1) {
    bytes.writeBigUInt64LE([0n, 1n, 2n ** 31n, 2n ** 40n, 2n ** 60n, 2n ** 64n - 1n][rng.int(6)]!, rng.int(header - 8));
    return bytes;
  }
  for (let i = 0; i <= rng.int(4); i++) bytes[rng.int(header)] = rng.int(256);
  return bytes;
}

it(`${COUNT} mutated GGUF files are read, or refused in one line`, { timeout: 3_600_000 }, async () => {
  const file = join(dir, 'mutated.gguf');
  let used = 0;
  const read = () => {
    const { folder, shards } = openModel(file);
    openText(folder).tokenizer.encode('look around');
    rmSync(folder, { recursive: true });
    return shards.hash;
  };
  await campaign('gguf', COUNT, (rng) => {
    writeFileSync(file, mutated(rng));
    if (orMistake(read) !== undefined) used++;
  });
  expect(used).toBeLessThan(COUNT);
  writeFileSync(file, good);
  expect(read()).toBeDefined();
});
