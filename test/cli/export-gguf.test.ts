/** `longplay export --to gguf` as a person types it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readGguf } from '../../src/policy/pretrained/gguf/file.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { makePolicyRun } from '../support/policy-run.ts';
import { noSmallDisk, SmallDisk } from '../support/small-disk.ts';
import { writeVariedModel } from '../support/varied-model.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));

describe('longplay export --to gguf', () => {
  let dir: string;
  const run = (name: string) => join(dir, name);
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'longplay-export-gguf-'));
    writeVariedModel(run('model'), { model_type: 'llama' });
    writeVariedModel(run('other-model'), {
      model_type: 'smollm3',
      num_hidden_layers: 4,
      no_rope_layers: [1, 0, 1, 0],
    });
    for (const [name, model] of [
      ['run', 'model'],
      ['other', 'other-model'],
    ] as const) {
      await makePolicyRun(run(name), 'textcraft', ['policy.kind=checkpoint', `policy.path=${run(model)}`]);
    }
  }, 120_000);
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  const type = (from: string, out: string, ...more: readonly string[]) => {
    const args = [main, 'export', run(from), '--to', 'gguf', '--out', out, ...more];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
    return { status, stdout, stderr };
  };

  it('writes halves, or the type that is asked for', () => {
    expect(type('run', run('a.gguf'))).toEqual({ status: 0, stdout: `update 7 → ${run('a.gguf')}\n`, stderr: '' });
    expect(readGguf(run('a.gguf')).tensors.get('blk.0.attn_q.weight')?.type).toBe('F16');
    expect(type('run', run('b.gguf'), '--type', 'q8_0').status).toBe(0);
    expect(readGguf(run('b.gguf')).tensors.get('blk.0.attn_q.weight')?.type).toBe('Q8_0');
  });

  it('answers a mistake in one line, and writes nothing', () => {
    const before = readdirSync(dir).sort();
    const mistakes: readonly (readonly [ReturnType<typeof type>, RegExp])[] = [
      [type('run', run('c.gguf'), '--type', 'q4_0'), /--type.*Allowed choices are f32, f16, bf16, q8_0/],
      [type('run', run('model')), /model exists already; choose another --out/],
      [type('run', join(dir, 'nowhere', 'c.gguf')), /cannot write .*nowhere.*ENOENT/],
      [
        type('other', run('c.gguf')),
        /its unrotatedLayers, \[1,3\], cannot be said in a GGUF file of this family; use --to hf/,
      ],
    ];
    for (const [{ status, stdout, stderr }, message] of mistakes) {
      expect(stderr).toMatch(message);
      expect([status, stdout, stderr.trimEnd().split('\n').length]).toEqual([2, '', 1]);
    }
    expect(readdirSync(dir).sort()).toEqual(before);
  });

  it.skipIf(noSmallDisk)('says that the disk is full, and leaves nothing on it', () => {
    const disk = new SmallDisk(run('disk'));
    try {
      disk.fill();
      const { status, stderr } = type('run', join(run('disk'), 'c.gguf'));
      expect(stderr).toMatch(/cannot write .*c\.gguf: ENOSPC/);
      expect([status, stderr.trimEnd().split('\n').length]).toEqual([2, 1]);
      expect(readdirSync(run('disk'))).toEqual(['filler']);
      disk.empty();
      expect(type('run', join(run('disk'), 'c.gguf')).status).toBe(0);
    } finally {
      disk.remove();
    }
  });
});
