/**
 * The grid world: Minigrid's dynamics on flat arrays. Cells hold object ids (0 nothing, 1 wall), so objects keep
 * their identity when they are carried, which is what the instructions are verified against.
 *
 * The grid is stored with a margin of wall on all sides, wide enough that the view never leaves the array.
 */
import {
  BALL,
  BOX,
  CLOSED,
  DONE,
  DOOR,
  DROP,
  DX,
  DY,
  EMPTY,
  FORWARD,
  isOpaque,
  KEY,
  LEFT,
  LIGHT,
  LOCKED,
  OPEN,
  PICKUP,
  RIGHT,
  TOGGLE,
  VIEW,
  WALL_CODE,
} from './grid.ts';
import { type Instruction, SUCCESS } from './verifier.ts';

const MARGIN = VIEW - 1;
/** Object ids below this one are not objects. */
export const FIRST_OBJECT = 2;

/** One running grid world: state, dynamics and the partial view. */
export class World {
  readonly width: number;
  readonly height: number;
  readonly roomSize: number;
  readonly numRows: number;
  readonly numCols: number;
  /** Cells per line of `cells`. */
  readonly stride: number;
  /** Object id per cell, margin included; use `at` for coordinates. */
  readonly cells: Uint8Array;
  /** Code by object id. */
  readonly codes: Uint32Array;
  /** Cell index by object id while it lies in the grid or was last put there; −1 for none. */
  readonly places: Int16Array;
  /** Object id inside a box by the box's id, 0 for none. */
  readonly contents: Uint8Array;
  /** Ids in use are FIRST_OBJECT … objectEnd − 1. */
  objectEnd = FIRST_OBJECT;

  /** The image Minigrid's reset returned where it is not the first one: drawn before the agent's hand was filled. */
  staleImage: Uint8Array | undefined;
  agentX = -1;
  agentY = -1;
  agentDir = 0;
  /** Id of the carried object, 0 for none. */
  carrying = 0;
  stepCount = 0;
  /** True when a strict second part forgives the action that completed the first one; Minigrid does not. */
  forgiving = false;
  maxSteps = 0;
  mission = '';
  instruction!: Instruction;
  /** Reward of the last step: 1 − 0.9·(steps/maxSteps) when it fulfilled the instruction, else 0. */
  reward = 0;
  /** The instruction is fulfilled, or (strict ones) was made impossible. */
  terminated = false;
  /** The step limit is reached. Minigrid reports it and goes on; the text world ignores it. */
  truncated = false;
  /** The instruction was fulfilled on the last step. */
  success = false;

  /** @param capacity most objects that will be added */
  constructor(roomSize: number, numRows: number, numCols: number, capacity: number) {
    this.roomSize = roomSize;
    this.numRows = numRows;
    this.numCols = numCols;
    this.width = (roomSize - 1) * numCols + 1;
    this.height = (roomSize - 1) * numRows + 1;
    this.stride = this.width + 2 * MARGIN;
    this.cells = new Uint8Array(this.stride * (this.height + 2 * MARGIN)).fill(1);
    this.codes = new Uint32Array(FIRST_OBJECT + capacity);
    this.codes[0] = EMPTY;
    this.codes[1] = WALL_CODE;
    this.places = new Int16Array(FIRST_OBJECT + capacity).fill(-1);
    this.contents = new Uint8Array(FIRST_OBJECT + capacity);
  }

  /** Index into `cells`. */
  at(x: number, y: number): number {
    return (y + MARGIN) * this.stride + x + MARGIN;
  }

  xOf(cell: number): number {
    return (cell % this.stride) - MARGIN;
  }

  yOf(cell: number): number {
    return Math.floor(cell / this.stride) - MARGIN;
  }

  /** Code of the cell at (x, y). */
  codeAt(x: number, y: number): number {
    return this.codes[this.cells[this.at(x, y)]!]!;
  }

  /** Index of the cell in front of the agent. */
  get front(): number {
    return this.at(this.agentX + DX[this.agentDir]!, this.agentY + DY[this.agentDir]!);
  }

  /** Makes an object that is nowhere yet. @returns its id */
  addObject(code: number): number {
    const id = this.objectEnd++;
    this.codes[id] = code;
    return id;
  }

  /** Puts an object into a cell. */
  place(id: number, cell: number): void {
    this.cells[cell] = id;
    this.places[id] = cell;
  }

  /** True when an object lies in the grid now. */
  isPlaced(id: number): boolean {
    const cell = this.places[id]!;
    return cell >= 0 && this.cells[cell] === id;
  }

