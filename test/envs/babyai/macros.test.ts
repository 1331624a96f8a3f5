/** BabyAI as text: scenes, sentences, macro actions and the memory of what was seen, in rooms made by hand. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, print } from '../../../envs/babyai/grammar.ts';
import {
  BALL,
  BLUE,
  BOX,
  CLOSED,
  COLOR_NAMES,
  codeOf,
  DOOR,
  DROP,
  FORWARD,
  GREEN,
  IMAGE_BYTES,
  isOpaque,
  KEY,
  LIGHT,
  LOCKED,
  OPEN,
  PICKUP,
  RED,
  SORTED_COLORS,
  TOGGLE,
  VIEW,
  WALL_CODE,
} from '../../../envs/babyai/grid.ts';
import { expand, listCorrectedMacros, originalMacros } from '../../../envs/babyai/macro.ts';
import { describes, listRemembered, thingsIn, track } from '../../../envs/babyai/memory.ts';
import { nameOf, readScene } from '../../../envs/babyai/scene.ts';
import { describe as describeScene, text } from '../../../envs/babyai/text.ts';
import { Description, GoTo } from '../../../envs/babyai/verifier.ts';
import { World } from '../../../envs/babyai/world.ts';

type Thing = readonly [code: number, x: number, y: number];

/** A 7×7 room with the agent at (3, 5) facing up: column 3 is straight ahead. */
function room(...things: readonly Thing[]): World {
  const world = new World(7, 1, 1, 12);
  for (let y = 1; y < 6; y++) world.cells.fill(0, world.at(1, y), world.at(6, y));
  for (const [code, x, y] of things) world.place(world.addObject(code), world.at(x, y));
  world.agentX = 3;
  world.agentY = 5;
  world.agentDir = 3;
  world.maxSteps = 200;
  world.instruction = new GoTo(new Description(BALL, GREEN));
  world.instruction.reset(world);
  return world;
}

function look(world: World) {
  const image = new Uint8Array(IMAGE_BYTES);
  world.observe(image);
  return readScene(world, image);
}

const actions = (world: World) => listCorrectedMacros(look(world), world).map(({ action }) => action);
const red = (type: number, state = 0) => codeOf(type, RED, state);

describe('a scene', () => {
  it('names things by colour, kind and a door’s state, the nearest first', () => {
    const scene = look(
      room([red(BALL), 3, 4], [codeOf(KEY, BLUE), 1, 5], [red(BALL), 5, 2], [red(DOOR, LOCKED), 3, 0]),
    );
    expect(scene.things.map(({ name, number, front, right }) => [name, number, front, right])).toEqual([
      ['red ball', 1, 1, 0],
      ['blue key', 1, 0, -2],
      ['red locked door', 1, 5, 0],
      ['red ball', 2, 3, 2],
    ]);
  });

  it('finds the wall straight ahead and how far it is', () => {
    expect(look(room())).toMatchObject({ barrier: 2, barrierDistance: 5 });
    expect(look(room([red(BOX), 3, 2]))).toMatchObject({ barrier: BOX, barrierDistance: 3 });
  });

  it.each([
    [red(BALL), 'red ball'],
    [codeOf(DOOR, BLUE, OPEN), 'blue open door'],
    [codeOf(DOOR, BLUE, CLOSED), 'blue closed door'],
    [codeOf(BOX, 5), 'grey box'],
  ])('code %i is a %s', (code, name) => {
    expect(nameOf(code)).toBe(name);
  });
});

describe('sentences', () => {
  it('name things, walls and the hand', () => {
    const world = room([red(BALL), 3, 3], [codeOf(KEY, BLUE), 5, 4]);
    const description = describeScene(look(world), world.codes[world.carrying]!);
    expect(description).toBe(
      'In front of you in this room, you can see several objects: There is a red ball 1 right in front of you 2 steps away.  There is a blue key 1 1 steps in front of you and 2 steps to your right.  The room has walls around you. You are facing a wall 5 steps away. You are not carrying anything.',
    );
    world.carrying = world.addObject(codeOf(BOX, GREEN));
    expect(describeScene(look(world), world.codes[world.carrying]!)).toMatch(/You are carrying a green box\.$/);
  });

  it('are read back as they were written', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(
          fc.record({
            x: fc.integer({ min: 1, max: 5 }),
            y: fc.integer({ min: 1, max: 4 }),
            color: fc.nat(5),
            type: fc.constantFrom(KEY, BALL, BOX),
          }),
          { selector: ({ x, y }) => `${x} ${y}`, maxLength: 6 },
        ),
        (all) => {
          const scene = look(room(...all.map(({ x, y, color, type }): Thing => [codeOf(type, color), x, y])));
          expect(thingsIn(describeScene(scene, 1))).toEqual(
            scene.things.map(({ name, number, front, right }) => ({ name, number, front, right })),
          );
        },
      ),
    );
  });

  it('list what can be done', () => {
    expect(text.available([])).toBe('\nAvailable actions: []');
    expect(text.available(['a', 'b'])).toBe('\nAvailable actions: ["a", "b"]');
  });
});

