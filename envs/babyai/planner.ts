/**
 * A scripted planner that knows the whole world: it plays an instruction on a copy of its own and notes the
 * low-level actions. Where a way is blocked it moves or opens what is in it, where a door is locked it fetches the
 * key. Hands are limited to one object, so most of it is about putting things down where they do not hurt.
 *
 * It is greedy, not optimal: one set of preferences may run into a dead end where another does not, so `plan` tries
 * several and keeps the shortest that works.
 */
import { Rng } from '../../src/core/rng.ts';
import { BOX, CLOSED, DOOR, DROP, DX, DY, FORWARD, KEY, LEFT, LOCKED, OPEN, PICKUP, RIGHT, TOGGLE } from './grid.ts';
import {
  After,
  And,
  Before,
  type Description,
  GoTo,
  type Instruction,
  isSequence,
  Open,
  Pickup,
  PutNext,
} from './verifier.ts';
import { FIRST_OBJECT, isMovable, type World } from './world.ts';

/** Preferences of a planner: what it may do, and the price. */
export interface Preferences {
  /** Boxes in the way that nothing speaks of may be opened, which removes them. */
  readonly opensBoxes: boolean;
  /** Cost, in steps, of walking through an object that must be moved first. */
  readonly moveCost: number;
  /** Do the second part of an "and" first. */
  readonly secondFirst: boolean;
  /** Seeds small random preferences between places to put things down; 0 for none. */
  readonly jitter: number;
  /** Cost of dropping something beside a door. */
  readonly doorCost: number;
  /** Cost of dropping something in a crowd, per occupied cell among the eight around it. */
  readonly crowdCost?: number;
  /** Clears the way first: before fetching an object to put next to another, walks there with empty hands. */
  readonly clearFirst?: boolean;
}

/** Preferences of the attempts, in order. */
const ATTEMPTS: readonly Omit<Preferences, 'opensBoxes'>[] = [
  { moveCost: 8, secondFirst: false, jitter: 0, doorCost: 20 },
  { moveCost: 8, secondFirst: true, jitter: 0, doorCost: 20 },
  { moveCost: 30, secondFirst: false, jitter: 0, doorCost: 20 },
  { moveCost: 8, secondFirst: false, jitter: 0, doorCost: 20, crowdCost: 6, clearFirst: true },
  { moveCost: 8, secondFirst: true, jitter: 1, doorCost: 6, crowdCost: 3, clearFirst: true },
  { moveCost: 8, secondFirst: false, jitter: 0, doorCost: 20, crowdCost: 10 },
  { moveCost: 4, secondFirst: false, jitter: 1, doorCost: 6 },
  { moveCost: 16, secondFirst: true, jitter: 2, doorCost: 40 },
  { moveCost: 8, secondFirst: false, jitter: 3, doorCost: 0 },
  { moveCost: 100, secondFirst: false, jitter: 4, doorCost: 20 },
  { moveCost: 100, secondFirst: true, jitter: 5, doorCost: 20 },
  { moveCost: 12, secondFirst: false, jitter: 6, doorCost: 10 },
  { moveCost: 12, secondFirst: true, jitter: 7, doorCost: 10 },
];

/** Cost of a locked door without its key in hand. */
const LOCK_COST = 40;
/** Ends planning: the instruction is done, or this attempt leads nowhere. */
class Over {}

/**
 * Low-level actions that fulfil the world's instruction within its step limit, or undefined.
 *
 * @param fresh makes the world in its first state; called once per attempt
 * @param opensBoxes see Preferences
 */
export function plan(fresh: () => World, opensBoxes: boolean): number[] | undefined {
  let best: number[] | undefined;
  for (const [n, preferences] of ATTEMPTS.entries()) {
    // One good plan is enough; the unusual preferences are tried only where the first attempts fail.
    if (best && n >= 3) break;
    const actions = new Planner(fresh(), { ...preferences, opensBoxes }).run();
    if (actions && (!best || actions.length < best.length)) best = actions;
  }
  return best;
}

