/**
 * The original's path search, all targets at once.
 *
 * The original runs one breadth-first search per target over (cell, direction), with forward, left, right tried in
 * that order. It marks a state visited when it is *taken* from the queue, not when it is put in, so a state may be
 * queued several times and the last one to queue it becomes its parent, while the first decides when it is taken.
 * Every action flips the parity of x + y + direction, so all queuing of a state happens while the level before it
 * is worked off; hence two orders of each level suffice and no state need be kept twice: `first` (by first
 * occurrence) says which target state is met first, `last` (by last occurrence) says which parent stands. Obstacles
 * are the same for all targets and a state's parent is fixed once it was taken, so one search serves them all.
 */
import { DX, DY, FORWARD, LEFT, RIGHT } from './grid.ts';
import { LOCAL, type Scene } from './scene.ts';

const STATES = LOCAL * LOCAL * 4;
const UNREACHED = 0xffff;

const rank = new Uint16Array(STATES);
const parent = new Uint8Array(STATES);
const via = new Uint8Array(STATES);
const stamp = new Int32Array(STATES);
let firsts = new Uint8Array(STATES);
let nextFirsts = new Uint8Array(STATES);
let lasts = new Uint8Array(STATES);
let nextLasts = new Uint8Array(STATES);
const pushed = new Uint8Array(3 * STATES);

/** The search tree from one place. It is overwritten by the next search: read what you need at once. */
export interface Paths {
  /** Whether some path leads to facing (x, y). */
  reaches(x: number, y: number): boolean;
  /** Low-level actions that lead to facing (x, y) from a neighbouring cell, or undefined. */
  facing(x: number, y: number): number[] | undefined;
  /** Low-level actions that lead onto (x, y), or undefined. */
  onto(x: number, y: number): number[] | undefined;
}

/**
 * Searches from where the agent stands.
 *
 * @param throughDoors whether closed and locked doors are walked through in mind, as the original does
 */
export function searchPaths(scene: Scene, x: number, y: number, dir: number, throughDoors: boolean): Paths {
  const { obstacles, shutDoors, columns, rows, x0, y0 } = scene;
  rank.fill(UNREACHED);
  stamp.fill(-1);
  const start = (((x - x0) * LOCAL + (y - y0)) << 2) | dir;
  let taken = 0;
  let stamps = 0;
  rank[start] = taken++;
  firsts[0] = lasts[0] = start;
  let count = 1;

  while (count > 0) {
    // Who is met first: extend the level in order of first occurrence.
    let nextCount = 0;
    for (let n = 0; n < count; n++) {
      const state = firsts[n]!;
      for (let k = 0; k < 3; k++) {
        const next = neighbour(state, k);
        if (next < 0 || rank[next] !== UNREACHED) continue;
        rank[next] = taken++;
        nextFirsts[nextCount++] = next;
      }
    }
    // Whose parent stands: the same in order of last occurrence; of several entries the last counts.
    const level = stamps;
    const firstRank = taken - nextCount;
    let pushes = 0;
    for (let n = 0; n < count; n++) {
      const state = lasts[n]!;
      for (let k = 0; k < 3; k++) {
        const next = neighbour(state, k);
        if (next < 0 || rank[next]! < firstRank) continue;
        parent[next] = state;
        via[next] = ORDER[k]!;
        stamp[next] = stamps++;
        pushed[pushes++] = next;
      }
    }
    let kept = 0;
    for (let n = 0; n < pushes; n++) if (stamp[pushed[n]!] === level + n) nextLasts[kept++] = pushed[n]!;
    [firsts, nextFirsts] = [nextFirsts, firsts];
    [lasts, nextLasts] = [nextLasts, lasts];
    count = nextCount;
  }

  function neighbour(state: number, k: number): number {
    if (k === 1) return (state & ~3) | ((state + 3) & 3);
    if (k === 2) return (state & ~3) | ((state + 1) & 3);
    const column = (state >>> 5) + DX[state & 3]!;
    const row = ((state >>> 2) & 7) + DY[state & 3]!;
    if (column < 0 || column >= columns || row < 0 || row >= rows) return -1;
    const cell = column * LOCAL + row;
    if (obstacles[cell] || (!throughDoors && shutDoors[cell])) return -1;
    return (cell << 2) | (state & 3);
  }

  function path(state: number): number[] | undefined {
    if (state < 0) return undefined;
    const actions: number[] = [];
    for (let s = state; s !== start; s = parent[s]!) actions.push(via[s]!);
    return actions.reverse();
  }

  /** The state met first among four, one per direction, `back` cells behind (tx, ty); −1 for none. */
  function best(tx: number, ty: number, back: number): number {
    let found = -1;
    for (let d = 0; d < 4; d++) {
      const column = tx - x0 - back * DX[d]!;
      const row = ty - y0 - back * DY[d]!;
      if (column < 0 || column >= columns || row < 0 || row >= rows) continue;
      const state = ((column * LOCAL + row) << 2) | d;
      if (rank[state] !== UNREACHED && (found < 0 || rank[state]! < rank[found]!)) found = state;
    }
    return found;
  }

  return {
    reaches: (tx, ty) => best(tx, ty, 1) >= 0,
    facing: (tx, ty) => path(best(tx, ty, 1)),
    onto: (tx, ty) => path(best(tx, ty, 0)),
  };
}

/** Actions in the order they are tried. */
const ORDER = [FORWARD, LEFT, RIGHT] as const;
