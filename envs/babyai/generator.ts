/**
 * Generator of mazes, on which levels are built: rooms, doors, objects and the agent are placed by draws from the numpy
 * stream, in the original's order of drawing. A level that does not work out is thrown away and drawn anew from where
 * the stream stands.
 */
import { BALL, BOX, CLOSED, codeOf, DOOR, KEY, LOCKED, SORTED_COLORS } from './grid.ts';
import type { Pcg64 } from './pcg64.ts';
import { type Instruction, isSequence, type Open, type Pickup, PutNext } from './verifier.ts';
import { FIRST_OBJECT, World } from './world.ts';

/** Signal that a level must be drawn again; `generate` catches it. No Error: its stack would cost more. */
export class Rejected {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

/** Walls of a room in the order right, down, left, up. */
export type Side = 0 | 1 | 2 | 3;

/** Gap: a removed wall connects like a door does. */
const GAP = -1;

export interface Room {
  readonly left: number;
  readonly top: number;
  /** Doors by side: door id, 0 for none, GAP where the wall was removed. */
  readonly doors: number[];
  /** Cells by side that a door would take, −1 on the outer wall. */
  readonly doorCells: number[];
  /** Neighbours by side. */
  readonly neighbors: (Room | undefined)[];
  locked: boolean;
  readonly objects: number[];
}

/** Kinds in the order the original draws from. */
const KINDS: readonly number[] = [KEY, BALL, BOX];

/** Room grid of a level in the making. */
export class RoomGrid {
  readonly rng: Pcg64;
  readonly world: World;
  readonly rooms: Room[][] = [];
  readonly roomSize: number;
  readonly numRows: number;
  readonly numCols: number;

  constructor(rng: Pcg64, roomSize: number, numRows: number, numCols: number, capacity: number) {
    this.rng = rng;
    this.roomSize = roomSize;
    this.numRows = numRows;
    this.numCols = numCols;
    const world = (this.world = new World(roomSize, numRows, numCols, capacity));
    const inner = roomSize - 1;
    for (let j = 0; j < numRows; j++) {
      const row: Room[] = [];
      for (let i = 0; i < numCols; i++) {
        const left = i * inner;
        const top = j * inner;
        for (let y = top + 1; y < top + inner; y++) {
          const start = world.at(left + 1, y);
          world.cells.fill(0, start, start + inner - 1);
        }
        row.push({
          left,
          top,
          doors: [0, 0, 0, 0],
          doorCells: [-1, -1, -1, -1],
          neighbors: [undefined, undefined, undefined, undefined],
          locked: false,
          objects: [],
        });
      }
      this.rooms.push(row);
    }
    for (let j = 0; j < numRows; j++) {
      for (let i = 0; i < numCols; i++) {
        const room = this.room(i, j);
        const { left, top } = room;
        if (i < numCols - 1) {
          room.neighbors[0] = this.room(i + 1, j);
          room.doorCells[0] = world.at(left + inner, rng.integers(top + 1, top + inner));
        }
        if (j < numRows - 1) {
          room.neighbors[1] = this.room(i, j + 1);
          room.doorCells[1] = world.at(rng.integers(left + 1, left + inner), top + inner);
        }
        if (i > 0) {
          room.neighbors[2] = this.room(i - 1, j);
          room.doorCells[2] = room.neighbors[2].doorCells[0]!;
        }
        if (j > 0) {
          room.neighbors[3] = this.room(i, j - 1);
          room.doorCells[3] = room.neighbors[3].doorCells[1]!;
        }
      }
    }
    // Until it is placed, the agent counts as standing in the middle: no object is put beside it there.
    world.agentX = Math.floor(numCols / 2) * inner + Math.floor(roomSize / 2);
    world.agentY = Math.floor(numRows / 2) * inner + Math.floor(roomSize / 2);
    world.agentDir = 0;
  }

  /** @param i column @param j row */
  room(i: number, j: number): Room {
    return this.rooms[j]![i]!;
  }

  roomAt(x: number, y: number): Room {
    return this.room(Math.floor(x / (this.roomSize - 1)), Math.floor(y / (this.roomSize - 1)));
  }

  /** Rooms row by row. */
  listRooms(): Room[] {
    return this.rooms.flat();
  }

  pick<T>(items: readonly T[]): T {
    return items[this.rng.integers(0, items.length)]!;
  }

  /** Flips a coin: true with probability ½, where the draw is 0. */
  flip(): boolean {
    return this.rng.integers(0, 2) === 0;
  }

  /** Picks a colour number. */
  pickColor(): number {
    return this.pick(SORTED_COLORS);
  }

