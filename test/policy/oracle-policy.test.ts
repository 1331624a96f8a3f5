/** The oracle plays what the world's solver says, ends where it gives up, and goes on after a restart. */
import { describe, expect, it } from 'vitest';
import type { Oracle } from '../../src/core/env.ts';
import { OraclePolicy } from '../../src/policy/oracle-policy.ts';
import type { ActRequest } from '../../src/policy/policy.ts';

/** Counts up from the task's index, and gives up after three. */
const counting: Oracle = ({ index }) => {
  let next = index;
  return (step) => {
    if (step.kind === 'first' && step.observation === 'broken') throw new RangeError('no such task');
    if (step.kind === 'first' && step.observation === 'hopeless') return undefined;
    return next < index + 3 ? `count ${next++}` : undefined;
  };
};

function request(episode: number, turn: number, more: Partial<ActRequest> = {}): ActRequest {
  return {
    ...{ episode, group: episode, member: 0, groupSize: 1, turn, samplingSeed: 1, temperature: 1 },
    ...{ observation: `seen ${turn}`, actions: Int32Array.of(1), newActions: turn === 0 ? ['wait', 'look'] : [] },
    ...(turn === 0 ? { task: { env: 'toy', index: 10 * episode, seed: 0 } } : { lastAction: 'any' }),
    ...more,
  };
}

const actionsOf = (policy: OraclePolicy) => policy.step().map(({ episode, action }) => [episode, action]);

describe('the oracle policy', () => {
  it('plays each episode by its own task', () => {
    const policy = new OraclePolicy(8, counting);
    expect(policy.submit([request(1, 0), request(2, 0)])).toEqual([]);
    expect(policy.waiting).toBe(2);
    expect(actionsOf(policy)).toEqual([
      [1, 'count 10'],
      [2, 'count 20'],
    ]);
    policy.submit([request(1, 1)]);
    expect(actionsOf(policy)).toEqual([[1, 'count 11']]);
  });

  it('ends an episode in which it gives up; one without any plan takes a first action', () => {
    const policy = new OraclePolicy(8, counting);
    for (const turn of [0, 1, 2]) policy.submit([request(1, turn)]);
    expect(policy.submit([request(1, 3)])).toMatchObject([{ episode: 1, ends: true }]);
    policy.forget();
    expect(policy.submit([request(3, 0, { observation: 'hopeless' })])).toEqual([]);
    expect(actionsOf(policy)).toEqual([[3, 'look']]);
  });

  it('fails an episode whose solver throws, and no other', () => {
    const policy = new OraclePolicy(8, counting);
    const refused = policy.submit([request(1, 0, { observation: 'broken' }), request(2, 0)]);
    expect(refused).toEqual([{ episode: 1, message: 'the oracle threw: no such task' }]);
    expect(actionsOf(policy)).toEqual([[2, 'count 20']]);
  });

  it('goes on in an episode that comes with its history', () => {
    const policy = new OraclePolicy(8, counting);
    const history = [0, 1].map((turn) => ({ observation: `seen ${turn}`, action: `count ${turn}` }));
    policy.submit([request(1, 2, { history, task: { env: 'toy', index: 0, seed: 0 } })]);
    expect(actionsOf(policy)).toEqual([[1, 'count 2']]);
  });

  it('drops released episodes, their waiting answers too', () => {
    const policy = new OraclePolicy(8, counting);
    policy.submit([request(1, 0), request(2, 0)]);
    policy.release([1, 9]);
    expect(actionsOf(policy)).toEqual([[2, 'count 20']]);
  });
});
