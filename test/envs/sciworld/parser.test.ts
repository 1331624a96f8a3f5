/** Commands of SciWorld as they are read: names of things, prefixes, articles, and what remains ambiguous. */
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { kind } from '../../../envs/sciworld/kinds.ts';
import { ownSet, plain } from '../../../envs/sciworld/names.ts';
import { match, nameable, optionText } from '../../../envs/sciworld/parser.ts';
import type { Simulator } from '../../../envs/sciworld/simulator.ts';
import { type Thing, World } from '../../../envs/sciworld/thing.ts';
import { act, house, smallWorld, thingIn } from '../../support/small-sciworld.ts';

describe('plain text', () => {
  it.each([
    ['Open the Door', 'open door'],
    ['  move   an orange  to a   bowl ', 'move orange to bowl'],
    ['the a an', ''],
    ['theatre another area', 'theatre another area'],
    ['LOOK\tAROUND\n', 'look around'],
  ])('%j is %j', (text, expected) => {
    expect(plain(text)).toBe(expected);
  });

  it('made plain again stays as it is', () => {
    fc.assert(fc.property(fc.string(), (text) => plain(plain(text)) === plain(text)));
  });
});

/** Names of a thing as the parser compares them. */
const names = (thing: Thing, viewer: Thing | null = null) => [...ownSet(thing, viewer).plain.keys()].sort();

describe('names of things', () => {
  const small = () => smallWorld('kitchen');

  it.each([
    ['stopwatch', ['stopwatch', 'timer', 'watch']],
    ['chair', ['chair', 'sittable', 'wood sittable']],
    ['couch', ['cloth sittable', 'couch', 'sittable']],
    ['drawer', ['drawer', 'wood table']],
    ['bee hive', ['bee hive', 'beehive', 'hive']],
    ['apple', ['apple', 'red apple']],
    ['jam', ['jam', 'red jam']],
    ['soap', ['soap', 'substance']],
    ['iron block', ['block', 'iron block']],
    ['red paint', ['paint', 'red paint']],
    ['electric motor', ['electric motor', 'motor']],
    ['red light bulb', ['light', 'light bulb', 'red light bulb']],
    ['solar panel', ['generator', 'solar panel']],
    ['switch', ['component', 'switch']],
    ['blast furnace', ['blast furnace', 'furnace']],
    ['ultra low temperature freezer', ['freezer', 'ultra low temperature freezer']],
    ['plastic fork', ['plastic fork']],
    ['metal fork', ['metal fork', 'steel fork']],
    ['agent', ['agent', 'self']],
    ['inventory', ['inventory']],
    ['bowl', ['bowl', 'bowl containing nothing', 'wood bowl', 'wood bowl containing nothing']],
    ['jug', ['jug', 'jug containing nothing']],
  ])('%s answers to %j', (id, expected) => {
    expect(names(small().put(id))).toEqual(expected);
  });

  it('list what a vessel holds, each sort once and sorted', () => {
    const { put } = small();
    const jug = put('jug');
    for (const id of ['water', 'soap', 'water']) put(id, jug);
    expect(names(jug)).toEqual(['jug', 'jug containing soap and water']);
  });

  it('change with what is put in, taken out, burnt and renamed', () => {
    const { world, put, room } = small();
    const cup = put('paper cup');
    expect(names(cup)).toContain('paper cup containing nothing');
    const brick = put('brick', cup);
    expect(names(cup)).toContain('paper cup containing brick');
    world.move(brick, room);
    expect(names(cup)).toContain('paper cup containing nothing');
    cup.matter!.burning = true;
    cup.forgetNames();
    expect(names(cup)).toContain('paper cup (on fire)');
    cup.name = 'seed jar';
    expect(names(cup)).toContain('seed jar');
    expect(names(cup)).toContain('paper cup');
  });

  it('of contacts name their owner, and follow its name', () => {
    const { put } = small();
    const battery = put('battery');
    expect(names(battery.terminals![0])).toEqual(['anode', 'anode on battery', 'battery anode', 'terminal']);
    battery.name = 'cell';
    expect(names(battery.terminals![1])).toEqual(['cathode', 'cathode on cell', 'cell cathode', 'terminal']);
  });

  it('of documents take in title and author', () => {
    const { put } = small();
    const recipe = put('recipe');
    recipe.print = { title: 'instructions to make tea', author: '', text: '' };
    expect(names(recipe)).toEqual(['instructions to make tea', 'recipe', 'recipe called instructions to make tea']);
    const book = put('book');
    book.print = { title: 'Moby Dick', author: 'Herman Melville', text: '' };
    book.name = 'book (Moby Dick)';
    expect(names(book)).toEqual(
      expect.arrayContaining(['book', 'moby dick', 'book by herman melville', 'moby dick book']),
    );
    const picture = put('painting');
    picture.print = { title: 'a cow', author: 'Bob', text: '' };
    expect(names(picture)).toEqual(['painting', 'painting of cow']);
  });

  it('of planes take the letter along, whatever the surface', () => {
    const { put } = small();
    const plane = put('inclined plane');
    plane.plane = { angle: 45, friction: 0.5, letter: 'B', surface: '', heights: new Map() };
    expect(names(plane)).toEqual(['inclined plane', 'inclined plane b', 'inclined plane b b', 'plane', 'plane b']);
  });
});

