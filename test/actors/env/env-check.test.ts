/** Answers of environments at the boundary: what is copied, what breaks the contract, and its error. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BrokenContract,
  boundsOf,
  copyActions,
  copyStep,
  countPartial,
  failureOf,
  isWithin,
} from '../../../actors/env/check.ts';
import { ACTION_LIMITS, type Env, MAX_PARTIAL_STEPS } from '../../../src/core/env.ts';

const BOUNDS = { minReward: -1, maxReward: 1, maxObservationChars: 10 };

/** The breach that something throws. */
function breach(act: () => unknown): readonly [cause: string, message: string] {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof BrokenContract) return [thrown.failureCause, thrown.message];
    throw thrown;
  }
  throw new Error('no contract was broken');
}

describe('a step', () => {
  it.each([
    [{ kind: 'mid', observation: 'x', reward: 0.5 }],
    [{ kind: 'mid', observation: 'x', reward: 0, partial: true }],
    [{ kind: 'mid', observation: 'x', reward: 0, partial: true, undelivered: true }],
    [{ kind: 'terminated', observation: 'x', reward: 1, success: false, undelivered: true }],
    [{ kind: 'terminated', observation: '', reward: -1, success: false }],
    [{ kind: 'terminated', observation: '', reward: 1, success: true }],
  ])('%j is copied', (step) => {
    const copy = copyStep(BOUNDS, step, false);
    expect(copy).toEqual(step);
    expect(copy).not.toBe(step);
  });

  it('leaves out fields that are not needed', () => {
    expect(copyStep(BOUNDS, { kind: 'first', observation: 'x', reward: 7, extra: 1 }, true)).toEqual({
      kind: 'first',
      observation: 'x',
    });
  });

  it.each([
    [null, false, 'protocol', 'expected a time step, got object'],
    ['x', false, 'protocol', 'expected a time step, got string'],
    [undefined, true, 'protocol', 'expected a time step, got undefined'],
    [{ kind: 'mid', reward: 0 }, false, 'protocol', 'observation must be a string, got undefined'],
    [
      { kind: 'mid', observation: 'x'.repeat(11), reward: 0 },
      false,
      'oversized',
      'observation has 11 characters, the env states at most 10',
    ],
    [{ kind: 'first', observation: 'x' }, false, 'protocol', 'an env must not answer an action with first'],
    [{ kind: 'mid', observation: 'x', reward: 0 }, true, 'protocol', 'an env must not answer open with mid'],
    [{ kind: 7, observation: 'x' }, true, 'protocol', 'an env must not answer open with number'],
    [{ kind: 'mid', observation: 'x' }, false, 'protocol', 'reward must be a number, got undefined'],
    [{ kind: 'mid', observation: 'x', reward: null }, false, 'protocol', 'reward must be a number, got null'],
    [{ kind: 'mid', observation: 'x', reward: Number.NaN }, false, 'protocol', 'reward NaN lies outside [-1, 1]'],
    [{ kind: 'mid', observation: 'x', reward: 1.01 }, false, 'protocol', 'reward 1.01 lies outside [-1, 1]'],
    [
      { kind: 'mid', observation: 'x', reward: 0, partial: 1 },
      false,
      'protocol',
      'partial must be true or absent, got number',
    ],
    [
      { kind: 'mid', observation: 'x', reward: 0, partial: true, undelivered: 1 },
      false,
      'protocol',
      'undelivered must be true or absent, got number',
    ],
    [
      { kind: 'mid', observation: 'x', reward: 0, undelivered: true },
      false,
      'protocol',
      'an undelivered action has moved nothing: it is partial too',
    ],
    [
      { kind: 'mid', observation: 'x', reward: 0.5, partial: true },
      false,
      'protocol',
      'a partial step must pay 0, got 0.5',
    ],
    [
      { kind: 'terminated', observation: 'x', reward: 0, success: true, partial: true },
      false,
      'protocol',
      'a partial step must not end the episode',
    ],
    [{ kind: 'terminated', observation: 'x', reward: 0 }, false, 'protocol', 'terminated without a boolean `success`'],
    [{ kind: 'mid', observation: 'x', reward: 1n }, false, 'protocol', 'reward must be a number, got bigint'],
    [
      { kind: 'mid', observation: 'x', reward: new Number(1) },
      false,
      'protocol',
      'reward must be a number, got object',
    ],
    [
      { kind: 'mid', observation: new String('x'), reward: 0 },
      false,
      'protocol',
      'observation must be a string, got object',
    ],
  ])('%# breaks the contract (opening: %s)', (step, opening, cause, message) => {
    expect(breach(() => copyStep(BOUNDS, step, opening))).toEqual([cause, message]);
  });

  it.each([
    [{ kind: 'first', observation: 'x' }, true],
    [{ kind: 'mid', observation: 'x', reward: 0 }, false],
    [{ kind: 'mid', observation: 'x', reward: 0, partial: true }, false],
    [{ kind: 'terminated', observation: 'x', reward: 0, success: true }, false],
  ])('%j is read once, every field of it', (step, opening) => {
    const reads = new Map<string | symbol, number>();
    const counted = new Proxy(step, {
      get(target, key) {
        reads.set(key, (reads.get(key) ?? 0) + 1);
        return reads.get(key) === 1 ? Reflect.get(target, key) : 'a lie';
      },
    });
    expect(copyStep(BOUNDS, counted, opening)).toEqual(step);
    expect([...reads.keys()].sort()).toEqual(['kind', 'observation', 'partial', 'reward', 'success', 'undelivered']);
    expect(Math.max(...reads.values())).toBe(1);
  });

  it.each(['false', 1, null, new Boolean(true)])('is not terminated by the success %j', (success) => {
    const step = { kind: 'terminated', observation: 'x', reward: 0, success };
    expect(breach(() => copyStep(BOUNDS, step, false))).toEqual(['protocol', 'terminated without a boolean `success`']);
  });

  it('is not read beyond its own fields', () => {
    const step = { kind: 'mid', observation: 'x', reward: 0, tool: () => {} };
    Object.defineProperty(step, 'extra', {
      enumerable: true,
      get() {
        throw new Error('not to be read');
      },
    });
    const proxy = new Proxy(step, {
      ownKeys() {
        throw new Error('not to be listed');
      },
    });
    expect(copyStep(BOUNDS, proxy, false)).toEqual({ kind: 'mid', observation: 'x', reward: 0 });
  });

  it('that cannot be cloned fails as unclonable', () => {
    expect(breach(() => copyStep(BOUNDS, { observation: () => {} }, false))[0]).toBe('unclonable');
  });

  it('is read once: a value that changes between two looks is the one that was checked', () => {
    let looks = 0;
    const step = {
      kind: 'mid',
      observation: 'x',
      get reward() {
        looks++;
        return looks === 1 ? 0.5 : 1e9;
      },
    };
    expect(copyStep(BOUNDS, step, false)).toMatchObject({ reward: 0.5 });
    expect(looks).toBe(1);
  });

  it('of any value is copied or breaks the contract, never anything else', () => {
    fc.assert(
      fc.property(fc.anything(), fc.boolean(), (step, opening) => {
        try {
          expect(copyStep(BOUNDS, step, opening).observation.length).toBeLessThanOrEqual(10);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(BrokenContract);
        }
      }),
    );
  });
});

