import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/core/rng.ts';
import {
  groupsToStart,
  groupWithinLag,
  isWithinLag,
  lagOf,
  lagOfTokens,
} from '../../../src/learning/schedule/admission.ts';
import { group, trajectory } from '../../support/trajectories.ts';

/**
 * A ten-line asynchronous run: groups start as admitted, finish in random order, and an update consumes B of them.
 * @returns the lags of all groups consumed, counted from the version at their start; how many went stale; updates
 */
function simulate(maxLag: number, B: number, inOrder: boolean, seed: number, maxRunning = 99, resumeAt = -1) {
  const rng = Rng.fromSeed(seed);
  let [version, accepted, stale] = [0, 0, 0];
  let running: number[] = []; // version at the start of each group, in start order
  let ready: number[] = [];
  const lags: number[] = [];
  for (let tick = 0; tick < 400; tick++) {
    if (tick === resumeAt) running = []; // killed: groups in flight are gone, totals come back from the checkpoint
    const more = groupsToStart({
      maxLag,
      version,
      groupsPerUpdate: B,
      accepted,
      running: running.length,
      maxRunning,
    });
    for (let i = 0; i < more; i++) running.push(version);
    if (running.length > 0 && rng.float() < 0.7) {
      ready.push(...running.splice(inOrder ? 0 : rng.int(running.length), 1));
      accepted++;
    }
    const fresh = ready.filter((born) => version - born <= maxLag);
    stale += ready.length - fresh.length;
    accepted -= ready.length - fresh.length;
    ready = fresh;
    if (ready.length >= B) {
      lags.push(...ready.splice(0, B).map((born) => version - born));
      version++;
    }
  }
  return { lags, stale, version };
}

