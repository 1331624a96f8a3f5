/** Many episodes in a world that breaks all the time, and what is left when they are over. */
import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { createEnvPool, type EnvPool } from '../../actors/env/env-pool.ts';
import { faultKinds } from '../../src/chaos/spec.ts';
import type { Group } from '../../src/core/trajectory.ts';
import {
  GROUP_SIZE,
  GROUPS_PER_UPDATE,
  identities,
  type RolloutBench,
  rolloutBench,
} from '../support/rollout-bench.ts';

const long = process.env.LONGPLAY_LONG === '1';
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Counts threads of this process; 0 where the system does not list them. */
function threads(): number {
  try {
    return readdirSync('/proc/self/task').length;
  } catch {
    return 0;
  }
}

/** Handles that keep a process alive, without what comes and goes by itself. */
function handles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((name) => !/Timeout|Immediate|FSReq/.test(name))
    .sort();
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** Waits for threads and handles to go, which they do a moment after their owner reports it. */
async function until(holds: () => boolean): Promise<void> {
  for (let looks = 0; looks < 1000 && !holds(); looks++) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** A pool that was used once, and a young generation as large as it gets: all beginnings are behind us. */
async function warmUp(): Promise<void> {
  let kept: object[] = [];
  for (let i = 0; i < 100; i++) kept = Array.from({ length: 100_000 }, (_, n) => ({ n }));
  expect(kept).toHaveLength(100_000);
  const bench = await rolloutBench({ updates: 1 });
  await bench.train();
  await bench.stop();
  await new Promise((resolve) => setTimeout(resolve, 300)); // what is left then is the beginning, whatever it is
}

describe('a long run in a world where 5 % of the steps break', () => {
  it('finishes with nothing lost, nothing wrong trained on, and nothing left behind', async () => {
    await warmUp();
    const before = { threads: threads(), handles: handles() };
    const episodes = long ? 10_000 : 400;
    const updates = episodes / (GROUP_SIZE * GROUPS_PER_UPDATE);
    let wrong = 0;
    // A host that is just filling its heap counts too, so one reading means little: medians of a thousand episodes
    // each.
    const early: number[] = [];
    const late: number[] = [];
    let bench: RolloutBench | undefined;
    const onGroup = ({ trajectories, task, horizon }: Group) => {
      const whole = trajectories.length === GROUP_SIZE;
      const own = trajectories.every((one) => one.task.index === task.index && one.horizon === horizon);
      const sound = trajectories.every(
        ({ turns, end }) => end !== undefined && turns.every(({ reward }) => reward >= 0 && reward <= 1),
      );
      if (!whole || !own || !sound) wrong++;
      const done = (bench?.updates.length ?? 0) / updates;
      if (done >= 0.1 && done < 0.2) early.push(process.memoryUsage.rss());
      if (done >= 0.9) late.push(process.memoryUsage.rss());
    };
    bench = await rolloutBench({
      updates,
      chaos: 'all=0.05,seed=11',
      tasks: Array.from({ length: 500 }, (_, i) => i),
      pool: { threads: 2, stepDeadlineMs: 150, resourceLimits: { maxOldGenerationSizeMb: 32 }, maxRestarts: 50 },
      rollout: { maxAttempts: 8 },
      onGroup,
    });
    closing.push(() => bench.stop());
    const { why } = await bench.train();
    expect(why).toBe('updates');
    expect(wrong).toBe(0);
    expect(identities(bench)).toEqual(Array(updates).fill(0));
    await bench.stop();
    const { kinds, unexplained } = bench.chaos!.report();
    for (const kind of faultKinds) {
      if (kind === 'disk-full') continue;
      const counts = kinds[kind];
      if (long) expect(counts?.injected).toBeGreaterThan(50);
      expect(counts?.lost ?? 0).toBe(0);
    }
    expect(unexplained).toEqual({});
    await until(() => threads() <= before.threads && handles().length <= before.handles.length);
    expect(threads()).toBeLessThanOrEqual(before.threads);
    expect(handles()).toEqual(before.handles);
    if (long) console.log(JSON.stringify({ kinds, rssEarly: median(early), rssLate: median(late) }));
    if (long) expect(median(late)).toBeLessThan(1.1 * median(early));
  }, 1_800_000);
});

describe('hung environments, one after the other', () => {
  it.each(['spin', 'hang'])(
    'leave no thread behind (%s)',
    async (action) => {
      await warmUp();
      const before = threads();
      const count = long ? 500 : 15;
      const pool: EnvPool = await createEnvPool({
        envs: [{ id: 'faulty', url: new URL('../support/faulty-env.ts', import.meta.url) }],
        threads: 1,
        isolation: 'thread',
        stepDeadlineMs: 30,
        openDeadlineMs: 5000,
        maxRestarts: Number.POSITIVE_INFINITY,
      });
      closing.push(() => pool.close());
      const up = threads();
      for (let episode = 0; episode < count; episode++) {
        const failed = new Promise((resolve) => {
          const subscription = pool.observations$.subscribe((event) => {
            if (event.episode !== episode) return;
            if (event.type === 'observed') pool.send({ type: 'step', episode, turn: 1, action });
            else {
              subscription.unsubscribe();
              resolve(event.failure.cause);
            }
          });
        });
        pool.send({ type: 'open', episode, attempt: 1, task: { env: 'faulty', index: 1, seed: 0 } });
        expect(await failed).toBe('timeout');
      }
      expect(pool.stats()).toMatchObject({ open: 0, failed: { timeout: count }, hosts: [{ replaced: count }] });
      await until(() => threads() <= up);
      expect(threads()).toBeLessThanOrEqual(up);
      await pool.close();
      await until(() => threads() <= before);
      expect(threads()).toBeLessThanOrEqual(before);
    },
    600_000,
  );
});
