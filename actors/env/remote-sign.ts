/** Signs of life of a remote host: its beacon, its memory and its wait for a processor, as bytes. */
import type { BeaconReading } from './beacon.ts';

/** Sign of life. */
export interface HostSign {
  readonly beacon: BeaconReading;
  /** Bytes of memory beyond its limit. */
  readonly overweight: number;
  /** Milliseconds in which it was ready to run and had no processor. */
  readonly waitedMs: number;
}

/** Numbers of a sign: current, began, calls, overweight, waitedMs; float64, little-endian. */
const NUMBERS = 5;

export function encodeSign({ beacon: { current, began, calls }, overweight, waitedMs }: HostSign): Uint8Array {
  const bytes = Buffer.alloc(8 * NUMBERS);
  const most = Number.isFinite(overweight) ? overweight : 0;
  for (const [i, number] of [current, began, calls, most, waitedMs].entries()) bytes.writeDoubleLE(number, 8 * i);
  return bytes;
}

/** @returns undefined for what is no sign */
export function decodeSign(bytes: Uint8Array): HostSign | undefined {
  if (bytes.length !== 8 * NUMBERS) return undefined;
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const at = (place: number) => view.readDoubleLE(8 * place);
  const beacon = { current: at(0), began: at(1), calls: at(2) };
  const [overweight, waitedMs] = [at(3), at(4)];
  const isWhole = Object.values(beacon).every(Number.isSafeInteger);
  return isWhole && Number.isFinite(overweight) && waitedMs >= 0 ? { beacon, overweight, waitedMs } : undefined;
}