describe('groupsToStart', () => {
  it('at maxLag 0 starts one update’s worth and nothing more until the version moves', () => {
    const at = (version: number, accepted: number, running: number) =>
      groupsToStart({ maxLag: 0, version, groupsPerUpdate: 8, accepted, running });
    expect(at(0, 0, 0)).toBe(8);
    expect(at(0, 3, 5)).toBe(0);
    expect(at(1, 8, 0)).toBe(8);
  });

  it('is the published formula, floored at 0 and capped by maxRunning', () => {
    const input = { maxLag: 2, version: 5, groupsPerUpdate: 4, accepted: 21, running: 6 };
    expect(groupsToStart(input)).toBe((2 + 5 + 1) * 4 - 27);
    expect(groupsToStart({ ...input, maxRunning: 8 })).toBe(2);
    expect(groupsToStart({ ...input, maxRunning: 3 })).toBe(0);
    expect(groupsToStart({ ...input, accepted: 40 })).toBe(0);
  });

  it('keeps the lag bound with nothing thrown away when groups are consumed in the order they started', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 1, max: 5 }), fc.nat(), (maxLag, B, seed) => {
        const { lags, stale, version } = simulate(maxLag, B, true, seed);
        expect(stale).toBe(0);
        expect(version).toBeGreaterThan(20); // it does go on
        expect(Math.max(...lags)).toBeLessThanOrEqual(maxLag);
      }),
      { numRuns: 40 },
    );
  });

  it('reaches the bound, so the pace is not needlessly slow', () => {
    expect(Math.max(...simulate(4, 2, true, 1).lags)).toBe(4);
  });

  it('goes on and keeps the bound when order is random and when groups in flight are lost by a restart', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(0, 1, 2, 4, 8),
        fc.nat(),
        fc.integer({ min: 1, max: 399 }),
        (maxLag, seed, resumeAt) => {
          const { lags, version } = simulate(maxLag, 3, false, seed, 9, resumeAt);
          expect(Math.max(...lags)).toBeLessThanOrEqual(maxLag);
          expect(version).toBeGreaterThan(20);
        },
      ),
      { numRuns: 40 },
    );
  });

  /** As `simulate`, where a share of groups has no signal and others take their place. */
  function refilling(maxLag: number, B: number, times: number, flatShare: number, seed: number) {
    const rng = Rng.fromSeed(seed);
    let version = 0;
    let ready: { born: number; flat: boolean }[] = [];
    const running: number[] = [];
    const updates: { lags: number[]; consumed: number; informative: number }[] = [];
    let stale = 0;
    for (let tick = 0; tick < 800; tick++) {
      const more = groupsToStart({
        maxLag,
        version,
        groupsPerUpdate: B,
        accepted: version * B + ready.length,
        running: running.length,
        uninformative: ready.filter(({ flat }) => flat).length,
        maxPerUpdate: B * times,
      });
      for (let i = 0; i < more; i++) running.push(version);
      expect(running.length + ready.length).toBeLessThanOrEqual((maxLag + 1) * B * times);
      const born = running.shift();
      if (born === undefined) break; // no group runs and no update is due: the run would hang
      ready.push({ born, flat: rng.float() < flatShare });
      const fresh = ready.filter((one) => version - one.born <= maxLag);
      stale += ready.length - fresh.length;
      ready = fresh;
      const informative = ready.filter(({ flat }) => !flat).length;
      if (informative < B && ready.length < B * times) continue;
      const lags = ready.filter(({ flat }) => !flat).map((one) => version - one.born);
      updates.push({ lags, consumed: ready.length, informative });
      ready = [];
      version++;
    }
    return { updates, stale };
  }

  it('replaces groups without a signal, within the bound, and keeps lag and progress', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(0, 1, 2, 4),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom(0, 0.3, 0.7, 1),
        fc.nat(),
        (maxLag, B, times, flatShare, seed) => {
          const { updates, stale } = refilling(maxLag, B, times, flatShare, seed);
          if (maxLag === 0) expect(stale).toBe(0); // else updates at the bound may let others grow old: a few
          expect(stale).toBeLessThan(0.1 * 800);
          expect(updates.length).toBeGreaterThanOrEqual(Math.floor(800 / (B * times)) - 1); // it never hangs
          for (const { lags, consumed, informative } of updates) {
            expect(Math.max(0, ...lags)).toBeLessThanOrEqual(maxLag);
            expect(consumed).toBeLessThanOrEqual(B * times);
            expect(informative === B || consumed === B * times).toBe(true);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('without replacement is the plain formula, whatever has no signal', () => {
    const input = { maxLag: 2, version: 5, groupsPerUpdate: 4, accepted: 27, running: 2 };
    expect(groupsToStart({ ...input, uninformative: 5 })).toBe(groupsToStart(input));
    expect(groupsToStart({ ...input, uninformative: 5, maxPerUpdate: 12 })).toBe((2 + 1) * 4 - (7 - 5 + 2));
    expect(() => groupsToStart({ ...input, maxPerUpdate: 3 })).toThrow('maxPerUpdate');
  });

  it('refuses values that are no count', () => {
    const input = { maxLag: 0, version: 0, groupsPerUpdate: 1, accepted: 0, running: 0 };
    expect(() => groupsToStart({ ...input, groupsPerUpdate: 0 })).toThrow('groupsPerUpdate');
    expect(() => groupsToStart({ ...input, running: -1 })).toThrow('running');
    expect(() => groupsToStart({ ...input, version: Number.NaN })).toThrow('version');
  });
});

describe('the hard check', () => {
  const mixed = trajectory({ turns: [{ version: 5 }, { version: 3 }, { version: 6 }] });

  it('looks at every decision, the oldest counts', () => {
    expect(lagOf(mixed, 6)).toBe(3);
    expect(isWithinLag(mixed, 6, 3)).toBe(true);
    expect(isWithinLag(mixed, 6, 2)).toBe(false);
  });

  it('refuses decisions of a version that was rolled back', () => {
    expect(isWithinLag(mixed, 5, 8)).toBe(false);
  });

  it('looks at every token of a run that an update came into', () => {
    const one = trajectory({ turns: [{ tokens: 5, version: 4 }] });
    const [turn] = one.turns;
    const versions = Int32Array.of(4, 2, 5, 1, 7, 2); // two tokens under 4, one under 5, two under 7
    const run = { ...one, turns: [{ ...turn!, decision: { ...turn!.decision!, versions } as never }] };
    expect(isWithinLag(run, 7, 3)).toBe(true);
    expect(isWithinLag(run, 7, 2)).toBe(false); // the oldest
    expect(isWithinLag(run, 6, 9)).toBe(false); // the newest was rolled back
    const choice = trajectory({ turns: [{ version: 7 }, { tokens: -1 }] });
    const both = { ...group([]), trajectories: [run, choice] };
    expect(lagOfTokens([both], 8)).toEqual({ min: 1, mean: (4 + 4 + 3 + 1 + 1 + 1) / 6, max: 4 });
    expect(lagOfTokens([], 8)).toEqual({ min: 0, mean: 0, max: 0 });
  });

  it('has nothing against turns that no policy decided', () => {
    const scripted = trajectory({ turns: [{ tokens: -1 }] });
    expect(lagOf(scripted, 9)).toBeUndefined();
    expect(isWithinLag(scripted, 9, 0)).toBe(true);
  });

  it('takes a group whole or not at all', () => {
    const both = group([{ turns: [{ version: 6 }] }, { turns: [{ version: 4 }] }]);
    expect(groupWithinLag(both, 6, 2)).toBe(true);
    expect(groupWithinLag(both, 6, 1)).toBe(false);
  });
});
