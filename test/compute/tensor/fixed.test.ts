import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { openEngine } from '../../../src/compute/engine/open.ts';
import {
  createFixed,
  type FixedSource,
  readFixed,
  toBfloat16,
  toFloat16,
  widen,
} from '../../../src/compute/tensor/fixed.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import * as t from '../../../src/compute/tensor/ops.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-fixed-'));
afterAll(() => rmSync(folder, { recursive: true }));

const bytesOf = (values: Float32Array | Uint16Array) => new Uint8Array(values.slice().buffer);

/** The values in a file, eight bytes in. */
function stored(values: Float32Array, dtype: 'f32' | 'f16' | 'bf16'): FixedSource {
  const bytes = bytesOf(dtype === 'f32' ? values : dtype === 'bf16' ? toBfloat16(values) : toFloat16(values));
  const file = join(folder, `${dtype}-${values.length}.bin`);
  writeFileSync(file, Buffer.concat([Buffer.alloc(8), bytes]));
  return { kind: 'dense', dtype, file, offset: 8, bytes: bytes.length };
}

it('every half and every bfloat16 survives being widened and narrowed', () => {
  const all = Uint16Array.from({ length: 65536 }, (_, i) => i);
  for (const [dtype, narrow] of [
    ['f16', toFloat16],
    ['bf16', toBfloat16],
  ] as const) {
    const wide = widen(bytesOf(all) as Uint8Array<ArrayBuffer>, dtype);
    const back = narrow(wide);
    const again = widen(bytesOf(back) as Uint8Array<ArrayBuffer>, dtype);
    const same = (i: number) => (Number.isNaN(wide[i]!) ? Number.isNaN(again[i]!) : back[i] === all[i]);
    expect(all.findIndex((_, i) => !same(i))).toBe(-1);
  }
});

it('a narrowed number is one of the two nearest, and the even one where both are as near', () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, min: -70000, max: 70000 }), fc.constantFrom('f16', 'bf16'), (x, dtype) => {
      const narrow = dtype === 'f16' ? toFloat16 : toBfloat16;
      const [half] = narrow(Float32Array.of(x));
      const value = (bits: number) =>
        widen(bytesOf(Uint16Array.of(bits)) as Uint8Array<ArrayBuffer>, dtype as 'f16')[0]!;
      const error = Math.abs(value(half!) - x);
      if (!Number.isFinite(value(half!))) return Math.abs(x) >= 65520;
      for (const near of [half! - 1, half! + 1]) {
        if (near < 0 || near > 0xffff || !Number.isFinite(value(near))) continue;
        const other = Math.abs(value(near) - x);
        if (other < error || (other === error && error > 0 && half! % 2 === 1)) return false;
      }
      return true;
    }),
    { numRuns: 2000 },
  );
  expect([...toFloat16(Float32Array.of(1 + 2 ** -11, 1 + 3 * 2 ** -11, 2 ** -25, 65519, 65520))]).toEqual([
    0x3c00, 0x3c02, 0, 0x7bff, 0x7c00,
  ]);
});

it.each(['onnxruntime-node', 'onnxruntime-web', 'tfjs', 'reference'] as const)(
  '%s computes with weights where they lie',
  async (name) => {
    const engine = await openEngine({ name, threads: 1 });
    for (const dtype of ['f32', 'f16', 'bf16'] as const) {
      const source = stored(
        Float32Array.from({ length: 12 }, (_, i) => (i - 5) / 8),
        dtype,
      );
      const w = createFixed('w', [3, 4], source);
      const x = t.input('x', ['N', 4]);
      const y = t.matmul(x, w, { transposeB: true });
      const [dx] = gradients(t.reduceSum(t.mul(y, y)), [x]);
      const row = t.gather(w, t.constant([2, 0], [2], 'i32'));
      const program = await engine.compile(defineGraph({ y, dx: dx!, row }));
      expect(program.inputs.map((input) => input.name)).toEqual(['x']);
      const out = await program.run({
        x: { dtype: 'f32', shape: [2, 4], data: Float32Array.of(1, 2, 3, 4, 0, 0, 0, 8) },
      });
      const values = readFixed([3, 4], source);
      expect([...out.row!.data]).toEqual([...values.subarray(8), ...values.subarray(0, 4)]);
      expect([...out.y!.data]).toEqual([-3.75, 1.25, 6.25, -2, 2, 6]);
      expect([...out.dx!.data].slice(4)).toEqual(
        [1, 2.5, 4, 5.5].map((_, k) => 2 * (-2 * values[k]! + 2 * values[4 + k]! + 6 * values[8 + k]!)),
      );
    }
    await engine.dispose();
  },
);

const SMAPS = '/proc/self/smaps_rollup';

it.skipIf(!existsSync(SMAPS))(
  'unpacked weights are the pages of their file, packed ones a copy as well; the numbers are the same',
  { timeout: 60_000 },
  async () => {
    const size = 2048;
    const bytes = 4 * size ** 2;
    const weights = Float32Array.from({ length: size * size }, (_, i) => ((i * 7919) % 17) - 8);
    const w = createFixed('w', [size, size], stored(weights, 'f32'));
    const graph = defineGraph({ y: t.matmul(t.input('x', ['N', size]), w, { transposeB: true }) });
    const x = {
      dtype: 'f32',
      shape: [2, size],
      data: Float32Array.from({ length: 2 * size }, (_, i) => i % 5),
    } as const;
    /** Bytes of memory that this process shares with no file. */
    const own = () => 1024 * Number(/^Anonymous:\s+(\d+)/m.exec(readFileSync(SMAPS, 'utf8'))![1]);
    // Three at once: what the process had freed before and fills again hides one copy at most.
    const engines = 3;
    const measured = async (packing: boolean) => {
      const opened = [];
      for (let n = 0; n < engines; n++) {
        const engine = await openEngine({ name: 'onnxruntime-node', threads: 1, packing });
        await engine.compile(defineGraph({ y: t.neg(t.input('x', [1])) })); // what the first program takes is not its weights'
        opened.push(engine);
      }
      const before = own();
      const values: number[][] = [];
      for (const engine of opened) {
        const program = await engine.compile(graph);
        values.push([...(await program.run({ x })).y!.data]);
      }
      const taken = own() - before;
      for (const engine of opened) await engine.dispose();
      return { taken, values };
    };
    const [unpacked, packed] = [await measured(false), await measured(true)];
    expect(unpacked.values).toEqual(packed.values); // whole numbers: no order of a sum rounds them
    expect(unpacked.taken).toBeLessThan(0.5 * bytes);
    expect(packed.taken).toBeGreaterThan(0.75 * (engines - 1) * bytes);
    expect(weights.length).toBe(size ** 2); // kept to the end: collected in between, it would count as memory given back
  },
);

it('a stretch that does not fill its shape is refused, and a file that ends too soon', () => {
  const source = stored(new Float32Array(12), 'f32');
  expect(() => createFixed('w', [3, 5], source)).toThrow("fixed 'w' [3, 5]: expected 60 bytes, got 48");
  expect(() => readFixed([3, 8], { ...source, bytes: 96 } as FixedSource)).toThrow('cut short at byte 56');
});
