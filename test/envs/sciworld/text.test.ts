/** Texts of SciWorld: how each sort of thing appears in a list, and how when it is looked at. */
import { describe, expect, it } from 'vitest';
import { BOOKS, PICTURES } from '../../../envs/sciworld/pictures-and-books.ts';
import { cursory, degrees, describeDetails, describeName, double, lines } from '../../../envs/sciworld/text.ts';
import type { Thing } from '../../../envs/sciworld/thing.ts';
import { house, join, smallWorld, thingIn } from '../../support/small-sciworld.ts';

type Change = (thing: Thing, put: (id: string) => Thing) => void;
const asIs: Change = () => {};
const on: Change = ({ device }) => {
  device!.on = true;
};
const opened: Change = ({ container }) => {
  container!.open = true;
};

/** Rows: kind, change to it, text in a list, text when looked at. */
const ROWS: readonly (readonly [id: string, change: Change, short: string, long: string])[] = [
  ['agent', asIs, 'the agent', 'the agent'],
  ['bowl', asIs, 'a bowl (containing nothing)', 'a bowl (containing nothing)'],
  [
    'bowl',
    (_t, put) => void put('soap'),
    'a bowl (containing a substance called soap)',
    'a bowl (containing a substance called soap)',
  ],
  ['red box', asIs, 'a red box (containing nothing)', 'a red box (containing nothing)'],
  ['fire pit', asIs, 'a fire pit (containing nothing)', 'a fire pit (containing nothing)'],
  ['hole', asIs, 'a hole (containing nothing)', 'a hole (containing nothing)'],
  ['chair', asIs, 'a chair. On the chair is: nothing.', 'a chair. On the chair is: nothing.'],
  [
    'bed',
    (_t, put) => void put('pillow'),
    'a bed. On the bed is: a white pillow.',
    'a bed. On the bed is: a white pillow.',
  ],
  ['wood table', asIs, 'a table. On the table is: nothing.', 'a table. On the table is: \n\tnothing'],
  ['desk', (_t, put) => void put('brick'), 'a desk. On the desk is: a brick.', 'a desk. On the desk is: \n\ta brick\n'],
  ['cupboard', asIs, 'a cupboard. The cupboard door is closed. ', 'a cupboard. The cupboard door is closed. '],
  [
    'closet',
    opened,
    'a closet. The closet door is open. In the closet is: nothing.',
    'a closet. The closet door is open. In the closet is: \n\tnothing',
  ],
  ['drawer', asIs, 'a drawer', 'a drawer.  The drawer is closed.'],
  ['drawer', opened, 'a drawer', 'a drawer. In the drawer is: \n\tnothing'],
  ['fridge', asIs, 'a fridge. The fridge door is closed. ', 'a fridge. The fridge door is closed. '],
  [
    'freezer',
    ({ device }) => {
      device!.on = false;
    },
    'a freezer, which is turned off. The freezer door is closed. ',
    'a freezer, which is turned off. The freezer door is closed. ',
  ],
  [
    'stove',
    asIs,
    'a stove, which is turned off. On the stove is: nothing.',
    'a stove, which is turned off. On the stove is: nothing.',
  ],
  [
    'hot plate',
    on,
    'a hot plate, which is turned on. On the hot plate is: nothing.',
    'a hot plate, which is turned on. On the hot plate is: nothing.',
  ],
  [
    'oven',
    asIs,
    'a oven, which is turned off. The oven door is closed. ',
    'a oven, which is turned off. The oven door is closed. ',
  ],
  [
    'blast furnace',
    opened,
    'a blast furnace, which is turned off. The blast furnace door is open. In the blast furnace is: nothing.',
    'a blast furnace, which is turned off. The blast furnace door is open. In the blast furnace is: \n\tnothing',
  ],
  [
    'stopwatch',
    asIs,
    'a stopwatch, which is deactivated. ',
    'a stopwatch, which is deactivated. The time reads 0 ticks.',
  ],
  ['stopwatch', on, 'a stopwatch, which is activated. ', 'a stopwatch, which is activated. The time reads 0 ticks.'],
  [
    'thermometer',
    asIs,
    'a thermometer, currently reading a temperature of 10 degrees celsius',
    'a thermometer, currently reading a temperature of 10 degrees celsius',
  ],
  ['lighter', asIs, 'a lighter', 'a lighter'],
  ['axe', asIs, 'an axe', 'an axe'],
  [
    'red light bulb',
    asIs,
    'a red light bulb, which is off',
    'a red light bulb, which is off. its anode is connected to: nothing. its cathode is connected to: nothing. ',
  ],
  [
    'battery',
    asIs,
    'a battery',
    'a battery. its anode is connected to: nothing. its cathode is connected to: nothing. ',
  ],
  [
    'red wire',
    asIs,
    'a red wire',
    'a red wireits terminal 1 is connected to: nothing. its terminal 2 is connected to: nothing. ',
  ],
  ['soap', asIs, 'a substance called soap', 'a substance called soap'],
  ['soil', asIs, 'soil', 'soil'],
  ['ground', asIs, 'the ground', 'the ground'],
  ['red paint', asIs, 'red paint', 'red paint'],
  ['brick', asIs, 'a brick', 'a brick'],
  ['pillow', asIs, 'a white pillow', 'a white pillow'],
  ['metal fork', asIs, 'A metal fork', 'A metal fork'],
  ['unknown substance', asIs, 'unknown substance', 'unknown substance'],
  ['apple', asIs, 'a red apple', 'a red apple'],
  ['apricot', asIs, 'a orange apricot', 'a orange apricot'],
  ['grapefruit', asIs, 'an grapefruit', 'an grapefruit'],
  ['banana', asIs, 'a banana', 'a banana'],
  ['orange juice', asIs, 'orange juice', 'orange juice'],
  ['paper', asIs, 'A blank paper', 'A blank paper'],
  ['red paper', asIs, 'A red paper', 'A red paper'],
  [
    'recipe',
    (thing) => {
      thing.print = { title: 'instructions to make tea', author: '', text: '' };
    },
    'A recipe titled instructions to make tea',
    'A recipe titled instructions to make tea',
  ],
  [
    'book',
    (thing) => {
      thing.print = BOOKS[0]!;
    },
    'A book titled Moby Dick by Herman Melville',
    'A book titled Moby Dick by Herman Melville',
  ],
  [
    'painting',
    (thing) => {
      thing.print = { title: 'the moon', author: 'Lily', text: '' };
    },
    'a painting',
    'a painting of the moon.  The artist is listed as Lily. ',
  ],
];

