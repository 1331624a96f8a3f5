/** Places on a grid of roads, and exact shortest ways between them. */
import type { Rng } from '../../../src/core/rng.ts';
import { distinct } from './draw.ts';
import { CITIES, PLACE_KINDS, PLACE_NAMES, STREETS } from './words.ts';

/** Place on the map. */
export interface Place {
  readonly id: number;
  readonly name: string;
  readonly kind: string;
  readonly address: string;
  readonly city: string;
  readonly postcode: string;
  readonly phone: string;
  readonly hours: string;
  readonly latitude: string;
  readonly longitude: string;
  /** Crossing it stands at. */
  readonly node: number;
}

/** Modes of travel. */
export const MODES = ['car', 'bike', 'foot'] as const;
/** Mode of travel. */
export type Mode = (typeof MODES)[number];
/** Metres a minute. */
const SPEED: Readonly<Record<Mode, number>> = { car: 600, bike: 250, foot: 80 };
const SIDE = 16;

/** World of the map. */
export interface MapWorld {
  readonly places: readonly Place[];
  /** Length of the shortest way in metres. */
  metres(from: number, to: number, mode: Mode): number;
}

interface Road {
  readonly to: number;
  readonly metres: number;
  /** False for a footpath. */
  readonly cars: boolean;
}

/** Draws the map. */
export function drawMap(rng: Rng): MapWorld {
  const roads = drawRoads(rng.split('roads'));
  const places = drawPlaces(rng.split('places'));
  const known = new Map<string, Float64Array>();
  return {
    places,
    metres(from, to, mode) {
      const key = `${mode === 'car'}/${places[from]!.node}`;
      const distances = known.get(key) ?? shortest(roads, places[from]!.node, mode === 'car');
      known.set(key, distances);
      return distances[places[to]!.node]!;
    },
  };
}

/** Minutes of a way, rounded up. */
export function minutes(metres: number, mode: Mode): number {
  return Math.ceil(metres / SPEED[mode]);
}

/** `2.2 km` */
export function kilometres(metres: number): string {
  return `${(metres / 1000).toFixed(1)} km`;
}

function drawRoads(rng: Rng): Road[][] {
  const roads: Road[][] = Array.from({ length: SIDE * SIDE }, () => []);
  const join = (a: number, b: number, cars: boolean) => {
    const metres = 200 + 100 * rng.int(9);
    roads[a]!.push({ to: b, metres, cars });
    roads[b]!.push({ to: a, metres, cars });
  };
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      // Every street along x takes cars, so that every place can be reached by car over the first column.
      if (x + 1 < SIDE) join(y * SIDE + x, y * SIDE + x + 1, true);
      if (y + 1 < SIDE) join(y * SIDE + x, (y + 1) * SIDE + x, x === 0 || rng.int(4) > 0);
    }
  }
  return roads;
}

function drawPlaces(rng: Rng): Place[] {
  const names = new Map(
    PLACE_KINDS.map(({ kind, ends }) => [kind, distinct(() => `${rng.pick(PLACE_NAMES)} ${rng.pick(ends)}`)]),
  );
  const nodes = rng.shuffle(Array.from({ length: SIDE * SIDE }, (_, i) => i));
  const phone = distinct(() => `+1 555 ${String(100 + rng.int(900))} ${String(rng.int(10_000)).padStart(4, '0')}`);
  const postcode = distinct(() => String(10_000 + rng.int(90_000)));
  return Array.from({ length: 150 }, (_, id): Place => {
    const { kind } = PLACE_KINDS[id % PLACE_KINDS.length]!;
    const node = nodes[id]!;
    const opens = 6 + rng.int(5);
    return {
      id,
      name: names.get(kind)!(),
      kind,
      address: `${1 + rng.int(180)} ${rng.pick(STREETS)} Street`,
      city: rng.pick(CITIES),
      postcode: postcode(),
      phone: phone(),
      hours: `${opens}:00 to ${opens + 7 + rng.int(5)}:00`,
      latitude: (40 + Math.floor(node / SIDE) * 0.0113 + rng.int(90) / 10_000).toFixed(4),
      longitude: (-75 - (node % SIDE) * 0.0127 - rng.int(90) / 10_000).toFixed(4),
      node,
    };
  });
}

/** Dijkstra from one crossing. */
function shortest(roads: readonly (readonly Road[])[], from: number, byCar: boolean): Float64Array {
  const distances = new Float64Array(roads.length).fill(Number.POSITIVE_INFINITY);
  const done = new Uint8Array(roads.length);
  distances[from] = 0;
  for (;;) {
    let at = -1;
    for (let node = 0; node < roads.length; node++) {
      if (!done[node] && distances[node]! < Number.POSITIVE_INFINITY && (at < 0 || distances[node]! < distances[at]!))
        at = node;
    }
    if (at < 0) return distances;
    done[at] = 1;
    for (const { to, metres, cars } of roads[at]!) {
      if (!byCar || cars) distances[to] = Math.min(distances[to]!, distances[at]! + metres);
    }
  }
}
