/**
 * Path search of the original, all targets at once.
 *
 * The original runs one breadth-first search per target over (cell, direction), with forward, left, right tried in
 * that order. It marks a state visited when it is *taken* from the queue, not when it is put in, so a state may be
 * queued several times and the last one to queue it becomes its parent, while the first decides when it is taken.
 * Every action flips the parity of x + y + direction, so all queuing of a state happens while the level before it
 * is worked off; hence two orders of each level suffice and no state need be kept twice: `first` (by first
 * occurrence) gives the target state that is met first, `last` (by last occurrence) the parent that stands. Obstacles
 * are the same for all targets and a state's parent is fixed once it was taken, so one search serves them all.
 */
import { DX, DY, FORWARD, LEFT, RIGHT } from './grid.ts';
import { LOCAL, type Scene, type Thing } from './scene.ts';

const CELLS = LOCAL * LOCAL;
/** States: cell · 4 + direction. */
const STATES = CELLS * 4;
const UNREACHED = 0xffff;
const NONE = -1;

/** Cell ahead of a state, NONE beyond the local map. */
const AHEAD = Int8Array.from({ length: STATES }, (_, state) => {
  const column = (state >> 5) + DX[state & 3]!;
  const row = ((state >> 2) & 7) + DY[state & 3]!;
  return column < 0 || column >= LOCAL || row < 0 || row >= LOCAL ? NONE : column * LOCAL + row;
});
/** Order in which actions are tried. */
const ORDER = [FORWARD, LEFT, RIGHT] as const;

// Scratch, overwritten by every search: there is one search at a time in a thread, and its result is read at once.
const blocked = new Uint8Array(CELLS);
const rank = new Uint16Array(STATES);
const parent = new Uint8Array(STATES);
const via = new Uint8Array(STATES);
const stamp = new Uint16Array(STATES);
const pushed = new Uint8Array(3 * STATES);
const wanted = new Uint8Array(CELLS);
/** States by cell: the first one taken that faces it, and the first on it. */
const facing = new Int16Array(CELLS);
const onto = new Int16Array(CELLS);
let firsts = new Uint8Array(STATES);
let nextFirsts = new Uint8Array(STATES);
let lasts = new Uint8Array(STATES);
let nextLasts = new Uint8Array(STATES);

/** Paths found by a search. The next search overwrites them: read what you need at once. */
export interface Paths {
  /** True when some path leads to facing a thing from the cell beside it. */
  reaches(thing: Thing): boolean;
  /** True when some path leads onto it. */
  enters(thing: Thing): boolean;
  /** Low-level actions that lead to facing it, or undefined. */
  facing(thing: Thing): number[] | undefined;
  /** Low-level actions that lead onto it, or undefined. */
  findPathOnto(thing: Thing): number[] | undefined;
}

/**
 * Searches from where the agent stands, until both ways to every target are known or all is searched.
 *
 * @param throughDoors whether closed and locked doors are walked through in mind, as the original does
 * @param targets things to find paths to; by default all in the scene
 */
export function searchPaths(
  scene: Scene,
  { agentX, agentY, agentDir }: { readonly agentX: number; readonly agentY: number; readonly agentDir: number },
  throughDoors: boolean,
  targets: readonly Thing[] = scene.things,
): Paths {
  const { obstacles, shutDoors, x0, y0 } = scene;
  const cellOf = (thing: { readonly x: number; readonly y: number }) => (thing.x - x0) * LOCAL + thing.y - y0;
  blocked.set(obstacles);
  if (!throughDoors) for (let cell = 0; cell < CELLS; cell++) blocked[cell]! |= shutDoors[cell]!;
  rank.fill(UNREACHED);
  wanted.fill(0);
  facing.fill(NONE);
  onto.fill(NONE);
  // Only free cells can be stood on, so a target in the way is done once it is faced.
  let left = 0;
  for (const thing of targets) {
    const cell = cellOf(thing);
    wanted[cell] = blocked[cell] ? 1 : 3;
    left += blocked[cell] ? 1 : 2;
  }

  const start = (((agentX - x0) * LOCAL + agentY - y0) << 2) | agentDir;
  let taken = 0;
  firsts[0] = lasts[0] = start;
  let count = 1;
  take(start);

  while (count > 0 && left > 0) {
    // First meetings: the next level in order of first occurrence.
    const firstRank = taken;
    let nextCount = 0;
    for (let n = 0; n < count; n++) {
      const state = firsts[n]!;
      const cell = AHEAD[state]!;
      if (cell >= 0 && !blocked[cell]) meet((cell << 2) | (state & 3));
      meet((state & ~3) | ((state + 3) & 3));
      meet((state & ~3) | ((state + 1) & 3));
    }
    // Parents that stand: the same in order of last occurrence; of several entries the last counts.
    let pushes = 0;
    for (let n = 0; n < count; n++) {
      const state = lasts[n]!;
      const cell = AHEAD[state]!;
      if (cell >= 0 && !blocked[cell]) push((cell << 2) | (state & 3), state, 0);
      push((state & ~3) | ((state + 3) & 3), state, 1);
      push((state & ~3) | ((state + 1) & 3), state, 2);
    }
    let kept = 0;
    for (let n = 0; n < pushes; n++) if (stamp[pushed[n]!] === n) nextLasts[kept++] = pushed[n]!;
    [firsts, nextFirsts] = [nextFirsts, firsts];
    [lasts, nextLasts] = [nextLasts, lasts];
    count = nextCount;

    function meet(next: number): void {
      if (rank[next] !== UNREACHED) return;
      nextFirsts[nextCount++] = next;
      take(next);
    }

    function push(next: number, state: number, k: number): void {
      if (rank[next]! < firstRank) return;
      parent[next] = state;
      via[next] = k;
      stamp[next] = pushes;
      pushed[pushes++] = next;
    }
  }

  /** Takes a state as the next one, and notes the target that it meets. */
  function take(state: number): void {
    rank[state] = taken++;
    const cell = state >> 2;
    if (wanted[cell]! & 2 && onto[cell] === NONE) {
      onto[cell] = state;
      left--;
    }
    const ahead = AHEAD[state]!;
    if (ahead >= 0 && wanted[ahead]! & 1 && facing[ahead] === NONE) {
      facing[ahead] = state;
      left--;
    }
  }

  function path(state: number): number[] | undefined {
    if (state === NONE) return undefined;
    const actions: number[] = [];
    for (let s = state; s !== start; s = parent[s]!) actions.push(ORDER[via[s]!]!);
    return actions.reverse();
  }

  return {
    reaches: (thing) => facing[cellOf(thing)] !== NONE,
    enters: (thing) => onto[cellOf(thing)] !== NONE,
    facing: (thing) => path(facing[cellOf(thing)]!),
    findPathOnto: (thing) => path(onto[cellOf(thing)]!),
  };
}