describe('a thing', () => {
  it.each(ROWS)('%s (row %#)', (id, change, short, long) => {
    const { put } = smallWorld();
    const thing = put(id);
    change(thing, (inside) => put(inside, thing));
    expect([cursory(thing, null), describeDetails(thing, null)]).toEqual([short, long]);
  });

  it('of every sort of print is among the pictures and books of the house', () => {
    expect([PICTURES.kinds.length, PICTURES.subjects.length, PICTURES.artists.length]).toEqual([4, 10, 4]);
    expect(BOOKS.map(({ title }) => title)).toEqual([
      'Moby Dick',
      'Frankenstein',
      'Sherlock Holmes',
      'Pride and Prejudice',
      'Beowulf',
      'The Foundations of the Origin of Species',
    ]);
    for (const { text, author } of BOOKS) expect([author, text.length > 10]).toEqual([author, true]);
  });

  it('that burns or has burned shows it before all else', () => {
    const { put } = smallWorld();
    const wood = put('wood');
    wood.matter!.burning = true;
    expect(cursory(wood, null)).toBe('a substance called wood (on fire)');
    wood.matter!.burning = false;
    wood.matter!.burned = true;
    expect(cursory(wood, null)).toBe('a substance called burned wood');
    expect(describeName(put('ash'))).toBe('burned ash');
  });
});

describe('lists', () => {
  it('go by raw name, then by age, and leave hidden things out', () => {
    const { put, room } = smallWorld();
    const things = ['soap', 'brick', 'soap', 'axe'].map((id) => put(id));
    things[3]!.name = 'Zither';
    things[1]!.hidden = true;
    // Capitals come first; two of a name stay in the order they were made in.
    expect(
      lines(
        room.contents.filter((thing) => things.includes(thing)),
        room,
      ),
    ).toBe('\tan Zither\n\ta substance called soap\n\ta substance called soap\n');
  });

  it('of nothing state it', () => {
    expect(lines([], null)).toBe('\tnothing');
  });
});

