import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  create,
  type HorizonConfig,
  type HorizonState,
  horizon,
  next,
  restore,
  type UpdateStats,
} from '../../../src/learning/schedule/horizon-schedule.ts';

const nothing: UpdateStats = { byHorizon: [] };

function stats(turns: number, success: number, truncated: number, episodes = 64): UpdateStats {
  const byHorizon = [{ horizon: turns, episodes, successes: success * episodes, truncated: truncated * episodes }];
  return { byHorizon };
}

/** Horizons of `updates` updates, each update answered by `answer(horizon, update)`. */
function run(config: HorizonConfig, updates: number, answer: (turns: number, update: number) => UpdateStats): number[] {
  let state = create(config);
  const turns: number[] = [];
  for (let update = 0; update < updates; update++) {
    turns.push(horizon(state));
    state = next(state, answer(horizon(state), update));
  }
  return turns;
}

const ladder = fc
  .uniqueArray(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 })
  .map((rounds) => rounds.sort((a, b) => a - b));
const steps = fc.integer({ min: 1, max: 6 });
const anyConfig: fc.Arbitrary<HorizonConfig> = fc.oneof(
  fc.integer({ min: 1, max: 50 }).map((rounds) => ({ type: 'fixed' as const, rounds })),
  fc.record({ type: fc.constant('scaling_inter_stepwise' as const), rounds: ladder, steps_scaling_inter: steps }),
  fc.record({ type: fc.constant('linear' as const), rounds: ladder, steps_scaling_inter: steps }),
  fc.record({
    type: fc.constant('adaptive' as const),
    rounds: ladder,
    smoothing: fc.constantFrom(0.3, 1),
    patience: fc.integer({ min: 1, max: 3 }),
    cooldown: fc.integer({ min: 0, max: 4 }),
  }),
);

describe('open-loop schedules', () => {
  it('stepwise: step k uses rounds[min(floor((k − 1) / S), last)]', () => {
    const config = { type: 'scaling_inter_stepwise', rounds: [10, 20, 30], steps_scaling_inter: 3 } as const;
    expect(run(config, 12, () => nothing)).toEqual([10, 10, 10, 20, 20, 20, 30, 30, 30, 30, 30, 30]);
    fc.assert(
      fc.property(ladder, steps, fc.integer({ min: 1, max: 40 }), (rounds, S, k) => {
        const turns = run({ type: 'scaling_inter_stepwise', rounds, steps_scaling_inter: S }, k, () => nothing);
        expect(turns[k - 1]).toBe(rounds[Math.min(Math.floor((k - 1) / S), rounds.length - 1)]);
      }),
    );
  });

  it('linear: meets stepwise at every phase start and never leaves the interval between', () => {
    const config = { type: 'linear', rounds: [4, 8, 10], steps_scaling_inter: 4 } as const;
    expect(run(config, 10, () => nothing)).toEqual([4, 5, 6, 7, 8, 8, 9, 9, 10, 10]);
    fc.assert(
      fc.property(ladder, steps, (rounds, S) => {
        const linear = run({ type: 'linear', rounds, steps_scaling_inter: S }, S * rounds.length + 3, () => nothing);
        for (const [update, turns] of linear.entries()) {
          const phase = Math.min(Math.floor(update / S), rounds.length - 1);
          if (update % S === 0) expect(turns).toBe(rounds[phase]);
          expect(turns).toBeGreaterThanOrEqual(rounds[phase]!);
          expect(turns).toBeLessThanOrEqual(rounds[Math.min(phase + 1, rounds.length - 1)]!);
        }
      }),
    );
  });

  it("linear with two rounds: TCOD's curriculum k = min(k_start + ⌊n/η⌋, k_max)", () => {
    expect(run({ type: 'linear', rounds: [4, 6], steps_scaling_inter: 6 }, 9, () => nothing)).toEqual([
      4, 4, 4, 5, 5, 5, 6, 6, 6,
    ]);
    const turns = fc.integer({ min: 1, max: 60 });
    fc.assert(
      fc.property(turns, turns, fc.integer({ min: 1, max: 400 }), (start, more, eta) => {
        const config = { type: 'linear', rounds: [start, start + more], steps_scaling_inter: eta * more } as const;
        const found = run(config, Math.min(3000, eta * (more + 2)), () => nothing);
        for (const [n, k] of found.entries()) expect(k).toBe(Math.min(start + Math.floor(n / eta), start + more));
      }),
    );
  });

  it('fixed: never moves', () => {
    expect(new Set(run({ type: 'fixed', rounds: 7 }, 50, (turns) => stats(turns, 1, 1)))).toEqual(new Set([7]));
  });
});

