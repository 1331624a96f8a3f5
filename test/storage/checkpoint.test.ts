import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Disk, nodeDisk, writeFileAtomic } from '../../src/storage/atomic-file.ts';
import {
  type CheckpointContent,
  type Json,
  listCheckpoints,
  loadNewest,
  saveCheckpoint,
} from '../../src/storage/checkpoint.ts';

const long = process.env.LONGPLAY_LONG === '1';
let dir: string;

beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), 'longplay-checkpoint-')), 'checkpoints');
});
afterEach(() => rmSync(join(dir, '..'), { recursive: true, force: true }));

/** Content that shows which update it belongs to. */
function content(update: number): CheckpointContent {
  const weights = { shape: [2, 2], data: new Float32Array(4).fill(update) };
  const steps = { shape: [], data: Int32Array.of(update) };
  return { tensors: { weights, steps }, state: { update, rng: [1, 2], horizon: null, name: 'run ü' } };
}

function expectLoads(update: number, disk: Disk = nodeDisk): readonly string[] {
  const loaded = loadNewest(dir, disk);
  expect(loaded.update).toBe(update);
  expect({ tensors: loaded.tensors, state: loaded.state }).toEqual(content(update));
  return loaded.warnings;
}

const save = (update: number, keep = 3, disk: Disk = nodeDisk) =>
  saveCheckpoint(dir, update, content(update), { keep, disk });

