import { afterEach, describe, expect, it } from 'vitest';
import { LongplayError, UserError } from '../../src/core/errors.ts';
import type { ActorSystem, BehaviorFactory, Strategy } from '../../src/runtime/actor.ts';
import { createSystem } from '../../src/runtime/create-system.ts';
import { admitRestart, backoffMs, isHopeless, listAffected, wantsRestart } from '../../src/runtime/supervision.ts';

type Fragile = { readonly type: 'break' } | { readonly type: 'mistake' } | { readonly type: 'hang' };

const systems: ActorSystem[] = [];
afterEach(async () => {
  for (const system of systems.splice(0)) await system.stop();
});

/** Children a, b, c under one supervisor; what they start and stop is logged. */
async function family(strategy: Strategy, intensity = 5) {
  const system = createSystem({ mode: 'serial', seed: 3 });
  systems.push(system);
  const log: string[] = [];
  const supervisor = system.supervisor('family', { strategy, intensity });
  const child: BehaviorFactory<Fragile> = (ctx) => {
    log.push(`+${ctx.path}`);
    return {
      handlers: {
        break() {
          throw new Error('broken');
        },
        mistake() {
          throw new UserError('BAD_CONFIG', 'policy: no such thing');
        },
        hang: () => ctx.sleep(1e9),
      },
      stopped: ({ kind }) => void log.push(`-${ctx.path} ${kind}`),
    };
  };
  for (const name of ['a', 'b', 'c']) await system.spawn(name, child, { supervisor, shutdownMs: 100 });
  log.length = 0;
  const tell = async (name: string, type: Fragile['type']) => {
    system.resolve<Fragile>(`/${name}`).tell({ type });
    await system.run();
  };
  return { system, log, tell };
}

describe('a supervisor', () => {
  it.each<[Strategy, string[]]>([
    ['one_for_one', ['-/b crashed', '+/b']],
    ['rest_for_one', ['-/b crashed', '-/c shutdown', '+/b', '+/c']],
    ['one_for_all', ['-/b crashed', '-/c shutdown', '-/a shutdown', '+/a', '+/b', '+/c']],
  ])('%s restarts in order and stops in reverse', async (strategy, expected) => {
    const { log, tell } = await family(strategy);
    await tell('b', 'break');
    expect(log).toEqual(expected);
  });

  it('escalates once its children break too often, and is restarted by its own supervisor', async () => {
    const { system, log, tell } = await family('one_for_one', 1);
    const escalated: string[] = [];
    system.inspect$.subscribe((event) => event.type === 'escalated' && escalated.push(event.path));
    await tell('b', 'break');
    await tell('b', 'break');
    expect(escalated).toEqual(['/family']);
    // b, then b again: over the limit, the others are stopped, and all of the family starts anew.
    expect(log).toEqual(['-/b crashed', '+/b', '-/b crashed', '-/c shutdown', '-/a shutdown', '+/a', '+/b', '+/c']);
  });

  it('ends the system at once, with its message, where the user made a mistake: no restart cures that', async () => {
    const { system, log, tell } = await family('one_for_one');
    await tell('b', 'mistake');
    await expect(system.terminated).rejects.toMatchObject({ code: 'BAD_CONFIG', message: 'policy: no such thing' });
    expect(log).toEqual(['-/b crashed', '-/c shutdown', '-/a shutdown']);
  });

  it('stops in reverse order, and kills what does not stop in time', async () => {
    const { system, log } = await family('one_for_one');
    const killed: string[] = [];
    system.inspect$.subscribe((event) => {
      if (event.type === 'stopped' && event.reason.kind === 'killed') killed.push(event.path);
    });
    const make = () => ({ type: 'hang' }) as const;
    await expect(system.ask(system.resolve<Fragile>('/b'), make, { deadlineMs: 50 })).rejects.toThrow('/b');
    await system.stop();
    expect(log).toEqual(['-/c shutdown', '-/a shutdown']);
    expect(killed).toEqual(['/b']);
  });

  it('makes an actor that must not be killed and does not stop a fatal error with name, message and age', async () => {
    const system = createSystem({ mode: 'serial' });
    const engine = await system.spawn<Fragile>(
      'engine',
      (ctx) => ({ handlers: { break() {}, mistake() {}, hang: () => ctx.sleep(1e9) } }),
      { killable: false, shutdownMs: 500 },
    );
    engine.tell({ type: 'hang' });
    const make = () => ({ type: 'break' }) as const;
    await expect(system.ask(engine, make, { deadlineMs: 250 })).rejects.toMatchObject({ code: 'ASK_TIMEOUT' });
    await system.stop();
    await expect(system.terminated).rejects.toMatchObject({
      code: 'STALLED',
      message: '/engine did not stop within 500 ms; its handler of hang has run for 750 ms',
    });
  });

  it('notifies watchers of every end', async () => {
    const { system, tell } = await family('one_for_one');
    const seen: string[] = [];
    type Saw = { readonly type: 'saw'; readonly what: string };
    await system.spawn<Saw>('watcher', (ctx) => {
      const make = (down: { path: string; reason: { kind: string }; final: boolean }): Saw => ({
        type: 'saw',
        what: `${down.path} ${down.reason.kind} ${down.final}`,
      });
      ctx.watch({ path: '/b' }, make);
      return { handlers: { saw: ({ what }) => void seen.push(what) } };
    });
    await tell('b', 'break');
    await system.stopActor({ path: '/b' });
    await system.run();
    expect(seen).toEqual(['/b crashed false', '/b shutdown true']);
  });
});

describe('the rules', () => {
  it('restart by kind of child and kind of end', () => {
    const crashed = { kind: 'crashed', error: new Error('x') } as const;
    const normal = { kind: 'normal' } as const;
    expect([wantsRestart('permanent', normal), wantsRestart('permanent', crashed)]).toEqual([true, true]);
    expect([wantsRestart('transient', normal), wantsRestart('transient', crashed)]).toEqual([false, true]);
    expect([wantsRestart('temporary', normal), wantsRestart('temporary', crashed)]).toEqual([false, false]);
  });

  it('give up at once only on what a user has to change', () => {
    const errors = [
      new UserError('BAD_CONFIG', 'x'),
      new LongplayError('BAD_CHECKPOINT', 'x'), // as it comes out of a thread
      new LongplayError('BAD_ARGUMENT', 'x'),
      new LongplayError('ENGINE_FAILED', 'x'),
      new Error('x'),
    ];
    expect(errors.map(isHopeless)).toEqual([true, true, false, false, false]);
  });

  it('count restarts over a sliding period', () => {
    expect(admitRestart([0, 50], 99, 3, 100)).toEqual([0, 50, 99]);
    expect(admitRestart([0, 50, 99], 99, 3, 100)).toBeUndefined();
    expect(admitRestart([0, 50, 99], 100, 3, 100)).toEqual([50, 99, 100]);
  });

  it('choose which siblings restart', () => {
    expect(listAffected('one_for_one', 4, 2)).toEqual([2]);
    expect(listAffected('rest_for_one', 4, 2)).toEqual([2, 3]);
    expect(listAffected('one_for_all', 4, 2)).toEqual([0, 1, 2, 3]);
  });

  it('back off exponentially, below a ceiling, with jitter downwards', () => {
    const backoff = { minMs: 10, maxMs: 100, jitter: 0.5 };
    expect([1, 2, 3, 4, 5, 9].map((n) => backoffMs(n, backoff, 0))).toEqual([10, 20, 40, 80, 100, 100]);
    expect(backoffMs(2, backoff, 0.5)).toBe(15);
  });
});
