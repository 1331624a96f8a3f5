import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ActorSystem } from '../../src/runtime/actor.ts';
import { nativeThreadsEnded } from '../../src/runtime/native-threads.ts';
import type { CounterMessage } from '../support/counter-actor.ts';
import { newGate, openGate, reached } from '../support/gate.ts';
import { bench } from './laws.ts';

vi.setConfig({ testTimeout: 30_000 }); // threads start slowly on a busy machine

let systems: ActorSystem[] = [];
const make = () => {
  const made = bench('thread');
  systems.push(made.system);
  return made;
};
afterEach(async () => {
  for (const system of systems) await system.stop();
  systems = [];
});

describe('an actor in a thread', () => {
  it('comes back after its thread exits; what was under way is counted as lost, not delivered twice', async () => {
    const { counter, state, events, system } = make();
    const ref = await counter('a');
    ref.tell({ type: 'boom', how: 'exit' });
    ref.tell({ type: 'add', n: 1 });
    await expect(state(ref)).rejects.toMatchObject({ code: 'ACTOR_STOPPED' });
    expect((await state(ref)).seen).toEqual([]);
    expect((await state(ref)).incarnation).toBe(2);
    const lost = events.flatMap((event) => (event.type === 'dead-letter' ? [event.message] : []));
    expect(lost).toEqual(['boom', 'add', 'get']);
    expect(system.stats()).toMatchObject([{ path: '/a', placement: 'thread', restarts: 1, depth: 0 }]);
  });

  it('is busy while a handler runs, not only when it has ended', async () => {
    const { counter, state, system } = make();
    const ref = await counter('a');
    const busy = () => system.stats()[0]!.busyMs;
    const gate = newGate();
    ref.tell({ type: 'spin', gate });
    await reached(gate);
    const first = busy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const running = busy();
    expect(running).toBeGreaterThan(first);
    openGate(gate);
    await state(ref);
    const ended = busy();
    expect(ended).toBeGreaterThanOrEqual(running);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(busy()).toBe(ended); // idle again
  });

  it('is killed when it does not stop in time', async () => {
    const { counter, events, system } = make();
    const ref = await counter('a', { shutdownMs: 100 });
    const gate = newGate(); // never opened
    ref.tell({ type: 'spin', gate });
    await reached(gate);
    await system.stop();
    expect(events).toContainEqual({ type: 'stopped', path: '/a', reason: { kind: 'killed' }, final: false });
    await expect(system.terminated).resolves.toBeUndefined();
  });

  it('that must not be killed is waited for, and is a fatal error past its deadline', async () => {
    const patient = make();
    const slow = await patient.counter('engine', { killable: false, shutdownMs: 20_000 });
    const long = newGate();
    slow.tell({ type: 'spin', gate: long });
    await reached(long);
    const stopping = patient.system.stop();
    while (patient.system.stats()[0]?.state !== 'stopping') await new Promise((resolve) => setTimeout(resolve, 1));
    openGate(long);
    await stopping;
    await expect(patient.system.terminated).resolves.toBeUndefined();
    expect(patient.events).toContainEqual(expect.objectContaining({ type: 'stopped', reason: { kind: 'shutdown' } }));

    const hasty = make();
    const stuck = await hasty.counter('engine', { killable: false, shutdownMs: 100 });
    const longer = newGate();
    stuck.tell({ type: 'spin', gate: longer });
    await reached(longer);
    const ending = hasty.system.stop();
    await expect(hasty.system.terminated).rejects.toMatchObject({
      code: 'STALLED',
      message: expect.stringMatching(/^\/engine did not stop within 100 ms; its handler of spin has run for \d+ ms$/),
    });
    openGate(longer);
    await ending;
  });

  it('that must not be killed may start for any time: the start is reported as it goes on', async () => {
    const { counter, state, events, system } = make();
    const gate = newGate();
    const starting = counter('engine', { killable: false, startMs: 20 }, { slowStart: gate });
    await reached(gate);
    const reports = () => events.flatMap((event) => (event.type === 'starting' ? [event.ms] : []));
    await expect.poll(() => reports().length, { timeout: 20_000 }).toBeGreaterThan(2);
    expect(reports()).toEqual(reports().toSorted((a, b) => a - b));
    expect(system.stats()[0]?.state).toBe('starting');
    openGate(gate);
    expect((await state(await starting)).incarnation).toBe(1);
  });

  it('that must not be killed is waited for where the system stops in the middle of its start', async () => {
    const { counter, system } = make();
    const gate = newGate();
    const starting = counter('engine', { killable: false, startMs: 20 }, { slowStart: gate });
    const refused = expect(starting).rejects.toMatchObject({ code: 'ACTOR_STOPPED' });
    await reached(gate);
    let isStopped = false;
    const stopping = system.stop().then(() => {
      isStopped = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(isStopped).toBe(false); // its thread is inside the call
    openGate(gate);
    await stopping;
    await refused;
    expect(await nativeThreadsEnded(20_000)).toBe(true);
  });

  it('that may be killed is given up where it does not start in time', async () => {
    const { counter } = make();
    const gate = newGate(); // never opened
    await expect(counter('a', { startMs: 100 }, { slowStart: gate })).rejects.toMatchObject({
      code: 'STALLED',
      message: '/a was not ready while it started (it may take 100 ms)',
    });
  });

  it('answers an ask whose message cannot cross with an error, and sends the others of the batch', async () => {
    const { counter, state, system } = make();
    const ref = await counter('a');
    ref.tell({ type: 'add', n: 1 });
    const bad = { type: 'add', n: () => 1 } as unknown as CounterMessage;
    const answer = system.ask<never, CounterMessage>(ref, () => bad, { deadlineMs: 1000 });
    ref.tell({ type: 'add', n: 2 });
    await expect(answer).rejects.toThrow(/cannot cross threads/);
    expect((await state(ref)).seen).toEqual([1, 2]);
    expect(system.stats()).toMatchObject([{ depth: 0 }]);
  });
});
