import { describe, expect, it } from 'vitest';
import { nextAttempt } from '../../../actors/rollout/retry.ts';
import { AGENT } from '../../../src/core/agent-call.ts';
import type { Failure } from '../../../src/core/failure.ts';

const failure = (cause: Failure['cause']): Failure => ({ cause, where: '/env-hosts/0', message: 'm' });
const task = { env: 'toy', index: 3, seed: 7 };
const limits = { maxAttempts: 3, maxFailures: 10, maxOutageMs: 1000 };
const row = (failures: number, unanswered = 0, outageMs = 0) => ({ failures, unanswered, outageMs });

describe('a failed episode', () => {
  it('is attempted again until its attempts are used up', () => {
    const next = (attempt: number) => nextAttempt(failure('threw'), attempt, row(1), task, limits);
    expect([1, 2, 3].map(next)).toEqual([2, 3, undefined]);
  });

  it('keeps its attempt where it was lost with a host that another one brought down', () => {
    expect([1, 2, 3].map((attempt) => nextAttempt(failure('lost'), attempt, row(1), task, limits))).toEqual([1, 2, 3]);
  });

  it('ends the run where too many fail in a row, and names what is broken', () => {
    const at = (cause: Failure['cause'], inARow: number) => () =>
      nextAttempt(failure(cause), 1, row(inARow), task, limits);
    expect(at('threw', 9)()).toBe(2);
    expect(at('threw', 10)).toThrow(
      'the environment is broken: 10 episodes in a row failed (the last: threw on toy/3#7 at /env-hosts/0: m)',
    );
    expect(at('lost', 10)).toThrow('the environment is broken');
    expect(at('policy', 10)).toThrow('the policy is broken');
  });

  it('of an agent is blamed on the agent, with what helps an agent', () => {
    const at = (cause: Failure['cause']) => () =>
      nextAttempt(failure(cause), 1, row(10, 10, 1000), { ...task, env: AGENT }, limits);
    expect(at('threw')).toThrow(
      /^the agent is broken: 10 episodes in a row failed .*; play it once by `longplay rollout --agent/,
    );
    expect(at('unreachable')).toThrow(
      /^the agent's service has not answered for 1 s: .*; start the agent's service again/,
    );
  });

  it('ends the run where nothing answers at the server any more, and not for one episode or a short outage', () => {
    const outage = (unanswered: number, outageMs: number) => () =>
      nextAttempt(failure('unreachable'), 1, row(unanswered, unanswered, outageMs), task, limits);
    expect(outage(2, 999)()).toBe(2);
    expect(outage(1, 60_000)()).toBe(2);
    expect(outage(2, 1000)).toThrow(
      /^the environment's server has not answered for 1 s: 2 episodes failed \(the last: unreachable .*: m\); start .* resume$/,
    );
    expect(outage(10, 0)).toThrow("the environment's server has not answered");
  });
});
