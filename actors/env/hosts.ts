/** The two places a host can live, as the pool sees them. */
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import { Piscina } from 'piscina';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import type { Env, EnvModule } from '../../src/core/env.ts';
import { LongplayError, messageOf } from '../../src/core/errors.ts';
import type { FailureCause } from '../../src/core/failure.ts';
import { comlinkEndpoint } from '../../src/runtime/comlink-endpoint.ts';
import { localUrl, workerUrl } from '../../src/runtime/thread.ts';
import { type EventBatch, packCommands, unpackEvents } from './batch.ts';
import { beacon, type HostControl, type HostTask } from './env-host.ts';
import { HostCore } from './host-core.ts';
import type { EnvCommand, EnvEvent, EnvSpec } from './protocol.ts';

/** Told by a host. */
export interface HostListener {
  events(events: readonly EnvEvent[]): void;
  /** The host is gone without having been asked to go. */
  died(cause: FailureCause, message: string): void;
}

/** One live host. */
export interface Host {
  send(commands: readonly EnvCommand[]): void;
  /** What it is doing; undefined where it runs in the caller's thread. */
  beacon(): { readonly current: number; readonly began: number; readonly calls: number } | undefined;
  /** Ends at once; `died` is not called. */
  kill(): void;
  /** Closes its sessions and ends. */
  close(): Promise<void>;
}

export interface HostOptions {
  readonly envs: readonly EnvSpec[];
  readonly listActions: boolean;
  readonly where: string;
}

export interface ThreadPoolOptions {
  readonly threads: number;
  /** Of each thread. Buffers do not count: V8 limits its own heap alone. */
  readonly resourceLimits: { readonly maxOldGenerationSizeMb?: number; readonly maxYoungGenerationSizeMb?: number };
}

/** Milliseconds a host gets to close its sessions before its thread is ended. */
const CLOSE_MS = 2000;

/** The threads hosts live in: one host per thread, so that ending one touches nobody else. */
export class HostThreads {
  readonly #piscina: Piscina;

  constructor({ threads, resourceLimits }: ThreadPoolOptions) {
    this.#piscina = new Piscina({
      filename: workerUrl(new URL('./env-host.ts', import.meta.url)).href,
      minThreads: threads,
      maxThreads: threads,
      concurrentTasksPerWorker: 1,
      atomics: 'disabled', // else a thread whose task waits for messages sleeps in Atomics.wait and never hears them
      resourceLimits,
    });
    this.#piscina.on('error', () => {}); // threads that die without a task; those with one reject it
  }

  /** @throws {LongplayError} ENV_BROKEN when the host is not ready within `startMs` */
  async start(options: HostOptions, listener: HostListener, startMs: number): Promise<Host> {
    const data = new MessageChannel();
    const control = new MessageChannel();
    const shared = new Int32Array(new SharedArrayBuffer(4 * beacon.length));
    const task: HostTask = {
      envs: options.envs.map((spec) => ({ ...spec, url: workerUrl(spec.url).href })),
      listActions: options.listActions,
      where: options.where,
      shared,
      data: data.port2,
      control: control.port2,
    };
    // The signal is the kill switch: it ends the thread, whatever runs there.
    const killer = new AbortController();
    const life = this.#piscina.run(task, { signal: killer.signal, transferList: [data.port2, control.port2] });
    const host = new ThreadHost(life, killer, data.port1, control.port1, shared, listener);
    await host.ready(startMs);
    return host;
  }

  async close(): Promise<void> {
    await this.#piscina.destroy();
  }
}

class ThreadHost implements Host {
  readonly #killer: AbortController;
  readonly #data: MessagePort;
  readonly #control: Comlink.Remote<HostControl>;
  readonly #controlPort: MessagePort;
  readonly #shared: Int32Array;
  readonly #listener: HostListener;
  /** Resolves when the thread is gone or the task has ended, with what there is to say about it. */
  readonly #ended: Promise<{ cause: FailureCause; message: string } | undefined>;
  #up = false;
  #over = false;

