/** Disks that are full, the learner's and the server's, with a real server and processes of their own. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { Rng } from '../../src/core/rng.ts';
import { Arena, exact, Immortal, until } from '../support/chaos-arena.ts';
import { noServer } from '../support/nats-server.ts';
import { noSmallDisk, SmallDisk } from '../support/small-disk.ts';

describe.skipIf(noServer || noSmallDisk)('with a server and processes of their own,', () => {
  let arena: Arena;
  afterEach(() => arena?.close());

  it('the disks of learner and server are full: notices name them, nothing is announced that is not journaled, and it goes on where there is room', async () => {
    arena = new Arena(Rng.fromSeed(1));
    const disks = [join(arena.dir, 'journal'), join(arena.folder, 'store')].map((dir) => new SmallDisk(dir));
    const [journal, store] = disks as [SmallDisk, SmallDisk];
    try {
      await arena.open({ updates: 1_000_000 }, [{ groupMs: 150 }]);
      await arena.reach(2);
      journal.fill();
      await until('the notice of the learner', () => /journal: ENOSPC/.test(arena.learner.words));
      const at = arena.updates();
      await sleep(1500);
      expect(arena.updates()).toBe(at);
      journal.empty();
      await arena.reach(at + 3);
      store.fill();
      const filledAt = Date.now();
      // By what its workers report where the server refuses in words; by itself where the server falls silent.
      await until('the learner names the server', () => /the NATS server .*disk/.test(arena.learner.words));
      console.log(`a server on a full disk was named after ${((Date.now() - filledAt) / 1000).toFixed(1)} s (bar 10)`);
      expect(arena.workers[0]!.words).not.toMatch(/the learner has to read/);
      const held = arena.updates();
      await sleep(1000);
      expect(arena.updates() - held).toBeLessThanOrEqual(1); // what it had
      await arena.server.kill();
      store.empty();
      await arena.server.start();
      const startedAt = Date.now();
      await arena.reach(arena.updates() + 1);
      console.log(`after its restart with room, an update came in ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
      await arena.reach(arena.updates() + 3);
      arena.learner.bury();
      while (arena.learner.child.exitCode === null && arena.learner.child.signalCode === null) await sleep(20);
      const of = { url: arena.server.url, run: 'chaos', dir: arena.dir, maxLag: 2, updates: arena.updates() + 2 };
      arena.learner = new Immortal('chaos-learner', of);
      exact(arena, await arena.end(), 2);
    } finally {
      for (const disk of disks) disk.remove(); // or the folder could not be removed
    }
  }, 3_600_000);
});