describe('doors', () => {
  it('are named by where they lead, seen from a side of theirs, and by both sides from elsewhere', () => {
    const simulator = house();
    const kitchen = thingIn(simulator, 'kitchen');
    const door = kitchen.portals[0]!;
    expect(names(door, kitchen)).toEqual(['door', 'door to hallway', 'hallway door']);
    expect(names(door, thingIn(simulator, 'hallway'))).toEqual(['door', 'door to kitchen', 'kitchen door']);
    expect(names(door, thingIn(simulator, 'foundry'))).toEqual([
      'door',
      'door from hallway to kitchen',
      'door from kitchen to hallway',
    ]);
  });

  it('of a sink are drains with the name of their owner', () => {
    const simulator = house();
    const sink = thingIn(simulator, 'sink', 'kitchen');
    expect(names(sink.portals[0]!, thingIn(simulator, 'kitchen'))).toEqual(['drain', 'sink drain']);
    expect(names(sink.portals[0]!, thingIn(simulator, 'hallway'))).toEqual(['drain']);
  });
});

describe('matching', () => {
  const pattern = [['move', 'put'], null, ['to', 'in', 'into', 'on'], null] as const;
  const read = (text: string, ids: readonly string[]) => {
    const { put, room } = smallWorld();
    const things = ids.map((id) => put(id));
    return match(pattern, text, nameable(things, room)).map((tuple) => tuple.map(({ name }) => name));
  };

  it('finds the things of a command', () => {
    expect(read('move soap to jug', ['soap', 'jug'])).toEqual([['soap', 'jug']]);
    expect(read('put soap on jug', ['soap', 'jug'])).toEqual([['soap', 'jug']]);
  });

  it('knows no bounds between words', () => {
    expect(read('movesoaptojug', ['soap', 'jug'])).toEqual([['soap', 'jug']]);
  });

  it.each(['move soap to', 'move soap', 'move to jug', 'move soap to jug now', 'drag soap to jug', ''])(
    'has no reading of %j',
    (text) => {
      expect(read(text, ['soap', 'jug'])).toEqual([]);
    },
  );

  it('has a reading for each thing of the name, and each once', () => {
    expect(read('move substance to jug', ['soap', 'water', 'jug'])).toEqual([
      ['soap', 'jug'],
      ['water', 'jug'],
    ]);
    // "light" begins "light bulb" too, but the bulb is one thing.
    expect(read('move red light bulb to jug', ['red light bulb', 'jug'])).toHaveLength(1);
  });

  it('reads a thing by what it is in', () => {
    const { put, room } = smallWorld();
    const [one, other] = [put('jug'), put('bowl')];
    const things = [put('soap', one), put('soap', other), one, other];
    const found = match(pattern, 'move soap in jug to bowl', nameable(things, room));
    expect(found.map((tuple) => tuple.map(({ id }) => id))).toEqual([[things[0]!.id, other.id]]);
  });
});

