/** Laws that every placement of an actor obeys. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import type { ActorRef, ActorSystem, ReplyTo, SpawnOptions, SystemEvent } from '../../src/runtime/actor.ts';
import { createSystem } from '../../src/runtime/create-system.ts';
import type { CounterInit, CounterMessage, CounterState } from '../support/counter-actor.ts';

export const counterUrl = new URL('../support/counter-actor.ts', import.meta.url);

export type Placement = 'local' | 'thread' | 'serial';

export interface Bench {
  readonly system: ActorSystem;
  readonly events: SystemEvent[];
  counter(name: string, options?: SpawnOptions, init?: CounterInit): Promise<ActorRef<CounterMessage>>;
  state(ref: ActorRef<CounterMessage>, deadlineMs?: number): Promise<CounterState>;
}

export function bench(placement: Placement, clock?: Clock): Bench {
  const backoff = { minMs: 1, maxMs: 10, jitter: 0.5 };
  const mode = placement === 'serial' ? 'serial' : 'async';
  const system = createSystem({ mode, seed: 1, supervision: { backoff }, clock });
  const events: SystemEvent[] = [];
  system.inspect$.subscribe((event) => events.push(event));
  const thread = placement === 'thread' ? 'thread' : 'local';
  return {
    system,
    events,
    counter: (name, options, init = {}) =>
      system.spawnModule(name, { url: counterUrl, init, placement: thread }, options),
    state: (ref, deadlineMs = 5000) => system.ask(ref, get, { deadlineMs }),
  };
}

export const get = (replyTo: ReplyTo<CounterState>): CounterMessage => ({ type: 'get', replyTo });

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

export function placementLaws(placement: Placement): void {
  describe(`an actor (${placement})`, () => {
    let open: ActorSystem[] = [];
    const make = () => {
      const made = bench(placement);
      open.push(made.system);
      return made;
    };
    afterEach(async () => {
      for (const system of open) await system.stop();
      open = [];
    });

    it('handles the messages of one sender in order, each once', async () => {
      const { counter, state } = make();
      const ref = await counter('a');
      for (const n of upTo(3000)) await ref.tell({ type: 'add', n });
      expect((await state(ref)).seen).toEqual(upTo(3000));
    });

    it('is restarted after a throw and after a rejection, without the message that killed it', async () => {
      const { counter, state, events, system } = make();
      const ref = await counter('a');
      ref.tell({ type: 'add', n: 1 });
      for (const how of ['throw', 'reject'] as const) {
        ref.tell({ type: 'boom', how });
        ref.tell({ type: 'add', n: 2 });
        ref.tell({ type: 'add', n: 3 });
        expect((await state(ref)).seen).toEqual([2, 3]);
      }
      expect((await state(ref)).incarnation).toBe(3);
      expect(events.filter((event) => event.type === 'restarting')).toHaveLength(2);
      expect(system.counts['dead-letter']).toBe(0);
    });

    it('rejects the asks a dying incarnation had not answered', async () => {
      const { counter, system } = make();
      const ref = await counter('a');
      const answer = system.ask<string, CounterMessage>(
        ref,
        (replyTo) => ({ type: 'askOther', to: '/nobody', deadlineMs: 1000, replyTo }),
        { deadlineMs: 5000 },
      );
      expect(await answer).toMatch(/did not reach \/nobody/);
      const unanswered = system.ask<never, CounterMessage>(ref, () => ({ type: 'boom', how: 'throw' }), {
        deadlineMs: 5000,
      });
      await expect(unanswered).rejects.toMatchObject({
        code: 'ACTOR_STOPPED',
        message: expect.stringContaining('boom'),
      });
    });

    it('names the chain of waiting actors when an ask is not answered in time', async () => {
      const { counter, system } = make();
      const a = await counter('a');
      const b = await counter('b');
      // b asks a while a asks b: neither handler can end.
      const ask = (from: ActorRef<CounterMessage>, to: string, deadlineMs: number) =>
        system.ask<string, CounterMessage>(from, (replyTo) => ({ type: 'askOther', to, deadlineMs, replyTo }), {
          deadlineMs: 5000,
        });
      const [first] = await Promise.all([ask(a, b.path, 300), ask(b, a.path, 2000)]);
      expect(first).toMatch(/no answer after \d+ ms: \/a —get→ \/b —get→ \/a; they wait in a circle/);
    });

    it('times an outside ask out with ASK_TIMEOUT', async () => {
      const { counter, system, state } = make();
      const ref = await counter('a');
      const answer = system.ask<never, CounterMessage>(ref, () => ({ type: 'nap', ms: 400 }), { deadlineMs: 50 });
      await expect(answer).rejects.toMatchObject({ code: 'ASK_TIMEOUT', message: expect.stringContaining('/a') });
      expect((await state(ref)).seen).toEqual([]);
    });

    it('lets control messages overtake', async () => {
      const { counter, state } = make();
      const ref = await counter('a', { control: ['urgent'], mailbox: { capacity: 64, overflow: 'wait' } });
      ref.tell({ type: 'nap', ms: 100 });
      for (const n of upTo(10)) ref.tell({ type: 'add', n });
      ref.tell({ type: 'urgent', n: 99 });
      const { seen } = await state(ref);
      expect(seen).toHaveLength(11);
      expect(seen.indexOf(99)).toBeLessThan(3);
    });

    it('makes the sender wait, throws, or drops the oldest when its mailbox is full', async () => {
      const { counter, state, system } = make();
      const waits = await counter('waits', { mailbox: { capacity: 4, overflow: 'wait' } });
      waits.tell({ type: 'nap', ms: 30 });
      const results = upTo(12).map((n) => waits.tell({ type: 'add', n }));
      expect(results.some((result) => result instanceof Promise)).toBe(true);
      expect(results[0]).toBeUndefined();
      await system.run(Promise.all(results));
      expect((await state(waits)).seen).toEqual(upTo(12));

      const rejects = await counter('rejects', { mailbox: { capacity: 4, overflow: 'reject' } });
      rejects.tell({ type: 'nap', ms: 30 });
      expect(() => {
        for (const n of upTo(12)) rejects.tell({ type: 'add', n });
      }).toThrow(expect.objectContaining({ code: 'MAILBOX_FULL' }));

      const drops = await counter('drops', { mailbox: { capacity: 4, overflow: 'drop-oldest' } });
      drops.tell({ type: 'nap', ms: 30 });
      for (const n of upTo(12)) drops.tell({ type: 'add', n });
      const { seen } = await state(drops);
      expect(seen.at(-1)).toBe(11);
      expect(seen).toEqual([...seen].sort((a, b) => a - b));
      expect(system.counts.dropped).toBeGreaterThanOrEqual(12 - seen.length);
      expect(system.counts.dropped).toBeGreaterThan(0);
    });

    it('reaches others by path and waits where they are full', async () => {
      const { counter, state } = make();
      const a = await counter('a');
      const b = await counter('b', { mailbox: { capacity: 8, overflow: 'wait' } });
      a.tell({ type: 'relay', to: '/b', message: { type: 'add', n: 0 }, times: 2000 });
      await state(a, 20_000); // after the relay's handler
      for (let i = 0; i < 1000 && (await state(b)).seen.length < 2000; i++);
      expect((await state(b)).seen).toEqual(upTo(2000));
    });

    it('has children that end with it', async () => {
      const { counter, state, system } = make();
      const a = await counter('a');
      const spawn = (name: string) =>
        system.ask<string, CounterMessage>(a, (replyTo) => ({ type: 'spawnChild', name, replyTo }), {
          deadlineMs: 2000,
        });
      const path = await spawn('child');
      expect(path).toBe('/a/child');
      const child = system.resolve<CounterMessage>(path);
      child.tell({ type: 'add', n: 5 });
      expect((await state(child)).seen).toEqual([5]);
      a.tell({ type: 'boom', how: 'throw' });
      await state(a);
      await expect(state(child, 500)).rejects.toMatchObject({ code: 'ACTOR_STOPPED' });
      expect(await spawn('child')).toBe('/a/child');
    });

    it('moves buffers', async () => {
      const { counter, system } = make();
      const ref = await counter('a');
      const data = Float32Array.of(1, 2, 3);
      const twice = await system.ask<Float32Array, CounterMessage>(
        ref,
        (replyTo) => ({ type: 'buffer', data, replyTo }),
        {
          deadlineMs: 2000,
          transfer: [data.buffer],
        },
      );
      expect([...twice]).toEqual([2, 4, 6]);
      expect(data.length).toBe(placement === 'thread' ? 0 : 3);
    });

    it('fails its spawn when it cannot start, and frees the name', async () => {
      const { counter, state } = make();
      await expect(counter('a', {}, { failStart: true })).rejects.toThrow('cannot start');
      expect((await state(await counter('a'))).seen).toEqual([]);
    });

    it('ends by its own wish: transient actors stay ended, and their mail is dead', async () => {
      const { counter, system, state } = make();
      const ref = await counter('a', { restart: 'transient' });
      ref.tell({ type: 'quit' });
      await expect(state(ref, 1000)).rejects.toMatchObject({ code: 'ACTOR_STOPPED' });
      expect(system.stats()).toEqual([]);
      expect(system.counts['dead-letter']).toBe(1);
    });

    it('gives up after `intensity` restarts: the system ends with the error', async () => {
      const { counter, system } = make();
      const ref = await counter('a');
      for (let i = 0; i < 8; i++) ref.tell({ type: 'boom', how: 'throw' });
      await expect(system.run(system.terminated)).rejects.toMatchObject({
        code: 'ACTOR_STOPPED',
        message: expect.stringMatching(/\/a ended more than 5 times within 10000 ms: boom/),
      });
      expect(system.counts.fatal).toBe(1);
    });

    it('has the same random numbers in every placement', async () => {
      const { counter, state } = make();
      const ref = await counter('a');
      expect((await state(ref)).random).toBe(4077083263);
    });
  });
}
