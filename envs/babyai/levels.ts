/**
 * Levels, the 40 of AgentGym's table, drawn from the numpy stream of their seed. Level n is `LEVELS[n - 1]`.
 *
 * @see Minigrid 2.3.1, `BabyAI-*`; AgentGym `agentenv-babyai` for which levels and in which order
 */

import { append } from '../../src/core/extremes.ts';
import { Rejected, type Room, RoomGrid } from './generator.ts';
import { BALL, BLUE, BOX, codeOf, DOOR, GREY, IMAGE_BYTES, KEY, RED, SORTED_COLORS } from './grid.ts';
import { Pcg64 } from './pcg64.ts';
import {
  type Action,
  After,
  And,
  Before,
  Description,
  GoTo,
  type Instruction,
  LOCATIONS,
  Open,
  Pickup,
  PutNext,
} from './verifier.ts';
import type { World } from './world.ts';

/** Recipe by which a level is drawn. */
export interface Level {
  /** Minigrid's id, e.g. `BabyAI-GoToRedBall-v0`. */
  readonly id: string;
  readonly roomSize: number;
  readonly numRows: number;
  readonly numCols: number;
  /** Low-level steps granted; by default walks × rooms × roomSize². */
  readonly maxSteps?: number;
  /** True where the objects of an instruction must not be keys of locked doors. */
  readonly unblocking?: boolean;
  /** The first object of a put-next instruction is in the agent's hand from the start. */
  readonly startCarrying?: boolean;
  /** Draws objects and the instruction into an empty maze. @throws {Rejected} to be called again on a new maze */
  readonly draw: (maze: RoomGrid, memory: Memory) => Instruction;
}

/** State that the original's level object carries from one drawing to the next, a leak that is part of its levels. */
export interface Memory {
  lockedRoom: Room | undefined;
  /** True when a drawing read `lockedRoom` before any was set: a second reset might see another one. */
  lookedInVain: boolean;
}

/** Most objects a level holds: 12 doors, a locked room's key and 27 others (level 24), with room to spare. */
const CAPACITY = 64;

const describe = (maze: RoomGrid, id: number): Description => {
  const code = maze.world.codes[id]!;
  return new Description(code & 0xff, (code >>> 8) & 0xff);
};
const typeOf = (maze: RoomGrid, id: number): number => maze.world.codes[id]! & 0xff;
const hueOf = (maze: RoomGrid, id: number): number => (maze.world.codes[id]! >>> 8) & 0xff;

const ONE_ROOM = { roomSize: 8, numRows: 1, numCols: 1 } as const;
const MAZE = { roomSize: 8, numRows: 3, numCols: 3 } as const;
const MIDDLE = { i: 1, j: 1 } as const;

/** Level of the one red ball among distractors, which may be painted grey. */
function goToRedBall(count: number, grey: boolean) {
  return (maze: RoomGrid): Instruction => {
    maze.placeAgent();
    maze.addObject(0, 0, BALL, RED);
    const others = maze.addDistractors(count, { unique: false });
    if (grey) for (const id of others) maze.world.codes[id] = codeOf(typeOf(maze, id), GREY);
    maze.requireReachable();
    return new GoTo(new Description(BALL, RED));
  };
}

/** Agent, doors between all rooms where there are several, distractors; then one of them is the target. */
function amongDistractors(count: number, make: (target: Description) => Instruction) {
  return (maze: RoomGrid): Instruction => {
    maze.placeAgent();
    if (maze.numRows > 1) maze.connectAll();
    const objects = maze.addDistractors(count, { unique: false });
    maze.requireReachable();
    return make(describe(maze, maze.pick(objects)));
  };
}

/** A locked room somewhere, its key drawn anywhere (see `drawKey`). @returns the door and its room */
function addLockedRoomAndKey(maze: RoomGrid): { door: number; room: Room; i: number; j: number } {
  const { rng } = maze;
  const i = rng.integers(0, maze.numCols);
  const j = rng.integers(0, maze.numRows);
  const door = maze.addDoor(i, j, undefined, undefined, true);
  // The original means to keep the key out of the locked room, but compares numpy integers by identity, which
  // never holds: the key may lie behind its own door. The same goes for "all but the locked room" below.
  const ik = rng.integers(0, maze.numCols);
  const jk = rng.integers(0, maze.numRows);
  maze.addObject(ik, jk, KEY, hueOf(maze, door));
  return { door, room: maze.room(i, j), i, j };
}

