/**
 * TensorBoard event files: a record is `length u64 · masked CRC of it · bytes · masked CRC of them`, little-endian, and
 * its bytes are an `Event` protobuf. Written by hand: two messages of five fields do not need a library.
 *
 * @see https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../storage/atomic-file.ts';
import type { MetricsRow } from '../metric-table.ts';
import { pointName, points } from '../metrics.ts';
import type { MetricSink } from './sink.ts';

/**
 * Opens the sink.
 * @param now wall clock in milliseconds since 1970
 */
export function tensorboardSink(dir: string, now: () => number): MetricSink {
  makeFolder(dir);
  const seconds = Math.floor(now() / 1000);
  const file = openSync(
    join(dir, `events.out.tfevents.${String(seconds).padStart(10, '0')}.longplay.${process.pid}.v2`),
    'a',
  );
  let open = true;
  writeSync(file, record(event(now(), { fileVersion: 'brain.Event:2' })));
  return {
    name: 'tensorboard',
    write(row: MetricsRow) {
      const values = [...points(row)].map((point) => ({ tag: pointName(point), value: point.value }));
      writeSync(file, record(event(now(), { step: row.update ?? 0, values })));
    },
    close() {
      if (open) closeSync(file);
      open = false;
    },
  };
}

interface EventContent {
  readonly fileVersion?: string;
  readonly step?: number;
  readonly values?: readonly { readonly tag: string; readonly value: number }[];
}

/**
 * Event bytes of `Event { wall_time = 1, step = 2, file_version = 3, summary = 5 { value = 1 { tag = 1, simple_value =
 * 2 } } }`
 */
function event(nowMs: number, { fileVersion, step, values }: EventContent): Buffer {
  const wallTime = Buffer.alloc(9);
  wallTime[0] = (1 << 3) | 1;
  wallTime.writeDoubleLE(nowMs / 1000, 1);
  const parts: Uint8Array[] = [wallTime];
  if (step !== undefined) parts.push(Buffer.from([2 << 3]), varint(step));
  if (fileVersion !== undefined) parts.push(field(3, Buffer.from(fileVersion)));
  if (values) parts.push(field(5, Buffer.concat(values.map(({ tag, value }) => field(1, scalar(tag, value))))));
  return Buffer.concat(parts);
}

function scalar(tag: string, value: number): Buffer {
  const simple = Buffer.alloc(5);
  simple[0] = (2 << 3) | 5;
  simple.writeFloatLE(value, 1);
  return Buffer.concat([field(1, Buffer.from(tag)), simple]);
}

/** A length-delimited field. */
function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);
}

/** @param n a whole number in [0, 2⁵³) */
function varint(n: number): Buffer {
  const bytes: number[] = [];
  let rest = n;
  while (rest >= 128) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
}

function record(bytes: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeBigUInt64LE(BigInt(bytes.length), 0);
  head.writeUInt32LE(maskCrc(head.subarray(0, 8)), 8);
  const tail = Buffer.alloc(4);
  tail.writeUInt32LE(maskCrc(bytes), 0);
  return Buffer.concat([head, bytes, tail]);
}

/** TFRecord's mask, so that a CRC of data that holds CRCs stays a good one. */
export function maskCrc(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/** CRC-32C (Castagnoli). */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 0xff]!;
  return (crc ^ 0xffffffff) >>> 0;
}
