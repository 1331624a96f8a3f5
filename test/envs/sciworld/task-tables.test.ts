/** Task tables of SciWorld: variations, goals, splits and what each family of tasks asks for and places. */
import { describe, expect, it } from 'vitest';
import { createEnv } from '../../../envs/sciworld/index.ts';
import { SPANS } from '../../../envs/sciworld/life-tables.ts';
import { MATERIALS, UNKNOWN_FRICTION, UNKNOWN_MELTING } from '../../../envs/sciworld/materials.ts';
import type { Simulator } from '../../../envs/sciworld/simulator.ts';
import { readTaskDescription } from '../../../envs/sciworld/task-description.ts';
import { REGISTRY } from '../../../envs/sciworld/tasks/index.ts';
import { digits } from '../../../envs/sciworld/tasks/task.ts';
import { descendants, placeOf, type Thing } from '../../../envs/sciworld/thing.ts';
import { act, house, thingIn } from '../../support/small-sciworld.ts';

/** Tasks by the paper's number: variations, sizes of the split, ordered goals, optional goals (of the first variation). */
const TABLE = [
  ['boil', '1-1', 30, [14, 7, 9], 3, 15],
  ['melt', '1-2', 30, [14, 7, 9], 3, 15],
  ['freeze', '1-3', 30, [14, 7, 9], 3, 5],
  ['change-the-state-of-matter-of', '1-4', 30, [14, 7, 9], 3, 18],
  ['use-thermometer', '2-1', 540, [270, 135, 135], 3, 8],
  ['measure-melting-point-known-substance', '2-2', 436, [218, 109, 109], 3, 25],
  ['measure-melting-point-unknown-substance', '2-3', 300, [150, 75, 75], 3, 25],
  ['power-component', '3-1', 20, [10, 5, 5], 2, 5],
  ['power-component-renewable-vs-nonrenewable-energy', '3-2', 20, [10, 5, 5], 3, 5],
  ['test-conductivity', '3-3', 900, [450, 225, 225], 2, 7],
  ['test-conductivity-of-unknown-substances', '3-4', 600, [300, 150, 150], 2, 7],
  ['find-living-thing', '4-1', 300, [150, 75, 75], 2, 4],
  ['find-non-living-thing', '4-2', 300, [150, 75, 75], 2, 4],
  ['find-plant', '4-3', 300, [150, 75, 75], 2, 4],
  ['find-animal', '4-4', 300, [150, 75, 75], 2, 4],
  ['grow-plant', '5-1', 126, [62, 31, 33], 4, 17],
  ['grow-fruit', '5-2', 126, [62, 31, 33], 1, 28],
  ['chemistry-mix', '6-1', 32, [16, 8, 8], 1, 6],
  ['chemistry-mix-paint-secondary-color', '6-2', 36, [18, 9, 9], 1, 5],
  ['chemistry-mix-paint-tertiary-color', '6-3', 36, [18, 9, 9], 2, 10],
  ['lifespan-longest-lived', '7-1', 125, [62, 31, 32], 1, 2],
  ['lifespan-shortest-lived', '7-2', 125, [62, 31, 32], 1, 2],
  ['lifespan-longest-lived-then-shortest-lived', '7-3', 125, [62, 31, 32], 2, 2],
  ['identify-life-stages-1', '8-1', 14, [6, 3, 5], 4, 5],
  ['identify-life-stages-2', '8-2', 10, [4, 2, 4], 4, 5],
  ['inclined-plane-determine-angle', '9-1', 168, [84, 42, 42], 1, 10],
  ['inclined-plane-friction-named-surfaces', '9-2', 1386, [692, 346, 348], 1, 10],
  ['inclined-plane-friction-unnamed-surfaces', '9-3', 162, [80, 40, 42], 1, 10],
  ['mendelian-genetics-known-plant', '10-1', 120, [60, 30, 30], 1, 50],
  ['mendelian-genetics-unknown-plant', '10-2', 480, [240, 120, 120], 1, 50],
] as const;

/** Variations of a task spread over its table, the first and the last among them. */
function some(name: string, count: number): number[] {
  const { variations } = REGISTRY.get(name)!.task;
  const step = (variations - 1) / (count - 1);
  return [...new Set(Array.from({ length: count }, (_, i) => Math.round(i * step)))];
}

