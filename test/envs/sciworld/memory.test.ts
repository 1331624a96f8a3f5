/** Memory of an episode, as a reader of SciWorld's texts has it: what each kind of reply changes in it. */
import { describe, expect, it } from 'vitest';
import { begin, type Memory, showsTarget, targetPart, updateMemory } from '../../../envs/sciworld/memory.ts';
import { act, house } from '../../support/small-sciworld.ts';

const LOOK = [
  'This room is called the kitchen. In it, you see: ',
  '\tthe agent',
  '\ta substance called air',
  '\ta bowl (containing a red apple, a banana)',
  '\ta stove, which is turned off. On the stove is: nothing.',
  'You also see:',
  '\tA door to the hallway (that is closed)',
  '\tA door to the outside (that is open)',
].join('\n');

const TASK =
  'Your task is to measure the temperature of unknown substance B, which is located around the bathroom. First, focus on the thermometer. Next, focus on the unknown substance B. If the unknown substance B temperature is above 50.0 degrees celsius, place it in the red box. If the unknown substance B temperature is below 50.0 degrees celsius, place it in the green box. The boxes are located around the bedroom.';

const start = (task = TASK) => begin({ kind: 'first', observation: `${task}\n${LOOK}` });
const turn = (memory: Memory, action: string, observation: string, partial = false) =>
  updateMemory(memory, { action, observation, ...(partial ? { partial } : {}) });

describe('the beginning', () => {
  it('knows the task, the place, what is there and where its doors lead', () => {
    const memory = start();
    expect(memory.task).toMatchObject({ goal: 'temperature', target: 'unknown substance B', limit: 50 });
    expect([memory.place, memory.visited]).toEqual(['kitchen', ['kitchen']]);
    expect(memory.seen).toEqual(['agent', 'air', 'bowl', 'stove']);
    expect([...memory.doors]).toEqual([
      ['hallway', false],
      ['outside', true],
    ]);
    expect(memory).toMatchObject({ held: [], focus: '', degrees: null, outcome: 'ok' });
  });

  it('of a text that is no task is empty', () => {
    expect(begin({ kind: 'first', observation: '' })).toMatchObject({ place: '', seen: [], task: { goal: 'task' } });
  });
});

describe('a turn', () => {
  it.each([
    ['go to hallway', 'You move to the hallway.'],
    ['teleport to hallway', 'You teleport to the hallway.'],
    ['go through door to hallway', 'You move through the door to the hallway.'],
  ])('"%s" goes on to a place that was not looked at yet', (action, observation) => {
    const memory = turn(start(), action, observation);
    expect(memory).toMatchObject({ place: 'hallway', visited: ['kitchen', 'hallway'], seen: [], look: '' });
    // The way back stands open.
    expect([...memory.doors]).toEqual([['kitchen', true]]);
  });

  it('into a known place visits it once', () => {
    let memory = turn(start(), 'go to hallway', 'You move to the hallway.');
    memory = turn(memory, 'go to kitchen', 'You move to the kitchen.');
    expect(memory.visited).toEqual(['kitchen', 'hallway']);
  });

  it('takes things up and puts them down', () => {
    let memory = turn(start(), 'pick up bowl', 'You move the bowl to the inventory.');
    memory = turn(memory, 'pick up red apple', 'You move the apple to the inventory.');
    expect(memory.held).toEqual(['bowl', 'apple']);
    memory = turn(memory, 'move bowl to stove', '(disconnecting bowl)You move the bowl to the stove.');
    expect(memory.held).toEqual(['apple']);
  });

  it('reads the inventory', () => {
    const memory = turn(start(), 'inventory', 'In your inventory, you see:\n\tan orange\n\ta substance called soap\n');
    expect(memory.held).toEqual(['orange', 'soap']);
  });

  it('keeps the focus until the task is reset', () => {
    let memory = turn(start(), 'focus on thermometer', 'You focus on the thermometer.');
    expect(memory.focus).toBe('thermometer');
    memory = turn(memory, 'reset task', 'You reset the goal progress and focus.');
    expect(memory.focus).toBe('');
  });

  it.each([
    [
      'use thermometer on unknown substance B',
      'the thermometer measures a temperature of -12 degrees celsius',
      -12,
      '',
    ],
    [
      'use thermometer on liquid unknown substance B',
      'the thermometer measures a temperature of 90 degrees celsius',
      90,
      'liquid',
    ],
    ['use thermometer on bowl', 'the thermometer measures a temperature of 90 degrees celsius', null, ''],
  ])('reads of "%s": %s', (action, observation, degrees, state) => {
    expect(turn(start(), action, observation)).toMatchObject({ degrees, state });
  });

  it('keeps what a recipe asks for', () => {
    const memory = turn(start(), 'read recipe', 'The recipe reads:\nTo make dough, you need to mix flour, water.');
    expect(memory.needed).toEqual(['flour', 'water']);
  });

  it.each([
    ['open door to hallway', 'The door is now open.', 'hallway', true],
    ['close door to outside', 'The door is now closed.', 'outside', false],
  ])('"%s" sets the door', (action, observation, to, open) => {
    expect(turn(start(), action, observation).doors.get(to)).toBe(open);
  });

  it('does not take a cupboard for a door', () => {
    const memory = turn(start(), 'open cupboard', 'The cupboard is now open.');
    expect([...memory.doors]).toEqual([...start().doors]);
  });

  it('in the middle of a stage changes nothing', () => {
    const memory = start();
    expect(turn(memory, 'open ?', 'open: choose from the list.', true)).toBe(memory);
  });
});

