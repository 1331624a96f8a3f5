/**
 * Processes that die, with a real server between them: a learner, workers and nats-server, each of its own. The learner learns nothing, so
 * that there is time for many deaths; its weights are a chain of hashes over the results (test/support/cluster-books.ts).
 */
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeAnnouncement, encodeAnnouncement } from '../../src/cluster/identity.ts';
import { connectNats } from '../../src/cluster/nats/connect.ts';
import { Rng } from '../../src/core/rng.ts';
import { Arena, exact, Immortal, type Strike, until } from '../support/chaos-arena.ts';
import type { ChaosLearner } from '../support/chaos-learner.ts';
import { noServer } from '../support/nats-server.ts';

const DAY_MS = 86_400_000;
const long = process.env.LONGPLAY_LONG === '1';
const rng = Rng.fromSeed(Number(process.env.LONGPLAY_ATTACK_SEED ?? 1));

describe.skipIf(noServer)('with a server and processes of their own,', () => {
  let arena: Arena;
  const inArena = async (body: (arena: Arena) => Promise<void>) => {
    arena = new Arena(rng);
    await body(arena);
  };
  afterEach(() => arena?.close());

  /** Strikes of each kind, one every `everyMs` in the mean. */
  const campaign = async (strikes: Partial<Record<Strike, number>>, everyMs: number, of: Partial<ChaosLearner>) => {
    const { maxLag = 2 } = of;
    await arena.open({ ...of, updates: 1_000_000 }, [
      { groupMs: 30, clockMs: DAY_MS, echo: 5 },
      { groupMs: 50, clockMs: -DAY_MS },
    ]);
    const order = rng.shuffle(
      (Object.entries(strikes) as [Strike, number][]).flatMap(([type, n]) => Array<Strike>(n).fill(type)),
    );
    await arena.reach(1);
    for (const type of order) {
      await sleep(everyMs * 2 * rng.float());
      await arena.strike(type);
    }
    // It goes on after the last of them.
    const at = arena.updates();
    await arena.reach(at + 3);
    arena.learner.bury();
    while (arena.learner.child.exitCode === null && arena.learner.child.signalCode === null) await sleep(20);
    // A last life ends it in order.
    const last = new Immortal('chaos-learner', {
      ...{ url: arena.server.url, run: 'chaos', dir: arena.dir, maxLag },
      updates: arena.updates() + 2,
    });
    const { lives } = arena.learner;
    arena.learner = last;
    const outcome = await arena.end();
    exact(arena, outcome, maxLag);
    const { account, counts, version, maxSeen, decisions } = outcome;
    const worst = (seconds: readonly number[]) => Math.max(0, ...seconds).toFixed(1);
    const { server, forget } = arena.resumed;
    if (server.length + forget.length > 0) {
      console.log(
        `an update came within ${worst(server)} s of ${server.length} returns of the server (bar 5), ${worst(forget)} s of ${forget.length} returns with nothing (bar 10)`,
      );
    }
    const made = arena.announced().length - version - 1;
    console.log(
      `${JSON.stringify(arena.struck)} learner ${lives + 1} lives: ${version} updates, ${made} announced again, ${decisions} decisions of lag ≤ ${maxSeen}, ${account.failed} episodes failed with workers, ${JSON.stringify(counts)} in the last life`,
    );
    return outcome;
  };

  it.runIf(long)(
    'workers are killed: the run goes on, and what failed with them is counted',
    () =>
      inArena(async () => {
        const outcome = await campaign({ worker: 200 }, 1000, {});
        expect(outcome.account.failed).toBeGreaterThan(0);
      }),
    3_600_000,
  );

  it.runIf(long)(
    'the learner is killed, at any moment and between any two effects: no version has two weights',
    () =>
      inArena(async () => {
        await campaign({ learner: 200 }, 1500, { suicide: 0.002, maxLag: 1 });
      }),
    3_600_000,
  );

  it.runIf(long)(
    'the server is killed, and its files are lost',
    () =>
      inArena(async () => {
        await campaign({ server: 50, forget: 10 }, 1500, { maxLag: 0 });
      }),
    3_600_000,
  );

  it(
    'everything dies, workers are cut off for three leases, their clocks are a day off, results come again and again',
    () =>
      inArena(async () => {
        const n = long ? 30 : 2;
        const strikes = { worker: 2 * n, learner: n, server: n, forget: 1, stop: n };
        await campaign(strikes, long ? 700 : 300, { maxLag: 4, suicide: 0.001 });
      }),
    3_600_000,
  );

  it(
    'of two learners the older one ends with one error, and no version has two weights',
    () =>
      inArena(async () => {
        await arena.open({ updates: 1_000_000 }, [{}, {}]);
        const announced = new Map<number, Set<string>>();
        await arena.reach(2);
        const observer = await connectNats({ url: arena.server.url, run: 'chaos' });
        const look = async () => {
          const found = await observer.weights.readAnnouncement().catch(() => undefined);
          if (!found) return 0;
          const { version, digest, life } = decodeAnnouncement(found.bytes);
          announced.set(version, (announced.get(version) ?? new Set()).add(digest));
          return life;
        };
        observer.weights.onAnnouncement(() => void look());
        expect(await look()).toBe(1);
        // As after a machine that hangs: its folder is taken elsewhere, and then it comes back.
        const older = arena.learner;
        older.child.kill('SIGSTOP');
        const before = arena.updates();
        const copy = join(arena.folder, 'copy');
        cpSync(arena.dir, copy, { recursive: true });
        const of = { url: arena.server.url, run: 'chaos', maxLag: 2 };
        arena.learner = new Immortal('chaos-learner', { ...of, dir: copy, updates: before + 8 });
        await until('a second life', async () => (await look()) >= 2);
        older.child.kill('SIGCONT');
        await until('the end of the older learner', () => older.ended !== undefined);
        expect(older.ended).toBe(1);
        expect(older.words.match(/another process trains run 'chaos'/g)).toHaveLength(1);
        console.log(`the older learner made ${arena.updates() - before} updates that it could not announce any more`);
        await until('the end of the newer learner', () => arena.learner.ended !== undefined);
        expect(arena.learner.ended, arena.learner.words).toBe(0);
        expect(announced.size).toBeGreaterThan(4);
        for (const [version, digests] of announced) expect([version, digests.size]).toEqual([version, 1]);
        // A folder that does not lead to what is announced is stderr so, and changes nothing.
        const now = await observer.weights.readAnnouncement();
        await observer.weights.announce(
          encodeAnnouncement({ ...decodeAnnouncement(now!.bytes), ended: false }),
          now!.revision,
        );
        const fresh = new Immortal('chaos-learner', { ...of, dir: join(arena.folder, 'fresh'), updates: 9 });
        await until('the end of a fresh learner', () => fresh.ended !== undefined);
        expect(fresh.ended).toBe(1);
        expect(fresh.words).toMatch(/by weights that this folder does not lead to/);
        await observer.close();
      }),
    3_600_000,
  );

  it(
    'a learner that is silent and a server without room for results hold workers back, and no memory grows',
    () =>
      inArena(async () => {
        await arena.open({ updates: 12, maxStreamBytes: 1000 }, [{ groupMs: 20 }, { groupMs: 400 }]);
        await arena.reach(2);
        const pids = [arena.server.pid!, ...[arena.learner, ...arena.workers].map((one) => one.child.pid!)];
        const rss = () => pids.map(megabytesOf);
        const before = rss();
        await arena.learner.stop(long ? 60_000 : 6500);
        const after = rss();
        for (const [n, megabytes] of after.entries()) expect(megabytes - before[n]!).toBeLessThanOrEqual(60);
        const outcome = await arena.end();
        exact(arena, outcome, 2);
        console.log(`memory of server, learner and workers before, after: ${before} MB, ${after} MB`);
        const stderr = arena.workers.map((one) => one.words).join('');
        expect(stderr).toMatch(
          /the result of group \d+ cannot be stored: the NATS server has no room: the learner has to read/,
        );
      }),
    3_600_000,
  );
});

/** Resident memory of a process, in MB; 0 where the system does not report it. */
function megabytesOf(pid: number): number {
  const path = `/proc/${pid}/status`;
  const found = existsSync(path) ? /VmRSS:\s+(\d+) kB/.exec(readFileSync(path, 'utf8')) : null;
  return found ? Math.round(Number(found[1]) / 1024) : 0;
}