describe('checkpoints', () => {
  it('give back what was saved, the newest by number', () => {
    for (const update of [0, 9, 10]) expect(save(update)).toMatchObject({ ok: true, path: join(dir, String(update)) });
    expect(expectLoads(10)).toEqual([]);
    expect(readdirSync(join(dir, '10')).sort()).toEqual(['manifest.json', 'state.json', 'tensors.safetensors']);
  });

  it('keep the newest K and leave nothing else behind', () => {
    for (let update = 1; update <= 6; update++) save(update, 2);
    expect(readdirSync(dir).sort()).toEqual(['5', '6']);
    expect(listCheckpoints(dir)).toEqual([6, 5]);
  });

  it('are exchanged when a number is saved again', () => {
    save(3);
    saveCheckpoint(dir, 3, { ...content(3), state: 'second' });
    expect(loadNewest(dir).state).toBe('second');
    expect(readdirSync(dir)).toEqual(['3']);
  });

  it('an exchange cut short between its two renames still loads', () => {
    save(2);
    save(3);
    nodeDisk.rename(join(dir, '3'), join(dir, '.replaced-3'));
    expectLoads(3);
    save(3);
    expect(readdirSync(dir).sort()).toEqual(['2', '3']);
  });

  it('an exchange cut short after its two renames loads the new one', () => {
    saveCheckpoint(dir, 3, { ...content(3), state: 'earlier' });
    nodeDisk.rename(join(dir, '3'), join(dir, '.replaced-3'));
    nodeDisk.makeFolder(join(dir, '..', 'elsewhere'));
    saveCheckpoint(join(dir, '..', 'elsewhere'), 3, content(3));
    nodeDisk.rename(join(dir, '..', 'elsewhere', '3'), join(dir, '3'));
    expect(expectLoads(3)).toEqual([]);
    save(3);
    expect(readdirSync(dir)).toEqual(['3']);
  });

  it('of a future that the run went back from are set aside, not loaded and not deleted', () => {
    for (const update of [1, 2, 3]) save(update);
    save(2);
    expectLoads(2);
    for (const update of [3, 2]) save(update); // the same future, abandoned once more
    expect(readdirSync(dir).sort()).toEqual(['.abandoned-3', '1', '2']);
    for (const update of [9, 10, 11, 1]) save(update, 2);
    expectLoads(1);
    expect(readdirSync(dir).sort()).toEqual(['.abandoned-10', '.abandoned-11', '1']);
  });

  it('an earlier one that an exchange left hidden counts as one of the K', () => {
    save(2);
    nodeDisk.rename(join(dir, '2'), join(dir, '.replaced-2'));
    save(3, 2);
    expect(readdirSync(dir).sort()).toEqual(['.replaced-2', '3']);
    save(4, 2);
    expect(readdirSync(dir).sort()).toEqual(['3', '4']);
  });

  it('sweep what an earlier kill left unfinished', () => {
    nodeDisk.makeFolder(join(dir, '.tmp-7'));
    writeFileSync(join(dir, '.tmp-7', 'state.json'), 'half');
    save(1);
    expect(readdirSync(dir)).toEqual(['1']);
  });

  it('with nothing good throw BAD_CHECKPOINT, and state that nothing was started over', () => {
    expect(() => loadNewest(dir)).toThrow(expect.objectContaining({ code: 'BAD_CHECKPOINT' }));
    expect(() => loadNewest(dir)).toThrow(/there is no checkpoint; nothing was started over/);
    save(1);
    save(2);
    for (const update of [1, 2]) writeFileSync(join(dir, String(update), 'state.json'), '{}');
    expect(() => loadNewest(dir)).toThrow(/no checkpoint is good[\s\S]*\/2 cannot be used[\s\S]*\/1 cannot be used/);
  });

  it('refuse a format they do not know and a folder renamed by hand', () => {
    save(1);
    save(2);
    nodeDisk.rename(join(dir, '2'), join(dir, '8'));
    expect(expectLoads(1)[0]).toMatch(/\/8 cannot be used.*belongs to update 2/);
  });

  it('refuse state that JSON would distort, and name the key', () => {
    const bad = (state: unknown) => () => saveCheckpoint(dir, 1, { tensors: {}, state: state as Json });
    expect(bad({ a: { loss: Number.NaN } })).toThrow('state.loss is NaN');
    expect(bad({ moments: new Float32Array(2) })).toThrow('state.moments is Float32Array');
    expect(bad({ gone: undefined })).toThrow('state.gone is undefined');
    expect(bad({ when: new Date(0) })).toThrow('state.when is Date');
    expect(bad([1n])).toThrow('state.0 is 1');
    expect(() => saveCheckpoint(dir, -1, content(1))).toThrow('update must be');
    expect(() => saveCheckpoint(dir, 1, content(1), { keep: 0 })).toThrow('keep must be');
    expect(listCheckpoints(dir)).toEqual([]);
  });

  it('numbers of the state come back exactly', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        saveCheckpoint(dir, 1, { tensors: {}, state: [number] });
        expect((loadNewest(dir).state as number[])[0] === number).toBe(true);
      }),
      { numRuns: 20 },
    );
  });
});

describe('damage', { timeout: 300_000 }, () => {
  /** Every byte of the newest checkpoint: file and offset. */
  function places(): [file: string, offset: number][] {
    const folder = join(dir, '2');
    return readdirSync(folder).flatMap((name) =>
      Array.from(readFileSync(join(folder, name)), (_, offset): [string, number] => [join(folder, name), offset]),
    );
  }

  function expectPassedOver(): void {
    const warnings = expectLoads(1);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(join(dir, '2'));
  }

  it('a flipped bit anywhere is noticed, named, and the checkpoint before is used', () => {
    save(1);
    save(2);
    const all = places();
    expect(all.length).toBeGreaterThan(500);
    const flip = (at: number, bit: number) => {
      const [file, offset] = all[at]!;
      const good = readFileSync(file);
      const broken = Uint8Array.from(good);
      broken[offset]! ^= 1 << bit;
      writeFileSync(file, broken);
      expectPassedOver();
      writeFileSync(file, good);
    };
    if (long) for (let at = 0; at < all.length; at++) for (let bit = 0; bit < 8; bit++) flip(at, bit);
    else fc.assert(fc.property(fc.nat(all.length - 1), fc.nat(7), flip), { numRuns: 400 });
    expect(expectLoads(2)).toEqual([]);
  });

  it('a file cut anywhere, or gone, is noticed, named, and the checkpoint before is used', () => {
    save(1);
    save(2);
    const all = places();
    fc.assert(
      fc.property(fc.nat(all.length - 1), (at) => {
        const [file, length] = all[at]!;
        const good = readFileSync(file);
        truncateSync(file, length);
        expectPassedOver();
        rmSync(file);
        expectPassedOver();
        writeFileSync(file, good);
      }),
      { numRuns: long ? 2000 : 100 },
    );
  });
});

