import { afterEach, describe, expect, it, vi } from 'vitest';
import type { InferenceCommand } from '../../../actors/inference/protocol.ts';
import { countFailed } from '../../../src/core/failure.ts';
import {
  type BenchOptions,
  GROUP_SIZE,
  GROUPS_PER_UPDATE,
  identities,
  MAX_LAG,
  type RolloutBench,
  rolloutBench,
} from '../../support/rollout-bench.ts';

vi.setConfig({ testTimeout: 30_000 }); // threads start slowly on a busy machine

const open: RolloutBench[] = [];
const make = async (options: BenchOptions) => {
  const bench = await rolloutBench(options);
  open.push(bench);
  return bench;
};
afterEach(async () => {
  for (const bench of open.splice(0)) await bench.stop();
});

function expectWholeGroups({ groups }: RolloutBench): void {
  for (const { task, horizon, trajectories } of groups) {
    expect(trajectories).toHaveLength(GROUP_SIZE);
    for (const one of trajectories) {
      expect(one).toMatchObject({ task, horizon });
      expect(one.turns.every(({ reward }) => Number.isFinite(reward))).toBe(true);
    }
  }
}

describe('episodes that fail', () => {
  it('are issued again under the same task; groups stay whole and every episode is accounted for', async () => {
    const bench = await make({
      updates: 12,
      chaos: 'throw=0.06,nan=0.03,slow=0.03,duplicate=0.02,drop=0.01,kill=0.01,hang=0.01',
    });
    const { status } = await bench.train();
    expectWholeGroups(bench);
    expect(bench.groups.length).toBeGreaterThanOrEqual(12 * GROUPS_PER_UPDATE);
    expect(identities(bench)).toEqual(Array(12).fill(0));
    expect(countFailed(status.accounting)).toBeGreaterThan(5);
    expect(bench.failures).toHaveLength(countFailed(status.accounting));
    const attempts = bench.groups.flatMap(({ trajectories }) => trajectories.map(({ attempt }) => attempt));
    expect(Math.max(...attempts)).toBeGreaterThan(1);
    await bench.stop();
    const report = bench.chaos!.report();
    for (const counts of Object.values(report.kinds)) {
      expect(counts.lost).toBe(0);
      expect(counts.injected).toBe(counts.detected + counts.absorbed + counts.abandoned);
    }
    expect(report.unexplained).toEqual({});
  });

  it('quarantine a task that keeps failing, and the run goes on without it', async () => {
    const bench = await make({ updates: 10, tasks: [1, 2, 999], rollout: { maxAttempts: 2 } });
    const { status } = await bench.train();
    expect(bench.groups.every(({ task }) => task.index !== 999)).toBe(true);
    const quarantined = bench.recorded.filter(({ type }) => type === 'quarantined');
    expect(quarantined).toMatchObject([
      { task: { index: 999 }, attempts: 2, failure: { cause: 'threw', message: 'no such task' } },
    ]);
    expect(identities(bench)).toEqual(Array(10).fill(0));
    expect(status.accounting.failed).toEqual({ threw: expect.any(Number) });
    expectWholeGroups(bench);
  });

  it.each([
    ['throws', { chaos: 'throw=1', rollout: { maxAttempts: 1000 } }, /200 episodes in a row failed .*threw on faulty/],
    ['exits', { chaos: 'kill=1' }, /replaced 11 times and answered no action in between/],
    ['cannot open any task', { tasks: [999], rollout: { maxAttempts: 2 } }, /every task drawn is quarantined/],
  ])('end the run with one error where every episode %s', async (_, options, message) => {
    const bench = await make({ updates: 10, ...options });
    await expect(bench.train()).rejects.toMatchObject({ code: 'ENV_BROKEN', message: expect.stringMatching(message) });
    expect(bench.groups).toEqual([]);
  });
});

describe('rollouts in a thread of their own', () => {
  it('play the same groups: all they are made from and all they send is plain data', async () => {
    const bench = await make({ updates: 12, placement: 'thread', chaos: 'throw=0.05,nan=0.03' });
    const { why, status } = await bench.train();
    expect(why).toBe('updates');
    expect(bench.system.stats().find(({ path }) => path === '/rollout')).toMatchObject({ placement: 'thread' });
    expectWholeGroups(bench);
    expect(identities(bench)).toEqual(Array(12).fill(0));
    expect(countFailed(status.accounting)).toBeGreaterThan(0);
    expect(bench.failures).toHaveLength(countFailed(status.accounting));
  });
});

