/** Retries of a request and the waits before them, on a virtual clock. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SimulatedClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import { attempt } from '../../src/http/attempts.ts';
import { isTransient, RemoteError, retryAfterMs, retryDelayMs } from '../../src/http/retry.ts';

const policy = { attempts: 4, minMs: 100, maxMs: 3000, attemptMs: 500, totalMs: 10_000 };
const status = (code: number, retryAfterMs?: number) =>
  new RemoteError('status', `HTTP ${code}`, { status: code, retryAfterMs });

/** Lets the promises of a virtual-clock run go on, and the clock too, until it is over. */
async function played<T>(clock: SimulatedClock, work: Promise<T>): Promise<T> {
  let over = false;
  void work.then(
    () => (over = true),
    () => (over = true),
  );
  for (let i = 0; i < 100_000 && !over; i++) {
    for (let j = 0; j < 10; j++) await Promise.resolve();
    if (!over) clock.advance(10);
  }
  return work;
}

/** @returns when each attempt was made, and how it ended */
async function run(outcomes: readonly (RemoteError | 'ok')[], options = policy) {
  const clock = new SimulatedClock();
  const at: number[] = [];
  const once = async () => {
    at.push(clock.now());
    const outcome = outcomes[at.length - 1]!;
    if (outcome === 'ok') return 'answer';
    throw outcome;
  };
  const work = attempt(options, { clock, rng: Rng.fromSeed(1) }, once);
  const ended = await played(
    clock,
    work.catch((thrown: RemoteError) => thrown),
  );
  return { at, ended };
}

describe('a request', () => {
  it('is retried when it may help, not otherwise, and not for ever', async () => {
    expect(await run([status(503), 'ok'])).toMatchObject({ ended: 'answer' });
    const refused = await run([status(400), 'ok']);
    expect([refused.at.length, refused.ended]).toMatchObject([1, { status: 400 }]);
    const dead = await run(Array.from({ length: 9 }, () => new RemoteError('network', 'gone')));
    expect([dead.at.length, dead.ended]).toMatchObject([policy.attempts, { fault: 'network' }]);
  });

  it('waits as long as Retry-After asks, to the bound', async () => {
    const result = await run([status(429, 1200), status(429, 60_000), 'ok']);
    expect(result.at[1]! - result.at[0]!).toBeGreaterThanOrEqual(1200);
    expect(result.at[1]! - result.at[0]!).toBeLessThan(1250);
    expect(result.at[2]! - result.at[1]!).toBeGreaterThanOrEqual(policy.maxMs);
    expect(result.at[2]! - result.at[1]!).toBeLessThan(policy.maxMs + 50);
  });

  it('ends within the time of all attempts', async () => {
    const late = await run(
      Array.from({ length: 99 }, () => status(503, 3000)),
      { ...policy, attempts: 99 },
    );
    expect(late.at.at(-1)!).toBeLessThan(policy.totalMs);
    expect(late.at.length).toBe(4);
  });
});

it('ends its wait, without a further attempt, once it is closed', async () => {
  const clock = new SimulatedClock();
  const closing = new AbortController();
  let attempts = 0;
  const work = attempt(policy, { clock, rng: Rng.fromSeed(1), closed: closing.signal }, async () => {
    attempts++;
    throw status(503);
  }).catch((thrown: RemoteError) => thrown);
  for (let i = 0; i < 20; i++) await Promise.resolve();
  expect(clock.untilNext).toBeGreaterThan(0);
  closing.abort();
  expect(await work).toMatchObject({ status: 503 });
  expect([attempts, clock.untilNext]).toEqual([1, undefined]);
});

it('the wait doubles, is thinned out at random, and stays in its bounds', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (n, u) => {
        const delay = retryDelayMs(policy, n, status(500), u);
        const whole = Math.min(policy.maxMs, policy.minMs * 2 ** (n - 1));
        expect(delay).toBeLessThanOrEqual(whole);
        expect(delay).toBeGreaterThan(whole / 2 - 1e-9);
      },
    ),
  );
  expect(retryDelayMs(policy, 1, status(500), 0)).not.toBe(retryDelayMs(policy, 1, status(500), 0.9));
});

it('knows what may pass by itself', () => {
  for (const code of [408, 429, 500, 502, 503, 504, 529]) expect(isTransient(status(code))).toBe(true);
  for (const code of [400, 401, 403, 404, 413, 422]) expect(isTransient(status(code))).toBe(false);
  for (const fault of ['network', 'timeout', 'malformed', 'mismatch'] as const) {
    expect(isTransient(new RemoteError(fault, ''))).toBe(true);
  }
  for (const fault of ['oversized', 'refused', 'closed'] as const) {
    expect(isTransient(new RemoteError(fault, ''))).toBe(false);
  }
});

it('reads Retry-After in each of its forms', () => {
  expect(retryAfterMs({ 'retry-after': '2' })).toBe(2000);
  expect(retryAfterMs({ 'retry-after-ms': '250', 'retry-after': '9' })).toBe(250);
  const date = 'Fri, 20 Nov 2026 10:00:00 GMT';
  expect(retryAfterMs({ date, 'retry-after': 'Fri, 20 Nov 2026 10:00:07 GMT' })).toBe(7000);
  expect(retryAfterMs({ date, 'retry-after': 'Fri, 20 Nov 2026 09:00:00 GMT' })).toBe(0);
  for (const wish of ['soon', '', '-1']) expect(retryAfterMs({ 'retry-after': wish })).toBeUndefined();
});