  /**
   * Takes one low-level action; results are left in `reward`, `terminated`, `truncated` and `success`.
   * Steps past the end are answered too, as Minigrid does.
   *
   * @throws {RangeError} for an action outside 0 … 6
   */
  step(action: number): void {
    this.stepCount++;
    const front = this.front;
    const cells = this.cells;
    const id = cells[front]!;

    switch (action) {
      case LEFT:
        this.agentDir = (this.agentDir + 3) & 3;
        break;
      case RIGHT:
        this.agentDir = (this.agentDir + 1) & 3;
        break;
      case FORWARD:
        if (this.isOpen(front)) {
          this.agentX += DX[this.agentDir]!;
          this.agentY += DY[this.agentDir]!;
        }
        break;
      case PICKUP: {
        const type = this.codes[id]! & 0xff;
        if (this.carrying === 0 && type >= KEY && type <= BOX) {
          this.carrying = id;
          this.places[id] = -1;
          cells[front] = 0;
        }
        break;
      }
      case DROP:
        if (id === 0 && this.carrying !== 0) {
          this.place(this.carrying, front);
          this.carrying = 0;
        }
        break;
      case TOGGLE:
        if (id >= FIRST_OBJECT) this.#toggle(id, front);
        break;
      case DONE:
        break;
      default:
        throw new RangeError(`World.step: actions are 0 to 6, got ${action}`);
    }

    this.truncated = this.stepCount >= this.maxSteps;
    if (action === DROP) this.instruction.handleMoved(this);
    const status = this.instruction.verify(this, action);
    this.terminated = status !== 0;
    this.success = status === SUCCESS;
    this.reward = this.success ? 1 - 0.9 * (this.stepCount / this.maxSteps) : 0;
  }

  #toggle(id: number, cell: number): void {
    const code = this.codes[id]!;
    const type = code & 0xff;
    if (type === DOOR) {
      const state = code >>> 16;
      if (state === LOCKED) {
        // A key opens locks of its own colour and stays in the hand.
        if ((this.codes[this.carrying]! & 0xffff) !== (KEY | (code & 0xff00))) return;
        this.codes[id] = code & 0xffff;
      } else {
        this.codes[id] = (code & 0xffff) | ((state === OPEN ? CLOSED : OPEN) << 16);
      }
    } else if (type === BOX) {
      // An opened box is gone; what was inside lies in its place.
      const inside = this.contents[id]!;
      if (inside === 0) this.cells[cell] = 0;
      else this.place(inside, cell);
    }
  }

  /**
   * Renders the agent's partial view.
   *
   * @param out [7, 7, 3] bytes are written at `offset`: column from left, row from far to near, (type, colour, state);
   *   cells out of sight are (0, 0, 0), the agent's own cell shows what it carries
   */
  observe(out: Uint8Array, offset = 0): void {
    const dir = this.agentDir;
    const { cells, codes, stride } = this;
    const forward = DY[dir]! * stride + DX[dir]!;
    const right = DX[dir]! * stride - DY[dir]!;
    // Leftmost cell of the nearest row, then one row away at a time.
    let row = this.at(this.agentX, this.agentY) - 3 * right;
    let lit = 1 << 3;
    for (let j = VIEW - 1; j >= 0; j--) {
      let o = offset + j * 3;
      if (lit === 0) {
        for (let i = 0; i < VIEW; i++, o += VIEW * 3) out[o] = out[o + 1] = out[o + 2] = 0;
        continue;
      }
      let opaque = 0;
      for (let i = 0, cell = row; i < VIEW; i++, cell += right) {
        const id = cells[cell]!;
        if (id !== 0 && (id === 1 || isOpaque(codes[id]!))) opaque |= 1 << i;
      }
      const light = LIGHT[(lit << VIEW) | opaque]!;
      for (let i = 0, cell = row; i < VIEW; i++, cell += right, o += VIEW * 3) {
        const code = light & (1 << i) ? codes[cells[cell]!]! : 0;
        out[o] = code;
        out[o + 1] = code >>> 8;
        out[o + 2] = code >>> 16;
      }
      lit = light >>> VIEW;
      row += forward;
    }
    const own = offset + (3 * VIEW + VIEW - 1) * 3;
    const code = codes[this.carrying]!;
    out[own] = code;
    out[own + 1] = code >>> 8;
    out[own + 2] = code >>> 16;
  }

  /** The whole grid as Minigrid encodes it. @returns [width, height, 3] bytes, column by column */
  encode(): Uint8Array {
    const out = new Uint8Array(this.width * this.height * 3);
    let o = 0;
    for (let x = 0; x < this.width; x++) {
      for (let y = 0; y < this.height; y++) {
        const code = this.codeAt(x, y);
        out[o++] = code;
        out[o++] = code >>> 8;
        out[o++] = code >>> 16;
      }
    }
    return out;
  }

  /** True when the agent could walk into a cell now. */
  isOpen(cell: number): boolean {
    const id = this.cells[cell]!;
    return id === 0 || (id !== 1 && (this.codes[id]! & 0xff) === DOOR && this.codes[id]! >>> 16 === OPEN);
  }
}

/** True when a code is an object that can be picked up. */
export function isMovable(code: number): boolean {
  const type = code & 0xff;
  return type === KEY || type === BALL || type === BOX;
}