describe('doors and drains', () => {
  it('show where they lead, from where one stands', () => {
    const simulator = house();
    const kitchen = thingIn(simulator, 'kitchen');
    const door = kitchen.portals[0]!;
    expect(cursory(door, kitchen)).toBe('A door to the hallway (that is closed)');
    door.portal!.open = true;
    expect(cursory(door, thingIn(simulator, 'hallway'))).toBe('A door to the kitchen (that is open)');
    expect(cursory(door, thingIn(simulator, 'foundry'))).toBe(
      'A door that connects the kitchen to the hallway (that is open)',
    );
  });

  it('of a sink stand in its long text alone', () => {
    const simulator = house();
    const sink = thingIn(simulator, 'sink', 'kitchen');
    expect(cursory(sink, null)).toBe('a sink, which is turned off. In the sink is: nothing.');
    expect(describeDetails(sink, null)).toBe(
      'a sink, which is turned off. In the sink is: nothing. The drain is open.',
    );
    const toilet = thingIn(simulator, 'toilet');
    expect(cursory(toilet, null)).toContain('a toilet. In the toilet is:');
    toilet.device!.on = true;
    expect(cursory(toilet, null)).toContain('a toilet. In the toilet is:');
    toilet.count = 1;
    toilet.device!.on = false;
    expect(cursory(toilet, null)).toContain('a toilet, which is flushing. In the toilet is:');
  });
});

describe('contacts', () => {
  it('name their owner in short, and what they are connected to at length', () => {
    const { put } = smallWorld();
    const [bulb, wire] = [put('red light bulb'), put('red wire')];
    const [end] = wire.terminals!;
    expect(cursory(end, null)).toBe('a terminal 1 on red wire');
    expect(describeDetails(end, null)).toBe('a terminal 1.  it is connected to: nothing. ');
    join(end, bulb.terminals![1]);
    expect(describeDetails(end, null)).toBe('a terminal 1.  it is connected to: a cathode on red light bulb. ');
    expect(describeDetails(bulb, null)).toContain('its cathode is connected to: a terminal 1 on red wire. ');
  });
});

describe('inclined planes', () => {
  const plane = (letter: string, surface: string, height: number | null) => {
    const { put } = smallWorld();
    const made = put('inclined plane');
    made.plane = { angle: 45, friction: 0.5, letter, surface, heights: new Map() };
    if (height !== null) made.plane.heights.set(put('brick', made), height);
    return cursory(made, null);
  };

  it.each([
    ['', '', null, 'an inclined plane'],
    ['B', '', null, 'an inclined plane B'],
    ['', 'steel', null, 'an inclined plane with a steel surface'],
    ['', '', 1, 'an inclined plane, with:  a brick at the top of the plane'],
    ['', '', Math.fround(0.99), 'an inclined plane, with:  a brick at the top of the plane'],
    ['', '', 0.98, 'an inclined plane, with:  a brick approximately 2% down the plane'],
    ['C', '', 0.254, 'an inclined plane C, with:  a brick approximately 75% down the plane'],
    ['', '', 0, 'an inclined plane, with:  a brick at the bottom of the plane'],
  ])('"%s" "%s" with a block at %s: %s', (letter, surface, height, text) => {
    expect(plane(letter, surface, height)).toBe(text);
  });
});

describe('rooms', () => {
  it('list their things, then their doors', () => {
    const { put, room } = smallWorld('bathroom');
    put('soap');
    expect(describeDetails(room, room)).toBe(
      'This room is called the bathroom. In it, you see: \n\tthe agent\n\ta substance called soap\nYou also see:\n',
    );
  });

  it('of the outside are described otherwise', () => {
    const { room } = smallWorld('outside');
    expect(describeDetails(room, room)).toBe(
      'This outside location is called the outside. Here you see: \n\tthe agent\nYou also see:\n',
    );
  });

  it('of the house list each door once, sorted', () => {
    const simulator = house();
    const text = describeDetails(thingIn(simulator, 'hallway'), thingIn(simulator, 'hallway'));
    expect(text.split('You also see:\n')[1]!.split('\n')).toEqual([
      ...['art studio', 'bedroom', 'greenhouse', 'kitchen', 'living room', 'workshop'].map(
        (room) => `\tA door to the ${room} (that is closed)`,
      ),
      '',
    ]);
  });
});

describe('numbers', () => {
  it.each([
    [36.4, '36'],
    [36.5, '37'],
    [2.5, '3'],
    [-0.3, '-0'],
    [-17.6, '-18'],
  ])('%d degrees are printed as %s', (celsius, text) => {
    expect(degrees(celsius)).toBe(text);
  });

  it.each([
    [50, '50.0'],
    [-10, '-10.0'],
    [0.5, '0.5'],
    [0, '0.0'],
  ])('%d is printed as %s', (number, text) => {
    expect(double(number)).toBe(text);
  });
});
