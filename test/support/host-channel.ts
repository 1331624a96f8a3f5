/** Writes to the channel of a host process, past its host: what a world does that knows how the host talks. */
import { writeSync } from 'node:fs';
import { serialize } from 'node:v8';
import { CHANNEL_FD } from '../../actors/env/process-channel.ts';

/** Posts a value on a port. */
export function postPastHost(port: number, value: unknown): void {
  const bytes = serialize(value);
  const head = Buffer.alloc(5);
  head.writeUInt32LE(bytes.length, 0);
  head[4] = port;
  writePastHost(Buffer.concat([head, bytes]));
}

/** Writes bytes. */
export function writePastHost(bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(CHANNEL_FD, bytes, written);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error; // full: the other end reads on
    }
  }
}

/** An array that states a length of four billion and holds nothing. */
export function hollow(): unknown[] {
  const list: unknown[] = [];
  list.length = 4e9;
  return list;
}
