/**
 * Host processes, for untrusted environments. An env that exhausts its memory, its heap or its buffers ends a process
 * of its own, and the processes that it started end with it. Costs two system calls a step and serialisation instead of
 * shared memory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { foreignSink } from '../../src/console/terminal.ts';
import { messageOf } from '../../src/core/errors.ts';
import { streamPorts } from '../../src/runtime/stream-ports.ts';
import { workerUrl } from '../../src/runtime/thread.ts';
import { FileBeacon } from './beacon.ts';
import {
  type Host,
  type HostEnd,
  type HostFactory,
  type HostListener,
  type HostOptions,
  hostTask,
  startRemoteHost,
} from './hosts.ts';
import { CHANNEL_FD, MAX_MESSAGE_BYTES, ports, UNCAUGHT } from './process-channel.ts';
import { endProcessTree, HAS_GROUPS, HOST_MARK } from './process-tree.ts';

/** Milliseconds after the end of a host's channel in which it exits by itself, and says why. */
const EXIT_MS = 1000;
/** Milliseconds after a host's exit in which its last words may come; a process that got away can hold its pipes open. */
const LAST_WORDS_MS = 500;
/** Characters of a child's stderr that are kept for the report of its end. */
const STDERR_KEPT = 4000;
/** Mebibytes of a process beside its JavaScript heap: code, stacks, buffers of messages. */
const BESIDE_HEAP_MB = 256;
const PAGE_BYTES = 4096;
const GARBLED: HostEnd = { cause: 'protocol', message: 'the host sent something that is no message' };

export class HostProcesses implements HostFactory {
  readonly #heapMb: number | undefined;
  readonly #variables: Readonly<Record<string, string>>;
  readonly #children = new Set<ChildProcess>();

  /**
   * Makes a factory.
   * @param heapMb of each process, MiB; V8's own default where absent
   * @param variables environment variables of each process
   */
  constructor(heapMb: number | undefined, variables: Readonly<Record<string, string>>) {
    this.#heapMb = heapMb;
    this.#variables = variables;
  }

  start(options: HostOptions, listener: HostListener, startMs: number): Promise<Host> {
    const beacon = new FileBeacon();
    const heap = this.#heapMb === undefined ? [] : [`--max-old-space-size=${this.#heapMb}`];
    const mark = randomUUID();
    const entry = fileURLToPath(workerUrl(new URL('./env-process.ts', import.meta.url)));
    const child = spawn(process.execPath, [...heap, entry], {
      env: { ...this.#variables, [HOST_MARK]: mark },
      detached: HAS_GROUPS,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', beacon.fd], // stdout is a program's to read: nothing of an env's
    });
    this.#children.add(child);
    let garbled = false;
    const channel = streamPorts(child.stdio[CHANNEL_FD] as Duplex, {
      count: ports.count,
      maxBytes: MAX_MESSAGE_BYTES,
      onEnd(malformed) {
        garbled = malformed;
        // One that closed its channel hears nothing any more.
        setTimeout(() => child.kill('SIGKILL'), malformed ? 0 : EXIT_MS).unref();
      },
    });
    const [setUp, data, control] = channel.ports;
    const said = foreignSink();
    child.stdout!.on('data', (chunk: Uint8Array) => said.take(chunk)).on('end', () => said.end());
    let stderr = '';
    let uncaught: string | undefined;
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-STDERR_KEPT);
    });
    setUp!.on('message', (message: unknown) => {
      uncaught = messageOf(message);
    });
    const ended = new Promise<HostEnd | undefined>((resolve) => {
      child.on('error', () => {}); // a process that cannot be started or told: its exit says the rest
      child.once('exit', () => {
        endProcessTree(child.pid!, mark); // before `close`, which waits for all that hold its stderr
        setTimeout(() => {
          for (const stream of child.stdio) stream?.destroy();
        }, LAST_WORDS_MS);
      });
      child.once('close', (code, signal) => {
        this.#children.delete(child);
        beacon.read(); // the last words
        beacon.close();
        resolve(garbled ? GARBLED : endOf(code, signal, uncaught, stderr));
      });
    });
    const envs = options.envs.map(({ shared: _, ...spec }) => spec); // memory is not shared with another process
    setUp!.postMessage(hostTask({ ...options, envs }));
    const limitBytes =
      this.#heapMb === undefined ? Number.POSITIVE_INFINITY : (this.#heapMb + BESIDE_HEAP_MB) * 2 ** 20;
    const residence = {
      data: data!,
      control: control!,
      ended,
      beacon: () => beacon.read(),
      overweight: () => residentBytes(child.pid) - limitBytes,
      kill: () => void child.kill('SIGKILL'),
    };
    return startRemoteHost(residence, listener, startMs);
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
  }
}

/** Bytes in memory, where the system tells (Linux); 0 elsewhere. */
function residentBytes(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

function endOf(
  code: number | null,
  signal: NodeJS.Signals | null,
  uncaught: string | undefined,
  stderr: string,
): HostEnd | undefined {
  if (code === 0) return undefined;
  if (code === UNCAUGHT && uncaught !== undefined) return { cause: 'threw', message: uncaught };
  const how = signal ? `process ended by ${signal}` : `process exited with code ${code}`;
  const memory = /^.*(?:heap out of memory|heap limit|Array buffer allocation failed).*$/im.exec(stderr)?.[0];
  if (memory !== undefined) return { cause: 'out-of-memory', message: `${how}: ${memory.trim()}` };
  return { cause: 'exited', message: how };
}