function distractEveryRoom(maze: RoomGrid, count: number): void {
  for (let i = 0; i < maze.numCols; i++) {
    for (let j = 0; j < maze.numRows; j++) maze.addDistractors(count, { i, j, unique: false });
  }
}

/** Places the agent outside `room`. */
function placeAgentOutside(maze: RoomGrid, room: Room | undefined): void {
  do maze.placeAgent();
  while (maze.roomAt(maze.world.agentX, maze.world.agentY) === room);
}

/** Options of the levels whose instructions may be any of the language. */
interface SynthOptions {
  readonly distractors?: number;
  readonly lockedRoomProb?: number;
  readonly locations?: boolean;
  readonly unblocking?: boolean;
  readonly implicitUnlock?: boolean;
  readonly actions?: readonly ('goto' | 'pickup' | 'open' | 'putnext')[];
  readonly kinds?: readonly ('action' | 'and' | 'seq')[];
}

const ANY_TYPE: readonly number[] = [BOX, BALL, KEY, DOOR];
const NOT_DOOR: readonly number[] = [BOX, BALL, KEY];

/** Level whose instruction is drawn from the grammar. */
function synth(options: SynthOptions) {
  const distractors = options.distractors ?? 18;
  const lockedRoomProb = options.lockedRoomProb ?? 0.5;
  const locations = options.locations ?? true;
  const unblocking = options.unblocking ?? true;
  const implicitUnlock = options.implicitUnlock ?? true;
  const actions = options.actions ?? ['goto', 'pickup', 'open', 'putnext'];
  const kinds = options.kinds ?? ['action', 'and', 'seq'];

  return (maze: RoomGrid, memory: Memory): Instruction => {
    const { rng, world } = maze;
    if (rng.uniform(0, 1) < lockedRoomProb) addLockedRoom(maze, memory);
    maze.connectAll();
    maze.addDistractors(distractors, { unique: false });
    placeAgentOutside(maze, memory.lockedRoom);
    if (!unblocking) maze.requireReachable();

    const object = (types: readonly number[]): Description => {
      for (let tries = 0; tries <= 100; tries++) {
        const hue = rng.integers(0, SORTED_COLORS.length + 1);
        const color = hue === 0 ? null : SORTED_COLORS[hue - 1]!;
        const type = maze.pick(types);
        const location = locations && maze.flip() ? maze.pick(LOCATIONS) : null;
        const description = new Description(type, color, location);
        if (description.find(world) === 0) continue;
        if (!implicitUnlock) {
          // `memory` may hold a room of an earlier drawing: its place counts all the same.
          const room = memory.lockedRoom;
          if (!room) memory.lookedInVain = true;
          else if (description.cells.every((cell) => isInside(room, maze.roomSize, world.xOf(cell), world.yOf(cell))))
            continue;
        }
        return description;
      }
      throw new Rejected('no suitable object');
    };
    const action = (): Action => {
      const kind = maze.pick(actions);
      if (kind === 'goto') return new GoTo(object(ANY_TYPE));
      if (kind === 'pickup') return new Pickup(object(NOT_DOOR));
      if (kind === 'open') return new Open(object([DOOR]));
      const moving = object(NOT_DOOR);
      return new PutNext(moving, object(ANY_TYPE));
    };
    const drawBoth = (): And => {
      const a = action();
      return new And(a, action());
    };
    const part = (): Action | And => (maze.pick(['action', 'and']) === 'action' ? action() : drawBoth());

    const kind = maze.pick(kinds);
    if (kind === 'action') return action();
    if (kind === 'and') return drawBoth();
    const a = part();
    const b = part();
    return maze.pick(['before', 'after']) === 'before' ? new Before(a, b) : new After(a, b);
  };
}

function isInside(room: Room, roomSize: number, x: number, y: number): boolean {
  return x >= room.left && y >= room.top && x < room.left + roomSize && y < room.top + roomSize;
}

function addLockedRoom(maze: RoomGrid, memory: Memory): void {
  const { rng } = maze;
  let door = 0;
  while (door === 0) {
    const i = rng.integers(0, maze.numCols);
    const j = rng.integers(0, maze.numRows);
    const side = rng.integers(0, 4);
    memory.lockedRoom = maze.room(i, j);
    if (memory.lockedRoom.neighbors[side]) door = maze.addDoor(i, j, side, undefined, true);
  }
  for (;;) {
    const i = rng.integers(0, maze.numCols);
    const j = rng.integers(0, maze.numRows);
    if (maze.room(i, j) === memory.lockedRoom) continue;
    maze.addObject(i, j, KEY, hueOf(maze, door));
    return;
  }
}