const readTask = (simulator: Simulator) => readTaskDescription(simulator.description);
const inRoom = ({ world }: Simulator, name: string) => world.universe.contents.find((room) => room.name === name)!;
const held = (thing: Thing) => thing.visible().map(({ name }) => name);

describe('the thirty tasks', () => {
  it.each(TABLE)('%s is %s with %i variations, split %j, with %i ordered and %i optional goals', (...row) => {
    const [name, topic, variations, , ordered, optional] = row;
    expect(REGISTRY.get(name)!.task).toMatchObject({ topic, variations });
    const { goals } = house(name);
    expect([goals.ordered.length, goals.optional.length]).toEqual([ordered, optional]);
  });

  it('split into halves and quarters of each, in the order of their variations', () => {
    const { tasks } = createEnv({ tasks: 'scienceworld' });
    const count = (indices: readonly number[], name: string) =>
      indices.filter((index) => tasks.at(index).registered.task.name === name).length;
    const [train, dev, test] = [tasks.split('train'), tasks.sets!.dev!, tasks.split('test')];
    for (const [name, , , sizes] of TABLE)
      expect([name, count(train, name), count(dev, name), count(test, name)]).toEqual([name, ...sizes]);
    expect(new Set([...train, ...dev, ...test]).size).toBe(tasks.count);
  });

  it('are described so that every description is read', () => {
    for (const [name] of TABLE) {
      for (const variation of some(name, 3)) {
        const { goal, target } = readTask(house(name, variation));
        expect([name, goal]).not.toEqual([name, 'task']);
        if (!/find|lifespan/.test(name)) expect([name, target]).not.toEqual([name, '']);
      }
    }
  });

  it('are worlds that a variation alone decides', () => {
    const summarize = ({ world, description }: Simulator) => [
      description,
      ...[...descendants(world.universe, true)].map(({ id, name }) => `${id} ${name}`),
    ];
    for (const name of ['boil', 'find-plant', 'mendelian-genetics-unknown-plant', 'use-thermometer'])
      expect(summarize(house(name, 3))).toEqual(summarize(house(name, 3)));
  });

  it('give every thing an id of its own', () => {
    for (const [name, , variations] of TABLE) {
      const { world } = house(name, variations - 1);
      const ids = [...descendants(world.universe, true)].map(({ id }) => id);
      expect([name, new Set(ids).size]).toEqual([name, ids.length]);
    }
  });
});

describe('answer boxes', () => {
  it.each([
    [0, 'red box', 'green box'],
    [1, 'green box', 'blue box'],
    [2, 'blue box', 'orange box'],
    [3, 'orange box', 'yellow box'],
    [4, 'yellow box', 'purple box'],
  ])('of pair %i are the %s and the %s', (pair, yes, no) => {
    expect(readTask(house('test-conductivity', pair)).boxes.map(({ name }) => name)).toEqual([yes, no]);
  });
});

describe('mixed radix', () => {
  it.each([
    [0, [5, 3], [0, 0]],
    [14, [5, 3], [4, 2]],
    [899, [36, 5, 5], [35, 4, 4]],
    [7, [2, 2, 2], [1, 1, 1]],
    [6, [2, 2, 2], [1, 1, 0]],
  ])('%i by %j is %j, slowest first', (number, radices, expected) => {
    expect(digits(number, ...radices)).toEqual(expected);
  });
});

describe('tables of indices', () => {
  it('refuse what lies outside them', () => {
    const { tasks } = createEnv();
    for (const index of [-1, 4639, 1.5, Number.NaN])
      expect(() => tasks.at(index)).toThrow(`task ${index}: there are 0 … 4638`);
  });

  it('count the variations of each task on from where the one before ends', () => {
    const { tasks } = createEnv();
    const first = (name: string) =>
      Array.from({ length: tasks.count }, (_, i) => i).find((i) => tasks.at(i).registered.task.name === name);
    expect([
      first('boil'),
      first('melt'),
      first('use-thermometer'),
      first('test-conductivity'),
      first('find-living-thing'),
      first('chemistry-mix'),
      first('lifespan-longest-lived'),
    ]).toEqual([0, 30, 120, 1436, 2936, 4136, 4240]);
    expect(first('grow-plant')).toBeUndefined();
  });

  it('list four test variations of each task for an even mean', () => {
    const { tasks } = createEnv({ tasks: 'scienceworld' });
    const per = new Map<string, number>();
    for (const index of tasks.sets!['test-even']!) {
      const { name } = tasks.at(index).registered.task;
      per.set(name, (per.get(name) ?? 0) + 1);
    }
    expect(per.size).toBe(30);
    expect(new Set(per.values())).toEqual(new Set([4]));
  });
});

