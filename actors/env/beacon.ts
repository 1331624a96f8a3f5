/**
 * Beacon of a host: the episode whose code runs at this moment. It is readable from outside without the host's help, so
 * the culprit can be named when a host spins or dies. Shared memory for a thread, a file's page for a process.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Beacon } from './host-core.ts';

export interface BeaconReading {
  /** Episode whose code runs now; −1 for none. */
  readonly current: number;
  /** Commands begun. */
  readonly began: number;
  /** Calls into envs begun: while `current` is set and this number stands still, a call does not return. */
  readonly calls: number;
}

const CURRENT = 0;
const BEGAN = 1;
const CALLS = 2;
const LENGTH = 3;
/** Place of the thread's id in shared memory. */
const THREAD = LENGTH;

export function createSharedBeacon(): Int32Array<SharedArrayBuffer> {
  const shared = new Int32Array(new SharedArrayBuffer(4 * (LENGTH + 1)));
  shared[CURRENT] = -1;
  return shared;
}

export function writeShared(shared: Int32Array<SharedArrayBuffer>): Beacon {
  return {
    enter(episode) {
      shared[CALLS]!++;
      Atomics.store(shared, CURRENT, episode);
    },
    show: (episode) => void Atomics.store(shared, CURRENT, episode),
    leave: () => void Atomics.store(shared, CURRENT, -1),
    countBegun: () => void shared[BEGAN]!++,
  };
}

/** Tells the id that the system has for the calling thread. */
export function publishThreadId(shared: Int32Array<SharedArrayBuffer>, id: number): void {
  Atomics.store(shared, THREAD, id);
}

/** Id of the host's thread for the system; 0 until it is set, or where none is known. */
export function threadOf(shared: Int32Array<SharedArrayBuffer>): number {
  return Atomics.load(shared, THREAD);
}

export function readShared(shared: Int32Array<SharedArrayBuffer>): BeaconReading {
  return {
    current: Atomics.load(shared, CURRENT),
    began: Atomics.load(shared, BEGAN),
    calls: Atomics.load(shared, CALLS),
  };
}

/** Beacon in a file without a name: the child inherits its descriptor, and it is gone with the last of the two. */
export class FileBeacon {
  readonly fd: number;
  readonly #words = new Int32Array(LENGTH);
  #closed = false;

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'longplay-host-'));
    this.fd = openSync(join(folder, 'beacon'), 'w+');
    rmSync(folder, { recursive: true, force: true });
    writeSync(this.fd, Int32Array.of(-1, 0, 0), 0, 4 * LENGTH, 0);
  }

  read(): BeaconReading {
    if (!this.#closed) readSync(this.fd, this.#words, 0, 4 * LENGTH, 0);
    const [current = -1, began = 0, calls = 0] = this.#words;
    return { current, began, calls };
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.fd);
  }
}

/** Writes the beacon from the child: one system call before and one after each call into an env. */
export function writeFile(fd: number): Beacon {
  const words = Int32Array.of(-1, 0, 0);
  const write = () => void writeSync(fd, words, 0, 4 * LENGTH, 0);
  return {
    enter(episode) {
      words[CURRENT] = episode;
      words[CALLS]!++;
      write();
    },
    show(episode) {
      words[CURRENT] = episode;
      write();
    },
    leave() {
      words[CURRENT] = -1;
      write();
    },
    countBegun() {
      words[BEGAN]!++; // written by the `enter` that follows, or by the flush of a command without one
      write();
    },
  };
}
