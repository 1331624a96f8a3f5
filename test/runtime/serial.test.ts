import { setTimeout as realTime } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { BehaviorFactory, ReplyTo } from '../../src/runtime/actor.ts';
import { createSystem } from '../../src/runtime/create-system.ts';

type Chat = { readonly type: 'pass'; readonly n: number } | { readonly type: 'work'; readonly real: boolean };

/** Three talkers that pass numbers on at random, sleep, and (for `real`) wait for the real world. */
async function converse(seed: number, jitterMs: () => number): Promise<string[]> {
  const system = createSystem({ mode: 'serial', seed });
  const log: string[] = [];
  const names = ['a', 'b', 'c'];
  const talker: BehaviorFactory<Chat> = (ctx) => ({
    handlers: {
      pass({ n }) {
        log.push(`${ctx.clock.now()} ${ctx.path} ${n}`);
        if (n === 0) return;
        ctx.resolve<Chat>(`/${ctx.rng.pick(names)}`).tell({ type: 'pass', n: n - 1 });
        if (n % 3 === 0) ctx.sendAfter(ctx.rng.int(50), { type: 'work', real: n % 2 === 0 });
      },
      async work({ real }) {
        if (real) await realTime(jitterMs());
        else await ctx.sleep(ctx.rng.int(20));
        log.push(`${ctx.clock.now()} ${ctx.path} worked`);
      },
    },
  });
  for (const name of names) await system.spawn<Chat>(name, talker);
  for (const name of names) {
    await realTime(jitterMs()); // the world around takes its time
    system.resolve<Chat>(`/${name}`).tell({ type: 'pass', n: 12 });
  }
  await system.run();
  await system.stop();
  return log;
}

describe('serial mode', () => {
  it('repeats a seed bit for bit, however long the real world takes', async () => {
    for (const seed of [1, 2, 3]) {
      const quick = await converse(seed, () => 0);
      const slow = await converse(seed, () => 1 + 5 * Math.random());
      expect(slow).toEqual(quick);
      expect(quick.length).toBeGreaterThan(39);
    }
    expect(await converse(1, () => 0)).not.toEqual(await converse(2, () => 0));
  });

  it('moves no time while something can be delivered, and none outside `run`', async () => {
    const system = createSystem({ mode: 'serial', seed: 1 });
    const at: number[] = [];
    const ref = await system.spawn<{ type: 'tick' }>('a', (ctx) => ({
      handlers: { tick: () => void (at.push(ctx.clock.now()) < 4 && ctx.sendAfter(1e9, { type: 'tick' })) },
    }));
    ref.tell({ type: 'tick' });
    await realTime(20);
    expect(at).toEqual([]);
    await system.run(); // 35 days
    expect(at).toEqual([0, 1e9, 2e9, 3e9]);
  });

  it('calls a run stalled when nothing is left to do and its end has not come', async () => {
    const system = createSystem({ mode: 'serial' });
    await system.spawn<{ type: 'idle' }>('a', () => ({ handlers: { idle() {} } }));
    await expect(system.run(new Promise(() => {}))).rejects.toMatchObject({ code: 'STALLED' });
    expect(await system.run(Promise.resolve(3))).toBe(3);
  });

  it('delivers to others while a handler waits for an answer', async () => {
    type Q = { readonly type: 'q'; readonly depth: number; readonly replyTo: ReplyTo<number> };
    const system = createSystem({ mode: 'serial', seed: 5 });
    const node =
      (next: string | undefined): BehaviorFactory<Q> =>
      (ctx) => ({
        handlers: {
          async q({ depth, replyTo }) {
            if (next === undefined) return ctx.reply(replyTo, depth);
            const make = (to: ReplyTo<number>): Q => ({ type: 'q', depth: depth + 1, replyTo: to });
            ctx.reply(replyTo, await ctx.ask(ctx.resolve<Q>(next), make, { deadlineMs: 100 }));
          },
        },
      });
    await system.spawn('c', node(undefined));
    await system.spawn('b', node('/c'));
    const a = await system.spawn('a', node('/b'));
    const make = (replyTo: ReplyTo<number>): Q => ({ type: 'q', depth: 0, replyTo });
    expect(await system.ask(a, make, { deadlineMs: 100 })).toBe(2);
  });
});
