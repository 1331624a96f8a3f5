/** The actions of SciWorld one by one: what they answer and do, why they refuse, and which take time. */
import { beforeEach, describe, expect, it } from 'vitest';
import { ACTIONS } from '../../../envs/sciworld/actions.ts';
import { kind } from '../../../envs/sciworld/kinds.ts';
import type { Simulator } from '../../../envs/sciworld/simulator.ts';
import type { Thing } from '../../../envs/sciworld/thing.ts';
import { act, house, thingIn } from '../../support/small-sciworld.ts';

let simulator: Simulator;

beforeEach(() => {
  simulator = house();
});

/** A new thing, put into a place of the house or into another thing. */
function put(id: string, into: string | Thing): Thing {
  const thing = simulator.world.make(kind(id));
  simulator.world.move(thing, typeof into === 'string' ? thingIn(simulator, into) : into);
  return thing;
}

const at = (place: string) => simulator.step(`teleport to ${place}`);

describe('the table of actions', () => {
  it('has 27, in the order of the valid list', () => {
    expect(ACTIONS.map(({ shown }) => shown[0])).toEqual([
      ...['open', 'close', 'go to', 'look around', 'look at', 'look in', 'activate', 'deactivate', 'eat', 'move'],
      ...['pour', 'focus on', 'reset task', 'use', 'read', 'flush', 'connect', 'disconnect', 'wait1', 'wait'],
      ...['inventory', 'pick up', 'put down', 'mix', 'task', 'dunk', 'teleport to'],
    ]);
  });

  it('takes no time for looking around, the inventory and the task', () => {
    expect(ACTIONS.filter(({ free }) => free).map(({ name }) => name)).toEqual([
      'look around',
      'view inventory',
      'task description',
    ]);
  });

  it('gives every action on two things its conditions thing by thing', () => {
    for (const { name, arity, pairs } of ACTIONS) expect([name, pairs !== undefined]).toEqual([name, arity === 2]);
  });
});

describe('time', () => {
  it.each([
    ['look around', 0],
    ['inventory', 0],
    ['task', 0],
    ['help', 0],
    ['objects', 0],
    ['no such thing at all', 0],
    ['focus on agent', 1],
    ['open agent', 1],
    ['eat agent', 1],
    ['wait1', 2],
    ['wait', 11],
  ])('%s takes %i ticks', (text, ticks) => {
    simulator.step(text);
    expect(simulator.moves).toBe(ticks);
  });
});

describe('opening and closing', () => {
  it('a cupboard', () => {
    at('kitchen');
    expect(simulator.step('open cupboard')).toBe('The cupboard is now open.');
    expect(simulator.step('open cupboard')).toBe('The cupboard is already open.');
    expect(simulator.step('close cupboard')).toBe('The cupboard is now closed.');
    expect(simulator.step('close cupboard')).toBe('The cupboard is already closed.');
  });

  it('a door', () => {
    at('kitchen');
    expect(simulator.step('open door to hallway')).toBe('The door is now open.');
    expect(simulator.step('open door to hallway')).toBe('The door is already open.');
    expect(simulator.step('close door to hallway')).toBe('The door is now closed.');
    expect(simulator.step('close door to hallway')).toBe('The door is already closed.');
  });

  it.each([
    ['open bowl', 'The bowl is already open.'],
    ['close bowl', 'The bowl is not closeable.'],
    ['open stopwatch', 'The stopwatch is not openable.'],
    ['close stopwatch', 'The stopwatch is not closeable.'],
    ['open chair', 'The chair is already open.'],
    ['close soap', 'The soap is not closeable.'],
    ['open soap', 'The soap is not openable.'],
  ])('%s: %s', (text, answer) => {
    at('kitchen');
    expect(simulator.step(text)).toBe(answer);
  });

  it('shuts away what a container holds', () => {
    at('kitchen');
    expect(simulator.step('look at metal pot')).toBe('No known action matches that input.');
    simulator.step('open cupboard');
    expect(simulator.step('look at metal pot')).toBe('a metal pot (containing nothing)');
  });
});

