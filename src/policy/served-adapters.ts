/**
 * Adapters at a generation server: versions of the weights that a policy here can have it sample under.
 *
 * Every version is written to a folder of its own and loaded under a name that is never used again: a server's caches go by
 * name, and a decision's version is the one its name stands for. One process has them loaded (`OwnAdapters`); the workers of its cluster
 * follow by their names and need no weights (`FollowerAdapters`).
 *
 * Life of a version: written to `<name>.tmp` → synced and renamed → loaded by the server → named by requests → too old to be
 * trained on and named by none → unloaded → its folder removed.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LoraConfig, ModelConfig } from '../compute/model/config.ts';
import { checkParams, type ParamSet } from '../compute/model/parameters.ts';
import { openFile } from '../core/bounded-file.ts';
import { systemClock } from '../core/clock.ts';
import { LongplayError, messageOf } from '../core/errors.ts';
import { sleep } from '../http/attempts.ts';
import { makeFolder } from '../storage/atomic-file.ts';
import type { GenerationClient } from './generation/generation-client.ts';
import { ADAPTER_WEIGHTS, writeAdapter } from './pretrained/adapter.ts';

/** Version of the weights that the server can sample under. */
export interface ServedAdapter {
  readonly version: number;
  /** Name of the adapter; undefined for the base alone, whose adapter would change nothing. */
  readonly name?: string | undefined;
  /** Place of its files, for a server that was restarted and has to load them again. */
  readonly folder: string;
}

/** Retries of requests to a generation server. */
export interface ServerRetries {
  /** Times one turn, or one adapter, is tried, ≥ 1. */
  readonly attempts: number;
  /** Milliseconds of one attempt: a long answer behind a full queue takes a minute. */
  readonly attemptMs: number;
  /** Milliseconds before the second attempt; doubled for each further one. */
  readonly retryMs: number;
}

/** Retries in a run: half a minute in all, in which a server that restarts is back. */
export const SERVER_RETRIES: ServerRetries = { attempts: 6, attemptMs: 120_000, retryMs: 500 };

/** Adapters that requests can name. */
export interface Adapters {
  /** Version of the newest weights, loaded or not. */
  readonly version: number;
  /** Takes new weights. */
  load(params: ParamSet): void;
  /** Switches to an adapter that another process loaded. */
  useAdapter(adapter: ServedAdapter): void;
  /** Newest adapter, loaded. @throws {LongplayError} REMOTE_FAILED */
  newest(): Promise<ServedAdapter>;
  /** Adapter for a request whose own the server does not know: it was restarted. @throws {LongplayError} REMOTE_FAILED */
  reload(adapter: ServedAdapter): Promise<ServedAdapter>;
  /** Takes note of a request under an adapter, and of its end: nothing is unloaded under it. */
  begin(adapter: ServedAdapter): void;
  end(adapter: ServedAdapter): void;
  dispose(): Promise<void>;
}

/** Options of adapters that this process has loaded. */
export interface OwnAdapterOptions extends Pick<ServerRetries, 'attempts' | 'retryMs'> {
  readonly config: ModelConfig & { readonly adapter: LoraConfig };
  /** Connection to the server, closed with the policy; one attempt a call, the attempts are counted here. */
  readonly client: GenerationClient;
  /** Folder for adapters, on a path that the server sees too. */
  readonly adapters: string;
  /** Base model's path or name, for the adapters' own record. */
  readonly baseModel: string;
  /** Versions that a trained decision may be behind. */
  readonly maxLag: number;
}

/** Adapters that this process writes, has loaded, and retires. */
export class OwnAdapters implements Adapters {
  readonly #options: OwnAdapterOptions;
  /** Run id in every name: another run, and this one after a restart, has other names. */
  readonly #run = randomUUID().slice(0, 8);
  /** Requests in flight under each adapter. */
  readonly #users = new Map<ServedAdapter, number>();
  /** Adapters that the server has, oldest first. */
  readonly #published: ServedAdapter[] = [];
  #params: ParamSet;
  /** Publication under way: one at a time, or two would write and load the same version. */
  #publishing: Promise<void> | undefined;

  constructor(options: OwnAdapterOptions, params: ParamSet) {
    checkParams(options.config, params);
    this.#options = options;
    this.#params = params;
  }

  get version(): number {
    return this.#params.version;
  }

