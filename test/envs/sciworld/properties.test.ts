/** Properties of SciWorld over random play: what is listed is understood, replay goes on alike, simplifications hold. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createEnv, type SciWorldSession } from '../../../envs/sciworld/index.ts';
import { findRegistered, type Simplification, Simulator } from '../../../envs/sciworld/simulator.ts';
import type { Thing } from '../../../envs/sciworld/thing.ts';
import { Rng } from '../../../src/core/rng.ts';

const long = process.env.LONGPLAY_LONG === '1';
const env = createEnv({ tasks: 'scienceworld' });
const open = (index: number): SciWorldSession => env.open({ env: env.id, index, seed: 0 });

const episodes = fc.record({ index: fc.integer({ min: 0, max: env.tasks.count - 1 }), seed: fc.integer() });

/** Plays up to `turns` listed choices. @returns the actions */
function wander(session: SciWorldSession, rng: Rng, turns: number): string[] {
  const actions: string[] = [];
  for (let t = 0; t < turns; t++) {
    const listed = session.actions();
    if (listed.length === 0) break;
    const action = rng.pick(listed);
    actions.push(action);
    session.step(action);
  }
  return actions;
}

/** Whole actions that can be put together now: all without a second thing, and all of one first thing of each form. */
function wholeActions(session: SciWorldSession, replay: () => SciWorldSession, rng: Rng): string[] {
  const whole: string[] = [];
  for (const text of session.actions()) {
    if (!text.endsWith(' ?')) {
      whole.push(text);
      continue;
    }
    const staged = replay();
    staged.step(text);
    const next = staged.actions().filter((one) => one !== 'back');
    const stages = next.filter((one) => one.endsWith(' ?'));
    whole.push(...next.filter((one) => !one.endsWith(' ?')));
    if (stages.length === 0) continue;
    staged.step(rng.pick(stages));
    whole.push(...staged.actions().filter((one) => one !== 'back'));
  }
  return whole;
}

describe('the list', () => {
  it('has nothing that is not understood', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(episodes, ({ index, seed }) => {
        const rng = Rng.fromSeed(seed);
        const session = open(index);
        const actions = wander(session, rng, rng.int(40));
        if (session.simulator.options > 0 || session.actions().length === 0) return;
        const replay = () => {
          const again = open(index);
          for (const action of actions) again.step(action);
          return again;
        };
        // In the middle of a stage the list is of that stage alone.
        if (session.actions().some((text) => text === 'back')) return;
        for (const text of wholeActions(session, replay, rng)) {
          expect([text, session.simulator.countReadings(text)]).not.toEqual([text, 0]);
        }
      }),
      { numRuns: long ? 2000 : 120 },
    );
  });

  it('changes nothing by being listed', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(episodes, ({ index, seed }) => {
        const listed = open(index);
        const actions = wander(listed, Rng.fromSeed(seed), 40);
        const silent = open(index);
        for (const action of actions) silent.step(action);
        expect(silent.simulator.world.random.draws).toBe(listed.simulator.world.random.draws);
        expect(silent.simulator.look()).toBe(listed.simulator.look());
        expect(silent.actions()).toEqual(listed.actions());
      }),
      { numRuns: long ? 1000 : 60 },
    );
  });
});

describe('an episode played again up to any point', () => {
  it('goes on with the same next 50 observations', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(episodes, fc.integer({ min: 0, max: 60 }), ({ index, seed }, length) => {
        const rng = Rng.fromSeed(seed);
        const session = open(index);
        const actions = wander(session, rng, length);
        const again = open(index);
        for (const action of actions) again.step(action);
        for (let t = 0; t < 50; t++) {
          const listed = session.actions();
          const action = listed.length === 0 ? 'wait' : rng.pick(listed);
          expect(again.step(action)).toEqual(session.step(action));
        }
      }),
      { numRuns: long ? 1000 : 60 },
    );
  });
});

describe('ticks that are put off', () => {
  /** Everything in the world, with what a tick may change of it. */
  const census = ({ simulator }: SciWorldSession): string[] => {
    simulator.settle();
    const rows: string[] = [];
    const walk = (thing: Thing, path: string) => {
      const { id, name, matter, life, device, count } = thing;
      rows.push(
        [path, id, name, matter?.temperature, matter?.burnTicks, life?.stage, life?.ticks, device?.on, count].join(' '),
      );
      for (const inside of thing.contents) walk(inside, `${path}/${name}`);
    };
    walk(simulator.world.universe, '');
    return rows;
  };

  it('end as if they had been taken as they came', { timeout: 300_000 }, () => {
    let slept = 0;
    fc.assert(
      fc.property(episodes, ({ index, seed }) => {
        const rng = Rng.fromSeed(seed);
        const [late, prompt] = [open(index), open(index)];
        // Where something is wired, no tick is put off.
        for (const place of prompt.simulator.world.universe.contents) place.plugged = true;
        for (let t = 0; t < 60; t++) {
          const listed = late.actions();
          const action = listed.length === 0 || rng.int(4) === 0 ? 'wait' : rng.pick(listed);
          const step = late.step(action);
          expect(prompt.step(action)).toEqual(step);
          slept += late.simulator.world.universe.contents.filter(({ deferredTicks }) => deferredTicks > 0).length;
        }
        expect(census(late)).toEqual(census(prompt));
      }),
      { numRuns: long ? 1000 : 40 },
    );
    expect(slept).toBeGreaterThan(1000);
  });
});