  /** Picks `count` different items, in drawn order. */
  pickSome<T>(items: readonly T[], count: number): T[] {
    const rest = items.slice();
    const out: T[] = [];
    while (out.length < count) {
      const index = this.rng.integers(0, rest.length);
      out.push(rest[index]!);
      rest.splice(index, 1);
    }
    return out;
  }

  /** Free cell of the room's square, walls included in the draw. @throws {Rejected} after 1001 failed tries */
  #freeCell(room: Room, besideAgent: boolean): number {
    const { rng, world, roomSize } = this;
    for (let tries = 0; tries <= 1000; tries++) {
      const x = rng.integers(room.left, room.left + roomSize);
      const y = rng.integers(room.top, room.top + roomSize);
      const cell = world.at(x, y);
      if (world.cells[cell] !== 0) continue;
      const distance = Math.abs(world.agentX - x) + Math.abs(world.agentY - y);
      if (distance === 0 || (!besideAgent && distance < 2)) continue;
      return cell;
    }
    throw new Rejected('no free cell');
  }

  /** Puts an object into room (i, j), not beside the agent. */
  placeInRoom(i: number, j: number, code: number, inside = 0): number {
    const room = this.room(i, j);
    const cell = this.#freeCell(room, false);
    const id = this.world.addObject(code);
    this.world.place(id, cell);
    this.world.contents[id] = inside;
    room.objects.push(id);
    return id;
  }

  /** Adds a key, ball or box; what is not given is drawn, kind first. */
  addObject(i: number, j: number, kind?: number, color?: number): number {
    const type = kind ?? this.pick(KINDS);
    return this.placeInRoom(i, j, codeOf(type, color ?? this.pickColor()));
  }

  /** Adds a door; what is not given is drawn: side, colour, locked. */
  addDoor(i: number, j: number, side?: number, color?: number, locked?: boolean): number {
    const room = this.room(i, j);
    let index = side;
    while (index === undefined) {
      const drawn = this.rng.integers(0, 4);
      if (room.neighbors[drawn] && room.doors[drawn] === 0) index = drawn;
    }
    const hue = color ?? this.pickColor();
    const isLocked = locked ?? this.flip();
    // The flag follows the last door added to the room, as in the original.
    room.locked = isLocked;
    const id = this.world.addObject(codeOf(DOOR, hue, isLocked ? LOCKED : CLOSED));
    this.world.place(id, room.doorCells[index]!);
    room.doors[index] = id;
    room.neighbors[index]!.doors[(index + 2) % 4] = id;
    return id;
  }

  /** Removes the wall between two rooms, corners excepted. */
  removeWall(i: number, j: number, side: Side): void {
    const room = this.room(i, j);
    const { world } = this;
    const last = this.roomSize - 1;
    for (let k = 1; k < last; k++) {
      const x = side === 0 ? room.left + last : side === 2 ? room.left : room.left + k;
      const y = side === 1 ? room.top + last : side === 3 ? room.top : room.top + k;
      world.cells[world.at(x, y)] = 0;
    }
    room.doors[side] = GAP;
    room.neighbors[side]!.doors[(side + 2) % 4] = GAP;
  }

  /**
   * Places the agent, not facing an object; the room is drawn where not given.
   *
   * @throws {Rejected} when the room has no such place. The original draws for ever then (level 35, seed 1741).
   */
  placeAgent(i?: number, j?: number): void {
    const { world, rng } = this;
    const column = i ?? rng.integers(0, this.numCols);
    const row = j ?? rng.integers(0, this.numRows);
    const room = this.room(column, row);
    for (let tries = 0; ; tries++) {
      if (tries === 50 && !this.#hasOutlook(room)) throw new Rejected('no cell with a free view');
      world.agentX = world.agentY = -1;
      const cell = this.#freeCell(room, true);
      world.agentX = world.xOf(cell);
      world.agentY = world.yOf(cell);
      world.agentDir = rng.integers(0, 4);
      if (world.cells[world.front]! < FIRST_OBJECT) return;
    }
  }

  /** True when some free cell of the room has a neighbour that is no object. */
  #hasOutlook(room: Room): boolean {
    const { cells, stride } = this.world;
    for (let y = room.top + 1; y < room.top + this.roomSize - 1; y++) {
      for (let x = room.left + 1; x < room.left + this.roomSize - 1; x++) {
        const cell = this.world.at(x, y);
        if (cells[cell] !== 0) continue;
        if ([1, -1, stride, -stride].some((offset) => cells[cell + offset]! < FIRST_OBJECT)) return true;
      }
    }
    return false;
  }

