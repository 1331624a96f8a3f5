/**
 * Actors that talk, break and ask, under thousands of orders of delivery; and the same with a bug planted, which must
 * be found. An order is a seed of the serial mode.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ActorSystem, BehaviorFactory, ReplyTo, Strategy } from '../../src/runtime/actor.ts';
import type { ActorCell, Executor } from '../../src/runtime/cell.ts';
import { createSystem } from '../../src/runtime/create-system.ts';
import type { Envelope } from '../../src/runtime/envelope.ts';
import { listAffected } from '../../src/runtime/supervision.ts';
import type { System } from '../../src/runtime/system.ts';

const runs = process.env.LONGPLAY_LONG === '1' ? 3000 : 150;
const TARGETS = 2;
const DEADLINE_MS = 50;

type Kind = 'note' | 'poison' | 'nap' | 'askFast' | 'askNever';

interface Op {
  readonly to: number;
  readonly kind: Kind;
}

type Talk =
  | { readonly type: 'note' | 'poison' | 'nap'; readonly from: number; readonly n: number }
  | {
      readonly type: 'question';
      readonly from: number;
      readonly n: number;
      readonly answered: boolean;
      readonly replyTo: ReplyTo<number>;
    };

type Sabotage = (cell: ActorCell, system: System) => void;

interface Seen {
  /** `from n` of every message begun, by target. */
  readonly begun: string[][];
  /** Virtual milliseconds until each ask settled, and how. */
  readonly asks: { readonly ms: number; readonly how: string }[];
}

async function play(seed: number, programs: readonly (readonly Op[])[], sabotage?: Sabotage): Promise<Seen> {
  const backoff = { minMs: 1, maxMs: 2, jitter: 0.5 };
  const system = createSystem({ mode: 'serial', seed, supervision: { intensity: 1000, backoff } }) as ActorSystem &
    System;
  const begun: string[][] = Array.from({ length: TARGETS }, () => []);
  const asks: { ms: number; how: string }[] = [];
  for (let target = 0; target < TARGETS; target++) {
    const factory: BehaviorFactory<Talk> = (ctx) => ({
      handlers: {
        note: ({ from, n }) => void begun[target]!.push(`${from} ${n}`),
        nap({ from, n }) {
          begun[target]!.push(`${from} ${n}`);
          return ctx.sleep(3);
        },
        poison({ from, n }) {
          begun[target]!.push(`${from} ${n}`);
          throw new Error('poison');
        },
        question({ from, n, answered, replyTo }) {
          begun[target]!.push(`${from} ${n}`);
          if (answered) ctx.reply(replyTo, n);
        },
      },
    });
    await system.spawn(`t${target}`, factory, { mailbox: { capacity: 3, overflow: 'wait' } });
    sabotage?.(system.kernel.router.cells.get(`/t${target}`)!, system);
  }
  for (const [from, program] of programs.entries()) {
    await system.spawn<{ type: 'go' }>(`s${from}`, (ctx) => ({
      handlers: {
        async go() {
          for (const [n, { to, kind }] of program.entries()) {
            const target = ctx.resolve<Talk>(`/t${to}`);
            if (kind === 'askFast' || kind === 'askNever') {
              const at = ctx.clock.now();
              const make = (replyTo: ReplyTo<number>): Talk => ({
                type: 'question',
                from,
                n,
                answered: kind === 'askFast',
                replyTo,
              });
              const how = await ctx.ask(target, make, { deadlineMs: DEADLINE_MS }).then(
                (value) => (value === n ? 'answered' : 'wrong'),
                (error) => String(error.code),
              );
              asks.push({ ms: ctx.clock.now() - at, how });
            } else await target.tell({ type: kind, from, n });
          }
        },
      },
    }));
    system.resolve<{ type: 'go' }>(`/s${from}`).tell({ type: 'go' });
  }
  await system.run();
  await system.stop();
  return { begun, asks };
}

/** @throws when a law is broken */
async function laws(seed: number, programs: readonly (readonly Op[])[], sabotage?: Sabotage): Promise<void> {
  const { begun, asks } = await play(seed, programs, sabotage);
  for (let target = 0; target < TARGETS; target++) {
    for (const [from, program] of programs.entries()) {
      // Each message of a sender is begun once, in the order sent, the one that kills its receiver included.
      const sent = program.flatMap(({ to }, n) => (to === target ? [`${from} ${n}`] : []));
      expect(begun[target]!.filter((one) => one.startsWith(`${from} `))).toEqual(sent);
    }
  }
  const expected = programs.flat().filter(({ kind }) => kind.startsWith('ask')).length;
  expect(asks).toHaveLength(expected);
  for (const { ms, how } of asks) {
    expect(ms).toBeLessThanOrEqual(DEADLINE_MS);
    expect(['answered', 'ASK_TIMEOUT', 'ACTOR_STOPPED']).toContain(how);
  }
}

