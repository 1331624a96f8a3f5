/**
 * The instruction language and its verifiers: go to, open, pick up, put next to, and their combinations by "then",
 * "after you" and "and". An instruction states its goal in words, finds the objects it means in a fresh world, and
 * judges every low-level action.
 *
 * @see Chevalier-Boisvert et al. 2019, BabyAI: https://arxiv.org/abs/1810.08272 (the language); Minigrid 2.3.1 (the
 * exact rules, peculiarities included: they are what the recorded episodes show)
 */
import { COLOR_NAMES, DOOR, DROP, DX, DY, GREY, PICKUP, TOGGLE, TYPE_NAMES } from './grid.ts';
import { FIRST_OBJECT, type World } from './world.ts';

/** Verdict of an instruction after an action. */
export type Status = 0 | 1 | 2;
const CONTINUE = 0;
export const SUCCESS = 1;
const FAILURE = 2;

export type Location = 'left' | 'right' | 'front' | 'behind';
export const LOCATIONS: readonly Location[] = ['left', 'right', 'front', 'behind'];

/** A description of objects: type, colour and place relative to where the agent starts, each optional. */
export class Description {
  readonly type: number | null;
  readonly color: number | null;
  readonly location: Location | null;
  /** Ids of the objects meant. Walls share one id and may occur many times. */
  objects: number[] = [];
  /** Their cells, column by column; updated only when something is dropped. */
  cells: number[] = [];

  constructor(type: number | null, color: number | null = null, location: Location | null = null) {
    this.type = type;
    this.color = color;
    this.location = location;
  }

  #matches(code: number): boolean {
    return (
      (this.type === null || (code & 0xff) === this.type) &&
      (this.color === null || ((code >>> 8) & 0xff) === this.color)
    );
  }

  /** Finds the objects meant, from where the agent stands now. @returns how many */
  find(world: World): number {
    this.cells = this.#cellsWhere(world, (id, cell) => {
      if (!this.#matches(world.codes[id]!)) return false;
      return this.location === null || this.#lies(world, world.xOf(cell), world.yOf(cell));
    });
    this.objects = this.cells.map((cell) => world.cells[cell]!);
    return this.objects.length;
  }

  /** Follows the objects found before to where they lie now; places no longer matter. */
  track(world: World): void {
    this.cells = this.#cellsWhere(world, (id) => this.objects.includes(id));
  }

  /** Cells of the objects that pass, in the original's scanning order. */
  #cellsWhere(world: World, passes: (id: number, cell: number) => boolean): number[] {
    const found: number[] = [];
    if (this.type === null && (this.color === null || this.color === GREY)) {
      // "the grey object" means grey walls too: the original matches them, and so do we.
      for (let x = 0; x < world.width; x++) {
        for (let y = 0; y < world.height; y++) {
          const cell = world.at(x, y);
          const id = world.cells[cell]!;
          if (id !== 0 && passes(id, cell)) found.push(cell);
        }
      }
      return found;
    }
    for (let id = FIRST_OBJECT; id < world.objectEnd; id++) {
      if (world.isPlaced(id) && passes(id, world.places[id]!)) found.push(world.places[id]!);
    }
    const { stride } = world;
    return found.length > 1 ? found.sort((a, b) => (a % stride) - (b % stride) || a - b) : found;
  }

  /** True when (x, y) is in the room the agent stands in and in the described direction from it. */
  #lies(world: World, x: number, y: number): boolean {
    const inner = world.roomSize - 1;
    const left = Math.floor(world.agentX / inner) * inner;
    const top = Math.floor(world.agentY / inner) * inner;
    if (x < left || y < top || x > left + inner || y > top + inner) return false;
    const vx = x - world.agentX;
    const vy = y - world.agentY;
    const dx = DX[world.agentDir]!;
    const dy = DY[world.agentDir]!;
    const ahead = vx * dx + vy * dy;
    const aside = vy * dx - vx * dy; // positive to the right
    if (this.location === 'left') return aside < 0;
    if (this.location === 'right') return aside > 0;
    return this.location === 'front' ? ahead > 0 : ahead < 0;
  }

  /** `the red ball`, or `a red ball` where several match; `find` comes first. */
  words(): string {
    const noun = this.type === null ? 'object' : TYPE_NAMES[this.type]!;
    const color = this.color === null ? '' : `${COLOR_NAMES[this.color]!} `;
    const where =
      this.location === null
        ? ''
        : this.location === 'front'
          ? ' in front of you'
          : this.location === 'behind'
            ? ' behind you'
            : ` on your ${this.location}`;
    return `${this.objects.length > 1 ? 'a' : 'the'} ${color}${noun}${where}`;
  }
}

