/**
 * Child process that is a host: how it is started, its channel, its beacon, its memory and its end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { foreignSink } from '../../src/console/terminal.ts';
import { messageOf } from '../../src/core/errors.ts';
import type { PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import { streamPorts } from '../../src/runtime/stream-ports.ts';
import { type BeaconReading, FileBeacon } from './beacon.ts';
import type { HostEnd, Residence } from './hosts.ts';
import { CHANNEL_FD, MAX_MESSAGE_BYTES, ports, UNCAUGHT } from './process-channel.ts';
import { endProcessTree, HAS_GROUPS, HOST_MARK } from './process-tree.ts';
import { ProcessorWait, readThread } from './processor-wait.ts';

/** Milliseconds after the end of a host's channel in which it exits by itself and writes why. */
const EXIT_MS = 1000;
/** Milliseconds after a host's exit in which its last words may come; a process that got away can hold its pipes open. */
const LAST_WORDS_MS = 500;
/** Characters of a child's stderr that are kept for the report of its end. */
const STDERR_KEPT = 4000;
/** Characters of a line about memory. */
const MEMORY_LINE = 500;
/** Mebibytes of a process beside its JavaScript heap: code, stacks, buffers of messages. */
const BESIDE_HEAP_MB = 256;
const PAGE_BYTES = 4096;
const GARBLED: HostEnd = { cause: 'protocol', message: 'the host sent something that is no message' };

/** End of a child process. */
export interface ChildEnd {
  /** Exit code; null where a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  /** Line of its stderr about memory that was exhausted. */
  readonly memory?: string | undefined;
}

/** Child process that runs. */
export interface HostChild {
  /** Bytes of its channel. */
  readonly channel: Duplex;
  /** Resolves once it has ended and all its output was read. */
  readonly ended: Promise<ChildEnd>;
  beacon(): BeaconReading;
  /** Bytes of memory beyond its limit, where the system reports it. */
  overweight(): number;
  /** Milliseconds in which its main thread was ready to run and had no processor. @param now milliseconds */
  measureWaitMs(now: number): number;
  kill(): void;
}

/** Options of a child process. */
export interface ChildOptions {
  /** Heap of its V8, MiB; V8's own default where absent. */
  readonly heapMb: number | undefined;
  readonly variables: Readonly<Record<string, string>>;
}

/** Starts a child process; its task is the first message on its channel. */
export function startHostChild({ heapMb, variables }: ChildOptions): HostChild {
  const beacon = new FileBeacon();
  const heap = heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`];
  const mark = randomUUID();
  const entry = fileURLToPath(workerUrl(new URL('./env-process.ts', import.meta.url)));
  const child = spawn(process.execPath, [...heap, entry], {
    env: { ...variables, [HOST_MARK]: mark },
    detached: HAS_GROUPS,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', beacon.fd], // stdout is a program's to read: nothing of an env's
  });
  const stdout = foreignSink();
  child.stdout!.on('data', (chunk: Uint8Array) => stdout.take(chunk)).on('end', () => stdout.end());
  let stderr = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_KEPT);
  });
  const wait = new ProcessorWait(() => (child.pid === undefined ? undefined : readThread(child.pid, child.pid)));
  const limitBytes = heapMb === undefined ? Number.POSITIVE_INFINITY : (heapMb + BESIDE_HEAP_MB) * 2 ** 20;
  return {
    channel: child.stdio[CHANNEL_FD] as Duplex,
    ended: endOfChild(child, mark, () => {
      beacon.read(); // the last words
      beacon.close();
      return stderr;
    }),
    beacon: () => beacon.read(),
    overweight: () => residentBytes(child.pid) - limitBytes,
    measureWaitMs: (now) => wait.ms(now),
    kill: () => void child.kill('SIGKILL'),
  };
}

function endOfChild(child: ChildProcess, mark: string, lastWords: () => string): Promise<ChildEnd> {
  return new Promise((resolve) => {
    child.on('error', () => {}); // a process that cannot be started or written to: its exit gives the reason
    child.once('exit', () => {
      endProcessTree(child.pid!, mark); // before `close`, which waits for all that hold its stderr
      setTimeout(() => {
        for (const stream of child.stdio) stream?.destroy();
      }, LAST_WORDS_MS);
    });
    child.once('close', (code, signal) => {
      const memory = /^.*(?:heap out of memory|heap limit|Array buffer allocation failed).*$/im.exec(lastWords())?.[0];
      resolve({ code, signal, memory: memory?.trim().slice(0, MEMORY_LINE) });
    });
  });
}

/** Residence of a host in a child process, over its channel; and the port for its task. */
export function residenceOf(child: HostChild): { readonly residence: Residence; readonly setUp: PortLike } {
  let garbled = false;
  let uncaught: string | undefined;
  const channel = streamPorts(child.channel, {
    count: ports.count,
    maxBytes: MAX_MESSAGE_BYTES,
    onEnd(malformed) {
      garbled = malformed;
      // One that closed its channel receives nothing any more.
      setTimeout(() => child.kill(), malformed ? 0 : EXIT_MS).unref();
    },
  });
  const [setUp, data, control] = channel.ports;
  setUp!.on('message', (message: unknown) => {
    uncaught = messageOf(message);
  });
  const residence = {
    data: data!,
    control: control!,
    ended: child.ended.then((end) => (garbled ? GARBLED : endOf(end, uncaught))),
    beacon: () => child.beacon(),
    overweight: () => child.overweight(),
    measureWaitMs: (now: number) => child.measureWaitMs(now),
    kill: () => child.kill(),
  };
  return { residence, setUp: setUp! };
}

function endOf({ code, signal, memory }: ChildEnd, uncaught: string | undefined): HostEnd | undefined {
  if (code === 0) return undefined;
  if (code === UNCAUGHT && uncaught !== undefined) return { cause: 'threw', message: uncaught };
  const how = signal ? `process ended by ${signal}` : `process exited with code ${code}`;
  if (memory !== undefined) return { cause: 'out-of-memory', message: `${how}: ${memory}` };
  return { cause: 'exited', message: how };
}

/** Bytes in memory, where the system reports them (Linux); 0 elsewhere. */
function residentBytes(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}