/** A disk whose operation number `at` fails with `code`; a write may first leave half of its bytes behind. */
function failing(at: number, code: string, forever: boolean): Disk & { readonly operations: number } {
  let operations = 0;
  const guard =
    <Args extends unknown[], R>(run: (...args: Args) => R, half?: (...args: Args) => void) =>
    (...args: Args): R => {
      const now = operations++;
      if (now === at || (forever && now > at)) {
        half?.(...args);
        throw Object.assign(new Error(`${code}: planned`), { code });
      }
      return run(...args);
    };
  return {
    get operations() {
      return operations;
    },
    makeFolder: guard(nodeDisk.makeFolder),
    list: guard(nodeDisk.list),
    read: nodeDisk.read,
    write: guard(nodeDisk.write, (path, bytes) => writeFileSync(path, bytes.subarray(0, bytes.length / 2))),
    rename: guard(nodeDisk.rename),
    remove: guard(nodeDisk.remove),
    syncFolder: guard(nodeDisk.syncFolder),
  };
}

describe('a disk that refuses', () => {
  it.each([
    ['once', false, 2],
    ['from then on', true, 2],
    ['once, exchanging', false, 1],
    ['from then on, exchanging', true, 1],
  ])(
    'at any operation, %s: a value, never thrown; a good checkpoint stays; the next save works',
    (_, forever, next) => {
      const healthy = failing(Number.POSITIVE_INFINITY, '', false);
      save(1, 1);
      save(next, 1, healthy);
      expect(healthy.operations).toBeGreaterThan(8);
      for (let at = 0; at < healthy.operations; at++) {
        for (const code of ['ENOSPC', 'EACCES']) {
          rmSync(dir, { recursive: true });
          save(1, 1);
          const result = save(next, 1, failing(at, code, forever));
          if (!result.ok)
            expect(result).toMatchObject({ code, message: expect.stringContaining(join(dir, String(next))) });
          const { update, warnings } = loadNewest(dir);
          expect([1, next]).toContain(update);
          if (result.ok) expect(update).toBe(next);
          expect(warnings).toEqual([]);
          expect(save(next, 1)).toMatchObject({ ok: true });
          expectLoads(next);
          expect(readdirSync(dir)).toEqual([String(next)]);
        }
      }
    },
  );

  it('a folder that cannot be made is a value as well', () => {
    writeFileSync(join(dir, '..', 'file'), '');
    const result = saveCheckpoint(join(dir, '..', 'file', 'checkpoints'), 1, content(1));
    expect(result).toMatchObject({ ok: false, code: 'ENOTDIR' });
  });
});

describe('writeFileAtomic', () => {
  it('replaces the whole file or leaves the old one, and no trace beside it', () => {
    nodeDisk.makeFolder(dir);
    const path = join(dir, 'config.yaml');
    writeFileAtomic(path, 'old');
    for (const at of [0, 1]) {
      expect(() => writeFileAtomic(path, 'new', failing(at, 'ENOSPC', false))).toThrow('ENOSPC');
      expect(readFileSync(path, 'utf8')).toBe('old');
      expect(readdirSync(dir)).toEqual(['config.yaml']);
    }
    writeFileAtomic(path, Uint8Array.of(110, 101, 119));
    expect(readFileSync(path, 'utf8')).toBe('new');
  });
});