/** Levels, all 40 in AgentGym's order. */
export const LEVELS: readonly Level[] = [
  { id: 'BabyAI-GoToRedBallGrey-v0', ...ONE_ROOM, draw: goToRedBall(7, true) },
  { id: 'BabyAI-GoToRedBall-v0', ...ONE_ROOM, draw: goToRedBall(7, false) },
  { id: 'BabyAI-GoToRedBallNoDists-v0', ...ONE_ROOM, draw: goToRedBall(0, false) },
  {
    // Minigrid up to 2.3.1 gave the level named S6 rooms of size 4.
    id: 'BabyAI-GoToObjS6-v0',
    ...ONE_ROOM,
    roomSize: 4,
    draw(maze) {
      maze.placeAgent();
      return new GoTo(describe(maze, maze.addDistractors(1)[0]!));
    },
  },
  { id: 'BabyAI-GoToLocalS8N7-v0', ...ONE_ROOM, draw: amongDistractors(7, (target) => new GoTo(target)) },
  { id: 'BabyAI-GoToObjMazeS7-v0', ...MAZE, roomSize: 7, draw: amongDistractors(1, (target) => new GoTo(target)) },
  {
    id: 'BabyAI-GoToImpUnlock-v0',
    ...MAZE,
    draw(maze) {
      const { room, i, j } = addLockedRoomAndKey(maze);
      maze.connectAll();
      distractEveryRoom(maze, 2);
      placeAgentOutside(maze, room);
      maze.requireReachable();
      return new GoTo(describe(maze, maze.addDistractors(1, { i, j, unique: false })[0]!));
    },
  },
  {
    id: 'BabyAI-GoToSeqS5R2-v0',
    roomSize: 5,
    numRows: 2,
    numCols: 2,
    draw: synth({ distractors: 4, actions: ['goto'], lockedRoomProb: 0, locations: false, unblocking: false }),
  },
  {
    id: 'BabyAI-GoToRedBlueBall-v0',
    ...ONE_ROOM,
    draw(maze) {
      maze.placeAgent();
      for (const id of maze.addDistractors(7, { unique: false })) {
        const hue = hueOf(maze, id);
        if (typeOf(maze, id) === BALL && (hue === RED || hue === BLUE)) throw new Rejected('a second red or blue ball');
      }
      const color = maze.pick([RED!, BLUE!]);
      maze.addObject(0, 0, BALL, color);
      maze.requireReachable();
      return new GoTo(new Description(BALL, color));
    },
  },
  {
    id: 'BabyAI-GoToDoor-v0',
    ...MAZE,
    roomSize: 7,
    draw(maze) {
      const doors = Array.from({ length: 4 }, () => maze.addDoor(1, 1));
      maze.placeAgent(1, 1);
      return new GoTo(describe(maze, maze.pick(doors)));
    },
  },
  {
    id: 'BabyAI-GoToObjDoor-v0',
    ...MAZE,
    draw(maze) {
      maze.placeAgent(1, 1);
      const things = maze.addDistractors(8, { ...MIDDLE, unique: false });
      for (let k = 0; k < 4; k++) things.push(maze.addDoor(1, 1));
      maze.requireReachable();
      return new GoTo(describe(maze, maze.pick(things)));
    },
  },
  {
    id: 'BabyAI-Open-v0',
    ...MAZE,
    draw(maze) {
      maze.placeAgent();
      maze.connectAll();
      maze.addDistractors(18, { unique: false });
      maze.requireReachable();
      // Column by column, and a door between two rooms is listed by both.
      const doors: number[] = [];
      for (let i = 0; i < 3; i++)
        for (let j = 0; j < 3; j++)
          append(
            doors,
            maze.room(i, j).doors.filter((id) => id > 0),
          );
      return new Open(describe(maze, maze.pick(doors)));
    },
  },
  {
    id: 'BabyAI-OpenRedDoor-v0',
    roomSize: 5,
    numRows: 1,
    numCols: 2,
    draw(maze) {
      maze.addDoor(0, 0, 0, RED, false);
      maze.placeAgent(0, 0);
      return new Open(new Description(DOOR, RED));
    },
  },
  {
    id: 'BabyAI-OpenDoorLoc-v0',
    ...MAZE,
    draw(maze) {
      for (const [side, color] of maze.pickSome(SORTED_COLORS, 4).entries()) maze.addDoor(1, 1, side, color, false);
      const location = maze.pick(LOCATIONS);
      maze.placeAgent(1, 1);
      return new Open(new Description(DOOR, null, location));
    },
  },
  {
    id: 'BabyAI-OpenRedBlueDoorsDebug-v0',
    ...MAZE,
    roomSize: 6,
    maxSteps: 720,
    draw(maze) {
      maze.pickSome(SORTED_COLORS, 2); // drawn and not used: the colours are given
      maze.addDoor(1, 1, 2, RED, false);
      maze.addDoor(1, 1, 0, BLUE, false);
      maze.placeAgent(1, 1);
      return new Before(new Open(new Description(DOOR, RED), true), new Open(new Description(DOOR, BLUE)));
    },
  },
  {
    id: 'BabyAI-OpenDoorsOrderN4Debug-v0',
    ...MAZE,
    roomSize: 6,
    maxSteps: 720,
    draw(maze) {
      const colors = maze.pickSome(SORTED_COLORS, 4);
      const doors = colors.map((color) => maze.addDoor(1, 1, undefined, color, false));
      maze.placeAgent(1, 1);
      const [first, second] = maze.pickSome(doors, 2) as [number, number];
      const mode = maze.rng.integers(0, 3);
      const a = new Open(describe(maze, first), true);
      if (mode === 0) return a;
      const b = new Open(describe(maze, second), true);
      return mode === 1 ? new Before(a, b) : new After(a, b);
    },
  },
  { id: 'BabyAI-Pickup-v0', ...MAZE, draw: amongDistractors(18, (target) => new Pickup(target)) },
  {
    id: 'BabyAI-UnblockPickup-v0',
    ...MAZE,
    draw(maze) {
      maze.placeAgent();
      maze.connectAll();
      const objects = maze.addDistractors(20, { unique: false });
      if (maze.isAllReachable()) throw new Rejected('nothing is blocked');
      return new Pickup(describe(maze, maze.pick(objects)));
    },
  },
  {
    id: 'BabyAI-PickupLoc-v0',
    ...ONE_ROOM,
    draw: synth({ distractors: 8, actions: ['pickup'], kinds: ['action'], lockedRoomProb: 0, unblocking: false }),
  },
  {
    id: 'BabyAI-PickupDistDebug-v0',
    ...ONE_ROOM,
    roomSize: 7,
    draw(maze) {
      const objects = maze.addDistractors(5);
      maze.placeAgent(0, 0);
      const { type, color } = describe(maze, maze.pick(objects));
      const by = maze.pick(['type', 'color', 'both']);
      return new Pickup(new Description(by === 'color' ? null : type, by === 'type' ? null : color), true);
    },
  },
  {
    id: 'BabyAI-PickupAbove-v0',
    ...MAZE,
    roomSize: 6,
    maxSteps: 288,
    draw(maze) {
      const object = maze.addObject(1, 0);
      maze.addDoor(1, 1, 3, undefined, false);
      maze.placeAgent(1, 1);
      maze.connectAll();
      return new Pickup(describe(maze, object));
    },
  },
  {
    id: 'BabyAI-PutNextLocalS6N4-v0',
    ...ONE_ROOM,
    roomSize: 6,
    draw(maze) {
      maze.placeAgent();
      const objects = maze.addDistractors(4);
      maze.requireReachable();
      const [a, b] = maze.pickSome(objects, 2) as [number, number];
      return new PutNext(describe(maze, a), describe(maze, b));
    },
  },
  {
    id: 'BabyAI-PutNextS7N4Carrying-v0',
    roomSize: 7,
    numRows: 1,
    numCols: 2,
    maxSteps: 392,
    startCarrying: true,
    draw(maze) {
      maze.placeAgent(0, 0);
      const left = maze.addDistractors(4, { i: 0, j: 0 });
      const right = maze.addDistractors(4, { i: 1, j: 0 });
      maze.removeWall(0, 0, 0);
      const a = describe(maze, maze.pick(left));
      const b = describe(maze, maze.pick(right));
      return maze.flip() ? new PutNext(b, a) : new PutNext(a, b);
    },
  },
  {
    id: 'BabyAI-Unlock-v0',
    ...MAZE,
    draw(maze) {
      const { door, room } = addLockedRoomAndKey(maze);
      // Half of the time no other door has the locked one's colour.
      if (maze.flip()) maze.connectAll(SORTED_COLORS.filter((color) => color !== hueOf(maze, door)));
      else maze.connectAll();
      distractEveryRoom(maze, 3);
      placeAgentOutside(maze, room);
      maze.requireReachable();
      return new Open(describe(maze, door));
    },
  },
  {
    id: 'BabyAI-UnlockLocalDist-v0',
    ...MAZE,
    draw(maze) {
      const door = maze.addDoor(1, 1, undefined, undefined, true);
      maze.addObject(1, 1, KEY, hueOf(maze, door));
      maze.addDistractors(3, MIDDLE);
      maze.placeAgent(1, 1);
      return new Open(new Description(DOOR));
    },
  },
  {
    id: 'BabyAI-KeyInBox-v0',
    ...MAZE,
    draw(maze) {
      const door = maze.addDoor(1, 1, undefined, undefined, true);
      const key = maze.world.addObject(codeOf(KEY, hueOf(maze, door)));
      maze.placeInRoom(1, 1, codeOf(BOX, maze.pickColor()), key);
      maze.placeAgent(1, 1);
      return new Open(new Description(DOOR));
    },
  },
  {
    id: 'BabyAI-UnlockPickupDist-v0',
    roomSize: 6,
    numRows: 1,
    numCols: 2,
    draw(maze) {
      const box = maze.addObject(1, 0, BOX);
      const door = maze.addDoor(0, 0, 0, undefined, true);
      maze.addObject(0, 0, KEY, hueOf(maze, door));
      maze.addDistractors(4);
      maze.placeAgent(0, 0);
      return new Pickup(describe(maze, box));
    },
  },
  {
    id: 'BabyAI-BlockedUnlockPickup-v0',
    roomSize: 6,
    numRows: 1,
    numCols: 2,
    maxSteps: 576,
    draw(maze) {
      const { world } = maze;
      maze.addObject(1, 0, BOX);
      const door = maze.addDoor(0, 0, 0, undefined, true);
      const ball = world.addObject(codeOf(BALL, maze.pickColor()));
      world.place(ball, world.places[door]! - 1);
      maze.addObject(0, 0, KEY, hueOf(maze, door));
      maze.placeAgent(0, 0);
      return new Pickup(new Description(BOX));
    },
  },
  {
    id: 'BabyAI-UnlockToUnlock-v0',
    roomSize: 6,
    numRows: 1,
    numCols: 3,
    maxSteps: 1080,
    draw(maze) {
      const [far, near] = maze.pickSome(SORTED_COLORS, 2) as [number, number];
      maze.addDoor(0, 0, 0, far, true);
      maze.addObject(2, 0, KEY, far);
      maze.addDoor(1, 0, 0, near, true);
      maze.addObject(1, 0, KEY, near);
      maze.addObject(0, 0, BALL);
      maze.placeAgent(1, 0);
      return new Pickup(new Description(BALL));
    },
  },
  {
    id: 'BabyAI-ActionObjDoor-v0',
    ...MAZE,
    roomSize: 7,
    draw(maze) {
      const things = maze.addDistractors(5, MIDDLE);
      for (let k = 0; k < 4; k++) things.push(maze.addDoor(1, 1, undefined, undefined, false));
      maze.placeAgent(1, 1);
      const target = describe(maze, maze.pick(things));
      if (maze.flip()) return new GoTo(target);
      return target.type === DOOR ? new Open(target) : new Pickup(target);
    },
  },
  {
    id: 'BabyAI-FindObjS7-v0',
    ...MAZE,
    roomSize: 7,
    maxSteps: 980,
    draw(maze) {
      const i = maze.rng.integers(0, maze.numRows);
      const j = maze.rng.integers(0, maze.numCols);
      const object = maze.addObject(i, j);
      maze.placeAgent(1, 1);
      maze.connectAll();
      return new Pickup(new Description(typeOf(maze, object)));
    },
  },
  {
    id: 'BabyAI-KeyCorridorS6R3-v0',
    ...MAZE,
    roomSize: 6,
    maxSteps: 1080,
    draw(maze) {
      for (let j = 1; j < maze.numRows; j++) maze.removeWall(1, j, 3);
      const row = maze.rng.integers(0, maze.numRows);
      const door = maze.addDoor(2, row, 2, undefined, true);
      maze.addObject(2, row, BALL);
      maze.addObject(0, maze.rng.integers(0, maze.numRows), KEY, hueOf(maze, door));
      maze.placeAgent(1, Math.floor(maze.numRows / 2));
      maze.connectAll();
      return new Pickup(new Description(BALL));
    },
  },
  {
    id: 'BabyAI-OneRoomS20-v0',
    ...ONE_ROOM,
    roomSize: 20,
    draw(maze) {
      maze.addObject(0, 0, BALL);
      maze.placeAgent();
      return new Pickup(new Description(BALL));
    },
  },
  {
    id: 'BabyAI-MoveTwoAcrossS8N9-v0',
    roomSize: 8,
    numRows: 1,
    numCols: 2,
    maxSteps: 1024,
    draw(maze) {
      maze.placeAgent(0, 0);
      const left = maze.addDistractors(9, { i: 0, j: 0 });
      const right = maze.addDistractors(9, { i: 1, j: 0 });
      maze.removeWall(0, 0, 0);
      const [a, d] = maze.pickSome(left, 2).map((id) => describe(maze, id)) as [Description, Description];
      const [b, c] = maze.pickSome(right, 2).map((id) => describe(maze, id)) as [Description, Description];
      return new Before(new PutNext(a, b), new PutNext(c, d));
    },
  },
  {
    id: 'BabyAI-SynthS5R2-v0',
    roomSize: 5,
    numRows: 2,
    numCols: 3,
    unblocking: true,
    draw: synth({ kinds: ['action'], locations: false, implicitUnlock: false }),
  },
  { id: 'BabyAI-SynthLoc-v0', ...MAZE, unblocking: true, draw: synth({ kinds: ['action'], implicitUnlock: false }) },
  { id: 'BabyAI-SynthSeq-v0', ...MAZE, unblocking: true, draw: synth({ implicitUnlock: false }) },
  {
    id: 'BabyAI-MiniBossLevel-v0',
    roomSize: 5,
    numRows: 2,
    numCols: 2,
    unblocking: true,
    draw: synth({ distractors: 7, lockedRoomProb: 0.25 }),
  },
  { id: 'BabyAI-BossLevel-v0', ...MAZE, unblocking: true, draw: synth({}) },
  {
    id: 'BabyAI-BossLevelNoUnlock-v0',
    ...MAZE,
    unblocking: true,
    draw: synth({ lockedRoomProb: 0, implicitUnlock: false }),
  },
];

