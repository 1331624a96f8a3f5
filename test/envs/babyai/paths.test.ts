import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DX, DY } from '../../../envs/babyai/grid.ts';
import { searchPaths } from '../../../envs/babyai/paths.ts';
import { LOCAL, type Scene, type Thing } from '../../../envs/babyai/scene.ts';

/** A place to search in: `walls` are indices into an 8×8 map. */
function scene(walls: readonly number[], doors: readonly number[], columns: number, rows: number): Scene {
  const obstacles = new Uint8Array(LOCAL * LOCAL);
  const shutDoors = new Uint8Array(LOCAL * LOCAL);
  for (const cell of walls) obstacles[cell] = 1;
  for (let cell = 0; cell < LOCAL * LOCAL; cell++) if (cell >> 3 >= columns || (cell & 7) >= rows) obstacles[cell] = 1;
  for (const cell of doors) shutDoors[cell] = 1;
  const nothing = { things: [], sightful: true, barrier: 0, barrierDistance: 0 };
  return { ...nothing, obstacles, shutDoors, x0: 10, y0: 20 };
}

/**
 * The search for one target as the original does it: a queue that holds states several times, visited only when
 * taken, parents overwritten until then.
 */
function oneByOne(
  place: Scene,
  start: { x: number; y: number; dir: number },
  goal: { x: number; y: number },
  arrive: boolean,
): number[] | undefined {
  type State = { x: number; y: number; dir: number };
  const key = (s: State) => `${s.x},${s.y},${s.dir}`;
  const queue: State[] = [start];
  const visited = new Set<string>();
  const parents = new Map<string, { from: State; action: number }>();
  for (let head = 0; head < queue.length; head++) {
    const state = queue[head]!;
    visited.add(key(state));
    const [gx, gy] = arrive ? [state.x, state.y] : [state.x + DX[state.dir]!, state.y + DY[state.dir]!];
    if (gx === goal.x && gy === goal.y) {
      const path: number[] = [];
      for (let s = state; key(s) !== key(start); s = parents.get(key(s))!.from) path.push(parents.get(key(s))!.action);
      return path.reverse();
    }
    for (const action of [2, 0, 1]) {
      const next =
        action === 2
          ? { x: state.x + DX[state.dir]!, y: state.y + DY[state.dir]!, dir: state.dir }
          : { ...state, dir: (state.dir + (action === 0 ? 3 : 1)) % 4 };
      const [column, row] = [next.x - place.x0, next.y - place.y0];
      if (column < 0 || column >= LOCAL || row < 0 || row >= LOCAL) continue;
      if (visited.has(key(next)) || place.obstacles[column * LOCAL + row]) continue;
      queue.push(next);
      parents.set(key(next), { from: state, action });
    }
  }
  return undefined;
}

/** Something to go to; only its place matters. */
function thing(x: number, y: number): Thing {
  return { name: 'red ball', number: 1, code: 6, x, y, front: 0, right: 0 };
}

const cells = fc.array(fc.nat(63), { maxLength: 28 });
const side = fc.integer({ min: 7, max: 8 });

describe('the path search', () => {
  it('finds, for every target at once, the paths the original finds one by one', () => {
    fc.assert(
      fc.property(cells, side, side, fc.nat(6), fc.nat(6), fc.nat(3), (walls, columns, rows, column, row, dir) => {
        const start = { x: 10 + column, y: 20 + row, dir };
        const agent = { agentX: start.x, agentY: start.y, agentDir: dir };
        const free = walls.filter((cell) => cell !== column * LOCAL + row);
        const place = scene(free, [], columns, rows);
        const targets = Array.from({ length: 16 }, (_, k) => thing(10 + (k >> 1), 20 + ((k * 5 + column) & 7)));
        for (const target of targets) {
          const [beside, on] = [oneByOne(place, start, target, false), oneByOne(place, start, target, true)];
          for (const wanted of [targets, [target]]) {
            const paths = searchPaths(place, agent, true, wanted);
            expect(paths.facing(target)).toEqual(beside);
            expect(paths.findPathOnto(target)).toEqual(on);
            expect([paths.reaches(target), paths.enters(target)]).toEqual([beside !== undefined, on !== undefined]);
          }
        }
      }),
      { numRuns: process.env.LONGPLAY_LONG === '1' ? 2000 : 100 },
    );
  }, 120_000);

  it('walks around shut doors on request', () => {
    // A line of walls with one shut door in it.
    const walls = [0, 1, 2, 4, 5, 6, 7].map((row) => 3 * LOCAL + row);
    const place = scene(walls, [3 * LOCAL + 3], 8, 8);
    const agent = { agentX: 11, agentY: 23, agentDir: 0 };
    const [behind, door] = [thing(15, 23), thing(13, 23)];
    expect(searchPaths(place, agent, true, [behind]).findPathOnto(behind)).toEqual([2, 2, 2, 2]);
    const paths = searchPaths(place, agent, false, [behind, door]);
    expect(paths.findPathOnto(behind)).toBeUndefined();
    expect(paths.facing(door)).toEqual([2]);
  });
});
