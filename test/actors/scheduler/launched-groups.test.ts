/** Launched groups and their account: whatever happens to a group, every episode counts once. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GroupTicket } from '../../../actors/rollout/protocol.ts';
import { LaunchedGroups } from '../../../actors/scheduler/groups.ts';
import { ResultQueue } from '../../../actors/scheduler/result-queue.ts';
import { countUnaccounted } from '../../../src/core/failure.ts';
import type { Group } from '../../../src/core/trajectory.ts';
import { group as madeGroup } from '../../support/trajectories.ts';

const ticket = (group: number, size = 4, name = 'train'): GroupTicket => ({
  group,
  task: { env: 'x', index: 0, seed: group },
  horizon: 8,
  size,
  purpose: { name, temperature: 1, seed: group },
  version: 0,
});

/** A finished group of a ticket. */
const groupOf = ({ group, task, size }: GroupTicket): Group => ({
  ...madeGroup(
    Array.from({ length: size }, () => ({ turns: [{}] })),
    group,
  ),
  task,
});

function launched(...tickets: readonly GroupTicket[]) {
  const groups = new LaunchedGroups(new ResultQueue(String, () => true), undefined);
  for (const one of tickets) groups.launch(one);
  const finish = (one: GroupTicket) => {
    groups.recordFinished(one.group, one.size);
    groups.deliveries.add(groupOf(one), 0);
  };
  const consume = (rest: Partial<Parameters<LaunchedGroups['recordConsumed']>[0]>) =>
    groups.recordConsumed({ trained: [], filtered: [], stale: [], ...rest });
  return { groups, finish, consume };
}

describe('groups', () => {
  it('are in flight from their launch until an update has consumed them', () => {
    const one = ticket(1);
    const { groups, finish, consume } = launched(one);
    expect(groups.accounting).toMatchObject({ launched: 4, inFlight: 4 });
    finish(one);
    expect(groups.counts).toEqual({ training: 0, all: 0 });
    expect(groups.accounting).toMatchObject({ inFlight: 4, trained: 0 });
    consume({ trained: [1] });
    expect(groups.accounting).toMatchObject({ inFlight: 0, trained: 4 });
  });

  it.each([
    ['trained', 'trained'],
    ['filtered', 'filtered'],
    ['stale', 'stale'],
  ] as const)('that an update reports as %s count so', (report, column) => {
    const one = ticket(1);
    const { groups, finish, consume } = launched(one);
    finish(one);
    consume({ [report]: [1] });
    expect(groups.accounting[column]).toBe(4);
    expect(countUnaccounted(groups.accounting)).toBe(0);
  });

  it('count training groups apart from evaluations', () => {
    const { groups } = launched(ticket(1), ticket(2, 1, 'test'), ticket(3));
    expect(groups.counts).toEqual({ training: 2, all: 3 });
    expect(groups.abandonTraining()).toEqual([1, 3]);
    expect(groups.counts).toEqual({ training: 0, all: 1 });
    expect(groups.accounting).toMatchObject({ launched: 9, filtered: 8, inFlight: 1 });
  });

  it('launch an attempt again that failed', () => {
    const { groups } = launched(ticket(1));
    expect(groups.recordFailed(1, 'timeout')).toMatchObject({ group: 1 });
    expect(groups.accounting).toMatchObject({ launched: 5, failed: { timeout: 1 }, inFlight: 4 });
  });

  it('given up count their last attempt as failed, the others as filtered', () => {
    const { groups } = launched(ticket(1));
    groups.recordGivenUp(1, 'exited');
    expect(groups.accounting).toMatchObject({ launched: 4, failed: { exited: 1 }, filtered: 3, inFlight: 0 });
  });

  it('that are not outstanding change nothing', () => {
    const { groups } = launched(ticket(1));
    const before = groups.accounting;
    expect(groups.recordFailed(9, 'exited')).toBeUndefined();
    expect(groups.recordFinished(9, 4)).toBeUndefined();
    expect(groups.recordGivenUp(9, 'exited')).toBeUndefined();
    expect(groups.accounting).toEqual(before);
  });

  it('that come back torn stop the run', () => {
    const { groups } = launched(ticket(1));
    expect(() => groups.recordFinished(1, 3)).toThrow('group 1 came back with 3 episodes, expected 4');
  });

  it('count once, however often they come back', () => {
    const one = ticket(1);
    const { groups, finish } = launched(one);
    finish(one);
    expect(groups.recordFinished(1, 4)).toBeUndefined();
    expect(groups.accounting.inFlight).toBe(4);
  });
});

describe('a checkpoint', () => {
  const running = (group: number) =>
    ({ group, task: { env: 'x', index: 0, seed: 0 }, horizon: 8, finished: [] }) as never;

  it('keeps training groups and deliveries, and counts evaluations as filtered', () => {
    const [one, two, test] = [ticket(1), ticket(2), ticket(3, 2, 'test')];
    const { groups, finish } = launched(one, two, test);
    finish(two);
    const saved = groups.snapshot([running(1)]);
    expect(saved.accounting).toMatchObject({ launched: 10, inFlight: 8, filtered: 2 });
    expect(saved.running).toHaveLength(1);
    expect(saved.delivered).toHaveLength(1);
  });

  it('is not written where the rollouts lack a group', () => {
    const { groups } = launched(ticket(1), ticket(2));
    expect(() => groups.snapshot([running(2)])).toThrow('the rollouts do not have group 1');
  });

  it('leaves out groups that the rollouts still have but that were not launched', () => {
    const { groups } = launched(ticket(1));
    expect(groups.snapshot([running(1), running(7)]).running).toHaveLength(1);
  });

  it('restores a group that its accounting counts already', () => {
    const accounting = { launched: 4, trained: 0, stale: 0, filtered: 0, failed: {}, inFlight: 4 };
    const groups = new LaunchedGroups(new ResultQueue(String, () => true), accounting);
    groups.restoring();
    groups.restore(ticket(1));
    expect(groups.accounting).toEqual(accounting);
  });
});

describe('the account', () => {
  it('adds up after any history', () => {
    const happening = fc.record({
      what: fc.constantFrom('launch', 'fail', 'finish', 'giveUp', 'consume', 'abandon'),
      group: fc.nat(7),
      size: fc.integer({ min: 1, max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 60 }), (history) => {
        const { groups, consume } = launched();
        const known = new Map<number, GroupTicket>();
        let next = 0;
        for (const { what, group, size } of history) {
          const one = known.get(group % Math.max(1, next));
          if (what === 'launch') {
            known.set(next, ticket(next, size, size === 1 ? 'test' : 'train'));
            groups.launch(known.get(next++)!);
          } else if (what === 'fail' && one) groups.recordFailed(one.group, 'exited');
          else if (what === 'giveUp' && one) groups.recordGivenUp(one.group, 'timeout');
          else if (what === 'finish' && one) {
            if (groups.recordFinished(one.group, one.size)) groups.deliveries.add(groupOf(one), 0);
          } else if (what === 'consume' && one) consume({ trained: [one.group] });
          else if (what === 'abandon') groups.abandonTraining();
          expect(countUnaccounted(groups.accounting)).toBe(0);
        }
      }),
      { numRuns: 100 },
    );
  });
});