describe('going', () => {
  it('needs an open door', () => {
    at('kitchen');
    expect(simulator.step('go to hallway')).toBe('The door is not open.');
    simulator.step('open door to hallway');
    expect(simulator.step('go to hallway')).toBe('You move to the hallway.');
    expect(simulator.look()).toMatch(/^This room is called the hallway\. /);
  });

  it('through a door shows where it leads', () => {
    at('kitchen');
    simulator.step('open door to outside');
    expect(simulator.step('go through door to outside')).toBe('You move through the door to the outside.');
    expect(simulator.step('go to door to greenhouse')).toBe('The door is not open.');
  });

  it.each([
    ['go to sink', 'Its not clear how to go to/through a sink.'],
    ['go to kitchen', "It's not clear how to get there from here."],
    ['walk to banana', 'Its not clear how to go to/through a banana.'],
  ])('%s: %s', (text, answer) => {
    at('kitchen');
    expect(simulator.step(text)).toBe(answer);
  });

  it.each(['go to', 'walk to', 'move to', 'go into', 'move into', 'go', 'go through', 'walk through'])(
    'is understood as "%s"',
    (words) => {
      at('kitchen');
      simulator.step('open door to hallway');
      expect(simulator.step(`${words} hallway`)).toBe('You move to the hallway.');
    },
  );

  it('through a drain is not clear, which is a door where it is described', () => {
    at('kitchen');
    expect(simulator.step('focus on drain')).toBe('You focus on the door between sink and sewer.');
    expect(simulator.step('go to drain')).toBe('Its not clear how to go to/through a drain.');
  });

  it('by teleport ignores doors', () => {
    expect(at('foundry')).toBe('You teleport to the foundry.');
    expect(simulator.step('teleport to blast furnace')).toBe('Its not clear how to go to blast furnace.');
    for (const name of ['universe', 'sewer'])
      expect(simulator.step(`teleport to ${name}`)).toBe(`Its not clear how to go to ${name}.`);
    const listed = simulator.valid().filter((text) => text.startsWith('teleport'));
    expect([listed.length, listed.some((text) => /universe|sewer/.test(text))]).toEqual([10, false]);
    expect(simulator.world.agent.parent!.name).toBe('foundry');
  });
});

