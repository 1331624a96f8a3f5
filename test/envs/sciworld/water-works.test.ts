/** Sinks, toilets, drains and what else moves by itself in a tick of SciWorld. */
import { describe, expect, it } from 'vitest';
import { kind } from '../../../envs/sciworld/kinds.ts';
import { insertById, type Thing } from '../../../envs/sciworld/thing.ts';
import { act, house, type SmallWorld, smallWorld, thingIn } from '../../support/small-sciworld.ts';

/** A thing with a drain to a sewer, as the house has them. */
function drained({ world, put }: SmallWorld, id: string): { thing: Thing; drain: Thing; sewer: Thing } {
  const sewer = put('sewer', world.universe);
  const thing = put(id);
  const drain = world.make(kind('drain'));
  drain.portal = { from: thing, to: sewer, open: true };
  thing.portals = insertById(thing.portals, drain);
  return { thing, drain, sewer };
}

const waters = (thing: Thing) => thing.contents.filter(({ name }) => name === 'water').length;

describe.each(['sink', 'bathtub'])('a %s', (id) => {
  it('that is on fills itself and the open vessels in it, once each', () => {
    const small = smallWorld();
    const { thing, drain } = drained(small, id);
    drain.portal!.open = false;
    const pot = small.put('metal pot', thing);
    const jar = small.put('glass jar', thing);
    thing.device!.on = true;
    small.pass(3);
    expect([waters(thing), waters(pot), waters(jar)]).toEqual([1, 1, 0]);
  });

  it('that is off stays dry', () => {
    const small = smallWorld();
    const { thing } = drained(small, id);
    small.pass(3);
    expect(waters(thing)).toBe(0);
  });

  it('lets its water run through an open drain', () => {
    const small = smallWorld();
    const { thing, sewer } = drained(small, id);
    thing.device!.on = true;
    small.pass(4);
    expect([waters(thing), waters(sewer)]).toEqual([0, 4]);
  });
});

describe('a drain', () => {
  it('takes liquids only', () => {
    const small = smallWorld();
    const { thing, sewer } = drained(small, 'sink');
    const brick = small.put('brick', thing);
    const juice = small.put('orange juice', thing);
    small.pass();
    expect(brick.parent).toBe(thing);
    expect(juice.parent).toBe(sewer);
  });

  it('that is closed takes nothing', () => {
    const small = smallWorld();
    const { thing, drain } = drained(small, 'sink');
    drain.portal!.open = false;
    const juice = small.put('orange juice', thing);
    small.pass(3);
    expect(juice.parent).toBe(thing);
  });
});

describe('a toilet', () => {
  it('keeps its drain shut and its water until it is flushed, which takes five ticks', () => {
    const small = smallWorld();
    const { thing, drain, sewer } = drained(small, 'toilet');
    small.put('water', thing);
    small.pass(2);
    expect([drain.portal!.open, waters(thing)]).toEqual([false, 1]);
    thing.device!.on = true;
    const seen: [boolean, number][] = [];
    for (let i = 0; i < 6; i++) {
      small.pass();
      seen.push([drain.portal!.open, thing.count]);
    }
    expect(seen).toEqual([
      [true, 2],
      [true, 3],
      [true, 4],
      [true, 5],
      [false, 0],
      [false, 0],
    ]);
    expect(thing.device!.on).toBe(false);
    expect(waters(thing)).toBe(1);
    expect(waters(sewer)).toBe(4);
  });
});

it('a toilet that flushes fills what stands open in it', () => {
  const small = smallWorld();
  const { thing } = drained(small, 'toilet');
  const cup = small.put('glass cup', thing);
  small.pass();
  expect(waters(cup)).toBe(0);
  thing.device!.on = true;
  small.pass();
  expect(waters(cup)).toBe(1);
});