const op = fc.record({
  to: fc.nat(TARGETS - 1),
  kind: fc.constantFrom<Kind>('note', 'note', 'note', 'nap', 'poison', 'askFast', 'askNever'),
});
const programs = fc.array(fc.array(op, { maxLength: 10 }), { minLength: 1, maxLength: 3 });
const hold = (sabotage: Sabotage | undefined, numRuns: number) =>
  fc.check(
    fc.asyncProperty(fc.nat(), programs, (seed, program) => laws(seed, program, sabotage)),
    { numRuns, endOnFailure: true },
  );

describe('actors that talk, break and ask', () => {
  it('get each message once, in order, and every ask ends by its deadline', async () => {
    const { failed, counterexample, errorInstance } = (await hold(undefined, runs)) as {
      failed: boolean;
      counterexample: unknown;
      errorInstance?: unknown;
    };
    expect({ failed, counterexample, errorInstance }).toMatchObject({ failed: false });
  }, 120_000);

  it.each<[string, Sabotage]>([
    [
      'a lost message',
      ({ mailbox }) => {
        const { shift } = mailbox;
        let n = 0;
        mailbox.shift = () => {
          if (++n % 4 === 0) shift.call(mailbox);
          return shift.call(mailbox);
        };
      },
    ],
    [
      'a message delivered twice',
      ({ mailbox }) => {
        const { shift } = mailbox;
        let n = 0;
        mailbox.shift = () => {
          const item = shift.call(mailbox);
          if (item && ++n % 4 === 0) mailbox.unshift([item]);
          return item;
        };
      },
    ],
    [
      'messages out of order',
      ({ mailbox }) => {
        const { shift } = mailbox;
        mailbox.shift = () => {
          const [first, second] = [shift.call(mailbox), shift.call(mailbox)];
          if (second && first) mailbox.unshift([first]);
          return second ?? first;
        };
      },
    ],
    [
      'a restart that replays the poison message',
      (cell) => {
        const { handleEnded: ended } = cell;
        let last: Envelope | undefined;
        cell.onBegin = (_, envelope) => {
          last = envelope;
        };
        let again = 0;
        cell.handleEnded = (executor: Executor, reason, unbegun = []) =>
          ended.call(cell, executor, reason, last && again++ < 3 ? [last, ...unbegun] : unbegun);
      },
    ],
    [
      'an ask without a deadline',
      (_, system) => {
        const { ask } = system.kernel;
        system.kernel.ask = ((from, ref, make, options) =>
          ask.call(system.kernel, from, ref, make as never, { ...options, deadlineMs: 1e6 })) as typeof ask;
      },
    ],
  ])('are found out with %s', async (_, sabotage) => {
    expect((await hold(sabotage, 400)).failed).toBe(true);
  });
});

interface Family {
  readonly alive: string[];
}

/** The log of a family's ends and starts when child `at` breaks. */
function expected(strategy: Strategy, names: readonly string[], at: number): string[] {
  const group = listAffected(strategy, names.length, at);
  const others = group.filter((i) => i !== at).reverse();
  return [`-${names[at]}`, ...others.map((i) => `-${names[i]}`), ...group.map((i) => `+${names[i]}`)];
}

describe('a supervisor', () => {
  it('restarts and stops by its strategy, whatever breaks in whatever order', async () => {
    const names = ['a', 'b', 'c', 'd'];
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.constantFrom<Strategy>('one_for_one', 'one_for_all', 'rest_for_one'),
        fc.commands(
          names.map((_, at) =>
            fc.constant<fc.AsyncCommand<Family, { log: string[]; break: (at: number) => Promise<void> }>>({
              check: () => true,
              toString: () => `break ${names[at]}`,
              async run(_model, real) {
                real.log.length = 0;
                await real.break(at);
                expect(real.log).toEqual(expected(strategyNow, names, at));
              },
            }),
          ),
          { maxCommands: 8 },
        ),
        async (seed, strategy, commands) => {
          strategyNow = strategy;
          const system = createSystem({ mode: 'serial', seed });
          const log: string[] = [];
          const supervisor = system.supervisor('family', { strategy, intensity: 1000 });
          for (const name of names) {
            await system.spawn<{ type: 'break' }>(
              name,
              () => {
                log.push(`+${name}`);
                return {
                  handlers: {
                    break() {
                      throw new Error('broken');
                    },
                  },
                  stopped: () => void log.push(`-${name}`),
                };
              },
              { supervisor },
            );
          }
          const breakOne = async (at: number) => {
            system.resolve<{ type: 'break' }>(`/${names[at]}`).tell({ type: 'break' });
            await system.run();
          };
          await fc.asyncModelRun(() => ({ model: { alive: [] }, real: { log, break: breakOne } }), commands);
          log.length = 0;
          await system.stop();
          expect(log).toEqual(names.map((name) => `-${name}`).reverse());
        },
      ),
      { numRuns: runs / 3 },
    );
  }, 60_000);
});

let strategyNow: Strategy = 'one_for_one';
