/**
 * Arena of chaos tests: a learner, workers and nats-server as processes of their own, which die and are started again. The learner learns
 * nothing, so that there is time for many deaths; its weights are a chain of hashes over the results (cluster-books.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Rng } from '../../src/core/rng.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { digestsOf, readJournal } from '../../src/storage/journal.ts';
import type { ChaosLearner } from './chaos-learner.ts';
import type { ChaosWorker } from './chaos-worker.ts';
import { Books, PER_UPDATE, SIZE } from './cluster-books.ts';
import { type NatsServer, startNats } from './nats-server.ts';
import { temporaryFolder } from './small-run.ts';

export interface Outcome {
  readonly version: number;
  readonly trained: readonly number[];
  readonly maxSeen: number;
  readonly decisions: number;
  readonly account: Books['account'];
  readonly counts: { readonly duplicates: number; readonly reissued: number };
  readonly rss: number;
}

/** Process that is started again when it dies, until it ends by itself. */
export class Immortal {
  readonly #start: () => ChildProcess;
  child: ChildProcess;
  lives = 1;
  words = '';
  ended: number | undefined;
  resting = false;

  constructor(script: string, options: object) {
    this.#start = () => {
      const path = fileURLToPath(new URL(`dist/test/support/${script}.js`, packageRoot));
      const child = spawn(process.execPath, [path, JSON.stringify(options)], { stdio: ['ignore', 'ignore', 'pipe'] });
      child.stderr!.on('data', (text) => {
        this.words += text;
      });
      child.once('exit', (code, signal) => {
        if (this.child !== child) return;
        if (signal === 'SIGKILL' && !this.resting) {
          this.lives++;
          this.child = this.#start();
        } else this.ended = code ?? 0;
      });
      return child;
    };
    this.child = this.#start();
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  /** Silent for `ms`, as a machine that was cut off. */
  async stop(ms: number): Promise<void> {
    const { child } = this;
    child.kill('SIGSTOP');
    await sleep(ms);
    child.kill('SIGCONT');
  }

  bury(): void {
    this.resting = true;
    this.child.kill('SIGCONT');
    this.child.kill('SIGKILL');
  }
}

export type Strike = 'worker' | 'learner' | 'server' | 'forget' | 'stop';

export class Arena {
  readonly #rng: Rng;
  readonly folder = temporaryFolder('chaos');
  readonly dir = join(this.folder, 'run');
  server!: NatsServer;
  learner!: Immortal;
  readonly workers: Immortal[] = [];
  /** Seconds from each return of the server to the next update. */
  readonly resumed: { readonly server: number[]; readonly forget: number[] } = { server: [], forget: [] };
  readonly struck: Record<Strike, number> = { worker: 0, learner: 0, server: 0, forget: 0, stop: 0 };

  /** @param rng chooses the victims */
  constructor(rng: Rng) {
    this.#rng = rng;
  }

  async open(learner: Partial<ChaosLearner>, workers: readonly Partial<ChaosWorker>[]): Promise<void> {
    this.server = await startNats(join(this.folder, 'store'));
    const { url } = this.server;
    this.learner = new Immortal('chaos-learner', {
      url,
      run: 'chaos',
      dir: this.dir,
      updates: 40,
      maxLag: 2,
      ...learner,
    });
    for (const one of workers) this.join(one);
  }

  join(of: Partial<ChaosWorker>): Immortal {
    const base = { url: this.server.url, run: 'chaos', name: `w${this.workers.length}`, slots: 3, groupMs: 60 };
    const worker = new Immortal('chaos-worker', { ...base, ...of });
    this.workers.push(worker);
    return worker;
  }

  async strike(type: Strike): Promise<void> {
    this.struck[type]++;
    const worker = this.workers[this.#rng.int(this.workers.length)]!;
    if (type === 'worker') worker.kill();
    else if (type === 'learner') this.learner.kill();
    else if (type === 'stop') void worker.stop(3000);
    else {
      await this.server.kill();
      if (type === 'forget') rmSync(join(this.folder, 'store'), { recursive: true, force: true });
      await sleep(300);
      await this.server.start();
      await this.#resumes(type);
    }
  }

  /** Waits for the next update, and takes its time. */
  async #resumes(type: 'server' | 'forget'): Promise<void> {
    const [began, at] = [performance.now(), this.updates()];
    await this.reach(at + 1);
    this.resumed[type].push((performance.now() - began) / 1000);
  }

  /** Waits for the learner's end. */
  async end(): Promise<Outcome> {
    for (let n = 0; this.learner.ended === undefined; n++) {
      if (n > 6000) throw new Error(`it does not end: ${this.updates()} updates; ${this.learner.words.slice(-2000)}`);
      await sleep(100);
    }
    expect(this.learner.ended, this.learner.words).toBe(0);
    return JSON.parse(readFileSync(join(this.dir, 'outcome.json'), 'utf8')) as Outcome;
  }

  /** Waits until so many updates were announced. @throws where the learner has ended instead */
  async reach(updates: number): Promise<void> {
    while (this.updates() < updates) {
      if (this.learner.ended !== undefined) throw new Error(`the learner ended: ${this.learner.words.slice(-2000)}`);
      await sleep(50);
    }
  }

  /** Updates that were announced, or about to be. */
  updates(): number {
    return Math.max(-1, ...this.announced().map(([version]) => version));
  }

  announced(): (readonly [number, string])[] {
    const path = join(this.dir, 'announced');
    if (!existsSync(path)) return [];
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => [Number(line.split(' ')[0]), line.split(' ')[1]!] as const);
  }

  async close(): Promise<void> {
    for (const one of [this.learner, ...this.workers]) one?.bury();
    await this.server?.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Holds the books to be exact: no group twice, no version of two weights, no lag above the bound, and a replay that ends alike. */
export function exact(arena: Arena, { trained, account, maxSeen, version, decisions }: Outcome, maxLag: number): void {
  expect(new Set(trained).size).toBe(trained.length);
  expect(trained.length).toBe(version * PER_UPDATE);
  expect(maxSeen).toBeLessThanOrEqual(maxLag);
  expect(decisions).toBe(version * PER_UPDATE * SIZE);
  const digests = new Map<number, Set<string>>();
  for (const [of, digest] of arena.announced()) digests.set(of, (digests.get(of) ?? new Set()).add(digest));
  for (const [of, all] of digests) expect([of, all.size]).toEqual([of, 1]);
  const { entries } = readJournal(join(arena.dir, 'journal'), 0);
  const again = new Books(maxLag);
  for (const entry of entries) {
    if (entry.type === 'launched') again.launch();
    if (entry.type !== 'played') continue;
    for (const { group, trajectories } of entry.groups) {
      const lost = entry.failed.filter((one) => one.group === group).length;
      if (again.outstanding.has(group)) again.take(group, trajectories, lost);
    }
    const own = new Set(entry.groups.map(({ group }) => group));
    again.failed(entry.failed.filter(({ group }) => !own.has(group) && again.outstanding.has(group)).length);
  }
  expect(again.trained).toEqual(trained);
  expect(again.account.failed).toBe(account.failed);
  const named = digestsOf(entries);
  for (const [of, all] of digests) if (named.has(of)) expect([...all]).toEqual([named.get(of)]);
}

/** Waits for what a test sees to come, a minute at most. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let n = 0; !(await holds()); n++) {
    if (n > 1200) throw new Error(`it never came: ${what}`);
    await sleep(50);
  }
}