describe('adaptive', () => {
  const config = { type: 'adaptive', rounds: [4, 8, 16], smoothing: 0.5, patience: 3, cooldown: 5 } as const;

  it('climbs where a task is solvable only with more turns: nothing succeeds and everything is cut', () => {
    const turns = run(config, 60, (h) => (h < 16 ? stats(h, 0, 1) : stats(h, 0.9, 0.1)));
    expect(turns[0]).toBe(4);
    expect(turns.at(-1)).toBe(16);
    expect(turns.slice(0, 5)).toEqual([4, 4, 4, 4, 4]); // cooldown
    expect([...turns].sort((a, b) => a - b)).toEqual(turns);
  });

  it('waits while success still rises, and climbs once it settles', () => {
    const rising = run(config, 20, (h, update) => stats(h, Math.min(0.65, update * 0.03), 0.5));
    expect(new Set(rising)).toEqual(new Set([4]));
    expect(run(config, 60, (h, update) => stats(h, Math.min(0.65, update * 0.03), 0.5)).at(-1)).toBeGreaterThan(4);
  });

  it('stays where the horizon does not bind, however well or badly it goes', () => {
    expect(new Set(run(config, 80, (h) => stats(h, 1, 0)))).toEqual(new Set([4]));
    expect(new Set(run(config, 80, (h) => stats(h, 0, 0.1)))).toEqual(new Set([4]));
  });

  it('shrinks on collapse and does not climb again before the rung below is back where it was', () => {
    const turns = run(config, 120, (h, update) => {
      if (h === 4) return update < 60 ? stats(4, 0.8, 0.3) : stats(4, update < 90 ? 0.2 : 0.8, 0.6);
      if (h === 8) return stats(8, update < 25 ? 0.85 : 0, 0.1); // collapses at update 25
      return stats(h, 0.85, 0.1);
    });
    const entered = turns.indexOf(8);
    expect(entered).toBeGreaterThan(0);
    const back = turns.indexOf(4, entered);
    expect(back).toBeGreaterThan(25);
    expect(back).toBeLessThan(40);
    const again = turns.indexOf(8, back);
    expect(again === -1 || again >= back + 5).toBe(true); // cooldown holds after a step down as well
  });

  it('a policy that stays dead goes down, stays down and does not climb on truncation alone', () => {
    const turns = run(config, 150, (h, update) => (update < 40 ? stats(h, 0.8, 0.3) : stats(h, 0, 1)));
    expect(Math.max(...turns.slice(0, 40))).toBe(16);
    expect(new Set(turns.slice(80))).toEqual(new Set([4]));
  });

  describe('to the update', () => {
    const exact = { type: 'adaptive', rounds: [4, 8], smoothing: 1, growSuccess: 0.5 } as const;

    it('waits for `patience` updates in a row, and for `cooldown`', () => {
      const binding = (h: number) => stats(h, 0.8, 0.5);
      expect(run({ ...exact, patience: 3, cooldown: 0 }, 5, binding)).toEqual([4, 4, 4, 8, 8]);
      expect(run({ ...exact, patience: 1, cooldown: 4 }, 6, binding)).toEqual([4, 4, 4, 4, 8, 8]);
      const broken = (h: number, update: number) => stats(h, 0.8, update === 2 ? 0 : 0.5);
      expect(run({ ...exact, patience: 3, cooldown: 0 }, 7, broken)).toEqual([4, 4, 4, 4, 4, 4, 8]);
    });

    it('climbs at its limits exactly: of success, of truncation, and of updates without a gain', () => {
      const limit = { ...exact, patience: 2, cooldown: 0 };
      expect(run(limit, 4, (h) => stats(h, 0.5, 0.2))).toEqual([4, 4, 8, 8]);
      expect(run(limit, 4, (h) => stats(h, 0.5, 0.19))).toEqual([4, 4, 4, 4]);
      // No success is enough: the first update gains, the next two do not, and that counts from the second of them on.
      expect(run({ ...limit, growSuccess: 0.9 }, 6, (h) => stats(h, 0.25, 0.5))).toEqual([4, 4, 4, 4, 8, 8]);
    });

    it('adds up all parts of the horizon in force', () => {
      const halves = (h: number) => ({
        byHorizon: [...stats(h, 1, 1, 32).byHorizon, ...stats(h, 0, 0, 32).byHorizon, ...stats(h + 1, 0, 0).byHorizon],
      });
      const limit = { ...exact, patience: 1, cooldown: 0 };
      expect(run(limit, 2, halves)).toEqual([4, 8]);
      expect(run({ ...limit, growSuccess: 0.51, growTruncation: 0.5 }, 2, halves)).toEqual([4, 4]);
      expect(run({ ...limit, growTruncation: 0.51 }, 2, halves)).toEqual([4, 4]);
    });

    it('a rung is judged against the success it was entered with: it may collapse at once, after `patience`', () => {
      const answer = (h: number) => (h === 4 ? stats(4, 0.8, 0.5) : stats(8, 0.3, 0));
      expect(run({ ...exact, patience: 2, cooldown: 0 }, 5, answer)).toEqual([4, 4, 8, 8, 4]);
      const once = (h: number, update: number) => stats(h, h === 8 && update === 2 ? 0.3 : 0.8, h === 4 ? 0.5 : 0);
      expect(run({ ...exact, patience: 2, cooldown: 0 }, 9, once)).toEqual([4, 4, 8, 8, 8, 8, 8, 8, 8]);
    });

    it('after a collapse the lower rung must regain `recover` of its best, though it binds and has settled', () => {
      const at = (later: number) => (h: number, update: number) => {
        if (h === 8) return stats(8, 0.1, 0);
        return stats(4, update < 2 ? 0.8 : later, 0.9);
      };
      const config = { ...exact, patience: 2, cooldown: 0, recover: 0.75 }; // 0.75 · 0.8 = 0.6
      expect(new Set(run(config, 40, at(0.55)).slice(4))).toEqual(new Set([4]));
      expect(run(config, 8, at(0.65))).toEqual([4, 4, 8, 8, 4, 4, 8, 8]);
    });
  });

  it('refuses limits outside their ranges, and takes the ends', () => {
    const build = (change: object) => () => create({ type: 'adaptive', rounds: [4, 8], ...change } as HorizonConfig);
    const wrong: Record<string, readonly number[]> = {
      smoothing: [0, 1.1],
      growTruncation: [-0.1, 1.1],
      growSuccess: [-0.1, 1.1],
      minGain: [0, 1.1],
      patience: [0, 1.5],
      cooldown: [-1, 0.5],
      collapse: [-0.1, 1],
      recover: [0.5, 1.1], // not above `collapse`
    };
    const right: Record<string, readonly number[]> = {
      smoothing: [0.01, 1],
      growTruncation: [0, 1],
      growSuccess: [0, 1],
      minGain: [0.01, 1],
      patience: [1],
      cooldown: [0],
      collapse: [0, 0.79],
      recover: [0.51, 1],
    };
    for (const [key, values] of Object.entries(wrong)) {
      for (const value of values)
        expect(build({ [key]: value }), `${key}: ${value}`).toThrow(`horizon.${key}: expected`);
    }
    for (const [key, values] of Object.entries(right)) {
      for (const value of values) expect(build({ [key]: value }), `${key}: ${value}`).not.toThrow();
    }
    expect(build({ rounds: [4, 4] })).toThrow(/strictly ascending/);
  });

  it('judges a rung by its own episodes, not by stragglers of another horizon', () => {
    expect(new Set(run(config, 60, () => stats(99, 0, 1)))).toEqual(new Set([4]));
  });

  it('moves at most one rung per update and never off the ladder', () => {
    const answers = fc.array(
      fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true })),
      {
        minLength: 40,
        maxLength: 80,
      },
    );
    fc.assert(
      fc.property(ladder, answers, (rounds, rates) => {
        const adaptive: HorizonConfig = { type: 'adaptive', rounds, smoothing: 1, patience: 1, cooldown: 0 };
        const rungs = run(adaptive, rates.length, (h, u) => stats(h, ...rates[u]!)).map((h) => rounds.indexOf(h));
        for (const [u, rung] of rungs.entries()) {
          expect(rung).toBeGreaterThanOrEqual(0);
          if (u > 0) expect(Math.abs(rung - rungs[u - 1]!)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});

describe('resume', () => {
  it('at any step gives exactly the horizons of a run that was never stopped', () => {
    fc.assert(
      fc.property(anyConfig, fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (config, rates) => {
        const drawn = Array.from({ length: 60 }, () => [rates.next().value!, rates.next().value!] as const);
        const whole = run(config, 60, (h, u) => stats(h, drawn[u]![0], drawn[u]![1]));
        let state: HorizonState = create(config);
        const stopped: number[] = [];
        for (const [success, truncated] of drawn) {
          state = restore(config, JSON.parse(JSON.stringify(state))); // stop and resume before every update
          stopped.push(horizon(state));
          state = next(state, stats(horizon(state), success, truncated));
        }
        expect(stopped).toEqual(whole);
      }),
    );
  });

  it('refuses a state of another schedule or of no known format', () => {
    const saved = create({ type: 'scaling_inter_stepwise', rounds: [2, 4], steps_scaling_inter: 5 });
    const other = { type: 'scaling_inter_stepwise', rounds: [2, 4], steps_scaling_inter: 6 } as const;
    expect(() => restore(other, saved)).toThrow(/started with .*"steps_scaling_inter":5/);
    const reordered = { steps_scaling_inter: 5, rounds: [2, 4], type: 'scaling_inter_stepwise' } as const;
    expect(restore(reordered, saved)).toBe(saved);
    expect(() => restore(other, { format: 2 })).toThrow(/format 1/);
    expect(() => restore(other, null)).toThrow(/format 1/);
  });
});

describe('validation', () => {
  it.each([
    [{ type: 'fixed', rounds: 0 }, 'horizon.rounds'],
    [{ type: 'fixed', rounds: 2.5 }, 'horizon.rounds'],
    [{ type: 'scaling_inter_stepwise', rounds: [], steps_scaling_inter: 1 }, 'horizon.rounds'],
    [{ type: 'scaling_inter_stepwise', rounds: 5, steps_scaling_inter: 1 }, 'horizon.rounds'],
    [{ type: 'scaling_inter_stepwise', rounds: [5] }, 'horizon.steps_scaling_inter'],
    [{ type: 'linear', rounds: [5], steps_scaling_inter: 0 }, 'horizon.steps_scaling_inter'],
    [{ type: 'adaptive', rounds: [5, 5] }, 'strictly ascending'],
    [{ type: 'adaptive', rounds: [5], collapse: 0.9, recover: 0.5 }, 'horizon.recover'],
    [{ type: 'adaptive', rounds: [5], smoothing: Number.NaN }, 'horizon.smoothing'],
    [{ type: 'stepwise', rounds: [5] }, 'horizon.type'],
  ])('%j names %s', (config, message) => {
    expect(() => create(config as HorizonConfig)).toThrow(message);
  });
});