describe('tasks to change a state', () => {
  const SUBSTANCES = [
    ...['water', 'water', 'ice', 'orange juice', 'apple juice', 'chocolate', 'marshmallow', 'ice cream', 'soap'],
    ...['rubber', 'lead', 'tin', 'mercury', 'gallium', 'caesium'],
  ];

  it('go through fifteen substances, with a stove that works and with one that does not', () => {
    for (let variation = 0; variation < 30; variation++) {
      const simulator = house('melt', variation);
      expect(readTask(simulator)).toMatchObject({ goal: 'melt', target: SUBSTANCES[Math.floor(variation / 2)] });
      expect(thingIn(simulator, 'stove').device!.broken).toBe(variation % 2 === 1);
      expect(thingIn(simulator, 'sink', 'kitchen').device!.broken).toBe(Math.floor(variation / 2) === 1);
    }
  });

  it.each([
    [8, 'apple juice', 'kitchen', 'fridge'],
    [10, 'chocolate', 'kitchen', 'fridge'],
    [12, 'marshmallow', 'kitchen', 'cupboard|table'],
    [14, 'ice cream', 'kitchen', 'freezer'],
    [16, 'soap', 'kitchen', 'cupboard|table'],
    [18, 'rubber', 'workshop', 'table'],
    [20, 'lead', 'workshop', 'table'],
    [24, 'mercury', 'workshop', 'table'],
    [28, 'caesium', 'workshop', 'table'],
  ])('put number %i, %s, into the %s: %s', (variation, name, room, containers) => {
    const simulator = house('boil', variation);
    const substance = [...descendants(inRoom(simulator, room))].find(
      (one) => one.name === name && one.parent !== inRoom(simulator, room),
    )!;
    const outer = substance.parent!.kind.location ? substance : substance.parent!;
    const names = [substance.parent!.name, outer.parent!.name];
    expect(containers.split('|').some((one) => names.includes(one))).toBe(true);
  });

  it('make ice as cold water that is called water until the first tick', () => {
    const simulator = house('melt', 4);
    const [ice] = thingIn(simulator, 'freezer').visible();
    expect([ice!.name, ice!.matter!.temperature]).toEqual(['water', -10]);
    act(simulator, 'teleport to kitchen');
    expect(ice!.name).toBe('ice');
  });
});