describe('partial steps', () => {
  it('are counted in a row, and may be only so many', () => {
    const partial = { kind: 'mid', observation: 'x', reward: 0, partial: true } as const;
    let inRow = 0;
    for (let i = 1; i <= MAX_PARTIAL_STEPS; i++) expect((inRow = countPartial(inRow, partial))).toBe(i);
    expect(breach(() => countPartial(inRow, partial))[1]).toContain(`more than ${MAX_PARTIAL_STEPS} stages`);
    expect(countPartial(inRow, { kind: 'mid', observation: 'x', reward: 0 })).toBe(0);
    expect(countPartial(3, { kind: 'first', observation: 'x' })).toBe(0);
  });
});

describe('a list of actions', () => {
  it('is copied', () => {
    const listed = ['a', 'b'];
    expect(copyActions(listed)).toEqual(listed);
    expect(copyActions(listed)).not.toBe(listed);
    expect(copyActions([])).toEqual([]);
  });

  it.each([
    ['no list', 'protocol', 'actions() must return an array'],
    [{ length: 1, 0: 'a' }, 'protocol', 'actions() must return an array'],
    [['a', 7], 'protocol', 'action 1 is not a string'],
    [Array(3), 'protocol', 'action 0 is not a string'],
    [
      Array(ACTION_LIMITS.count + 1).fill('a'),
      'oversized',
      `actions() listed ${ACTION_LIMITS.count + 1} texts, at most ${ACTION_LIMITS.count} are taken`,
    ],
  ])('%# breaks the contract', (listed, cause, message) => {
    expect(breach(() => copyActions(listed))).toEqual([cause, message]);
  });

  it('is read once, each text of it and its length', () => {
    const reads = new Map<string | symbol, number>();
    const counted = new Proxy(['a', 'b'], {
      get(list, key) {
        reads.set(key, (reads.get(key) ?? 0) + 1);
        return reads.get(key) === 1 ? Reflect.get(list, key) : 1e9;
      },
    });
    expect(copyActions(counted)).toEqual(['a', 'b']);
    expect(Math.max(...reads.values())).toBe(1);
  });

  it.each([-1, 1.5, Number.NaN, 4e9, '1', Symbol('length'), { valueOf: () => 1 }])(
    '%# is no length of one',
    (length) => {
      const lying = new Proxy(['a'], { get: (list, key) => (key === 'length' ? length : Reflect.get(list, key)) });
      expect(breach(() => copyActions(lying))[0]).toBe('oversized');
    },
  );

  it('is bounded by each text and by all', () => {
    const { chars, totalChars } = ACTION_LIMITS;
    expect(breach(() => copyActions(['x'.repeat(chars + 1)]))[1]).toContain(`action 0 has ${chars + 1} characters`);
    const many = Array(totalChars / chars + 1).fill('x'.repeat(chars));
    expect(breach(() => copyActions(many))[1]).toContain('characters in all');
    expect(copyActions(many.slice(1))).toHaveLength(totalChars / chars);
  });
});

