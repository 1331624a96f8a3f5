import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Clock, SimulatedClock } from '../../src/core/clock.ts';
import type { ActorStats } from '../../src/runtime/actor.ts';
import { look, startWatchdog } from '../../src/runtime/watchdog.ts';
import { newGate, openGate } from '../support/gate.ts';
import { bench, type Placement } from './laws.ts';

vi.setConfig({ testTimeout: 30_000 }); // threads start slowly on a busy machine

const open: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A watched system. @param clock of its actors and of the watchdog */
function watched(placement: Placement, stallMs: number, clock?: Clock) {
  const made = bench(placement, clock);
  const stalls: string[] = [];
  const run = { expected: false, progress: 0 };
  const end = startWatchdog(made.system, {
    stallMs,
    lagMs: 1e9,
    onStall: (message) => stalls.push(message),
    onLag: () => {},
    run: () => run,
    clock,
  });
  open.push(end, () => made.system.stop());
  return { ...made, stalls, run };
}

/** The same under a clock that the test moves. */
function simulated(stallMs: number) {
  const clock = new SimulatedClock();
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5) {
      clock.advance(5);
      await new Promise((resolve) => setImmediate(resolve)); // actors get on
    }
  };
  return { ...watched('local', stallMs, clock), pass };
}

const stalled = expect.objectContaining({ kind: 'crashed', error: expect.objectContaining({ code: 'STALLED' }) });

describe('the watchdog', () => {
  it('names actor, message and age of a stall once, and has the actor restarted', async () => {
    const { counter, state, stalls, events, pass } = simulated(200);
    const ref = await counter('a');
    await state(ref);
    // A local actor that spins stops the watchdog too: only threads and processes contain that.
    ref.tell({ type: 'nap', ms: 1e8 });
    await pass(200);
    expect(stalls).toEqual([]);
    await pass(150);
    expect(stalls).toEqual([expect.stringMatching(/^\/a is stalled: it has not got on with nap for 2\d\d ms$/)]);
    expect(events).toContainEqual(expect.objectContaining({ type: 'stopped', path: '/a', reason: stalled }));
    expect((await state(ref)).incarnation).toBe(2);
    await pass(1000);
    expect(stalls).toHaveLength(1);
  });

  it('names a thread that spins, and has it restarted', async () => {
    const { counter, state, stalls, events } = watched('thread', 200);
    const ref = await counter('a');
    await state(ref);
    ref.tell({ type: 'spin', gate: newGate() }); // never opened
    while (stalls.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(stalls[0]).toMatch(/^\/a is stalled: it has not got on with spin for \d+ ms$/);
    expect((await state(ref)).incarnation).toBe(2);
    expect(events).toContainEqual(expect.objectContaining({ type: 'stopped', path: '/a', reason: stalled }));
  });

  it('leaves an actor alone that works through a long queue', async () => {
    const { counter, state, stalls, pass } = simulated(150);
    const ref = await counter('a');
    for (let n = 0; n < 40; n++) ref.tell({ type: 'nap', ms: 15 });
    const answer = state(ref);
    await pass(700);
    expect((await answer).incarnation).toBe(1);
    expect(stalls).toEqual([]);
  });

  it('ends the run where the actor must not be killed, and does not wait for it', async () => {
    const { counter, system } = watched('thread', 200);
    const ref = await counter('engine', { killable: false, shutdownMs: 60_000 });
    const gate = newGate();
    ref.tell({ type: 'spin', gate });
    await expect(system.terminated).rejects.toMatchObject({
      code: 'STALLED',
      message: expect.stringMatching(/^\/engine is stalled: it has not got on with spin for \d+ ms$/),
    });
    openGate(gate); // the thread ends by itself
  });

  it('calls a run stalled in which a message was lost: every actor is idle and one waits', async () => {
    const { counter, state, system, run, pass } = simulated(150);
    await state(await counter('a'));
    await pass(400); // no actor waits
    run.expected = true;
    for (; run.progress < 8; run.progress++) await pass(50); // it goes on
    expect(system.counts.fatal).toBe(0);
    await pass(300);
    await expect(system.terminated).rejects.toMatchObject({
      code: 'STALLED',
      message: expect.stringMatching(/^nothing has happened for \d+ ms and no actor has anything to do/),
    });
  });

  it('reports an event loop that lags, and calls no actor late that could not report', async () => {
    let now = 0;
    let fire = () => {};
    const clock: Clock = {
      now: () => now,
      setTimer(_, fn) {
        fire = fn;
        return () => {};
      },
    };
    const lags: number[] = [];
    const stalls: string[] = [];
    const { system, counter } = bench('local');
    open.push(() => system.stop());
    await counter('a', { shutdownMs: 1 });
    startWatchdog(system, {
      stallMs: 40,
      lagMs: 100,
      clock,
      onStall: (what) => stalls.push(what),
      onLag: (ms) => lags.push(ms),
    });
    system.resolve('/a').tell({ type: 'nap', ms: 1e8 } as never);
    await new Promise((resolve) => setImmediate(resolve));
    for (const at of [10, 270, 600, 610, 620]) {
      now = at;
      fire();
    }
    expect(lags).toEqual([250]); // the second comes within ten seconds of it
    expect(stalls).toEqual([]);
  });
});

describe('two looks', () => {
  const actor = (more: Partial<ActorStats>): ActorStats => ({
    path: '/a',
    state: 'running',
    placement: 'local',
    depth: 1,
    handled: 5,
    busyMs: 0,
    restarts: 0,
    oldestMs: 0,
    message: 'work',
    waitingFor: [],
    silentMs: 0,
    ...more,
  });
  const stallsAfter = (ms: number, more: Partial<ActorStats>) =>
    look(look(new Map(), [actor({})], 0, 100).seen, [actor(more)], ms, 100).stalls;

  it('make a stall only without progress, with something to do, while running, past the limit', () => {
    expect(stallsAfter(101, {})).toEqual([{ path: '/a', message: 'work', ageMs: 101 }]);
    expect(stallsAfter(99, {})).toEqual([]);
    expect(stallsAfter(101, { handled: 6 })).toEqual([]);
    expect(stallsAfter(101, { message: undefined, depth: 0 })).toEqual([]);
    for (const state of ['starting', 'stopping', 'down'] as const) expect(stallsAfter(101, { state })).toEqual([]);
    expect(stallsAfter(50, { message: undefined, depth: 0, silentMs: 150 })).toMatchObject([{ ageMs: 150 }]);
  });
});