describe('thermometer tasks', () => {
  it('place the thing and two boxes where they state, and use one of five limits', () => {
    for (const variation of some('use-thermometer', 12)) {
      const simulator = house('use-thermometer', variation);
      const { target, place, boxes, boxPlace, limit } = readTask(simulator);
      const thing = thingIn(simulator, target, place);
      expect(thing.matter!.temperature).toBe(Math.trunc(thing.matter!.temperature));
      for (const { name } of boxes) expect(placeOf(thingIn(simulator, name))!.name).toBe(boxPlace);
      expect([-50, 0, 50, 100, 200]).toContain(limit);
    }
  });

  it('give melting points to known substances, in the kitchen', () => {
    const seen = new Set<string>();
    for (const variation of some('measure-melting-point-known-substance', 30)) {
      const simulator = house('measure-melting-point-known-substance', variation);
      const { target, place, limit } = readTask(simulator);
      seen.add(target);
      expect(place).toBe('kitchen');
      expect([-10, 10, 50, 150, 200]).toContain(limit);
      if (target !== 'water') expect(placeOf(thingIn(simulator, target, 'kitchen'))!.name).toBe('kitchen');
    }
    expect([...seen].sort()).toEqual(['chocolate', 'gallium', 'lead', 'mercury', 'orange juice', 'tin', 'water']);
  });

  it('give unknown substances the melting point of their letter; those below 15 °C come in a cup', () => {
    let cupped = 0;
    for (const variation of some('measure-melting-point-unknown-substance', 30)) {
      const simulator = house('measure-melting-point-unknown-substance', variation);
      const { target } = readTask(simulator);
      const thing = thingIn(simulator, target, 'kitchen');
      const melting = UNKNOWN_MELTING[target.at(-1)!]!;
      expect(thing.matter!.melt).toBe(melting);
      expect(thing.parent!.name === 'kitchen').toBe(melting >= 15);
      if (melting < 15) cupped++;
    }
    expect(cupped).toBeGreaterThan(0);
  });

  it('pay the right box for the melting point, whatever was measured', () => {
    for (const variation of some('measure-melting-point-unknown-substance', 8)) {
      for (const right of [true, false]) {
        const simulator = house('measure-melting-point-unknown-substance', variation);
        const { target, boxes, limit } = readTask(simulator);
        const isAbove = UNKNOWN_MELTING[target.at(-1)!]! >= limit!;
        const box = boxes.find(({ means }) => (means === 'above') === (isAbove === right))!;
        act(simulator, 'teleport to kitchen', 'focus on thermometer', `focus on ${target}`, `focus on ${box.name}`);
        expect([simulator.goals.complete, simulator.goals.failed]).toEqual([right, !right]);
      }
    }
  });
});

describe('circuit tasks', () => {
  /** A variation that asks about each thing. */
  const variationOf = new Map(
    some('test-conductivity', 36).map((variation) => [
      readTask(house('test-conductivity', variation)).target,
      variation,
    ]),
  );

  it('place all parts, a renewable source and another in the workshop', () => {
    const parts = [
      'electric motor',
      'electric buzzer',
      'battery',
      'red light bulb',
      'green light bulb',
      'blue light bulb',
    ];
    for (let variation = 0; variation < 20; variation++) {
      const simulator = house('power-component', variation);
      const names = [...descendants(inRoom(simulator, 'workshop'))].map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(parts));
      expect(names).toContain(variation % 4 < 2 ? 'solar panel' : 'wind generator');
      expect(names).toContain(variation % 2 === 0 ? 'gas generator' : 'nuclear generator');
    }
  });

  it('ask for a renewable source at even numbers, for another at odd ones', () => {
    const name = 'power-component-renewable-vs-nonrenewable-energy';
    for (let variation = 0; variation < 20; variation++)
      expect(readTask(house(name, variation)).goal).toBe(
        variation % 2 === 0 ? 'power renewable' : 'power nonrenewable',
      );
  });

  it.each([
    ['aluminum foil', true],
    ['apricot', false],
    ['glass jar', false],
    ['metal fork', true],
    ['metal pot', true],
    ['paper clip', true],
    ['plastic fork', false],
    ['shovel', true],
    ['sodium chloride', false],
    ['water', false],
    ['wood block', false],
    ['book (The Foundations of the Origin of Species)', false],
  ])('know whether %s conducts: %s', (name, conducts) => {
    const variation = variationOf.get(name)!;
    const simulator = house('test-conductivity', variation);
    const { place, boxes } = readTask(simulator);
    expect(['workshop', 'kitchen', 'living room']).toContain(place);
    if (name !== 'water') {
      const thing = thingIn(simulator, name, place);
      simulator.focus = thing;
      simulator.goals.tick(thing);
      simulator.world.move(thing, thingIn(simulator, boxes[conducts ? 0 : 1]!.name));
      simulator.goals.tick(thing);
      expect([simulator.goals.complete, simulator.goals.failed]).toEqual([true, false]);
    }
    expect(boxes.map(({ means }) => means)).toEqual(['conductive', 'nonconductive']);
  });

  it('draw whether an unknown substance conducts, by the variation', () => {
    const drawn = some('test-conductivity-of-unknown-substances', 40).map((variation) => {
      const simulator = house('test-conductivity-of-unknown-substances', variation);
      const { target, boxes } = readTask(simulator);
      const thing = thingIn(simulator, target, 'workshop');
      simulator.goals.tick(thing);
      simulator.world.move(thing, thingIn(simulator, boxes[thing.matter!.electric ? 0 : 1]!.name));
      simulator.goals.tick(thing);
      expect(simulator.goals.complete).toBe(true);
      return thing.matter!.electric;
    });
    const conducting = drawn.filter((conducts) => conducts).length;
    expect(conducting).toBeGreaterThan(8);
    expect(conducting).toBeLessThan(32);
  });
});