describe('simplifications', () => {
  const simulator = (name: string, simplifications: readonly Simplification[], variation = 0) =>
    new Simulator(findRegistered(name)!, variation, simplifications);
  const doorsOf = ({ world }: Simulator) =>
    world.universe.contents.flatMap(({ portals }) => portals.filter(({ kind }) => kind.id === 'door'));

  it('openDoors opens every door once, and a closed one stays closed', () => {
    const opened = simulator('boil', ['openDoors']);
    expect(doorsOf(opened).every((door) => door.portal!.open)).toBe(true);
    expect(doorsOf(simulator('boil', [])).some((door) => door.portal!.open)).toBe(false);
    const door = /door to (.*?) \(/.exec(opened.look())![1]!;
    opened.step(`close door to ${door}`);
    opened.step('wait1');
    expect(opened.look()).toContain(`door to the ${door.replace('the ', '')} (that is closed)`);
    expect(new Set(doorsOf(opened).filter((door) => !door.portal!.open)).size).toBe(1);
  });

  it('openContainers opens what can be closed, once', () => {
    const closed = (one: Simulator) => {
      const shut: string[] = [];
      const walk = (thing: (typeof one)['world']['universe']) => {
        for (const inside of thing.contents) {
          if (inside.container?.closable && !inside.container.open) shut.push(inside.name);
          walk(inside);
        }
      };
      walk(one.world.universe);
      return shut;
    };
    expect(closed(simulator('boil', ['openContainers']))).toEqual([]);
    expect(closed(simulator('boil', []))).toContain('fridge');
    const one = simulator('boil', ['openContainers', 'teleportAction']);
    one.step('teleport to kitchen');
    one.step('close fridge');
    one.step('wait1');
    expect(closed(one)).toEqual(['fridge']);
  });

  it('teleportAction goes to any place through closed doors, takes time, and refuses other things', () => {
    const one = simulator('boil', ['teleportAction']);
    const before = one.moves;
    expect(one.step('teleport to foundry')).toBe('You teleport to the foundry.');
    expect(one.moves).toBe(before + 1);
    expect(one.look()).toMatch(/^This room is called the foundry\./);
    expect(one.step('teleport to blast furnace')).toBe('Its not clear how to go to blast furnace.');
    expect(one.valid()).toContain('teleport to kitchen');
    expect(
      simulator('boil', [])
        .valid()
        .some((text) => text.startsWith('teleport')),
    ).toBe(false);
  });

  it('noElectricalAction neither understands nor lists what connects', () => {
    const one = simulator('power-component', ['noElectricalAction', 'teleportAction']);
    one.step('teleport to workshop');
    expect(one.step('disconnect battery')).toBe('No known action matches that input.');
    expect(one.valid().some((text) => /^(?:dis)?connect /.test(text))).toBe(false);
    const other = simulator('power-component', ['teleportAction']);
    other.step('teleport to workshop');
    expect(other.step('disconnect battery')).toBe('battery has been disconnected');
  });

  it('selfWateringFlowerPots waters pots that have no water, each tick', () => {
    const one = simulator('grow-plant', ['selfWateringFlowerPots', 'teleportAction']);
    one.step('teleport to greenhouse');
    expect(one.look()).toContain('a flower pot 1 (containing soil, a substance called water)');
    one.step('pour flower pot 1 into flower pot 2');
    expect(one.look()).toContain('a flower pot 1 (containing a substance called water)');
  });

  it('easy is these, without the electrical part where the task does not need it', () => {
    const easy = createEnv({ tasks: 'scienceworld', simplifications: ['easy'] });
    const commands = (name: string) => {
      const index = Array.from({ length: easy.tasks.count }, (_, i) => i).find(
        (i) => easy.tasks.at(i).registered.task.name === name,
      )!;
      const session = easy.open({ env: 'sciworld', index, seed: 0 });
      const forms = session.simulator.forms();
      return { doors: session.first.observation.includes('closed)'), forms };
    };
    for (const name of ['power-component', 'test-conductivity', 'boil', 'find-plant']) {
      const { doors, forms } = commands(name);
      expect(doors).toBe(false);
      expect(forms).toContain('teleport OBJ');
      expect(forms.includes('connect OBJ to OBJ')).toBe(name === 'power-component' || name === 'test-conductivity');
    }
  });
});