/** Number of levels. */
export const NUM_LEVELS = 40;

/**
 * Draws a level.
 *
 * @param level in [1, 40]
 * @param seed integer in [0, 2⁵³)
 * @param resets how often the level object was reset with this seed: AgentGym resets twice, Minigrid alone once. A
 *   locked room remembered from the first reset can change what the second may talk about
 * @throws {RangeError} for a level or seed out of range
 */
export function generate(level: number, seed: number, resets: 1 | 2 = 1): World {
  const recipe = LEVELS[level - 1];
  if (!recipe) throw new RangeError(`BabyAI: levels are 1 to ${NUM_LEVELS}, got ${level}`);
  const memory: Memory = { lockedRoom: undefined, lookedInVain: false };
  const world = reset(recipe, seed, memory);
  return resets === 2 && memory.lookedInVain && memory.lockedRoom ? reset(recipe, seed, memory) : world;
}

function reset(level: Level, seed: number, memory: Memory): World {
  const rng = new Pcg64(seed);
  for (;;) {
    try {
      const maze = new RoomGrid(rng, level.roomSize, level.numRows, level.numCols, CAPACITY);
      const instruction = level.draw(maze, memory);
      maze.validate(instruction, level.unblocking ?? false);
      return begin(maze.world, level, instruction);
    } catch (thrown) {
      if (!(thrown instanceof Rejected)) throw thrown;
    }
  }
}

/**
 * Ends the drawing: the mission in words, the verifier's objects, the step limit, a full hand where the level needs
 * one.
 */
function begin(world: World, level: Level, instruction: Instruction): World {
  world.instruction = instruction;
  world.mission = instruction.words(world);
  instruction.reset(world);
  world.maxSteps = level.maxSteps ?? instruction.walks * level.roomSize ** 2 * level.numRows * level.numCols;
  if (level.startCarrying) {
    world.staleImage = new Uint8Array(IMAGE_BYTES);
    world.observe(world.staleImage);
    const id = (instruction as PutNext).moving.objects[0]!;
    world.cells[world.places[id]!] = 0;
    world.places[id] = -1;
    world.carrying = id;
  }
  return world;
}