  load(params: ParamSet): void {
    checkParams(this.#options.config, params);
    this.#params = params;
  }

  useAdapter(): void {}

  async newest(): Promise<ServedAdapter> {
    while (this.#published.at(-1)?.version !== this.#params.version) {
      this.#publishing ??= this.#publish(this.#params).finally(() => {
        this.#publishing = undefined;
      });
      await this.#publishing;
    }
    return this.#published.at(-1)!;
  }

  async reload(adapter: ServedAdapter): Promise<ServedAdapter> {
    // The folder is still there, and the name still stands for it.
    if (adapter.name !== undefined) await this.#options.client.load(adapter.name, adapter.folder);
    return adapter;
  }

  begin(adapter: ServedAdapter): void {
    this.#users.set(adapter, (this.#users.get(adapter) ?? 0) + 1);
  }

  end(adapter: ServedAdapter): void {
    this.#users.set(adapter, this.#users.get(adapter)! - 1);
  }

  async dispose(): Promise<void> {
    const { client } = this.#options;
    client.close(); // a load under way is given up
    await this.#publishing?.catch(() => {});
    // At once: together they have the time that an actor has to stop in.
    await Promise.all(
      this.#published.splice(0).map(async ({ name, folder }) => {
        if (name !== undefined) await client.unload(name).catch(() => {});
        rmSync(folder, { recursive: true, force: true });
      }),
    );
  }

  /** Writes an adapter, has the server load it, and retires older ones. @throws {LongplayError} REMOTE_FAILED */
  async #publish(params: ParamSet): Promise<void> {
    const { config, client, adapters, baseModel, attempts, retryMs } = this.#options;
    const { version, values } = params;
    const name = `lp-${this.#run}-v${version}`;
    const folder = join(adapters, name);
    // B starts at zero, so the adapter of a fresh run changes nothing: the base alone gives the same numbers, and is
    // there before anything is loaded.
    const changes = Object.entries(values).some(([key, data]) => key.includes('.lora_B.') && data.some((x) => x !== 0));
    if (!changes) {
      this.#published.push({ version, name: undefined, folder });
      return;
    }
    makeFolder(adapters);
    // Beside, synced and renamed: a server on another machine may read the folder as soon as its name is there.
    const unfinished = `${folder}.tmp`;
    writeAdapter(unfinished, config, values, baseModel);
    const fd = openFile(join(unfinished, ADAPTER_WEIGHTS));
    fsyncSync(fd);
    closeSync(fd);
    renameSync(unfinished, folder);
    let last = '';
    for (let attempt = 0; attempt < attempts; attempt++) {
      if (attempt > 0) await sleep(systemClock, retryMs * 2 ** (attempt - 1), client.closed);
      if (client.closed.aborted) break;
      try {
        await client.load(name, folder);
        this.#published.push({ version, name, folder });
        await this.#retire();
        return;
      } catch (thrown) {
        last = messageOf(thrown);
      }
    }
    // Not among those that `dispose` takes away, though a load whose answer was lost may have happened.
    await client.unload(name).catch(() => {});
    rmSync(folder, { recursive: true, force: true });
    throw new LongplayError('REMOTE_FAILED', `the server loads no adapter from ${folder}: ${last}`);
  }

  /** Retires adapters: unloads those without a request under way that are too old to be trained on. */
  async #retire(): Promise<void> {
    const { client, maxLag } = this.#options;
    const newest = this.#published.at(-1)!;
    for (const old of [...this.#published]) {
      if (old === newest || old.version >= newest.version - maxLag || (this.#users.get(old) ?? 0) > 0) continue;
      this.#published.splice(this.#published.indexOf(old), 1);
      this.#users.delete(old);
      if (old.name === undefined) continue;
      await client.unload(old.name).catch(() => {});
      rmSync(old.folder, { recursive: true, force: true });
    }
  }
}

/** Adapters that another process loads, and whose names it announces. */
export class FollowerAdapters implements Adapters {
  readonly #client: GenerationClient;
  #newest: ServedAdapter;

  constructor(client: GenerationClient, first: ServedAdapter) {
    this.#client = client;
    this.#newest = first;
  }

  get version(): number {
    return this.#newest.version;
  }

  load(): void {}

  useAdapter(adapter: ServedAdapter): void {
    if (adapter.version >= this.version) this.#newest = adapter;
  }

  async newest(): Promise<ServedAdapter> {
    return this.#newest;
  }

  async reload(adapter: ServedAdapter): Promise<ServedAdapter> {
    // It may have been retired meanwhile; the newest never is.
    if (adapter.version < this.version) return this.#newest;
    if (adapter.name !== undefined) await this.#client.load(adapter.name, adapter.folder);
    return adapter;
  }

  begin(): void {}

  end(): void {}

  async dispose(): Promise<void> {}
}
