/** Succession of two learners of one run: the older one ends, and what the newer one has announced stays. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { spawnWeights } from '../../actors/cluster/spawn.ts';
import { decodeAnnouncement } from '../../src/cluster/identity.ts';
import { systemClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import { createSystem } from '../../src/runtime/create-system.ts';
import { chaosIdentity } from '../support/chaos-identity.ts';
import { MemoryServer } from '../support/memory-broker.ts';
import { smallConfig } from '../support/small-run.ts';

it('a learner that was replaced ends with one error and leaves the announcement of its successor', async () => {
  const server = new MemoryServer(systemClock, Rng.fromSeed(1), 1000);
  const announced = () => decodeAnnouncement(server.announcement!.bytes);
  const digest = (version: number) => String(version).repeat(64);
  const weights = (version: number) => ({ version, digest: digest(version), bytes: Uint8Array.of(version) });
  const learner = async (first: number) => {
    const system = createSystem({ mode: 'async' });
    const ended = new Promise<Error>((resolve) => {
      system.inspect$.subscribe((event) => {
        if (event.type === 'stopped' && event.final && event.reason.kind === 'crashed') resolve(event.reason.error);
      });
    });
    system.terminated.catch(() => {});
    const ref = await spawnWeights(system, {
      broker: server.connect(),
      run: 'two',
      identity: chaosIdentity,
      config: smallConfig(),
      first: weights(first),
      digests: new Map(Array.from({ length: 9 }, (_, version) => [version, digest(version)])),
      sync: () => {},
      onNotice: () => {},
      isServed: false,
    });
    return { system, ended, ref };
  };
  const older = await learner(1);
  const newer = await learner(1);
  await newer.ref.tell({ type: 'publish', ...weights(2) });
  await expect.poll(() => announced().version).toBe(2);
  await older.ref.tell({ type: 'publish', ...weights(3) });
  expect((await older.ended).message).toMatch(/another process trains run 'two' .* now \(its number 2\)/);
  await sleep(50); // the older one announces its end meanwhile
  expect(announced()).toMatchObject({ life: 2, version: 2, ended: false });
  await newer.ref.tell({ type: 'publish', ...weights(3) });
  await expect.poll(() => announced()).toMatchObject({ life: 2, version: 3, ended: false });
  await newer.system.stop();
  expect(announced()).toMatchObject({ life: 2, version: 3, ended: true });
  await older.system.stop();
  expect(announced()).toMatchObject({ life: 2, version: 3, ended: true });
});
