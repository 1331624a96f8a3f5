/**
 * Processor wait of a thread: milliseconds in which it was ready to run and the system let others run. A deadline does not
 * count them, so that a host on a busy machine is not taken for one that hangs. Linux reports them in `/proc`; elsewhere
 * nothing is known, and every millisecond counts.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

/** Id of the calling thread for the system; 0 where it reports none. */
export function ownThreadId(): number {
  try {
    return Number(basename(readlinkSync('/proc/thread-self')));
  } catch {
    return 0;
  }
}

/** Reading of a thread. */
export interface ThreadReading {
  /** Nanoseconds for which it ran, and waited in vain before it last ran. */
  readonly ran: number;
  readonly waited: number;
  /** True while it runs or is ready to. */
  readonly isReady: boolean;
}

/** Reads a thread. @param thread its id; that of a process is its main thread's */
export function readThread(process: number | 'self', thread: number): ThreadReading | undefined {
  try {
    const folder = `/proc/${process}/task/${thread}`;
    const [ran, waited] = readFileSync(`${folder}/schedstat`, 'utf8').split(' ').map(Number);
    const stat = readFileSync(`${folder}/stat`, 'utf8');
    // The name before the state may hold anything but ends with the last parenthesis.
    return { ran: ran!, waited: waited!, isReady: stat[stat.lastIndexOf(')') + 2] === 'R' };
  } catch {
    return undefined;
  }
}

/** Wait of one thread, from look to look: what it waits at present is known to the system only when it is over. */
export class ProcessorWait {
  readonly #read: () => ThreadReading | undefined;
  #ran = -1;
  #waited = -1;
  #readySince: number | undefined;
  #ms = 0;

  constructor(read: () => ThreadReading | undefined) {
    this.#read = read;
  }

  /** Milliseconds waited until now. @param now milliseconds, of any clock that goes on */
  ms(now: number): number {
    const reading = this.#read();
    if (!reading) return this.#ms; // it has ended, or nothing is known
    const { ran, waited, isReady } = reading;
    if (!isReady) this.#readySince = undefined;
    else if (this.#readySince === undefined || ran !== this.#ran || waited !== this.#waited) this.#readySince = now;
    this.#ran = ran;
    this.#waited = waited;
    const presentMs = this.#readySince === undefined ? 0 : now - this.#readySince;
    this.#ms = Math.max(this.#ms, waited / 1e6 + presentMs);
    return this.#ms;
  }
}
