/**
 * Picture of a drawn grid as PNG, 32 pixels a cell: black floor, grey walls, things in their colour, what the agent
 * sees lit up. Differs from Minigrid's own picture in the shapes of things, not in what is where.
 *
 * @see https://www.w3.org/TR/png-3/
 */
import { crc32, deflateSync } from 'node:zlib';
import type { Cell, Drawing } from '../../core/draw.ts';

const TILE = 32;

type Color = readonly [red: number, green: number, blue: number];

/** Colours of Minigrid. */
const COLORS: Readonly<Record<NonNullable<Cell['color']>, Color>> = {
  red: [255, 0, 0],
  green: [0, 255, 0],
  blue: [0, 0, 255],
  purple: [112, 39, 195],
  yellow: [255, 255, 0],
  grey: [100, 100, 100],
  white: [255, 255, 255],
};
const LINE: Color = [60, 60, 60];
const AGENT: Color = [255, 0, 0];

/** Shape: true for the points of the tile, x and y in [0, 1), that belong to the thing. */
type Shape = (x: number, y: number) => boolean;

const inside = (x: number, y: number, left: number, top: number, right: number, bottom: number) =>
  x >= left && x < right && y >= top && y < bottom;
const round = (x: number, y: number, cx: number, cy: number, r: number) => (x - cx) ** 2 + (y - cy) ** 2 < r * r;
const frame: Shape = (x, y) => !inside(x, y, 0.06, 0.06, 0.94, 0.94);
/** Pointer: a triangle that points right. */
const pointer: Shape = (x, y) => x >= 0.12 && x < 0.88 && Math.abs(y - 0.5) < (0.38 * (0.88 - x)) / 0.76;

const SHAPES: Readonly<Record<string, Shape>> = {
  '█': () => true,
  k: (x, y) =>
    (round(x, y, 0.56, 0.28, 0.19) && !round(x, y, 0.56, 0.28, 0.064)) ||
    inside(x, y, 0.5, 0.31, 0.63, 0.88) ||
    inside(x, y, 0.38, 0.59, 0.5, 0.66) ||
    inside(x, y, 0.38, 0.81, 0.5, 0.88),
  o: (x, y) => round(x, y, 0.5, 0.5, 0.31),
  b: (x, y) =>
    inside(x, y, 0.12, 0.12, 0.88, 0.88) &&
    (!inside(x, y, 0.18, 0.18, 0.82, 0.82) || inside(x, y, 0.16, 0.47, 0.84, 0.53)),
  '/': (x, y) => inside(x, y, 0.88, 0, 1, 1) && !inside(x, y, 0.92, 0.04, 0.96, 0.96),
  D: (x, y) =>
    frame(x, y) ||
    (!inside(x, y, 0.16, 0.16, 0.84, 0.84) && inside(x, y, 0.12, 0.12, 0.88, 0.88)) ||
    round(x, y, 0.75, 0.5, 0.08),
  L: (x, y) => !inside(x, y, 0.06, 0.06, 0.94, 0.94) || inside(x, y, 0.52, 0.44, 0.75, 0.56) || ((x + y) * 16) % 4 < 1,
  '>': pointer,
  v: (x, y) => pointer(y, x),
  '<': (x, y) => pointer(1 - x, y),
  '^': (x, y) => pointer(1 - y, x),
};
const AGENTS = new Set(['>', 'v', '<', '^']);

/** Picture of a drawing's first grid as `data:image/png;base64,…`; undefined where it has none. */
export function pictureOf({ panels }: Drawing): string | undefined {
  const grid = panels.find((panel) => panel.kind === 'grid');
  if (grid?.kind !== 'grid') return undefined;
  const height = TILE * grid.rows.length;
  const width = TILE * (grid.rows[0]?.length ?? 0);
  const pixels = Buffer.alloc(height * (1 + 3 * width)); // each line begins with its filter: none
  for (let y = 0; y < height; y++) {
    const row = grid.rows[Math.floor(y / TILE)]!;
    for (let x = 0; x < width; x++) {
      const color = colorAt(row[Math.floor(x / TILE)]!, (x % TILE) + 0.5, (y % TILE) + 0.5);
      pixels.set(color, y * (1 + 3 * width) + 1 + 3 * x);
    }
  }
  return `data:image/png;base64,${png(width, height, pixels).toString('base64')}`;
}

function colorAt({ glyph, color = 'grey', dim }: Cell, x: number, y: number): Color {
  const line = x < 1 || y < 1;
  const own = AGENTS.has(glyph) ? AGENT : COLORS[color];
  const drawn = SHAPES[glyph]?.(x / TILE, y / TILE) ? own : line ? LINE : ([0, 0, 0] as const);
  return dim ? drawn : (drawn.map((part) => Math.round(part + 0.3 * (255 - part))) as unknown as Color);
}

/**
 * Encodes a PNG.
 * @param pixels RGB, 8 bits, each line with its filter byte before it
 */
function png(width: number, height: number, pixels: Buffer): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8); // 8 bits, RGB, deflate, no interlace
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(pixels)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(8 + body.length);
  framed.writeUInt32BE(data.length, 0);
  framed.set(body, 4);
  framed.writeUInt32BE(crc32(body), 4 + body.length);
  return framed;
}