/** A message the policy cannot take. */
const poison = { type: 'act', requests: null } as unknown as InferenceCommand;

describe('a policy that crashes', () => {
  it('is restarted, and every waiting turn is sent again with its history', async () => {
    const bench = await make({ updates: 40, updateMs: 10 });
    const training = bench.train();
    for (let n = 0; n < 3; n++) {
      const before = bench.updates.length;
      while (bench.updates.length < before + 4) await new Promise((resolve) => setTimeout(resolve, 5));
      void bench.system.resolve<InferenceCommand>('/inference').tell(poison);
    }
    const { why, status } = await training;
    expect(why).toBe('updates');
    expect(bench.system.stats().find(({ path }) => path === '/inference')).toMatchObject({ restarts: 3 });
    expect(countFailed(status.accounting)).toBe(0);
    expect(identities(bench)).toEqual(Array(40).fill(0));
    expectWholeGroups(bench);
    for (const { trajectories } of bench.groups) {
      for (const { turns, actionTable } of trajectories) {
        for (const turn of turns) expect([...turn.actions].map((i) => actionTable[i])).toContain(turn.action);
      }
    }
  });
});

describe('a policy that crashes while episodes are in the middle of a step', () => {
  it('gets their history when their envs have answered', async () => {
    const bench = await make({ updates: 12, chaos: 'slow=1', pool: { stepDeadlineMs: 200 } });
    const training = bench.train();
    let isOver = false;
    training
      .catch(() => {})
      .finally(() => {
        isOver = true;
      });
    for (let crash = 0; crash < 3; crash++) {
      const before = (await bench.status()).envSteps;
      // Nearly all of them are with their envs, most of them past their first turn.
      const ready = async () => bench.pool.stats().pending >= 12 && (await bench.status()).envSteps > before + 12;
      while (!(await ready())) {
        expect(isOver, 'the run outlasts three crashes').toBe(false);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      void bench.system.resolve<InferenceCommand>('/inference').tell(poison);
    }
    const { why, status } = await training;
    expect(why).toBe('updates');
    expect(bench.system.stats().find(({ path }) => path === '/inference')).toMatchObject({ restarts: 3 });
    expect(countFailed(status.accounting)).toBe(0);
    expectWholeGroups(bench);
  });
});

describe('a learner that is slower than the rollouts', () => {
  it('slows the environments: what is launched is bounded by the lag, and nothing piles up', async () => {
    const bench = await make({ updates: 30 });
    const training = bench.train();
    training.catch(() => {});
    while (bench.updates.length < 5) await new Promise((resolve) => setTimeout(resolve, 5));
    bench.stalled = true;
    // All is launched that may be, and all of it has ended: it waits for the learner.
    const launched = async () => (await bench.status()).accounting.launched;
    const allowed = () => (bench.updates.length + MAX_LAG + 1) * GROUPS_PER_UPDATE * GROUP_SIZE;
    while ((await launched()) < allowed() || bench.pool.stats().open > 0) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const { accounting } = await bench.status();
    expect(accounting.launched).toBe(allowed());
    expect(accounting.inFlight).toBe((MAX_LAG + 1) * GROUPS_PER_UPDATE * GROUP_SIZE);
    expect(bench.system.stats().map(({ depth }) => depth)).toEqual(bench.system.stats().map(() => 0));
    bench.stalled = false;
    expect((await training).why).toBe('updates');
    expect(identities(bench)).toEqual(Array(30).fill(0));
  });

  it('starts nothing while it waits, however long that takes', async () => {
    const bench = await make({ updates: 1000, mode: 'serial', stallsAfter: 5 });
    await expect(bench.train()).rejects.toMatchObject({ code: 'ASK_TIMEOUT' }); // ten minutes of virtual time later
    const { accounting } = await bench.status();
    expect(bench.updates).toHaveLength(5);
    expect(accounting.launched).toBe((5 + MAX_LAG + 1) * GROUPS_PER_UPDATE * GROUP_SIZE);
    expect(accounting.inFlight).toBe((MAX_LAG + 1) * GROUPS_PER_UPDATE * GROUP_SIZE);
    expect(bench.pool.stats().open).toBe(0);
  });
});