describe('macro actions', () => {
  it('turn, walk, and go to what is there', () => {
    expect(actions(room())).toEqual(['turn left', 'turn right', 'move forward']);
    expect(actions(room([red(BALL), 3, 3]))).toEqual([
      'turn left',
      'turn right',
      'move forward',
      'pickup red ball 1',
      'go to red ball 1',
    ]);
  });

  it('do not go to what is faced already, nor forward into it', () => {
    const listed = actions(room([red(BALL), 3, 4]));
    expect(listed).toContain('pickup red ball 1');
    expect(listed).not.toContain('go to red ball 1');
    expect(listed).not.toContain('move forward');
  });

  it('pick up nothing with a full hand, and drop only where there is room', () => {
    const world = room([red(BALL), 3, 3]);
    world.carrying = world.addObject(codeOf(KEY, BLUE));
    expect(actions(world)).toContain('drop');
    expect(actions(world)).not.toContain('pickup red ball 1');
    const blocked = room([red(BALL), 3, 4]);
    blocked.carrying = blocked.addObject(codeOf(KEY, BLUE));
    expect(actions(blocked)).not.toContain('drop');
  });

  it.each([
    ['nothing', undefined, false],
    ['a key of another colour', codeOf(KEY, BLUE), false],
    ['a ball of its colour', codeOf(BALL, RED), false],
    ['its key', codeOf(KEY, RED), true],
  ])('open a locked door with %s: %s', (_what, held, opens) => {
    const world = room([red(DOOR, LOCKED), 3, 0]);
    if (held !== undefined) world.carrying = world.addObject(held);
    expect(actions(world).includes('toggle and go through red locked door 1')).toBe(opens);
  });

  it('go through an open door, and toggle what is ahead', () => {
    const world = room([red(DOOR, OPEN), 3, 0], [red(BOX), 2, 5]);
    expect(actions(world)).toContain('go through red open door 1');
    const ahead = room([red(BOX), 3, 4]);
    expect(actions(ahead)).toContain('toggle');
    expect(actions(room([red(BALL), 3, 4]))).not.toContain('toggle');
  });

  it('number things as the scene does', () => {
    const listed = actions(room([red(BALL), 3, 3], [red(BALL), 1, 2]));
    expect(listed).toEqual(expect.arrayContaining(['go to red ball 1', 'go to red ball 2', 'pickup red ball 2']));
  });

  it('of the original list checking, and give reasons for refusals', () => {
    const world = room([red(DOOR, LOCKED), 3, 0], [codeOf(BALL, BLUE), 3, 4]);
    const refusals = new Map<string, string>();
    const listed = originalMacros(look(world), world, refusals).map(({ action }) => action);
    expect(listed).toContain('check available actions');
    expect(listed).toContain('pickup blue ball 1');
    expect(refusals.get('drop')).toBe(text.dropNothing);
    expect(refusals.get('toggle and go through red locked door 1')).toBe(text.noKey('red locked door 1'));
  });

  it('are played as low-level actions that do what they name', () => {
    const world = room([red(BALL), 5, 2]);
    const scene = look(world);
    const pickup = listCorrectedMacros(scene, world).find(({ action }) => action === 'pickup red ball 1')!;
    const lows = expand(pickup, scene, world, false);
    expect(lows.at(-1)).toBe(PICKUP);
    for (const low of lows) world.step(low);
    expect(nameOf(world.codes[world.carrying]!)).toBe('red ball');
    const drop = listCorrectedMacros(look(world), world).find(({ action }) => action === 'drop')!;
    expect(expand(drop, look(world), world, false)).toEqual([DROP]);
  });

  it('through a door toggle it and step in', () => {
    const world = room([red(DOOR, CLOSED), 3, 0]);
    const scene = look(world);
    const through = listCorrectedMacros(scene, world).find(({ action }) => action.startsWith('toggle and'))!;
    expect(expand(through, scene, world, false)).toEqual([FORWARD, FORWARD, FORWARD, FORWARD, TOGGLE, FORWARD]);
  });

  it('never offer what changes nothing, wherever things lie that are seen', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(
          fc.record({
            x: fc.integer({ min: 1, max: 5 }),
            y: fc.integer({ min: 1, max: 5 }),
            type: fc.constantFrom(KEY, BALL, BOX),
          }),
          { selector: ({ x, y }) => `${x} ${y}`, maxLength: 8 },
        ),
        (all) => {
          // Looking up from the bottom row the agent sees the whole room: a way through what is unseen may lead nowhere.
          const things = all.filter(({ x, y }) => x !== 3 || y !== 5).map(({ x, y, type }): Thing => [red(type), x, y]);
          for (const action of actions(room(...things))) {
            const world = room(...things);
            const scene = look(world);
            const macro = listCorrectedMacros(scene, world).find((one) => one.action === action)!;
            const before = `${world.encode()} ${world.agentX} ${world.agentY} ${world.agentDir} ${world.carrying}`;
            for (const low of expand(macro, scene, world, false)) world.step(low);
            expect(`${world.encode()} ${world.agentX} ${world.agentY} ${world.agentDir} ${world.carrying}`).not.toBe(
              before,
            );
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('the grammar', () => {
  it.each([
    ['Turn  Left.', 'turn left'],
    ['pick up red ball', 'pickup red ball 1'],
    ['PICKUP RED BALL 2', 'pickup red ball 2'],
    ['go to blue closed door 3', 'go to blue closed door 3'],
    ['go through green open door', 'go through green open door 1'],
    ['toggle and go through red locked door 1', 'toggle and go through red locked door 1'],
    ['go to door 1', ''],
    ['go to pink ball 1', ''],
    ['go to red ball 0', ''],
    ['go to red ball 12345', ''],
    ['pickup', ''],
    ['dance', ''],
    ['', ''],
  ])('%j is "%s"', (input, understood) => {
    expect(print(parse(input))).toBe(understood);
  });
});

describe('light', () => {
  const lit = (lights: number, opaque: number) => LIGHT[(lights << VIEW) | opaque]!;

  it('spreads along an open row, and a column further in the next', () => {
    expect(lit(0b0001000, 0) & 0x7f).toBe(0b1111111);
    expect(lit(0b0001000, 0) >>> VIEW).toBe(0b1111111);
  });

  it('stops at what is opaque, which is seen itself', () => {
    expect(lit(0b0001000, 0b0010100) & 0x7f).toBe(0b0011100);
    expect(lit(0b0001000, 0b0010100) >>> VIEW).toBe(0b0011100);
  });

  it('never leaves a dark row, and never goes out', () => {
    fc.assert(
      fc.property(fc.nat(127), fc.nat(127), (lights, opaque) => {
        const row = lit(lights, opaque) & 0x7f;
        expect(row & lights).toBe(lights);
        if (lights === 0) expect(lit(lights, opaque)).toBe(0);
      }),
    );
  });

  it('passes open doors alone', () => {
    expect([WALL_CODE, red(DOOR, CLOSED), red(DOOR, LOCKED), red(DOOR, OPEN), red(BALL)].map(isOpaque)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  it('has colours that are drawn in the order of their names', () => {
    expect(SORTED_COLORS.map((color) => COLOR_NAMES[color])).toEqual([...COLOR_NAMES].sort());
  });
});

describe('the memory of what was seen', () => {
  const observed = (...things: readonly string[]) =>
    `Your goal: x\n${things.map((one) => `There is a ${one}. `).join(' ')}The room has walls around you. You are not carrying anything.`;
  const AHEAD = 'red ball 1 right in front of you 3 steps away';
  const start = (...things: readonly string[]) => track.begin({ kind: 'first', observation: observed(...things) });
  const placeOf = (...turns: readonly string[]) => {
    let memory = start(AHEAD);
    for (const action of turns) memory = track.reduce(memory, { action, observation: observed() });
    return listRemembered(memory)[0];
  };

  it.each([
    [['turn left'], 0, 3],
    [['turn right'], 0, -3],
    [['turn left', 'turn left'], -3, 0],
    [['move forward'], 2, 0],
    [['turn right', 'move forward'], -1, -3],
    [['toggle'], 3, 0],
    [['turn left', 'turn right'], 3, 0],
  ])('after %j knows it at %i ahead and %i to the right', (turns, front, right) => {
    const { place, age } = placeOf(...turns)!;
    expect([place!.front + 0, place!.right + 0, age]).toEqual([front, right, turns.length]);
  });

  it('after a macro knows that it is, not where', () => {
    expect(placeOf('go to blue key 1')).toMatchObject({ name: 'red ball', place: undefined });
  });

  it('of four turns round is where it was', () => {
    for (const turn of ['turn left', 'turn right']) {
      const { place } = placeOf(turn, turn, turn, turn)!;
      expect([place!.front + 0, place!.right + 0]).toEqual([3, 0]);
    }
  });

  it('is not moved by what was refused', () => {
    const memory = track.reduce(start(AHEAD), {
      action: 'move forward',
      observation: 'There is a barrier in front of you.',
    });
    expect(listRemembered(memory)).toEqual([]);
    expect(describes('There is a barrier')).toBe(false);
    expect(memory.done.get('move forward')).toBe(1);
  });

  it('holds a door to be one door, open or shut', () => {
    const memory = track.reduce(start('red closed door 1 right in front of you 2 steps away'), {
      action: 'toggle',
      observation: observed('red open door 1 right in front of you 2 steps away'),
    });
    expect([...memory.things.values()].map(({ name, age }) => [name, age])).toEqual([['red open door', 0]]);
  });

  it('forgets the place of what is in the hand', () => {
    const memory = track.reduce(start(AHEAD), {
      action: 'pickup red ball 1',
      observation: 'The room has walls around you. You are carrying a red ball.',
    });
    expect(memory.things.size).toBe(0);
  });
});
