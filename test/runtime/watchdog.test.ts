import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ActorStats, BehaviorFactory } from '../../src/runtime/actor.ts';
import { look, startWatchdog } from '../../src/runtime/watchdog.ts';
import type { CounterMessage } from '../support/counter-actor.ts';
import { bench, type Placement } from './laws.ts';

vi.setConfig({ testTimeout: 30_000 }); // threads start slowly on a busy machine

const open: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

function watched(placement: Placement, stallMs: number) {
  const made = bench(placement);
  const stalls: string[] = [];
  const run = { expected: false, progress: 0 };
  const end = startWatchdog(made.system, {
    stallMs,
    lagMs: 1e9,
    onStall: (message) => stalls.push(message),
    onLag: () => {},
    run: () => run,
  });
  open.push(end, () => made.system.stop());
  return { ...made, stalls, run };
}

const until = async (holds: () => boolean, ms = 5000) => {
  for (const end = performance.now() + ms; !holds() && performance.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(holds()).toBe(true);
};

describe.each(['local', 'thread'] as const)('the watchdog (%s)', (placement) => {
  it('names actor, message and age of a stall, and has the actor restarted', async () => {
    const { counter, state, stalls, events } = watched(placement, 200);
    const ref = await counter('a');
    await state(ref);
    // A local actor that spins stops the watchdog too: only threads and processes contain that.
    ref.tell(placement === 'local' ? { type: 'nap', ms: 1e8 } : { type: 'spin', ms: 1e9 });
    await until(() => stalls.length > 0);
    const message = placement === 'local' ? 'nap' : 'spin';
    expect(stalls[0]).toMatch(new RegExp(`^/a is stalled: it has not got on with ${message} for \\d+ ms$`));
    expect((await state(ref)).incarnation).toBe(2);
    const reason = expect.objectContaining({ kind: 'crashed', error: expect.objectContaining({ code: 'STALLED' }) });
    expect(events).toContainEqual(expect.objectContaining({ type: 'stopped', path: '/a', reason }));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(stalls).toHaveLength(1);
  });

  it('leaves an actor alone that works through a long queue', async () => {
    const { counter, state, stalls } = watched(placement, 150);
    const ref = await counter('a');
    for (let n = 0; n < 40; n++) ref.tell({ type: 'nap', ms: 15 });
    expect((await state(ref)).incarnation).toBe(1);
    expect(stalls).toEqual([]);
  });
});

describe('the watchdog', () => {
  it('ends the run where the actor must not be killed', async () => {
    const { counter, system } = watched('thread', 200);
    const ref = await counter('engine', { killable: false, shutdownMs: 60_000 });
    ref.tell({ type: 'spin', ms: 1500 });
    const began = performance.now();
    await expect(system.terminated).rejects.toMatchObject({
      code: 'STALLED',
      message: expect.stringMatching(/^\/engine is stalled: it has not got on with spin for \d+ ms$/),
    });
    expect(performance.now() - began).toBeLessThan(1200);
    await new Promise((resolve) => setTimeout(resolve, 1500)); // the thread ends by itself
  });

  it('calls a run stalled in which a message was lost: everybody is idle and somebody waits', async () => {
    const { counter, state, system, run } = watched('local', 150);
    await state(await counter('a'));
    await new Promise((resolve) => setTimeout(resolve, 400)); // nobody waits
    run.expected = true;
    for (; run.progress < 8; run.progress++) await new Promise((resolve) => setTimeout(resolve, 50)); // it goes on
    expect(system.counts.fatal).toBe(0);
    await expect(system.terminated).rejects.toMatchObject({
      code: 'STALLED',
      message: expect.stringMatching(/^nothing has happened for \d+ ms and no actor has anything to do/),
    });
  });

  it('reports an event loop that lags', async () => {
    const lags: number[] = [];
    const { system } = bench('local');
    const end = startWatchdog(system, { stallMs: 40, lagMs: 100, onStall: () => {}, onLag: (ms) => lags.push(ms) });
    open.push(end, () => system.stop());
    const busy: BehaviorFactory<CounterMessage> = () => ({ handlers: {} as never });
    await system.spawn('a', busy);
    for (const stop = performance.now() + 250; performance.now() < stop; );
    await until(() => lags.length > 0);
    expect(lags[0]).toBeGreaterThan(100);
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