it('a flower pot waters itself where the simplification says so', () => {
  const small = smallWorld();
  const pot = small.put('flower pot');
  small.pass();
  expect(waters(pot)).toBe(0);
  small.world.watersPots = true;
  small.pass();
  expect(waters(pot)).toBe(1);
});

describe('other things with a will of their own', () => {
  it.each(['fountain', 'self watering flower pot'])('a %s has water after each tick', (id) => {
    const small = smallWorld('outside');
    const thing = small.put(id);
    small.pass();
    expect(waters(thing)).toBe(1);
    small.pass(3);
    expect(waters(thing)).toBe(1);
    small.world.delete(thing.contents.find(({ name }) => name === 'water')!);
    small.pass();
    expect(waters(thing)).toBe(1);
  });

  it('ground gives what is put into it back to its place', () => {
    const small = smallWorld('outside');
    const ground = small.put('ground');
    const brick = small.put('brick', ground);
    small.pass();
    expect(brick.parent).toBe(small.room);
  });

  it('a stopwatch counts ticks while it is on, and keeps the count when it is off', () => {
    const small = smallWorld();
    const watch = small.put('stopwatch');
    small.pass(2);
    expect(watch.count).toBe(0);
    watch.device!.on = true;
    small.pass(7);
    watch.device!.on = false;
    small.pass(3);
    expect(watch.count).toBe(7);
  });
});

describe('inclined planes', () => {
  const slide = (angle: number, friction: number, id: string, ticks: number) => {
    const small = smallWorld('workshop');
    const plane = small.put('inclined plane');
    plane.plane = { angle, friction, letter: '', surface: '', heights: new Map() };
    const block = small.put(id, plane);
    small.pass(ticks);
    return { small, plane, block, height: plane.plane.heights.get(block) };
  };

  it.each([
    [45, 0, 1, 1 - 0.0707],
    [45, 0.5, 1, 1 - 0.0354],
    [30, 0, 10, 0.5],
    [90, 0, 5, 0.5],
    [90, 0.9, 10, 0.9],
    [90, 0, 20, 0],
  ])('of %i degrees and friction %d let a block slide for %i ticks to a height of %d', (angle, friction, ticks, at) => {
    expect(slide(angle, friction, 'brick', ticks).height).toBeCloseTo(at, 3);
  });

  it('let liquids run down at once and hold gases at the top', () => {
    expect(slide(10, 0.9, 'water', 1).height).toBe(0);
    expect(slide(80, 0, 'air', 5).height).toBe(1);
  });

  it('let what is put on them start from the top, also what lay on them before', () => {
    const { small, plane, block } = slide(90, 0, 'brick', 5);
    small.world.move(block, small.room);
    small.pass();
    small.world.move(block, plane);
    small.pass();
    expect(plane.plane!.heights.get(block)).toBeCloseTo(0.9, 6);
    small.pass();
    small.world.move(block, plane);
    small.pass();
    expect(plane.plane!.heights.get(block)).toBeCloseTo(0.9, 6);
  });
});

describe('water in the house', () => {
  it('comes from the kitchen sink into a pot, which a fire can boil', () => {
    const simulator = house();
    act(
      simulator,
      'teleport to kitchen',
      'open cupboard',
      'move metal pot to sink',
      'activate sink',
      'deactivate sink',
    );
    expect(simulator.step('look at metal pot')).toBe('a metal pot (containing a substance called water)');
    act(simulator, 'move metal pot to stove', 'activate stove', 'wait', 'wait', 'wait');
    expect(thingIn(simulator, 'metal pot').contents.map(({ name }) => name)).toContain('steam');
  });

  it('does not come from a broken sink', () => {
    const simulator = house('boil', 2);
    const answer = act(simulator, 'teleport to kitchen', 'open cupboard', 'move metal pot to sink', 'activate sink');
    expect(answer).toBe("The sink appears broken, and can't be activated or deactivated.");
    expect(waters(thingIn(simulator, 'metal pot'))).toBe(0);
  });
});