  constructor(
    life: Promise<unknown>,
    killer: AbortController,
    data: MessagePort,
    control: MessagePort,
    shared: Int32Array,
    listener: HostListener,
  ) {
    this.#killer = killer;
    this.#data = data;
    this.#controlPort = control;
    this.#control = Comlink.wrap<HostControl>(comlinkEndpoint(control));
    this.#shared = shared;
    this.#listener = listener;
    data.on('message', (batch: EventBatch) => {
      if (!this.#over) listener.events(unpackEvents(batch));
    });
    this.#ended = life.then(
      () => undefined,
      (thrown: unknown) => causeOf(thrown),
    );
    void this.#ended.then((end) => {
      const unexpected = this.#up && !this.#over;
      this.#release();
      if (unexpected) this.#listener.died(end?.cause ?? 'exited', end?.message ?? 'the host ended');
    });
  }

  async ready(startMs: number): Promise<void> {
    // Calls to a dead thread never settle: its end and the clock settle them.
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`not ready after ${startMs} ms`), startMs);
    });
    const broke = await Promise.race([
      this.#control.ready().then(() => undefined, messageOf),
      this.#ended.then((end) => end?.message ?? 'the host ended'),
      late,
    ]);
    clearTimeout(timer);
    if (broke !== undefined) {
      this.kill();
      throw new LongplayError('ENV_BROKEN', `an env host did not start: ${broke}`);
    }
    this.#up = true;
  }

  send(commands: readonly EnvCommand[]): void {
    if (!this.#over) this.#data.postMessage(packCommands(commands));
  }

  beacon() {
    const shared = this.#shared;
    return {
      current: Atomics.load(shared, beacon.current),
      began: Atomics.load(shared, beacon.began),
      calls: Atomics.load(shared, beacon.calls),
    };
  }

  kill(): void {
    this.#release();
    this.#killer.abort();
  }

  async close(): Promise<void> {
    this.#over = true;
    this.#control.stop().catch(() => {});
    const timer = setTimeout(() => this.#killer.abort(), CLOSE_MS);
    await this.#ended;
    clearTimeout(timer);
    this.#release();
  }

  #release(): void {
    this.#over = true;
    this.#data.close();
    this.#controlPort.close();
  }
}

function causeOf(thrown: unknown): { cause: FailureCause; message: string } {
  const message = messageOf(thrown);
  const code = (thrown as { code?: unknown } | null)?.code;
  if (code === 'ERR_WORKER_OUT_OF_MEMORY' || /out of memory|memory limit/i.test(message)) {
    return { cause: 'out-of-memory', message };
  }
  return { cause: /^worker exited/i.test(message) ? 'exited' : 'threw', message };
}

export interface InlineOptions extends HostOptions {
  readonly clock: Clock;
  /** Deadline of the command in hand of an episode, milliseconds. */
  readonly deadlineMs: (episode: number) => number;
  /** Declares real time passing to a serial system; deadlines are then counted in real time. */
  readonly outside?: ((work: Promise<unknown>) => unknown) | undefined;
}

/** A host in the caller's thread. It cannot contain an env that spins or exits; slow ones are left at their deadline. */
export async function startInlineHost(options: InlineOptions, listener: HostListener): Promise<Host> {
  const envs = new Map<string, Env>();
  for (const spec of options.envs) {
    const module = (await import(localUrl(spec.url).href)) as EnvModule;
    envs.set(spec.id, module.createEnv(spec.options));
  }
  const clock = options.outside ? systemClock : options.clock;
  const core = new HostCore({
    envs,
    listActions: options.listActions,
    where: options.where,
    now: () => options.clock.now(),
    emit: (events) => listener.events(events),
    onSlow(work, episode) {
      const deadlineMs = options.deadlineMs(episode);
      let cancel!: () => void;
      const late = new Promise<void>((resolve) => {
        cancel = clock.after(deadlineMs, () => {
          const message = `no answer after ${deadlineMs} ms`;
          core.handle([{ type: 'close', episode }]);
          listener.events([{ type: 'failed', episode, failure: { cause: 'timeout', where: options.where, message } }]);
          resolve();
        });
      });
      const ended = work.then(cancel, cancel);
      options.outside?.(Promise.race([ended, late]));
    },
  });
  return {
    send: (commands) => core.handle(commands),
    beacon: () => undefined,
    kill: () => core.closeAll(),
    close: async () => core.closeAll(),
  };
}
