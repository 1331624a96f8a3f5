import { describe, expect, it } from 'vitest';
import { Outages } from '../../../actors/rollout/outages.ts';
import { nextAttempt } from '../../../actors/rollout/retry.ts';

const MAX = 1000;
const task = { env: 'a', index: 0, seed: 0 };
const failure = { cause: 'unreachable', where: '/env-hosts/0', message: 'm' } as const;
const limits = { maxAttempts: 3, maxFailures: 256, maxOutageMs: MAX };

describe('an outage', () => {
  it('is counted from what was not answered first, in one world whatever its tasks call it', () => {
    const one = new Outages(undefined, MAX);
    one.recordAnswer('x', 100);
    expect(one.recordFailure('x', 'unreachable', 50, 200)).toEqual({
      unanswered: 1,
      outageMs: 100,
      othersAnswer: false,
    });
    expect(one.recordFailure('y', 'unreachable', 190, 700)).toEqual({
      unanswered: 2,
      outageMs: 600,
      othersAnswer: false,
    });
    one.recordAnswer(undefined, 800); // of an episode that is over
    expect(one.recordFailure('x', 'unreachable', 900, 950)).toEqual({
      unanswered: 1,
      outageMs: 50,
      othersAnswer: false,
    });
    expect(one.recordFailure('x', 'threw', 900, 990)).toEqual({ unanswered: 0, outageMs: 0, othersAnswer: false });
  });

  it('of one of several worlds is its own: answers of others neither end it nor hide it', () => {
    const two = new Outages(['a', 'b'], MAX);
    two.recordFailure('a', 'unreachable', 0, 10);
    two.recordAnswer('b', 500);
    two.recordAnswer(undefined, 500);
    const long = two.recordFailure('a', 'unreachable', 20, 2000);
    expect(long).toEqual({ unanswered: 2, outageMs: 2000, othersAnswer: true });
    expect(nextAttempt(failure, 1, { failures: 0, ...long }, task, limits)).toBeUndefined();
    // Below the bound it is attempted again, as in a run of one.
    two.recordAnswer('a', 2100);
    const short = two.recordFailure('a', 'unreachable', 2150, 2200);
    expect(nextAttempt(failure, 1, { failures: 0, ...short }, task, limits)).toBe(2);
  });

  it('of the only world that is played ends the run, though others would answer if they were asked', () => {
    const two = new Outages(['a', 'b'], MAX);
    two.recordAnswer('a', 5);
    const outages = Array.from({ length: 300 }, (_, n) => two.recordFailure('a', 'unreachable', 10, 10 + 20 * n));
    expect(outages.map(({ othersAnswer }) => othersAnswer).indexOf(false)).toBe(255);
    expect(outages.at(-1)!.othersAnswer).toBe(false);
    two.recordAnswer('b', 7000); // meanwhile another one is played
    expect(two.recordFailure('a', 'unreachable', 6000, 7100).othersAnswer).toBe(true);
  });

  it('of all worlds ends the run', () => {
    const two = new Outages(['a', 'b'], MAX);
    for (const now of [10, 900]) two.recordFailure('a', 'unreachable', 0, now);
    // Out for less than the bound, the other one still counts as one that answers.
    expect(two.recordFailure('b', 'unreachable', 0, 999)).toMatchObject({ othersAnswer: true });
    const last = two.recordFailure('b', 'unreachable', 0, 2500);
    expect(last).toMatchObject({ othersAnswer: false });
    expect(() => nextAttempt(failure, 1, { failures: 0, ...last }, task, limits)).toThrow(
      /server has not answered for 3 s/,
    );
  });
});