describe('options of an ambiguous command', () => {
  it('name a thing with its containers, up to the room', () => {
    const { put, room } = smallWorld();
    const soap = put('soap', put('jug', put('desk')));
    expect(optionText([['focus on', 'focus'], null], [soap], room)).toBe('focus on soap (in jug, in desk, in kitchen)');
  });

  it('name doors without any', () => {
    const simulator = house();
    const kitchen = thingIn(simulator, 'kitchen');
    expect(optionText([['open'], null], [kitchen.portals[0]!], kitchen)).toBe('open door between kitchen and hallway');
  });

  it('end in a circle of containers', () => {
    const world = new World(smallWorld().world.random);
    const [one, other] = [world.make(kind('jug')), world.make(kind('bowl'))];
    world.move(one, other);
    world.move(other, one);
    expect(optionText([['eat'], null], [one], world.make(kind('kitchen'))).length).toBeLessThan(5000);
  });
});

describe('an ambiguous command', () => {
  let simulator: Simulator;
  beforeEach(() => {
    simulator = house('boil', 0, ['teleportAction', 'openContainers']);
    act(simulator, 'teleport to kitchen');
  });
  const ask = () => simulator.step('pick up orange');

  it('takes no time and asks for a number', () => {
    const before = simulator.moves;
    expect(ask()).toBe(
      [
        'Ambiguous request: Please enter the number for the action you intended (or blank to cancel):',
        '0:\tpick up orange (in bowl, in counter, in kitchen)',
        '1:\tpick up orange (in inventory, in agent, in kitchen)',
        '',
      ].join('\n'),
    );
    expect([simulator.moves, simulator.options]).toEqual([before, 2]);
    expect(simulator.valid()).toEqual(['0', '1']);
  });

  it.each(['0', '+0', '00'])('is settled by %j', (number) => {
    ask();
    expect(simulator.step(number)).toBe('You move the orange to the inventory.');
    expect(simulator.options).toBe(0);
  });

  it.each(['', '2', '-1', ' 0', 'zero', 'pick up orange', '0.0'])('is dropped by %j, which takes a tick', (text) => {
    ask();
    const before = simulator.moves;
    expect(simulator.step(text)).toMatch(/^Unknown action\./);
    expect([simulator.options, simulator.moves]).toEqual([0, before + 1]);
  });

  it.each(['help', 'objects', 'task'])('stays open through %j', (text) => {
    ask();
    simulator.step(text);
    expect(simulator.options).toBe(2);
  });

  it('of several actions names them in order', () => {
    // "look in" and "look" + "in…" differ; "move to" is a way to go and the beginning of a move.
    const answer = simulator.step('put orange in bowl in counter');
    expect(answer).toMatch(/Ambiguous request: Please enter the number/);
    expect(simulator.options).toBeGreaterThan(1);
  });

  it('offers choices that do what they name', () => {
    ask();
    expect(simulator.choices.map(([thing]) => thing!.parent!.name)).toEqual(['bowl', 'inventory']);
  });
});

describe('reach', () => {
  it('ends at closed containers and closed rooms, not at doors themselves', () => {
    const simulator = house();
    act(simulator, 'teleport to kitchen');
    expect(simulator.countReadings('focus on metal pot')).toBe(0);
    expect(simulator.countReadings('focus on glass jar')).toBe(1);
    expect(simulator.countReadings('focus on hallway')).toBe(1);
    expect(simulator.countReadings('focus on foundry')).toBe(0);
    expect(simulator.countReadings('focus on sink drain')).toBe(1);
    simulator.step('open cupboard');
    expect(simulator.countReadings('focus on metal pot')).toBe(1);
  });

  it('takes in what the agent carries', () => {
    const simulator = house();
    act(simulator, 'teleport to foundry');
    expect(simulator.countReadings('focus on orange')).toBe(1);
    expect(simulator.countReadings('focus on orange in inventory')).toBe(1);
    expect(simulator.countReadings('focus on inventory')).toBe(1);
  });
});
