/** Signs of life of a remote host: its beacon and its memory, as bytes. */
import type { BeaconReading } from './beacon.ts';

/** Sign of life. */
export interface HostSign {
  readonly beacon: BeaconReading;
  /** Bytes of memory beyond its limit. */
  readonly overweight: number;
}

/** Numbers of a sign: current, began, calls, overweight; float64, little-endian. */
const NUMBERS = 4;

export function encodeSign({ beacon: { current, began, calls }, overweight }: HostSign): Uint8Array {
  const bytes = Buffer.alloc(8 * NUMBERS);
  const most = Number.isFinite(overweight) ? overweight : 0;
  for (const [i, number] of [current, began, calls, most].entries()) bytes.writeDoubleLE(number, 8 * i);
  return bytes;
}

/** @returns undefined for what is no sign */
export function decodeSign(bytes: Uint8Array): HostSign | undefined {
  if (bytes.length !== 8 * NUMBERS) return undefined;
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const [current, began, calls, overweight] = [0, 8, 16, 24].map((at) => view.readDoubleLE(at)) as [
    number,
    number,
    number,
    number,
  ];
  const isWhole = [current, began, calls].every(Number.isSafeInteger) && Number.isFinite(overweight);
  return isWhole ? { beacon: { current, began, calls }, overweight } : undefined;
}