/** One instruction of the language. */
export interface Instruction {
  readonly kind: 'GoToInstr' | 'OpenInstr' | 'PickupInstr' | 'PutNextInstr' | 'BeforeInstr' | 'AfterInstr' | 'AndInstr';
  /** The sentence, from the objects the descriptions find now. */
  words(world: World): string;
  /** Begins an episode: finds the objects meant and forgets all progress. */
  reset(world: World): void;
  /** Judges the action just taken. */
  verify(world: World, action: number): Status;
  /** An object may have moved: follow it. */
  handleMoved(world: World): void;
  /** Rooms' worth of walking the task is granted: the step limit is this times the maze's area. */
  readonly walks: number;
}

export type Action = GoTo | Open | Pickup | PutNext;
export type Sequence = Before | After | And;

/** Face an object from the next cell. */
export class GoTo implements Instruction {
  readonly kind = 'GoToInstr';
  readonly walks = 1;
  readonly target: Description;

  constructor(target: Description) {
    this.target = target;
  }

  words(world: World): string {
    this.target.find(world);
    return `go to ${this.target.words()}`;
  }

  reset(world: World): void {
    this.target.find(world);
  }

  verify(world: World): Status {
    return this.target.cells.includes(world.front) ? SUCCESS : CONTINUE;
  }

  handleMoved(world: World): void {
    this.target.track(world);
  }
}

/** Open a door by toggling it; a strict one fails when another door is toggled, or this one is closed. */
export class Open implements Instruction {
  readonly kind = 'OpenInstr';
  readonly walks = 1;
  readonly target: Description;
  readonly strict: boolean;

  constructor(target: Description, strict = false) {
    this.target = target;
    this.strict = strict;
  }

  words(world: World): string {
    this.target.find(world);
    return `open ${this.target.words()}`;
  }

  reset(world: World): void {
    this.target.find(world);
  }

  verify(world: World, action: number): Status {
    if (action !== TOGGLE) return CONTINUE;
    const id = world.cells[world.front]!;
    const code = world.codes[id]!;
    if ((code & 0xff) !== DOOR) return CONTINUE;
    if (code >>> 16 === 0 && this.target.objects.includes(id)) return SUCCESS;
    return this.strict ? FAILURE : CONTINUE;
  }

  handleMoved(world: World): void {
    this.target.track(world);
  }
}

/** Pick an object up; a strict one fails when another is in the hand after a pickup. */
export class Pickup implements Instruction {
  readonly kind = 'PickupInstr';
  readonly walks = 1;
  readonly target: Description;
  readonly strict: boolean;
  #carriedBefore = 0;

  constructor(target: Description, strict = false) {
    this.target = target;
    this.strict = strict;
  }

  words(world: World): string {
    this.target.find(world);
    return `pick up ${this.target.words()}`;
  }

  reset(world: World): void {
    this.#carriedBefore = 0;
    this.target.find(world);
  }

  verify(world: World, action: number): Status {
    const before = this.#carriedBefore;
    const { carrying } = world;
    this.#carriedBefore = carrying;
    if (action !== PICKUP) return CONTINUE;
    if (before === 0 && carrying !== 0 && this.target.objects.includes(carrying)) return SUCCESS;
    return this.strict && carrying !== 0 ? FAILURE : CONTINUE;
  }

  handleMoved(world: World): void {
    this.target.track(world);
  }
}

/** Drop one object in a cell beside another. A strict one fails on any pickup that leaves something in the hand. */
export class PutNext implements Instruction {
  readonly kind = 'PutNextInstr';
  readonly walks = 2;
  readonly moving: Description;
  readonly fixed: Description;
  readonly strict: boolean;
  #carriedBefore = 0;

  constructor(moving: Description, fixed: Description, strict = false) {
    this.moving = moving;
    this.fixed = fixed;
    this.strict = strict;
  }

  words(world: World): string {
    this.moving.find(world);
    this.fixed.find(world);
    return `put ${this.moving.words()} next to ${this.fixed.words()}`;
  }

  reset(world: World): void {
    this.#carriedBefore = 0;
    this.moving.find(world);
    this.fixed.find(world);
  }

  /** True when some object to be moved lies beside one of the fixed ones. */
  isDone(world: World): boolean {
    return this.moving.objects.some((id) => this.#isBeside(world, id));
  }

  #isBeside(world: World, id: number): boolean {
    const cell = world.places[id]!;
    return this.fixed.cells.some((other) => {
      const d = Math.abs(cell - other);
      return d === 1 || d === world.stride;
    });
  }

