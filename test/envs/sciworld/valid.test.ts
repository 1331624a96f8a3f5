/** Valid actions of SciWorld: which things are listed, by which names, and what the list draws. */
import { describe, expect, it } from 'vitest';
import { JavaRandom } from '../../../envs/sciworld/java-random.ts';
import { chooseNames, listThings } from '../../../envs/sciworld/names.ts';
import { availableActions } from '../../../envs/sciworld/valid.ts';
import { act, house, smallWorld, thingIn } from '../../support/small-sciworld.ts';

describe('listed things', () => {
  it('are the room, its doors with what is behind, and all it holds, shut away or not', () => {
    const simulator = house();
    const kitchen = thingIn(simulator, 'kitchen');
    const names = listThings(kitchen, false).map(({ name }) => name);
    expect(names[0]).toBe('kitchen');
    expect(names).toEqual(expect.arrayContaining(['hallway', 'bathroom', 'outside', 'metal pot', 'drain', 'sewer']));
    expect(names).not.toContain('foundry');
    expect(new Set(listThings(kitchen, false)).size).toBe(names.length);
  });

  it('leave hidden contacts out unless they are requested', () => {
    const simulator = house();
    const kitchen = thingIn(simulator, 'kitchen');
    const [shown, all] = [listThings(kitchen, false), listThings(kitchen, true)];
    expect(shown.some(({ contact }) => contact !== null)).toBe(false);
    expect(all.filter(({ contact }) => contact !== null).length).toBeGreaterThan(60);
    expect(all).toEqual(expect.arrayContaining(shown));
  });

  it('show the contacts of parts', () => {
    const simulator = house();
    const names = listThings(thingIn(simulator, 'workshop'), false).map(({ name }) => name);
    expect(names.filter((name) => name === 'anode')).toHaveLength(5);
    expect(names.filter((name) => name === 'terminal 1')).toHaveLength(3);
  });
});

describe('chosen names', () => {
  const choose = (ids: readonly string[], seed = 1) => {
    const { put, room } = smallWorld();
    const random = new JavaRandom(seed);
    const things = ids.map((id) => put(id));
    return { names: chooseNames(things, room, random), draws: random.draws };
  };

  it('are the first in the alphabet that no other thing has', () => {
    // Soap is "soap", "substance" and both in or on the kitchen and room; alone it takes the first of all.
    expect(choose(['soap']).names).toEqual(['soap']);
    expect(choose(['soap', 'water']).names).toEqual(['soap', 'water']);
    expect(choose(['red paint', 'blue paint']).names).toEqual(['red paint', 'blue paint']);
    expect(choose(['stopwatch']).names).toEqual(['stopwatch']);
  });

  it('draw nothing where every thing has a name of its own', () => {
    expect(choose(['soap', 'stopwatch', 'red paint', 'bowl']).draws).toBe(0);
  });

  it('draw ten times for each of two things that look alike, and no more', () => {
    const { draws } = choose(['jug', 'jug']);
    expect(draws).toBeGreaterThan(0);
    expect(draws).toBeLessThanOrEqual(20);
  });

  it('are the same for the same draws', () => {
    const ids = ['jug', 'jug', 'jug', 'bowl', 'bowl'];
    expect(choose(ids, 5)).toEqual(choose(ids, 5));
  });

  it('name doors by where they lead', () => {
    const simulator = house();
    const kitchen = thingIn(simulator, 'kitchen');
    const names = chooseNames(kitchen.portals, kitchen, new JavaRandom(0));
    expect(names).toEqual(['door to hallway', 'door to bathroom', 'door to outside']);
    expect(chooseNames(kitchen.portals, thingIn(simulator, 'foundry'), new JavaRandom(0))[0]).toBe(
      'door from kitchen to hallway',
    );
  });
});

describe('the list', () => {
  const kitchen = () => {
    const simulator = house();
    act(simulator, 'teleport to kitchen');
    return simulator;
  };

  it('is sorted, and the same on every call', () => {
    const simulator = kitchen();
    const lazy = simulator.drawValid();
    const list = lazy();
    expect(list).toEqual([...list].sort());
    expect(lazy()).toEqual(list);
    expect(simulator.lastValid()).toEqual(list);
  });

  it.each([
    'close glass jar',
    'go to door to hallway',
    'activate fridge',
    'deactivate stove',
    'eat soap',
    'look in fridge',
    'close bowl',
    'read soap',
    'flush sink',
    'pick up stove',
  ])('has not "%s", which would be refused', (text) => {
    expect(kitchen().valid()).not.toContain(text);
  });

  it('has mixing for whatever holds two things, hidden contacts among them', () => {
    expect(kitchen().valid()).toContain('mix soap');
  });

  it.each([
    ['open door to hallway'],
    ['look around'],
    ['inventory'],
    ['wait'],
    ['wait1'],
    ['task'],
    ['reset task'],
    ['activate stove'],
    ['deactivate fridge'],
    ['open fridge'],
    ['look at soap'],
    ['focus on soap'],
    ['pick up soap'],
    ['move soap to chair'],
    ['use lighter on soap'],
    ['teleport to foundry'],
  ])('has "%s" once', (text) => {
    expect(
      kitchen()
        .valid()
        .filter((one) => one === text),
    ).toHaveLength(1);
  });

  it('lists only held things to put down, and only others to pick up', () => {
    const simulator = kitchen();
    act(simulator, 'pick up soap');
    const list = simulator.valid();
    expect(list).toContain('put down soap');
    expect(list).not.toContain('pick up soap');
    expect(list.filter((text) => text.startsWith('put down '))).toHaveLength(2);
  });

  it('pours even a thing into itself, but moves none there', () => {
    const list = kitchen().valid();
    expect(list.filter((text) => /^pour (.+) into \1$/.test(text)).length).toBeGreaterThan(0);
    expect(list.filter((text) => /^move (.+) to \1$/.test(text))).toEqual([]);
  });

  it('lists pairs as often as both conditions hold', () => {
    const simulator = kitchen();
    const list = simulator.valid();
    const count = (verb: string) => list.filter((text) => text.startsWith(`${verb} `)).length;
    const near = listThings(thingIn(simulator, 'kitchen'), false);
    const moveable = near.filter(({ moveable, matter }) => moveable && (matter?.state ?? 0) === 0);
    const open = near.filter((thing) => thing.isOpen);
    const both = moveable.filter((thing) => open.includes(thing)).length;
    expect(count('move')).toBe(moveable.length * open.length - both);
    const tools = near.filter(({ device }) => device?.usable).length;
    expect(count('use')).toBe(tools * near.length);
  });

  it('has the numbers alone while a command is ambiguous', () => {
    const simulator = house('boil', 0, ['teleportAction', 'openContainers']);
    act(simulator, 'teleport to kitchen', 'pick up orange');
    expect(simulator.valid()).toEqual(['0', '1']);
  });

  it('draws the same, with and without the teleport that uses the second choice of names', () => {
    const [plain, teleporting] = [house('boil', 0, []), house('boil', 0)];
    for (const simulator of [plain, teleporting]) {
      simulator.world.random.seed(12345);
      simulator.valid();
    }
    expect(plain.world.random.draws).toBe(teleporting.world.random.draws);
  });
});

describe('available actions', () => {
  it.each([
    [true, true, 27],
    [false, true, 26],
    [true, false, 25],
    [false, false, 24],
  ])('with teleport %s and circuits %s are %i', (teleport, electrical, count) => {
    expect(availableActions(teleport, electrical)).toHaveLength(count);
  });
});