describe('find tasks', () => {
  const NAMES = ['find-living-thing', 'find-non-living-thing', 'find-plant', 'find-animal'];

  it.each(NAMES)('%s has three animals outside, three plants and five pots in the greenhouse, and the box', (name) => {
    for (const variation of some(name, 10)) {
      const simulator = house(name, variation);
      const animals = inRoom(simulator, 'outside').contents.filter(({ kind }) => kind.id === 'animal');
      expect(new Set(animals.map((animal) => animal.name)).size).toBe(3);
      const pots = inRoom(simulator, 'greenhouse').contents.filter(({ kind }) => kind.id === 'flower pot');
      expect(pots).toHaveLength(5);
      expect(new Set(pots.map((pot) => pot.name)).size).toBe(5);
      for (const pot of pots) expect(pot.name).toMatch(/^flower pot [1-9]$/);
      const planted = pots.filter((pot) => pot.contents.some(({ kind }) => kind.id === 'plant'));
      expect(planted).toHaveLength(3);
      for (const pot of planted) expect(held(pot)).toContain('soil');
      const { boxes, boxPlace } = readTask(simulator);
      expect(placeOf(thingIn(simulator, boxes[0]!.name))!.name).toBe(boxPlace);
    }
  });

  it('go through five rooms and six colours of boxes for each of ten draws', () => {
    const seen = new Set<string>();
    for (let variation = 0; variation < 30; variation++) {
      const { boxes, boxPlace } = readTask(house('find-animal', variation));
      seen.add(`${boxes[0]!.name} ${boxPlace}`);
    }
    expect(seen.size).toBe(30);
  });
});

describe('growing tasks', () => {
  it('put five seeds of the fruit into a jar of the room they name', () => {
    for (const variation of some('grow-plant', 14)) {
      const simulator = house('grow-plant', variation);
      const { target, place } = readTask(simulator);
      const jar = thingIn(simulator, 'seed jar', place);
      const seeds = jar.contents.filter(({ life }) => life?.stage === 'seed' && life.species === target);
      expect(seeds).toHaveLength(5);
    }
  });

  it('have three pots: with soil, with a heap of it beside them, or without', () => {
    for (const [variation, full, heaps] of [
      [0, 3, 0],
      [1, 0, 1],
      [2, 0, 0],
    ] as const) {
      const greenhouse = inRoom(house('grow-plant', variation), 'greenhouse');
      const pots = greenhouse.contents.filter(({ kind }) => kind.id === 'flower pot');
      expect(pots.map(({ name }) => name)).toEqual(['flower pot 1', 'flower pot 2', 'flower pot 3']);
      expect(pots.filter((pot) => pot.has('soil')).length).toBe(full);
      expect(greenhouse.contents.filter(({ kind }) => kind.id === 'soil').length).toBe(heaps);
    }
  });

  it.each(['mendelian-genetics-known-plant', 'mendelian-genetics-unknown-plant'])(
    '%s: two seeds that are pure in the trait of the task, six pots and two boxes',
    (name) => {
      for (const variation of some(name, 10)) {
        const simulator = house(name, variation);
        const greenhouse = inRoom(simulator, 'greenhouse');
        const jar = thingIn(simulator, 'seed jar', 'greenhouse');
        const seeds = jar.contents.filter(({ life }) => life !== null);
        expect(seeds).toHaveLength(2);
        expect(greenhouse.contents.filter(({ kind }) => kind.id === 'flower pot')).toHaveLength(6);
        const { boxes } = readTask(simulator);
        expect(boxes.map(({ means }) => means)).toEqual(['dominant', 'recessive']);
        for (const box of boxes) expect(placeOf(thingIn(simulator, box.name))!.name).toBe('greenhouse');
        const [one, other] = seeds.map(({ life }) => life!.genes!) as [never, never];
        const pure = (genes: { traits: readonly string[]; first: readonly boolean[]; second: readonly boolean[] }) =>
          genes.traits.filter((_, i) => genes.first[i] === genes.second[i]);
        expect(pure(one).some((trait) => pure(other).includes(trait))).toBe(true);
      }
    },
  );
});

