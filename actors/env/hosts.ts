/** Hosts as the pool sees them, wherever they live; and what those away from this thread have in common. */
import * as Comlink from 'comlink';
import { LongplayError, messageOf } from '../../src/core/errors.ts';
import type { FailureCause } from '../../src/core/failure.ts';
import { comlinkEndpoint, type PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import { packCommands, readEvents } from './batch.ts';
import type { BeaconReading } from './beacon.ts';
import { isBounds } from './check.ts';
import type { EnvFacts, HostChaos, HostControl, HostTask } from './env-host.ts';
import type { EnvCommand, EnvEvent, EnvSpec } from './protocol.ts';

/** Listener to a host. */
export interface HostListener {
  events(events: readonly EnvEvent[]): void;
  /** Called when the host is gone without having been asked to. */
  onDied(cause: FailureCause, message: string): void;
}

/** Host that is alive. */
export interface Host {
  /** Facts about the worlds that it started. */
  readonly facts: readonly EnvFacts[];
  send(commands: readonly EnvCommand[]): void;
  /** Beacon of its work; undefined where it runs in the caller's thread. */
  beacon(): BeaconReading | undefined;
  /** Resolves when its present work is done and it is still alive; absent where it cannot die. */
  awaitSettled?(): Promise<void>;
  /** Ends the showing of whose timers and promises run. */
  unwatch?(): void;
  /** Ends at once; `onDied` is not called. */
  kill(): void;
  /** Closes its sessions and ends. */
  close(): Promise<void>;
  /** Bytes of memory beyond its limit, where the system reports it. */
  overweight?(): number;
  /** Milliseconds in which it was ready to run and the machine let others run, where the system reports it. @param now milliseconds */
  measureWaitMs?(now: number): number;
}

export interface HostOptions {
  readonly envs: readonly EnvSpec[];
  readonly listActions: boolean;
  readonly where: string;
  readonly chaos?: HostChaos | undefined;
  /** True to show whose timers and promises run, until `unwatch`. */
  readonly watchful?: boolean | undefined;
}

/** Factory of hosts of one kind. */
export interface HostFactory {
  /** @throws {LongplayError} ENV_BROKEN when the host is not ready within `startMs` */
  start(options: HostOptions, listener: HostListener, startMs: number): Promise<Host>;
  close(): Promise<void>;
}

/** End of a host that was not asked to end. */
export interface HostEnd {
  readonly cause: FailureCause;
  readonly message: string;
}

/** Residence of a host: a thread or a process. */
export interface Residence {
  readonly data: PortLike;
  readonly control: PortLike;
  /** Resolves at its end, with undefined after an orderly one. */
  readonly ended: Promise<HostEnd | undefined>;
  beacon(): BeaconReading;
  overweight?(): number;
  measureWaitMs?(now: number): number;
  /** Ends it, whatever runs there. */
  kill(): void;
}

/** Milliseconds that a host has to close its sessions and release what it started before it is ended. */
export const CLOSE_MS = 5000;

export function hostTask({ envs, listActions, where, chaos, watchful }: HostOptions): HostTask {
  return {
    envs: envs.map((spec) => ({ ...spec, url: workerUrl(spec.url).href })),
    listActions,
    where,
    chaos,
    watchful,
  };
}

/**
 * Starts a host in its residence.
 * @throws {LongplayError} ENV_BROKEN when it is not ready within `startMs`
 */
export async function startHostIn(residence: Residence, listener: HostListener, startMs: number): Promise<Host> {
  const host = new ResidentHost(residence, listener);
  await host.ready(startMs);
  return host;
}

class ResidentHost implements Host {
  readonly #residence: Residence;
  readonly #control: Comlink.Remote<HostControl>;
  readonly #listener: HostListener;
  #facts: readonly EnvFacts[] = [];
  #up = false;
  #over = false;

  constructor(residence: Residence, listener: HostListener) {
    this.#residence = residence;
    this.#listener = listener;
    this.#control = Comlink.wrap<HostControl>(comlinkEndpoint(residence.control));
    residence.data.on('message', (batch: unknown) => {
      if (this.#over) return;
      const events = readEvents(batch);
      if (events) listener.events(events);
      else listener.onDied('protocol', 'the host sent something that is no answer');
    });
    void residence.ended.then((end) => {
      const unexpected = this.#up && !this.#over;
      this.#release();
      if (unexpected) this.#listener.onDied(end?.cause ?? 'exited', end?.message ?? 'the host ended');
    });
  }

  get facts(): readonly EnvFacts[] {
    return this.#facts;
  }

  async ready(startMs: number): Promise<void> {
    // Calls to a dead host never settle: its end and the clock settle them.
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`not ready after ${startMs} ms`), startMs);
    });
    const broke = await Promise.race([
      this.#control
        .ready()
        .then((facts) => {
          this.#facts = readFacts(facts);
        })
        .catch(messageOf),
      this.#residence.ended.then((end) => end?.message ?? 'the host ended'),
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
    if (!this.#over) this.#residence.data.postMessage(packCommands(commands));
  }

  beacon(): BeaconReading {
    return this.#residence.beacon();
  }

  async awaitSettled(): Promise<void> {
    await this.#control.health();
  }

  unwatch(): void {
    this.#control.unwatch().catch(() => {});
  }

  overweight(): number {
    return this.#residence.overweight?.() ?? 0;
  }

  measureWaitMs(now: number): number {
    return this.#residence.measureWaitMs?.(now) ?? 0;
  }

  kill(): void {
    this.#release();
    this.#residence.kill();
  }

  async close(): Promise<void> {
    this.#over = true;
    this.#control.stop().catch(() => {});
    const timer = setTimeout(() => this.#residence.kill(), CLOSE_MS);
    await this.#residence.ended;
    clearTimeout(timer);
    this.#release();
  }

  #release(): void {
    this.#over = true;
    this.#residence.data.close();
    this.#residence.control.close();
  }
}

/** Copies the facts about its worlds that a host sends. @throws {LongplayError} ENV_BROKEN for anything else */
function readFacts(facts: readonly EnvFacts[]): readonly EnvFacts[] {
  const read = Array.isArray(facts) ? facts.map(readFact) : [undefined];
  if (read.every((one) => one !== undefined)) return read;
  throw new LongplayError('ENV_BROKEN', 'it sent no facts about its worlds');
}

function readFact({ id, replay, bounds }: EnvFacts): EnvFacts | undefined {
  if (typeof id !== 'string') return undefined;
  if (bounds !== undefined && !isBounds(bounds)) return undefined;
  return { id, replay: replay === 'never' ? 'never' : 'exact', bounds };
}