  /** Adds doors between random rooms until all can be reached. @throws {Rejected} after 5001 failed draws */
  connectAll(colors: readonly number[] = SORTED_COLORS): void {
    const start = this.roomAt(this.world.agentX, this.world.agentY);
    let isConnected = this.#isConnected(start);
    for (let tries = 0; tries <= 5000; tries++) {
      if (isConnected) return;
      const i = this.rng.integers(0, this.numCols);
      const j = this.rng.integers(0, this.numRows);
      const side = this.rng.integers(0, 4);
      const room = this.room(i, j);
      if (room.doorCells[side] === -1 || room.doors[side] !== 0) continue;
      if (room.locked || room.neighbors[side]!.locked) continue;
      this.addDoor(i, j, side, this.pick(colors), false);
      isConnected = this.#isConnected(start);
    }
    throw new Rejected('rooms cannot be connected');
  }

  /** True when doors and gaps, locked ones too, lead from one room to all. */
  #isConnected(start: Room): boolean {
    const seen = [start];
    for (const room of seen) {
      for (let side = 0; side < 4; side++) {
        const next = room.neighbors[side];
        if (room.doors[side] !== 0 && next && !seen.includes(next)) seen.push(next);
      }
    }
    return seen.length === this.numRows * this.numCols;
  }

  /** Adds random objects, to one room or to drawn ones. @param unique no two of the same kind and colour */
  addDistractors(count: number, options: { i?: number; j?: number; unique?: boolean } = {}): number[] {
    const { codes } = this.world;
    const unique = options.unique ?? true;
    const taken = new Set<number>();
    if (unique) for (const room of this.listRooms()) for (const id of room.objects) taken.add(codes[id]!);
    const added: number[] = [];
    while (added.length < count) {
      const color = this.pickColor();
      const code = codeOf(this.pick(KINDS), color);
      if (unique && taken.has(code)) continue;
      const i = options.i ?? this.rng.integers(0, this.numCols);
      const j = options.j ?? this.rng.integers(0, this.numRows);
      added.push(this.placeInRoom(i, j, code));
      taken.add(code);
    }
    return added;
  }

  /** True when the agent could touch every object without moving any; doors, locked ones too, let through. */
  isAllReachable(): boolean {
    const { world } = this;
    const { cells, codes, stride } = world;
    const seen = new Uint8Array(cells.length);
    const stack = [world.at(world.agentX, world.agentY)];
    while (stack.length > 0) {
      const cell = stack.pop()!;
      if (seen[cell]) continue;
      seen[cell] = 1;
      const id = cells[cell]!;
      if (id !== 0 && (codes[id]! & 0xff) !== DOOR) continue;
      stack.push(cell + 1, cell - 1, cell + stride, cell - stride);
    }
    for (let id = FIRST_OBJECT; id < world.objectEnd; id++)
      if (world.isPlaced(id) && !seen[world.places[id]!]) return false;
    return true;
  }

  /**
   * Requires every object to be reachable.
   * @throws {Rejected} when one cannot be touched
   */
  requireReachable(): void {
    if (!this.isAllReachable()) throw new Rejected('an object is out of reach');
  }

  /**
   * Validates instructions: rejects those that are done from the start or impossible.
   *
   * @param unblocking whether the level may need objects moved out of the way: then keys of locked doors are not
   *   to be the subject of an instruction
   * @throws {Rejected}
   */
  validate(instruction: Instruction, unblocking: boolean): void {
    if (isSequence(instruction)) {
      this.validate(instruction.a, unblocking);
      this.validate(instruction.b, unblocking);
      return;
    }
    const { world } = this;
    if (instruction instanceof PutNext) {
      instruction.reset(world);
      const { moving, fixed } = instruction;
      if (moving.objects.some((id) => fixed.objects.includes(id))) throw new Rejected('an object next to itself');
      if (instruction.isDone(world)) throw new Rejected('already next to each other');
    }
    if (!unblocking) return;
    const lockedColors = new Set<number>();
    for (let id = FIRST_OBJECT; id < world.objectEnd; id++) {
      const code = world.codes[id]!;
      if ((code & 0xff) === DOOR && code >>> 16 === LOCKED) lockedColors.add((code >>> 8) & 0xff);
    }
    const descriptions =
      instruction instanceof PutNext
        ? [instruction.moving, instruction.fixed]
        : [(instruction as Open | Pickup).target];
    for (const { type, color } of descriptions) {
      if (type === KEY && color !== null && lockedColors.has(color)) throw new Rejected('the key of a locked door');
    }
  }
}