/** A way through the grid: poses to pass, and what stands in it. */
interface Way {
  /** States (cell · 4 + direction) after the present one. */
  readonly states: readonly number[];
  readonly cost: number;
}

class Planner {
  readonly #world: World;
  readonly #preferences: Preferences;
  readonly #actions: number[] = [];
  readonly #rng: Rng | undefined;
  /** Objects the instruction speaks of: never destroyed. */
  readonly #meant: Set<number>;
  /** A strict instruction forbids picking up anything but its object, or toggling any door but its own. */
  #onlyPickup: readonly number[] | undefined;
  #onlyToggle: readonly number[] | undefined;

  constructor(world: World, preferences: Preferences) {
    this.#world = world;
    this.#preferences = preferences;
    this.#rng = preferences.jitter > 0 ? Rng.fromSeed(preferences.jitter) : undefined;
    this.#meant = new Set(descriptionsOf(world.instruction).flatMap((description) => description.objects));
  }

  run(): number[] | undefined {
    try {
      // A part that was not judged done is done again: rarely, an object has to be picked up a second time.
      for (let round = 0; round < 3; round++) this.#fulfil(this.#world.instruction);
    } catch (thrown) {
      if (!(thrown instanceof Over)) throw thrown;
    }
    return this.#world.success ? this.#actions : undefined;
  }

