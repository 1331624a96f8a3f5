import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeSafetensors, encodeSafetensors, type StoredTensor } from '../../src/storage/safetensors.ts';

const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 });
const tensor: fc.Arbitrary<StoredTensor> = fc.tuple(shape, fc.boolean()).chain(([sizes, float]) => {
  const length = sizes.reduce((a, b) => a * b, 1);
  const data: fc.Arbitrary<Float32Array | Int32Array> = float
    ? fc.float32Array({ minLength: length, maxLength: length })
    : fc.int32Array({ minLength: length, maxLength: length });
  return data.map((values) => ({ shape: sizes, data: values }));
});
const name = fc.string({ minLength: 1, unit: 'grapheme' }).filter((text) => text !== '__metadata__');
const tensors = fc.array(fc.tuple(name, tensor), { maxLength: 5 }).map((entries) => Object.fromEntries(entries));

/** A file with a hand-written header. */
function file(header: unknown, dataBytes: number): Uint8Array {
  const json = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  return bytes;
}

describe('safetensors', () => {
  it('gives back what was written, bit for bit, from any alignment', () => {
    fc.assert(
      fc.property(tensors, fc.integer({ min: 0, max: 7 }), (stored, offset) => {
        const bytes = encodeSafetensors(stored);
        const shifted = new Uint8Array(bytes.length + offset).subarray(offset);
        shifted.set(bytes);
        const back = decodeSafetensors(shifted);
        expect(Object.keys(back).sort()).toEqual(Object.keys(stored).sort());
        for (const [key, { shape: sizes, data }] of Object.entries(stored)) {
          expect(back[key]!.shape).toEqual(sizes);
          expect(back[key]!.data.constructor).toBe(data.constructor);
          const raw = (values: Float32Array | Int32Array) =>
            Buffer.from(values.buffer, values.byteOffset, values.byteLength);
          expect(raw(back[key]!.data).equals(raw(data))).toBe(true); // NaN payloads and −0 included
        }
      }),
    );
  });

  it('is the published layout, byte for byte, whatever the order of the keys', () => {
    const b = { shape: [2], data: Float32Array.of(1, -2) };
    const a = { shape: [], data: Int32Array.of(7) };
    const bytes = encodeSafetensors({ b, a });
    expect(encodeSafetensors({ a, b })).toEqual(bytes);
    const length = Number(new DataView(bytes.buffer).getBigUint64(0, true));
    expect(length % 8).toBe(0);
    const header = new TextDecoder().decode(bytes.subarray(8, 8 + length));
    expect(header.trimEnd()).toBe(
      '{"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}',
    );
    expect([...bytes.subarray(8 + length)]).toEqual([7, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
  });

  it('refuses a name that the header has twice, however it is written', () => {
    const entry = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}';
    for (const json of [`{"x":${entry},"x":${entry}}`, `{"x":${entry},"\\u0078":${entry}}`]) {
      const header = Buffer.alloc(8 + json.length + 4);
      header.writeBigUInt64LE(BigInt(json.length));
      header.write(json, 8);
      expect(() => decodeSafetensors(header, 'w')).toThrow('w: the header has the name "x" twice');
    }
  });

  it('reads a Buffer into memory of its own', () => {
    const bytes = Buffer.from(encodeSafetensors({ x: { shape: [1], data: Float32Array.of(3) } }));
    const { x } = decodeSafetensors(bytes);
    bytes.fill(0);
    expect(x!.data).toEqual(Float32Array.of(3));
  });

  it('writes what a view shows, not the buffer behind it', () => {
    const data = Float32Array.of(9, 1, 2, 9).subarray(1, 3);
    expect(decodeSafetensors(encodeSafetensors({ x: { shape: [2], data } })).x!.data).toEqual(Float32Array.of(1, 2));
  });

  it('cut anywhere, or longer by anything, is refused with words', () => {
    const bytes = encodeSafetensors({ x: { shape: [3], data: Float32Array.of(1, 2, 3) } });
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeSafetensors(bytes.subarray(0, length), 'w.safetensors')).toThrow(/^w\.safetensors: cut short/);
    }
    expect(() => decodeSafetensors(new Uint8Array([...bytes, 0]))).toThrow('1 bytes too many');
  });

  it.each([
    ['{', 0, 'not JSON'],
    ['[]', 0, 'not an object'],
    [{ x: null }, 0, 'dtype nothing'],
    [{ x: { dtype: 'F16', shape: [1], data_offsets: [0, 2] } }, 2, 'dtype "F16"'],
    [{ x: { dtype: 'F32', shape: [-1], data_offsets: [0, 4] } }, 4, 'no valid shape'],
    [{ x: { dtype: 'F32', shape: [1], data_offsets: [4, 0] } }, 4, 'no valid shape'],
    [{ x: { dtype: 'F32', shape: [1], data_offsets: [4, 8] } }, 8, 'hole or an overlap'],
    [
      { x: { dtype: 'F32', shape: [1], data_offsets: [0, 4] }, y: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } },
      4,
      'overlap',
    ],
    [{ x: { dtype: 'F32', shape: [2], data_offsets: [0, 4] } }, 4, 'takes 4 bytes, its shape [2] needs 8'],
    [{ x: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } }, 0, 'cut short: x ends'],
  ])('refuses %j with %i data bytes: %s', (header, dataBytes, message) => {
    expect(() => decodeSafetensors(file(header, dataBytes))).toThrow(message);
  });

  it('refuses a header length that no file has, before allocating anything', () => {
    const bytes = new Uint8Array(16).fill(0xff);
    expect(() => decodeSafetensors(bytes)).toThrow('no safetensors file');
  });

  it('reads other writers’ metadata and padding', () => {
    const header = `{"__metadata__":{"format":"pt"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   `;
    expect(Object.keys(decodeSafetensors(file(header, 4)))).toEqual(['x']);
  });

  it('refuses to write data that does not fill its shape', () => {
    expect(() => encodeSafetensors({ x: { shape: [2, 2], data: new Float32Array(3) } })).toThrow(
      'x has 3 values for shape [2, 2]',
    );
    expect(() => encodeSafetensors({ __metadata__: { shape: [0], data: new Float32Array() } })).toThrow('__metadata__');
  });
});
