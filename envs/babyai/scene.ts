/**
 * Scene that the agent makes of an image: the things in sight, nearest first, each with a name, a number among its
 * namesakes and a place relative to the agent.
 */
import { BOX, COLOR_NAMES, DOOR, DX, DY, KEY, STATE_NAMES, TYPE_NAMES, VIEW, WALL } from './grid.ts';
import type { World } from './world.ts';

/** Thing in sight other than a wall. */
export interface Thing {
  /** `red ball`, `blue closed door` */
  readonly name: string;
  /** 1 for the nearest of its name, and so on. */
  readonly number: number;
  readonly code: number;
  readonly x: number;
  readonly y: number;
  /** Cells ahead of the agent, in [0, 6]. */
  readonly front: number;
  /** Cells to its right; negative to its left. */
  readonly right: number;
}

/** Scene: all that is in sight from one place. */
export interface Scene {
  readonly things: readonly Thing[];
  /** True when anything is in sight, be it only a wall. */
  readonly sightful: boolean;
  /** Nearest wall or box straight ahead: its type, and its distance in cells; type 0 when there is none. */
  readonly barrier: number;
  readonly barrierDistance: number;
  /**
   * [8 · 8] local map, column · 8 + row from (x0, y0): 1 for what the original's path search walks around, which is
   * walls and objects in sight, doors excepted, and all beyond the rectangle it stays in: the view and one line more.
   */
  readonly obstacles: Uint8Array;
  /** Doors in sight that are not open, as `obstacles`; the original walks through them in mind. */
  readonly shutDoors: Uint8Array;
  readonly x0: number;
  readonly y0: number;
}

/** Side of the local map that obstacles are kept on. */
export const LOCAL = 8;

/** Names by `type << 5 | colour << 2 | state`. */
const NAMES: readonly string[] = Array.from({ length: 8 * 32 }, (_, index) => {
  const type = index >>> 5;
  const color = COLOR_NAMES[(index >>> 2) & 7];
  const state = STATE_NAMES[index & 3];
  if (color === undefined || state === undefined) return '';
  return type === DOOR ? `${color} ${state} door` : `${color} ${TYPE_NAMES[type]!}`;
});

/** The name the text world gives a code. */
export function nameOf(code: number): string {
  return NAMES[nameIndex(code)]!;
}

function nameIndex(code: number): number {
  return ((code & 7) << 5) | ((code >>> 6) & 0x1c) | (code >>> 16);
}

/** Cells of the image by distance from the agent (nearest first, far rows before near ones, left to right). */
const NEAREST_FIRST: readonly number[] = Array.from({ length: VIEW * VIEW }, (_, k) => k)
  .filter((k) => k !== (VIEW - 1) * VIEW + 3)
  .sort((a, b) => distance(a) - distance(b) || a - b);

/** @param k row · 7 + column in the image */
function distance(k: number): number {
  return VIEW - 1 - Math.floor(k / VIEW) + Math.abs((k % VIEW) - 3);
}

const counts = new Uint8Array(8 * 32);

/**
 * Reads an image.
 *
 * @param image [7, 7, 3] as `World.observe` writes it
 */
export function readScene(world: World, image: Uint8Array): Scene {
  const { agentX, agentY, agentDir } = world;
  const fx = DX[agentDir]!;
  const fy = DY[agentDir]!;
  const rx = -fy;
  const ry = fx;

  // The original's ranges, one line wider than the view behind the agent or at its side (see the README).
  const cornerX = agentX + 6 * fx - 3 * rx;
  const cornerY = agentY + 6 * fy - 3 * ry;
  const farX = cornerX + 7 * (rx - fx);
  const farY = cornerY + 7 * (ry - fy);
  const x0 = Math.min(farX, cornerX);
  const y0 = Math.min(farY, cornerY);
  const columns = (farX < cornerX ? cornerX + 1 : farX) - x0;
  const rows = (farY < cornerY ? cornerY + 1 : farY) - y0;

  const things: Thing[] = [];
  const obstacles = new Uint8Array(LOCAL * LOCAL);
  if (columns < LOCAL) obstacles.fill(1, columns * LOCAL);
  if (rows < LOCAL)
    for (let cell = rows; cell < LOCAL * LOCAL; cell += LOCAL) obstacles.fill(1, cell, cell + LOCAL - rows);
  const shutDoors = new Uint8Array(LOCAL * LOCAL);
  let sightful = false;
  let barrier = 0;
  let barrierDistance = 0;
  counts.fill(0);

  for (const k of NEAREST_FIRST) {
    const i = k % VIEW;
    const j = (k - i) / VIEW;
    const o = (i * VIEW + j) * 3;
    const type = image[o]!;
    if (type < WALL) continue;
    const front = VIEW - 1 - j;
    const right = i - 3;
    const x = agentX + front * fx + right * rx;
    const y = agentY + front * fy + right * ry;
    if (x < 0 || y < 0) continue;
    sightful = true;
    const column = x - x0;
    const row = y - y0;
    const inside = column >= 0 && column < columns && row >= 0 && row < rows;
    if (right === 0 && barrier === 0 && (type === WALL || type === BOX)) {
      barrier = type;
      barrierDistance = front;
    }
    if (type === WALL) {
      if (inside) obstacles[column * LOCAL + row] = 1;
      continue;
    }
    const code = type | (image[o + 1]! << 8) | (image[o + 2]! << 16);
    if (inside) {
      if (type >= KEY && type <= BOX) obstacles[column * LOCAL + row] = 1;
      else if (type === DOOR && image[o + 2] !== 0) shutDoors[column * LOCAL + row] = 1;
    }
    const index = nameIndex(code);
    const number = (counts[index] = counts[index]! + 1);
    things.push({ name: NAMES[index]!, number, code, x, y, front, right });
  }
  return { things, sightful, barrier, barrierDistance, obstacles, shutDoors, x0, y0 };
}