  #act(action: number): void {
    const world = this.#world;
    if (world.stepCount >= world.maxSteps) throw new Over();
    world.step(action);
    this.#actions.push(action);
    if (world.terminated) throw new Over();
  }

  #fulfil(instruction: Instruction): void {
    if (instruction instanceof Before) {
      if (!instruction.firstDone) this.#fulfil(instruction.a);
      this.#fulfil(instruction.b);
    } else if (instruction instanceof After) {
      if (!instruction.firstDone) this.#fulfil(instruction.b);
      this.#fulfil(instruction.a);
    } else if (instruction instanceof And) {
      const first = this.#preferences.secondFirst;
      if (first && !instruction.bDone) this.#fulfil(instruction.b);
      if (!instruction.aDone) this.#fulfil(instruction.a);
      if (!instruction.bDone) this.#fulfil(instruction.b);
    } else if (instruction instanceof GoTo) {
      this.#reach(instruction.target.cells, 0);
      this.#blink();
    } else if (instruction instanceof Open) this.#open(instruction);
    else if (instruction instanceof Pickup) this.#pickUp(instruction);
    else if (instruction instanceof PutNext) this.#putNext(instruction);
  }

  /** Turns left and back: a goal that was reached early is judged on the next action. */
  #blink(): void {
    this.#act(LEFT);
    this.#act(RIGHT);
  }

  #open(instruction: Open): void {
    const world = this.#world;
    const doors = instruction.target.objects;
    if (instruction.strict) this.#onlyToggle = doors;
    const shut = doors.filter((id) => world.codes[id]! >>> 16 !== OPEN);
    const closed = shut.filter((id) => world.codes[id]! >>> 16 === CLOSED);
    const wanted = closed.length > 0 ? closed : shut.length > 0 ? shut : doors;
    this.#reach(
      wanted.map((id) => world.places[id]!),
      0,
    );
    const id = world.cells[world.front]!;
    if (world.codes[id]! >>> 16 === LOCKED) this.#unlock(id);
    else {
      // An open door is closed first: it is the opening that counts.
      if (world.codes[id]! >>> 16 === OPEN) this.#act(TOGGLE);
      this.#act(TOGGLE);
    }
    this.#onlyToggle = undefined;
  }

  #pickUp(instruction: Pickup): void {
    const world = this.#world;
    const wanted = instruction.target.objects.filter((id) => id >= FIRST_OBJECT);
    if (instruction.strict) this.#onlyPickup = wanted;
    if (world.carrying !== 0) this.#putDown(new Set());
    const cells = wanted.filter((id) => world.isPlaced(id)).map((id) => world.places[id]!);
    this.#reach(cells, 0);
    if (world.carrying !== 0) {
      this.#putDown(new Set());
      this.#reach(cells, 0);
    }
    this.#act(PICKUP);
    this.#onlyPickup = undefined;
  }

  #putNext(instruction: PutNext): void {
    const { moving, fixed } = instruction;
    const world = this.#world;
    if (this.#preferences.clearFirst && world.carrying === 0) {
      const places = fixed.objects.filter((id) => world.isPlaced(id)).map((id) => world.places[id]!);
      this.#reach(
        places.flatMap((cell) => this.#neighbours(cell)).filter((cell) => world.cells[cell] === 0),
        0,
      );
    }
    for (let tries = 0; tries < 12; tries++) {
      if (!moving.objects.includes(world.carrying)) {
        const placed = moving.objects.filter((id) => world.isPlaced(id));
        this.#fetch(placed);
      }
      const held = world.carrying;
      const beside = fixed.objects
        .filter((id) => id !== held && world.isPlaced(id))
        .flatMap((id) => this.#neighbours(world.places[id]!));
      const free = beside.filter((cell) => world.cells[cell] === 0);
      const way = this.#findWay(free);
      if (way && !this.#isObstructed(way)) {
        this.#reach(free, held);
        if (world.carrying === held && world.cells[world.front] === 0) this.#act(DROP);
        if (world.carrying === 0 && instruction.isDone(world)) return;
        continue;
      }
      // Make room: put the object down, clear the first thing on the best way, and come back for it.
      const blocked = way ?? this.#findWay(beside.filter((cell) => this.#isMovableAt(cell)));
      if (!blocked) throw new Over();
      this.#putDown(new Set([...cellsOf(blocked), ...beside]));
      if (way) this.#reach(free, 0);
      else {
        this.#reach(
          beside.filter((cell) => this.#isMovableAt(cell)),
          0,
        );
        if (world.carrying !== 0) continue;
        this.#remove(world.cells[world.front]!, new Set(beside));
      }
    }
    throw new Over();
  }

  #neighbours(cell: number): number[] {
    const { stride } = this.#world;
    return [cell + 1, cell - 1, cell + stride, cell - stride];
  }

  #listNeighbors(cell: number): number[] {
    const { stride } = this.#world;
    return [-stride - 1, -stride, -stride + 1, -1, 1, stride - 1, stride, stride + 1].map((offset) => cell + offset);
  }

  #isMovableAt(cell: number): boolean {
    const world = this.#world;
    const id = world.cells[cell]!;
    return id >= FIRST_OBJECT && isMovable(world.codes[id]!);
  }

  /** Takes one of the objects into the hand; whatever is held is put down first. */
  #fetch(ids: readonly number[]): void {
    const world = this.#world;
    if (ids.includes(world.carrying)) return;
    if (world.carrying !== 0) this.#putDown(new Set());
    for (let tries = 0; tries < 8; tries++) {
      this.#reach(
        ids.filter((id) => world.isPlaced(id)).map((id) => world.places[id]!),
        0,
      );
      if (world.carrying === 0) break;
      if (ids.includes(world.carrying)) return;
      this.#putDown(new Set([world.front]));
    }
    this.#act(PICKUP);
    if (!ids.includes(world.carrying)) throw new Over();
  }

  /** Opens a locked door: gets its key from wherever it is, comes back and turns it. */
  #unlock(door: number): void {
    const world = this.#world;
    const wanted = KEY | (world.codes[door]! & 0xff00);
    const isKey = (id: number) => id >= FIRST_OBJECT && world.codes[id] === wanted;
    if (!isKey(world.carrying)) {
      let keys = this.#ids().filter((id) => isKey(id) && world.isPlaced(id));
      if (keys.length === 0) {
        const box = this.#ids().find((id) => world.isPlaced(id) && isKey(world.contents[id]!));
        if (box === undefined) throw new Over();
        this.#reach([world.places[box]!], 0);
        this.#act(TOGGLE);
        keys = [world.contents[box]!];
      }
      const locked = this.#locked;
      this.#locked = new Set([...locked, door]); // its own key cannot be behind it
      this.#fetch(keys);
      this.#locked = locked;
    }
    this.#reach([world.places[door]!], world.carrying);
    this.#act(TOGGLE);
  }

  /** Doors that count as walls while their key is fetched. */
  #locked: ReadonlySet<number> = new Set();

  #ids(): number[] {
    return Array.from({ length: this.#world.objectEnd - FIRST_OBJECT }, (_, n) => n + FIRST_OBJECT);
  }

  /**
   * Faces one of the cells, opening and clearing what is in the way.
   *
   * @param keep id of the object that must be in the hand on arrival; 0 if anything may be
   * @throws {Over} when there is no way
   */
  #reach(cells: readonly number[], keep: number): void {
    const world = this.#world;
    for (let tries = 0; tries < 40; tries++) {
      const way = this.#findWay(cells);
      if (!way) throw new Over();
      if (!this.#walk(way)) continue;
      if (keep === 0 || world.carrying === keep) return;
      this.#fetch([keep]);
    }
    throw new Over();
  }

  /** Walks until something has to be moved or unlocked, and does that. @returns whether the end was reached */
  #walk(way: Way): boolean {
    const world = this.#world;
    for (const [n, state] of way.states.entries()) {
      const cell = state >> 2;
      const dir = state & 3;
      if (dir !== world.agentDir) {
        this.#act(((world.agentDir + 1) & 3) === dir ? RIGHT : LEFT);
        continue;
      }
      const id = world.cells[cell]!;
      if (id !== 0 && !world.isOpen(cell)) {
        const code = world.codes[id]!;
        if ((code & 0xff) === DOOR) {
          if (code >>> 16 === LOCKED && !this.#holdsKeyOf(code)) {
            this.#unlock(id);
            return false;
          }
          this.#act(TOGGLE);
        } else {
          this.#remove(id, new Set(way.states.slice(n).map((later) => later >> 2)));
          return false;
        }
      }
      this.#act(FORWARD);
    }
    return true;
  }

  #holdsKeyOf(door: number): boolean {
    const world = this.#world;
    return world.carrying !== 0 && world.codes[world.carrying] === (KEY | (door & 0xff00));
  }

  #mayOpen(id: number): boolean {
    const world = this.#world;
    return (
      this.#preferences.opensBoxes &&
      (world.codes[id]! & 0xff) === BOX &&
      !this.#meant.has(id) &&
      world.contents[id] === 0
    );
  }

  /** Removes the object ahead from the way. @param keepFree cells nothing is to be put down on */
  #remove(id: number, keepFree: Set<number>): void {
    const world = this.#world;
    if (this.#mayOpen(id)) {
      this.#act(TOGGLE);
      return;
    }
    if (this.#onlyPickup && !this.#onlyPickup.includes(id)) throw new Over();
    const cell = world.places[id]!;
    if (world.carrying !== 0) {
      this.#putDown(new Set([...keepFree, cell]));
      if (world.front !== cell) this.#reach([cell], 0);
      if (world.carrying !== 0 || world.cells[world.front] !== id) return;
    }
    this.#act(PICKUP);
    this.#putDown(keepFree);
  }

  /** Puts down what is held at the cheapest place that is not to be kept free. */
  #putDown(keepFree: ReadonlySet<number>): void {
    const world = this.#world;
    const avoid = new Map<number, number>();
    const crowdCost = this.#preferences.crowdCost ?? 0;
    for (const cell of this.#freeCells()) {
      let cost = this.#rng ? this.#rng.int(4) : 0;
      if (keepFree.has(cell)) cost += 60;
      for (const next of this.#neighbours(cell)) {
        const id = world.cells[next]!;
        if (id >= FIRST_OBJECT && (world.codes[id]! & 0xff) === DOOR) cost += this.#preferences.doorCost;
      }
      if (crowdCost > 0) {
        for (const near of this.#listNeighbors(cell)) if (world.cells[near] !== 0) cost += crowdCost;
      }
      avoid.set(cell, cost);
    }
    const way = this.#findWay([...avoid.keys()], avoid, true);
    if (!way) throw new Over();
    if (!this.#walk(way)) return;
    this.#act(DROP);
  }

  #freeCells(): number[] {
    const world = this.#world;
    const out: number[] = [];
    for (let y = 1; y < world.height - 1; y++) {
      for (let x = 1; x < world.width - 1; x++) {
        const cell = world.at(x, y);
        if (world.cells[cell] === 0) out.push(cell);
      }
    }
    return out;
  }

  #isObstructed(way: Way): boolean {
    const world = this.#world;
    return way.states.some((state) => {
      const id = world.cells[state >> 2]!;
      if (id === 0 || (world.codes[id]! & 0xff) !== DOOR) return id !== 0;
      return world.codes[id]! >>> 16 === LOCKED;
    });
  }

  /** Cost of entering a cell, −1 where that is impossible. */
  #entry(cell: number, freeOnly: boolean): number {
    const world = this.#world;
    const id = world.cells[cell]!;
    if (id === 0) return 1;
    if (id < FIRST_OBJECT) return -1;
    const code = world.codes[id]!;
    if ((code & 0xff) === DOOR) {
      if (code >>> 16 === OPEN) return 1;
      if (this.#onlyToggle && !this.#onlyToggle.includes(id)) return -1;
      if (code >>> 16 === CLOSED || this.#holdsKeyOf(code)) return 2;
      return freeOnly || this.#locked.has(id) ? -1 : LOCK_COST;
    }
    if (freeOnly) return -1;
    if (this.#mayOpen(id)) return 2;
    if (this.#onlyPickup && !this.#onlyPickup.includes(id)) return -1;
    return this.#preferences.moveCost + (world.carrying !== 0 ? 6 : 0);
  }

  /**
   * The cheapest way to face one of the cells (Dijkstra over cell and direction).
   *
   * @param extra cost of a target cell, by cell
   * @param freeOnly nothing may be moved or unlocked on the way
   */
  #findWay(cells: readonly number[], extra?: ReadonlyMap<number, number>, freeOnly = false): Way | undefined {
    const world = this.#world;
    const { stride } = world;
    const targets = new Set(cells);
    const size = world.cells.length * 4;
    const costs = new Int32Array(size).fill(-1);
    const from = new Int32Array(size).fill(-1);
    const buckets: number[][] = [];
    const push = (state: number, cost: number, parent: number) => {
      if (costs[state]! >= 0 && costs[state]! <= cost) return;
      costs[state] = cost;
      from[state] = parent;
      (buckets[cost] ??= []).push(state);
    };
    const start = (world.at(world.agentX, world.agentY) << 2) | world.agentDir;
    push(start, 0, -1);
    let best: { state: number; cost: number } | undefined;
    for (let cost = 0; cost < buckets.length; cost++) {
      if (best && cost >= best.cost) break;
      for (const state of buckets[cost] ?? []) {
        if (costs[state] !== cost) continue;
        const dir = state & 3;
        const ahead = (state >> 2) + DY[dir]! * stride + DX[dir]!;
        if (targets.has(ahead)) {
          const total = cost + (extra?.get(ahead) ?? 0);
          if (!best || total < best.cost) best = { state, cost: total };
        }
        push((state & ~3) | ((dir + 1) & 3), cost + 1, state);
        push((state & ~3) | ((dir + 3) & 3), cost + 1, state);
        const entry = this.#entry(ahead, freeOnly);
        if (entry >= 0) push((ahead << 2) | dir, cost + entry, state);
      }
    }
    if (!best) return undefined;
    const states: number[] = [];
    for (let state = best.state; state !== start; state = from[state]!) states.push(state);
    return { states: states.reverse(), cost: best.cost };
  }
}

function cellsOf(way: Way): number[] {
  return way.states.map((state) => state >> 2);
}

/** All descriptions in an instruction. */
function descriptionsOf(instruction: Instruction): Description[] {
  if (isSequence(instruction)) return [...descriptionsOf(instruction.a), ...descriptionsOf(instruction.b)];
  if (instruction instanceof PutNext) return [instruction.moving, instruction.fixed];
  return [(instruction as GoTo | Open | Pickup).target];
}
