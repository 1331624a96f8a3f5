/**
 * Ports: several message ports over one byte stream between two processes, with the interface of a thread's ports. Not
 * Node's own channel (`process.send`): Node itself trusts whatever code of the other process sends there. Some of it
 * (`{ cmd: 'NODE_HANDLE_ACK' }`, bytes that are no message) ends the receiving process.
 */
import type { Duplex } from 'node:stream';
import { deserialize, serialize } from 'node:v8';
import type { PortLike } from './comlink-endpoint.ts';

export interface StreamPorts {
  readonly ports: readonly PortLike[];
  /** Ends the stream after what was posted; `done` is called once all of it has left, and `onEnd` not any more. */
  end(done: () => void): void;
}

export interface StreamPortsOptions {
  readonly count: number;
  /** Bytes of one message that are taken at most; a longer one is malformed. */
  readonly maxBytes: number;
  /** Called once when the other end is gone, or has sent what is no message; nothing is received from then on. */
  readonly onEnd: (malformed: boolean) => void;
}

/** Bytes before a message: its length (uint32) and its port (uint8). */
const HEAD_BYTES = 5;

/**
 * Ports by number: what one end posts on port n comes out of the other's port n, in order across all ports. Messages
 * posted after the other process is gone are lost, as with a closed MessagePort.
 */
export function streamPorts(stream: Duplex, { count, maxBytes, onEnd }: StreamPortsOptions): StreamPorts {
  const listeners: Set<(value: never) => void>[] = Array.from({ length: count }, () => new Set());
  const reader = new FrameReader(count, maxBytes, (port, bytes) => {
    const value: unknown = deserialize(bytes);
    // Apart: an error of a listener is none of the sender's. One message may bring the next one's listener.
    queueMicrotask(() => {
      for (const listener of listeners[port]!) listener(value as never);
    });
  });
  let over = false;
  const finish = (malformed: boolean) => {
    if (over) return;
    over = true;
    onEnd(malformed);
  };
  stream.on('data', (chunk: Buffer) => {
    if (over) return;
    try {
      reader.take(chunk);
    } catch {
      finish(true);
      stream.destroy();
    }
  });
  stream.on('error', () => {}); // `close` follows
  stream.on('end', () => finish(false)).on('close', () => finish(false));
  const ports = listeners.map(
    (own, port): PortLike => ({
      postMessage(value) {
        if (!stream.writable) return;
        const [head, bytes] = frameOf(port, value);
        stream.cork();
        stream.write(head);
        stream.write(bytes);
        stream.uncork();
      },
      on: (_, listener) => own.add(listener),
      off: (_, listener) => own.delete(listener),
      start() {},
      close: () => own.clear(),
    }),
  );
  return {
    ports,
    end(done) {
      over = true; // the other end's farewell is expected
      stream.end(done);
    },
  };
}

/** Frame of a message: its head and its bytes. For what writes to a stream whose ports are elsewhere. */
function frameOf(port: number, value: unknown): readonly [head: Buffer, bytes: Buffer] {
  const bytes = serialize(value);
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt32LE(bytes.length, 0);
  head[4] = port;
  return [head, bytes];
}

/** Reader of frames from chunks that end anywhere. */
class FrameReader {
  readonly #count: number;
  readonly #maxBytes: number;
  readonly #emit: (port: number, bytes: Buffer) => void;
  #chunks: Buffer[] = [];
  #held = 0;
  /** Bytes of the frame in hand, its head included, once its head is known. */
  #wanted = HEAD_BYTES;
  #headRead = false;

  constructor(count: number, maxBytes: number, emit: (port: number, bytes: Buffer) => void) {
    this.#count = count;
    this.#maxBytes = maxBytes;
    this.#emit = emit;
  }

  /** @throws {RangeError} for what is no frame */
  take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    while (this.#held >= this.#wanted) {
      const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#held);
      const length = all.readUInt32LE(0);
      const port = all[4]!;
      if (!this.#headRead) {
        if (length > this.#maxBytes || port >= this.#count) throw new RangeError('no frame');
        this.#headRead = true;
        this.#wanted = HEAD_BYTES + length;
      }
      this.#chunks = [all];
      if (this.#held < this.#wanted) return;
      const rest = all.subarray(this.#wanted);
      const frame = all.subarray(HEAD_BYTES, this.#wanted);
      this.#chunks = rest.length > 0 ? [rest] : [];
      this.#held = rest.length;
      this.#wanted = HEAD_BYTES;
      this.#headRead = false;
      this.#emit(port, frame);
    }
  }
}