  verify(world: World, action: number): Status {
    const before = this.#carriedBefore;
    this.#carriedBefore = world.carrying;
    if (this.strict && action === PICKUP && world.carrying !== 0) return FAILURE;
    if (action !== DROP || before === 0 || !this.moving.objects.includes(before)) return CONTINUE;
    // The object judged is the one in the hand a step ago, dropped or not; one still held is beside nothing.
    return world.places[before]! >= 0 && this.#isBeside(world, before) ? SUCCESS : CONTINUE;
  }

  handleMoved(world: World): void {
    this.moving.track(world);
    this.fixed.track(world);
  }
}

/**
 * The second part judges the very action that completed the first. A strict second part therefore fails at once: the
 * door just opened is not the one it means, and Minigrid's ordered strict levels cannot be solved. A forgiving world
 * lets that pass.
 */
function secondAtOnce(world: World, status: Status): Status {
  return status === FAILURE && world.forgiving ? CONTINUE : status;
}

/** First `a`, then `b`. The action that completes `a` may complete `b` as well. */
export class Before implements Instruction {
  readonly kind = 'BeforeInstr';
  readonly a: Action | And;
  readonly b: Action | And;
  #firstDone = false;

  constructor(a: Action | And, b: Action | And) {
    this.a = a;
    this.b = b;
  }

  get walks(): number {
    return this.a.walks + this.b.walks;
  }

  words(world: World): string {
    return `${this.a.words(world)}, then ${this.b.words(world)}`;
  }

  reset(world: World): void {
    this.#firstDone = false;
    this.a.reset(world);
    this.b.reset(world);
  }

  verify(world: World, action: number): Status {
    if (!this.#firstDone) {
      const status = this.a.verify(world, action);
      if (status !== SUCCESS) return status;
      this.#firstDone = true;
      return secondAtOnce(world, this.b.verify(world, action));
    }
    return this.b.verify(world, action);
  }

  handleMoved(world: World): void {
    this.a.handleMoved(world);
    this.b.handleMoved(world);
  }

  /** True when the first part is behind us. */
  get firstDone(): boolean {
    return this.#firstDone;
  }
}

/** `a` after `b`: the second part is done first. */
export class After implements Instruction {
  readonly kind = 'AfterInstr';
  readonly a: Action | And;
  readonly b: Action | And;
  #firstDone = false;

  constructor(a: Action | And, b: Action | And) {
    this.a = a;
    this.b = b;
  }

  get walks(): number {
    return this.a.walks + this.b.walks;
  }

  words(world: World): string {
    return `${this.a.words(world)} after you ${this.b.words(world)}`;
  }

  reset(world: World): void {
    this.#firstDone = false;
    this.a.reset(world);
    this.b.reset(world);
  }

  verify(world: World, action: number): Status {
    if (!this.#firstDone) {
      const status = this.b.verify(world, action);
      if (status !== SUCCESS) return status;
      this.#firstDone = true;
      return secondAtOnce(world, this.a.verify(world, action));
    }
    return this.a.verify(world, action);
  }

  handleMoved(world: World): void {
    this.a.handleMoved(world);
    this.b.handleMoved(world);
  }

  get firstDone(): boolean {
    return this.#firstDone;
  }
}

/**
 * Conjunction: both parts, in any order. A part that fails (strict) is not remembered: the original goes on, and so do
 * we.
 */
export class And implements Instruction {
  readonly kind = 'AndInstr';
  readonly a: Action;
  readonly b: Action;
  aDone = false;
  bDone = false;

  constructor(a: Action, b: Action) {
    this.a = a;
    this.b = b;
  }

  get walks(): number {
    return this.a.walks + this.b.walks;
  }

  words(world: World): string {
    return `${this.a.words(world)} and ${this.b.words(world)}`;
  }

  reset(world: World): void {
    this.aDone = false;
    this.bDone = false;
    this.a.reset(world);
    this.b.reset(world);
  }

  verify(world: World, action: number): Status {
    if (!this.aDone) this.aDone = this.a.verify(world, action) === SUCCESS;
    if (!this.bDone) this.bDone = this.b.verify(world, action) === SUCCESS;
    return this.aDone && this.bDone ? SUCCESS : CONTINUE;
  }

  handleMoved(world: World): void {
    this.a.handleMoved(world);
    this.b.handleMoved(world);
  }
}

/** True when an instruction combines others. */
export function isSequence(instruction: Instruction): instruction is Sequence {
  return instruction.kind === 'BeforeInstr' || instruction.kind === 'AfterInstr' || instruction.kind === 'AndInstr';
}