describe('the outcome', () => {
  it.each([
    'No known action matches that input.',
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. ",
    'The door is not open.',
    'The stove is already activated.',
    "The stove appears broken, and can't be activated or deactivated.",
    "The fridge isn't open, so you can't see inside.",
    "It's not clear how to get there from here.",
    'Its not clear how to go to/through a sink.',
    "I'm not sure how to use the soap.",
    "You can't move something into itself.",
    "That can't be moved there.",
    'That is already flushing.',
    'Mixing the contents of the bowl does not appear to produce anything new.',
    'There is only one thing (water)',
    'That container is empty, so there are no items to mix.',
    "Something can't be connected to itself.",
    "That thing doesn't appear to have a temperature that the thermometer can read.",
    'anode on battery is already connected, and must be disconnected before it can be connected to something else',
    'The paper is not flammable.',
    'The bowl does not contain any liquids to dunk into.',
    "The liquids in sink aren't able to move.",
    "The bowl is empty, so there's nothing to pour.",
    'The paper does not have any text on it.',
  ])('of "%s" is a failure', (observation) => {
    expect(turn(start(), 'x', observation).outcome).toBe('fail');
  });

  it.each([
    'The stove is now activated.',
    'You decide to wait for 10 iterations.',
    'Soap and water mix to produce soapy water.',
    'anode on battery is now connected to terminal 1 on red wire',
    'The orange was delicious.',
    'The paper catches fire.',
  ])('of "%s" is well', (observation) => {
    expect(turn(start(), 'x', observation).outcome).toBe('ok');
  });

  it('of an ambiguous request is unclear, and nothing else changes', () => {
    const before = start();
    const memory = turn(before, 'x', 'Ambiguous request: Please enter the number');
    expect(memory).toEqual({ ...before, outcome: 'unclear' });
  });

  it('of every refusal that the actions have is read as one', () => {
    const simulator = house();
    act(simulator, 'teleport to kitchen');
    const refused = ['open bowl', 'close soap', 'go to sink', 'activate chair', 'eat stopwatch', 'pick up stove'];
    refused.push(
      'move soap to soap',
      'pour soap into bowl',
      'use soap on bowl',
      'read soap',
      'flush sink',
      'look in soap',
    );
    refused.push('teleport to stove', 'connect bowl to bowl', 'xyzzy');
    for (const text of refused)
      expect([text, turn(start(), text, simulator.step(text)).outcome]).toEqual([text, 'fail']);
  });
});

describe('a look', () => {
  it('with a circuit shows whether it is on', () => {
    const lookAfter = (state: string) =>
      turn(
        start(),
        'look around',
        LOOK.replace('a stove, which is turned off. On the stove is: nothing.', `a red light bulb, which is ${state}`),
      );
    expect([lookAfter('on').power, lookAfter('off').power, start().power]).toEqual(['on', 'off', '']);
  });

  it.each([
    ['\tunknown substance B\n', true],
    ['\ta bowl (containing a red apple, unknown substance B)\n', true],
    ['\ta bowl (containing unknown substance B, a red apple)\n', true],
    ['\ta table. On the table is: unknown substance B.\n', true],
    ['\ta substance called liquid unknown substance B\n', true],
    ['\tunknown substance C\n', false],
    ['\tunknown substance Bee\n', false],
  ])('%j shows the target: %s', (look, shows) => {
    expect(showsTarget(start().task, look)).toBe(shows);
  });
});

describe('parts of what the task is about', () => {
  it.each([
    ['unknown substance B', ''],
    ['liquid unknown substance B', ''],
    ['unknown substance B in bowl', 'in bowl'],
    ['unknown substance B terminal 1', 'terminal 1'],
    ['unknown substance C', undefined],
    ['bowl', undefined],
    ['unknown substance Boat', undefined],
  ])('%s: %s', (name, part) => {
    expect(targetPart(start().task, name)).toBe(part);
  });

  it('hold ice, water and steam to be one thing', () => {
    const { task } = begin({
      kind: 'first',
      observation:
        'Your task is to boil water. First, focus on the substance. Then, take actions that will cause it to change its state of matter.\n',
    });
    expect(['ice', 'steam', 'water', 'water in jug'].map((name) => targetPart(task, name))).toEqual([
      '',
      '',
      '',
      'in jug',
    ]);
  });
});