describe('an answer whose host cannot be believed', () => {
  const answer = (change: object) => ({
    type: 'observed' as const,
    episode: 1,
    turn: 1,
    step: { kind: 'mid' as const, observation: 'x', reward: 0.5 },
    actions: Int32Array.of(0, 2),
    newActions: ['c'],
    envMs: 1,
    ...change,
  });

  it('passes as the host would have let it', () => {
    expect(isWithin(answer({}), 2, BOUNDS)).toBe(true);
    expect(isWithin(answer({ step: { kind: 'first', observation: 'x' } }), 2, BOUNDS)).toBe(true);
    expect(isWithin(answer({ step: { kind: 'mid', observation: 'x', reward: 9 } }), 2)).toBe(true); // no bounds stated
  });

  it.each([
    [{ step: { kind: 'mid', observation: 'x', reward: 1e6 } }],
    [{ step: { kind: 'mid', observation: 'x', reward: -1.5 } }],
    [{ step: { kind: 'mid', observation: 'x'.repeat(11), reward: 0 } }],
    [{ actions: Int32Array.of(3) }],
    [{ actions: Int32Array.of(-1) }],
    [{ actions: new Int32Array(ACTION_LIMITS.count + 1) }],
    [{ newActions: ['x'.repeat(ACTION_LIMITS.chars + 1)] }],
  ])('%# does not', (change) => {
    expect(isWithin(answer(change), 2, BOUNDS)).toBe(false);
  });
});

describe('what an env throws', () => {
  it('has a cause and a message, whatever it is', () => {
    expect(failureOf(new BrokenContract('oversized', 'long'))).toEqual(['oversized', 'long']);
    expect(failureOf(new Error('why'))).toEqual(['threw', 'why']);
    const proxy = new Proxy(new Error('why'), {
      getPrototypeOf() {
        throw new Error('no prototype');
      },
    });
    for (const thrown of [proxy, Object.create(null), Symbol('x')]) expect(failureOf(thrown)[0]).toBe('threw');
  });
});

describe('bounds', () => {
  const env = (rewardRange: unknown, maxObservationChars: unknown) =>
    ({ rewardRange, maxObservationChars }) as unknown as Env;

  it('are read where the env states them', () => {
    expect(boundsOf(env([-1, 1], 10))).toEqual(BOUNDS);
  });

  it.each([
    [[0, Number.POSITIVE_INFINITY], 10],
    [[0, 1], Number.NaN],
    [[0], 10],
    [['0', 1], 10],
  ])('%j and %d are refused', (range, max) => {
    expect(breach(() => boundsOf(env(range, max)))[1]).toBe(
      'an env must state finite `rewardRange` and `maxObservationChars`',
    );
  });
});