describe('chemistry tasks', () => {
  it('place what the recipe asks for, but water and paint, with the recipe in the room they name', () => {
    for (let variation = 0; variation < 32; variation++) {
      const simulator = house('chemistry-mix', variation);
      const { target, place } = readTask(simulator);
      const recipe = thingIn(simulator, 'recipe', place);
      expect(recipe.print!.title).toBe(`instructions to make ${target}`);
      const inputs = /you need to mix (.*)\.$/.exec(recipe.print!.text)![1]!.split(', ');
      for (const input of inputs) if (input !== 'water' && !input.endsWith(' paint')) thingIn(simulator, input, place);
      expect(simulator.goals.optional).toHaveLength(inputs.length + 4);
    }
  });

  it('go through sixteen products, each for the kitchen and for the workshop', () => {
    const all = Array.from({ length: 32 }, (_, variation) => readTask(house('chemistry-mix', variation)));
    expect(new Set(all.map(({ target }) => target)).size).toBe(16);
    expect(all.slice(0, 9).map(({ place }) => place)).toEqual([...Array(8).fill('kitchen'), 'workshop']);
  });

  it('have paint on the desk alone; cupboard and closet hold empty cups', () => {
    for (let variation = 0; variation < 6; variation++) {
      const simulator = house('chemistry-mix-paint-secondary-color', variation);
      const holder = ['paint cupboard', 'paint closet', 'desk'][variation % 3]!;
      const room = variation < 3 ? 'art studio' : 'workshop';
      const placed = thingIn(simulator, holder, room);
      const cups = placed.contents.filter(({ kind }) => kind.id.endsWith(' cup'));
      expect(cups).toHaveLength(3);
      const paints = cups.flatMap(held);
      expect(paints).toEqual(holder === 'desk' ? ['red paint', 'blue paint', 'yellow paint'] : []);
    }
  });

  it.each([
    [0, 'green-blue paint'],
    [6, 'yellow-green paint'],
    [12, 'red-orange paint'],
    [18, 'yellow-orange paint'],
    [24, 'violet-red paint'],
    [30, 'blue-violet paint'],
  ])('number %i of the tertiary ones asks for %s', (variation, target) => {
    expect(readTask(house('chemistry-mix-paint-tertiary-color', variation))).toMatchObject({
      goal: 'mix paint twice',
      target,
    });
  });
});

describe('lifespan tasks', () => {
  it.each([
    ['lifespan-longest-lived', 'lifespan longest'],
    ['lifespan-shortest-lived', 'lifespan shortest'],
    ['lifespan-longest-lived-then-shortest-lived', 'lifespan longest then shortest'],
  ])('%s: three animals outside, a right one and wrong ones', (name, goal) => {
    for (const variation of some(name, 6)) {
      const right = house(name, variation);
      expect(readTask(right)).toMatchObject({ goal, place: 'outside' });
      const animals = inRoom(right, 'outside').contents.filter(({ life }) => life !== null);
      expect(animals).toHaveLength(3);
      animals.sort((a, b) => SPANS[b.life!.species]! - SPANS[a.life!.species]!);
      const [long, medium, short] = animals as [Thing, Thing, Thing];
      for (const animal of [...(goal.includes('longest') ? [long] : []), ...(goal.includes('shortest') ? [short] : [])])
        right.goals.tick(animal);
      expect(right.goals.complete).toBe(true);
      const wrong = house(name, variation);
      wrong.goals.tick(thingIn(wrong, medium.name, 'outside'));
      expect(wrong.goals.failed).toBe(true);
    }
  });

  it('go through all 125 triples', () => {
    const seen = new Set<string>();
    for (let variation = 0; variation < 125; variation += 5) {
      const animals = inRoom(house('lifespan-longest-lived', variation), 'outside').contents.filter(({ life }) => life);
      seen.add(animals.map(({ name }) => name).join(','));
    }
    expect(seen.size).toBe(25);
  });
});