describe('looking', () => {
  it('around describes the room, as no other action does', () => {
    at('kitchen');
    expect(simulator.step('look around')).toBe(simulator.look().trim().replace(/ +/g, ' '));
    expect(simulator.step('look')).toContain('This room is called the kitchen.');
  });

  it.each(['look at', 'examine', 'look on'])('"%s" describes a thing in detail', (words) => {
    at('kitchen');
    expect(simulator.step(`${words} stopwatch`)).toBe('a stopwatch, which is deactivated. The time reads 0 ticks.');
  });

  it('at a hidden contact finds no description', () => {
    at('kitchen');
    expect(simulator.step('look at terminal 1 in bowl')).toBe('<ERROR: Could not retrieve object description>');
  });

  it.each([
    ['look in bowl', /^Inside the bowl is: \n/],
    ['look in fridge', /^The fridge isn't open, so you can't see inside\.$/],
    ['look in stopwatch', /^The stopwatch isn't open, so you can't see inside\.$/],
    ['look in soap', /^It's not clear how to look inside of that\.$/],
  ])('%s', (text, answer) => {
    at('kitchen');
    expect(simulator.step(text)).toMatch(answer);
  });

  it('in a sink shows its drain', () => {
    at('kitchen');
    expect(simulator.step('look in sink')).toBe(
      'Inside the sink is: \n\tnothing\n You also see: A drain, which is open.',
    );
  });
});

describe('switching', () => {
  it('a device on and off', () => {
    at('kitchen');
    expect(simulator.step('activate stove')).toBe('The stove is now activated.');
    expect(simulator.step('turn on stove')).toBe('The stove is already activated.');
    expect(simulator.step('turn off stove')).toBe('The stove is now deactivated.');
    expect(simulator.step('deactivate stove')).toBe('The stove is already deactivated.');
  });

  it('on sets a stopwatch to 0', () => {
    at('kitchen');
    act(simulator, 'activate stopwatch', 'wait', 'deactivate stopwatch');
    // A tick of its own start, eleven of waiting; the one that stops it does not count.
    expect(thingIn(simulator, 'stopwatch').count).toBe(12);
    simulator.step('activate stopwatch');
    expect(thingIn(simulator, 'stopwatch').count).toBe(1);
  });

  it.each([
    ['activate thermometer', 'The thermometer is not something that can be activated.'],
    ['activate chair', 'The chair is not something that can be activated.'],
    ['deactivate chair', 'The chair is not something that can be activated.'],
    ['activate fridge', 'The fridge is already activated.'],
  ])('%s: %s', (text, answer) => {
    at('kitchen');
    expect(simulator.step(text)).toBe(answer);
  });

  it('is not possible for what is broken', () => {
    at('kitchen');
    thingIn(simulator, 'stove').device!.broken = true;
    expect(simulator.step('activate stove')).toBe("The stove appears broken, and can't be activated or deactivated.");
    expect(thingIn(simulator, 'stove').device!.on).toBe(false);
  });
});

describe('eating', () => {
  it('takes the thing away without deleting it', () => {
    const orange = simulator.world.inventory.contents.find(({ name }) => name === 'orange')!;
    expect(simulator.step('eat orange')).toBe('The orange was delicious.');
    expect([orange.parent, orange.deleted]).toEqual([null, false]);
  });

  it('refuses things that are no food', () => {
    expect(simulator.step('eat agent')).toBe('The agent is not edible.');
    expect(simulator.step('consume agent')).toBe('The agent is not edible.');
  });
});

describe('moving', () => {
  it('puts a thing into another, onto furniture, into a place, and into the hands', () => {
    at('kitchen');
    expect(simulator.step('move stopwatch to bowl')).toBe('You move the stopwatch to the bowl.');
    expect(thingIn(simulator, 'stopwatch').parent!.name).toBe('bowl');
    expect(simulator.step('put stopwatch on chair')).toBe('You move the stopwatch to the chair.');
    expect(simulator.step('pick up stopwatch')).toBe('You move the stopwatch to the inventory.');
    expect(simulator.step('put down stopwatch')).toBe('You move the stopwatch to the kitchen.');
    expect(simulator.step('move stopwatch to hallway')).toBe('You move the stopwatch to the hallway.');
    expect(thingIn(simulator, 'stopwatch', 'hallway').parent!.name).toBe('hallway');
  });

  it.each([
    ['move stove to chair', 'The stove is not moveable.'],
    ['move chair to chair', "You can't move something into itself."],
    ['move stopwatch to soap', "That can't be moved there."],
    ['move stopwatch to fridge', "That can't be moved there, because the fridge isn't open."],
    ['move air to bowl', "You can't pick up a gas directly."],
    ['pick up sink', 'The sink is not moveable.'],
    ['pick up air', "You can't pick up a gas directly."],
    ['drop stove', 'The stove is not moveable.'],
  ])('%s: %s', (text, answer) => {
    at('kitchen');
    expect(simulator.step(text)).toBe(answer);
  });

  it('refuses a liquid and answers how to move it', () => {
    at('bathroom');
    expect(simulator.step('pick up water')).toBe(
      "You can't pick up a liquid directly. Try pouring it from one container to another, or dunking empty containers into containers filled with the liquid.",
    );
  });

  it('puts down even things that are not held', () => {
    at('kitchen');
    simulator.step('move stopwatch to bowl');
    expect(simulator.step('put down stopwatch')).toBe('You move the stopwatch to the kitchen.');
  });

  it('pulls connections apart and reports it', () => {
    at('workshop');
    const [battery, bulb] = [thingIn(simulator, 'battery'), put('electric buzzer', 'workshop')];
    expect(simulator.step('connect battery anode to electric buzzer cathode')).toBe(
      'anode on battery is now connected to cathode on electric buzzer',
    );
    expect(simulator.step('pick up electric buzzer')).toBe(
      '(disconnecting electric buzzer)You move the electric buzzer to the inventory.',
    );
    for (const thing of [battery, bulb])
      expect(thing.terminals!.map(({ contact }) => contact!.connection)).toEqual([null, null]);
  });
});

describe('pouring', () => {
  const withWater = () => {
    at('kitchen');
    const pot = put('metal pot', 'chair');
    put('water', pot);
    return pot;
  };

  it('a vessel empties it into another', () => {
    withWater();
    expect(simulator.step('pour metal pot into bowl')).toBe('You pour the contents of the metal pot into the bowl.');
    expect(
      thingIn(simulator, 'bowl')
        .visible()
        .map(({ name }) => name),
    ).toContain('water');
  });

  it('a liquid takes it out of its vessel', () => {
    withWater();
    expect(simulator.step('pour water in metal pot into sink')).toBe('You pour the water into the sink.');
  });

  it('puts even solids over with their vessel', () => {
    at('kitchen');
    expect(simulator.step('pour bowl into chair')).toBe('You pour the contents of the bowl into the chair.');
    expect(thingIn(simulator, 'banana').parent!.name).toBe('chair');
  });

  it.each([
    ['pour stove into bowl', 'The stove is not moveable.'],
    ['pour thermometer into bowl', 'The kitchen the thermometer is in is not movable.'],
    ['pour fridge into bowl', 'The fridge is not moveable.'],
    ['pour glass jar into bowl', "The glass jar can't be poured out, because it's not open."],
    ['pour soap into bowl', 'The kitchen the soap is in is not movable.'],
    ['pour bowl into soap', "That can't be moved there, because it's not a container."],
    ['pour bowl into fridge', "That can't be moved there, because the fridge isn't open."],
    ['pour bowl into bowl', "You can't move something into itself."],
  ])('%s: %s', (text, answer) => {
    at('kitchen');
    expect(simulator.step(text)).toBe(answer);
  });

  it.each([
    ['brick', "I'm not sure how to pour a solid."],
    ['air', "You can't pour a gas directly."],
  ])('%s, loose in a vessel, is refused: %s', (id, answer) => {
    at('hallway');
    put(id, put('jug', 'hallway'));
    expect(simulator.step(`pour ${id} in jug into inventory`)).toBe(answer);
  });
});

describe('what is connected', () => {
  it('comes apart when it is poured, itself or out of its vessel, but not with the vessel', () => {
    at('workshop');
    const pot = put('metal pot', 'workshop');
    const water = put('water', pot);
    act(simulator, 'connect battery anode to metal pot');
    connectDirectly(water, thingIn(simulator, 'switch'));
    expect(simulator.step('pour metal pot into inventory')).toBe(
      '(disconnecting water)\nYou pour the contents of the metal pot into the inventory.',
    );
    expect(pot.terminals![0].contact!.connection).not.toBeNull();
    const cup = put('glass cup', 'workshop');
    simulator.world.move(water, cup);
    connectDirectly(water, thingIn(simulator, 'switch'));
    expect(simulator.step('pour water in glass cup into table')).toBe(
      '(disconnecting water)\nYou pour the water into the table.',
    );
  });

  it('comes apart when it is dunked out of its vessel, but not with the thing that is dunked', () => {
    at('workshop');
    const pot = put('metal pot', 'workshop');
    const water = put('water', put('glass cup', 'workshop'));
    act(simulator, 'connect battery anode to metal pot');
    connectDirectly(water, thingIn(simulator, 'switch'));
    expect(simulator.step('dunk metal pot in glass cup')).toBe(
      '(disconnecting water)You dunk the metal pot in the glass cup, moving the liquids (water) to the metal pot.',
    );
    expect(pot.terminals![0].contact!.connection).not.toBeNull();
  });
});

/** Connects a thing that no command can name. */
function connectDirectly(one: Thing, other: Thing): void {
  const [a, b] = [one.terminals![0], other.terminals![0]];
  a.contact!.connection = b;
  b.contact!.connection = a;
}

describe('dunking', () => {
  it('moves the liquids of the second thing into the first', () => {
    at('bathroom');
    expect(simulator.step('dunk glass cup in toilet')).toBe(
      'You dunk the glass cup in the toilet, moving the liquids (water) to the glass cup.',
    );
    expect(
      thingIn(simulator, 'glass cup', 'bathroom')
        .visible()
        .map(({ name }) => name),
    ).toEqual(['water']);
  });

  it.each([
    ['dunk glass cup in glass cup', "You can't dunk something into itself."],
    ['dunk sink in toilet', 'The sink is not moveable.'],
    ['dunk glass cup in sink', 'The sink does not contain any liquids to dunk into.'],
  ])('%s: %s', (text, answer) => {
    at('bathroom');
    expect(simulator.step(text)).toBe(answer);
  });

  it.each([
    ['glass jar', 'The glass jar is not open.'],
    ['brick', 'The brick is not a container.'],
    ['lighter', 'The lighter is not open.'],
  ])('a %s is refused: %s', (id, answer) => {
    at('bathroom');
    put(id, 'bathroom');
    expect(simulator.step(`dunk ${id} in toilet`)).toBe(answer);
  });

  it('is listed the other way round than it is understood', () => {
    at('bathroom');
    const listed = simulator.valid().filter((text) => text.startsWith('dunk '));
    expect(listed.length).toBeGreaterThan(0);
    for (const text of listed) expect(text).toMatch(/^dunk toilet.* into /);
  });
});

describe('the focus', () => {
  it('is the last thing that was focused on', () => {
    at('kitchen');
    expect(simulator.step('focus on stopwatch')).toBe('You focus on the stopwatch.');
    expect(simulator.focus!.name).toBe('stopwatch');
    simulator.step('focus soap');
    expect(simulator.focus!.name).toBe('soap');
  });

  it('describes a thing as it looks', () => {
    at('outside');
    thingIn(simulator, 'wood', 'outside').matter!.burned = true;
    thingIn(simulator, 'wood', 'outside').forgetNames();
    expect(simulator.step('focus on wood')).toBe('You focus on the burned wood.');
  });

  it('is dropped with "reset task"', () => {
    act(simulator, 'teleport to kitchen', 'focus on stopwatch');
    expect(simulator.goals.score).toBe(-1);
    expect(simulator.step('reset task')).toBe('You reset the goal progress and focus.');
    expect(simulator.focus).toBeNull();
    expect(simulator.goals.failed).toBe(false);
  });
});

describe('tools', () => {
  it('the thermometer reads a temperature in whole degrees', () => {
    at('kitchen');
    thingIn(simulator, 'soap').matter!.temperature = 36.4;
    expect(simulator.step('use thermometer on soap')).toBe(
      'the thermometer measures a temperature of 36 degrees celsius',
    );
    thingIn(simulator, 'soap').matter!.temperature = -0.3;
    expect(simulator.step('use thermometer on soap')).toMatch(/of (?:-0|0|1) degrees celsius$/);
  });

  it('the thermometer reads nothing of what has no matter', () => {
    at('kitchen');
    expect(simulator.step('use thermometer on apple')).toBe(
      "That thing doesn't appear to have a temperature that the thermometer can read.",
    );
  });

  it('the lighter sets on fire what can burn, once', () => {
    at('kitchen');
    put('paper', 'kitchen');
    expect(simulator.step('use lighter on paper')).toBe('The paper catches fire.');
    expect(simulator.step('use lighter on paper')).toBe('The paper is already on fire.');
  });

  it.each([
    ['water', 'The lighter heats up the water a small amount.'],
    ['ash', 'The lighter heats up the ash a small amount.'],
    ['apple', "It's not clear how to use those items together."],
  ])('the lighter on %s: %s', (id, answer) => {
    at('hallway');
    put('lighter', 'hallway');
    put(id, 'hallway');
    expect(simulator.step(`use lighter on ${id}`)).toBe(answer);
  });

  it('the lighter warms by ten degrees what it cannot burn', () => {
    at('hallway');
    put('lighter', 'hallway');
    const brick = put('brick', 'hallway');
    brick.matter!.temperature = 25;
    simulator.step('use lighter on brick');
    expect(brick.matter!.temperature).toBeGreaterThan(34);
  });

  it('the lighter reports where nothing is left to burn', () => {
    at('hallway');
    put('lighter', 'hallway');
    put('paper', 'hallway').matter!.burnTicks = 0;
    expect(simulator.step('use lighter on paper')).toBe('The paper is not flammable.');
  });

  it('the shovel digs a hole in the ground, and earth', () => {
    at('outside');
    put('shovel', simulator.world.inventory);
    expect(simulator.step('use shovel in inventory on ground')).toBe(
      'You dig a hole in the ground, and place the soil nearby.',
    );
    expect(simulator.look()).toContain('soil');
    expect(simulator.look()).toContain('a hole (containing nothing)');
    expect(simulator.step('use shovel in inventory on fountain')).toBe(
      "I'm not sure how to use those two things together.",
    );
  });

  it('the axe breaks devices, which stay as they are, and leaves the rest alone', () => {
    at('outside');
    const watch = put('stopwatch', 'outside');
    watch.device!.on = true;
    expect(simulator.step('use axe on stopwatch')).toBe('You hit the stopwatch with the axe, causing it to break.');
    expect(watch.device).toMatchObject({ broken: true, on: true });
    expect(simulator.step('deactivate stopwatch')).toContain('appears broken');
    expect(simulator.step('use axe on fire pit')).toBe("I'm not sure how to use those two things together.");
  });

  it('the axe makes wood of a tree', () => {
    const grown = house('find-plant', 0);
    grown.step('teleport to greenhouse');
    const tree = grown.world.universe.contents
      .find(({ name }) => name === 'greenhouse')!
      .contents.flatMap(({ contents }) => contents)
      .find(({ kind: { id } }) => id === 'plant')!;
    const pot = tree.parent!;
    grown.world.move(grown.world.make(kind('axe')), grown.world.inventory);
    grown.step('wait1');
    const { name } = tree;
    expect(grown.step(`use axe on ${name} in ${pot.name}`)).toBe(`You chop down the ${name}, creating wood.`);
    expect(tree.deleted).toBe(true);
    expect(pot.contents.some(({ name }) => name === 'wood')).toBe(true);
  });

  it.each([
    ['use soap on bowl', "I'm not sure how to use the soap."],
    ['use stopwatch on bowl', "I'm not sure how to use the stopwatch."],
  ])('%s: %s', (text, answer) => {
    at('kitchen');
    expect(simulator.step(text)).toBe(answer);
  });
});

describe('connecting', () => {
  beforeEach(() => {
    at('workshop');
  });
  const wire = () =>
    thingIn(simulator, 'table', 'workshop').contents.find(({ kind: { form } }) => form === 'wire')!.name;

  it('wants the contacts of parts named', () => {
    expect(simulator.step('connect battery to switch')).toBe(
      'Connections must specify specific points of contact on polarized electrical components (e.g. anode, cathode)',
    );
    expect(simulator.step(`connect ${wire()} to switch`)).toBe(
      'Connections must specify specific points of contact on unpolarized electrical components (e.g. terminal 1, terminal 2)',
    );
  });

  it('joins two contacts and names both', () => {
    const name = wire();
    expect(simulator.step(`connect battery anode to ${name} terminal 1`)).toBe(
      `anode on battery is now connected to terminal 1 on ${name}`,
    );
    expect(simulator.step(`look at ${name}`)).toBe(
      `a ${name}its terminal 1 is connected to: a anode on battery. its terminal 2 is connected to: nothing.`,
    );
    expect(simulator.step(`connect battery anode to ${name} terminal 2`)).toBe(
      'anode on battery is already connected, and must be disconnected before it can be connected to something else',
    );
  });

  it('uses the first free contact of an ordinary thing, until there is none', () => {
    put('iron block', 'workshop');
    const name = wire();
    expect(simulator.step('connect battery anode to iron block')).toBe(
      'anode on battery is now connected to terminal 1 on iron block',
    );
    expect(simulator.step('connect battery cathode to iron block')).toBe(
      'cathode on battery is now connected to terminal 2 on iron block',
    );
    expect(simulator.step(`connect ${name} terminal 1 to iron block`)).toBe(
      'iron block is already connected, and must be disconnected before it can be connected to something else',
    );
    expect(simulator.step('disconnect iron block')).toBe('iron block has been disconnected');
    expect(simulator.step(`connect ${name} terminal 1 to iron block`)).toContain('is now connected to');
  });

  it.each([
    ['connect battery anode to battery anode', "Something can't be connected to itself."],
    [
      'disconnect battery anode',
      'You must disconnect entire objects (such as battery) instead of just single terminals',
    ],
    ['disconnect battery', 'battery has been disconnected'],
    ['disconnect agent', 'agent has been disconnected'],
  ])('%s: %s', (text, answer) => {
    expect(simulator.step(text)).toBe(answer);
  });
});

describe('reading and flushing', () => {
  it('a recipe, a book and a blank paper', () => {
    at('hallway');
    const recipe = put('recipe', 'hallway');
    recipe.print = { title: 'instructions', author: '', text: 'To make tea, you need to mix water, leaves.' };
    expect(simulator.step('read recipe')).toBe('The recipe reads:\nTo make tea, you need to mix water, leaves.');
    const book = put('book', 'hallway');
    book.print = { title: 'Beowulf', author: 'Beowulf poet', text: 'Lo' };
    expect(simulator.step('read book')).toBe('The book reads:\nBeowulf by Beowulf poet\nLo');
    put('paper', 'hallway');
    expect(simulator.step('read paper')).toBe('The paper does not have any text on it.');
    expect(simulator.step('read agent')).toBe("It's not clear how to read that.");
  });

  it('a toilet, once at a time', () => {
    at('bathroom');
    expect(simulator.step('flush toilet')).toBe('The toilet is now flushing.');
    expect(simulator.step('flush toilet')).toBe('That is already flushing.');
    expect(simulator.step('flush sink')).toBe("It's not clear how to flush that.");
  });
});

describe('mixing', () => {
  it('speaks of what comes of it', () => {
    at('kitchen');
    const cup = put('ceramic cup', simulator.world.inventory);
    put('water', cup);
    put('soap', cup);
    expect(simulator.step('mix ceramic cup')).toBe('Soap and water mix to produce soapy water.');
    expect(simulator.step('stir ceramic cup')).toMatch(/^There is only one thing \(soapy water\)$/);
  });

  it('a thing that holds nothing at all is not understood', () => {
    const empty = put('glass cup', simulator.world.inventory);
    for (const inside of empty.contents) simulator.world.take(inside);
    expect(simulator.step('mix glass cup')).toMatch(/^Unknown action\. {2}Type 'help'/);
    expect(simulator.moves).toBe(1);
  });
});

describe('texts about the game', () => {
  it('list the forms of the actions, sorted', () => {
    const answer = simulator.step('help');
    expect(answer.startsWith('Possible actions: \n\tactivate OBJ\n\tclose OBJ\n\tconnect OBJ to OBJ\n\t')).toBe(true);
    expect(answer.split('\n\t').slice(1)).toEqual([...simulator.forms()].sort());
    expect(simulator.forms()).toHaveLength(27);
  });

  it('list what can be named', () => {
    at('kitchen');
    expect(simulator.step('objects')).toMatch(/^Possible object references: \n\t/);
    expect(simulator.objects()).toContain('stopwatch');
    // What is shut away, or carried, is not named; a door is named as things are.
    expect(simulator.objects()).not.toContain('metal pot');
    expect(simulator.objects()).not.toContain('inventory');
    expect(simulator.objects()).toContain('door to outside');
  });

  it('show the task, in any case and with blanks around', () => {
    for (const text of ['task', 'TASK', '  task  '])
      expect(simulator.step(text)).toBe(`Task description:\n${simulator.description}`);
  });

  it('show the inventory in detail', () => {
    expect(simulator.step('inventory')).toBe('In your inventory, you see:\n\tan orange');
    simulator.step('eat orange');
    expect(simulator.step('inventory')).toBe('In your inventory, you see:\n\tnothing');
  });
});