describe('life-stage tasks', () => {
  it('ask for each stage of an animal but the last', () => {
    const seen = new Set<string>();
    for (let variation = 0; variation < 14; variation++) {
      const simulator = house('identify-life-stages-1', variation);
      const { target } = readTask(simulator);
      seen.add(target);
      expect(thingIn(simulator, target, 'outside').life!.species).toBe(target);
      expect([3, 4]).toContain(simulator.goals.ordered.length);
    }
    expect(seen.size).toBe(14);
  });

  it('show a tree in all five stages, in numbered pots that water themselves, and an animal in all of its own', () => {
    for (let variation = 0; variation < 10; variation++) {
      const simulator = house('identify-life-stages-2', variation);
      const outside = inRoom(simulator, 'outside');
      const pots = outside.contents.filter(({ kind }) => kind.id === 'self watering flower pot');
      const stages = pots.map((pot) => pot.contents.find(({ life }) => life !== null)!.life!);
      expect(stages.map(({ stage }) => stage)).toEqual(['seed', 'seedling', 'adult', 'reproducing', 'dead']);
      expect(new Set(stages.map(({ species }) => species))).toEqual(new Set([readTask(simulator).target]));
      const animals = outside.contents.filter(({ kind }) => kind.id === 'animal');
      expect(new Set(animals.map(({ life }) => life!.stage)).size).toBe(animals.length);
      expect(animals.length).toBeGreaterThanOrEqual(4);
    }
  });
});

describe('inclined planes', () => {
  const NAMED = 'inclined-plane-friction-named-surfaces';

  it.each([
    [NAMED, 'friction'],
    ['inclined-plane-friction-unnamed-surfaces', 'friction'],
    ['inclined-plane-determine-angle', 'angle'],
  ] as const)('%s: two that differ enough in %s, a block and a stopwatch', (name, by) => {
    for (const variation of some(name, 20)) {
      const simulator = house(name, variation);
      const planes = inRoom(simulator, 'workshop').contents.filter(({ plane }) => plane !== null);
      expect(planes).toHaveLength(2);
      const [one, other] = planes.map(({ plane }) => plane![by]) as [number, number];
      expect(Math.abs(one - other)).toBeGreaterThan(by === 'angle' ? 5 : 0.05);
      thingIn(simulator, 'stopwatch', 'workshop');
      const block = inRoom(simulator, 'workshop').contents.filter(({ kind }) =>
        ['wood block', 'steel block', 'brick'].includes(kind.id),
      );
      expect(block).toHaveLength(1);
    }
  });

  it('pay the plane with the most friction, the least, the steepest or the shallowest angle', () => {
    for (const name of [NAMED, 'inclined-plane-determine-angle']) {
      for (const variation of some(name, 9)) {
        const simulator = house(name, variation);
        const { goal } = readTask(simulator);
        const by = goal.includes('friction') ? 'friction' : 'angle';
        const planes = inRoom(simulator, 'workshop').contents.filter(({ plane }) => plane !== null);
        planes.sort((a, b) => b.plane![by] - a.plane![by]);
        const right = /most|steepest/.test(goal) ? planes[0]! : planes[1]!;
        simulator.goals.tick(right);
        expect([name, variation, simulator.goals.complete]).toEqual([name, variation, true]);
      }
    }
  });

  it('have the friction of the surface that they name', () => {
    const frictions = new Map([...MATERIALS.values()].map(({ substance, friction }) => [substance, friction]));
    for (const variation of some(NAMED, 15)) {
      for (const { plane } of inRoom(house(NAMED, variation), 'workshop').contents)
        if (plane) expect(plane.friction).toBe(frictions.get(plane.surface));
    }
    for (const variation of some('inclined-plane-friction-unnamed-surfaces', 15)) {
      for (const { plane } of inRoom(house('inclined-plane-friction-unnamed-surfaces', variation), 'workshop').contents)
        if (plane) expect(plane.friction).toBe(UNKNOWN_FRICTION[plane.surface.at(-1)!]);
    }
  });
});
