/**
 * Vocabulary of the grid: object types, colours, directions and actions with Minigrid's numbers, and the occlusion
 * table of the partial view.
 *
 * A cell's *code* packs what Minigrid encodes in three bytes: `type | colour << 8 | state << 16`.
 */

export const EMPTY = 1;
export const WALL = 2;
export const DOOR = 4;
export const KEY = 5;
export const BALL = 6;
export const BOX = 7;

/** Names by type number; a hole where BabyAI has no such object. */
export const TYPE_NAMES: readonly string[] = ['unseen', 'empty', 'wall', 'floor', 'door', 'key', 'ball', 'box'];
/** Names by colour number, as observations encode them. */
export const COLOR_NAMES = ['red', 'green', 'blue', 'purple', 'yellow', 'grey'] as const;
/** Colour numbers in the order of their sorted names, which is the order the level generator draws from. */
export const SORTED_COLORS: readonly number[] = [2, 1, 5, 3, 0, 4];
export const [RED, GREEN, BLUE, PURPLE, YELLOW, GREY] = [0, 1, 2, 3, 4, 5];

/** Door states. */
export const OPEN = 0;
export const CLOSED = 1;
export const LOCKED = 2;
export const STATE_NAMES = ['open', 'closed', 'locked'] as const;

/** Low-level actions. */
export const LEFT = 0;
export const RIGHT = 1;
export const FORWARD = 2;
export const PICKUP = 3;
export const DROP = 4;
export const TOGGLE = 5;
export const DONE = 6;

/** Unit step of each direction: 0 right (+x), 1 down (+y), 2 left, 3 up. */
export const DX: readonly number[] = [1, 0, -1, 0];
export const DY: readonly number[] = [0, 1, 0, -1];

/** Cells on a side of the agent's view; it stands in the middle of the last row. */
export const VIEW = 7;
/** Bytes of one image: [VIEW column from left, VIEW row from far to near, (type, colour, state)]. */
export const IMAGE_BYTES = VIEW * VIEW * 3;

export const WALL_CODE = WALL | (GREY << 8);

export function codeOf(type: number, color: number, state = 0): number {
  return type | (color << 8) | (state << 16);
}

/** True where the agent cannot see past a cell: walls, and doors unless open. */
export function isOpaque(code: number): boolean {
  const type = code & 0xff;
  return type === WALL || (type === DOOR && code >>> 16 !== OPEN);
}

/**
 * Light in one row of the view. Index `lit << 7 | opaque` (bit i is column i from left; `lit` are the cells reached
 * from the row nearer to the agent); value `lit' | above << 7`: the row's cells that are seen once light has spread
 * left and right, and those it reaches in the next row away.
 *
 * Light spreads from every seen, see-through cell to its neighbours and to the next row, straight and diagonally;
 * once from left to right and once back, as Minigrid's `process_vis` does. The sweeps skip the last cell of their
 * direction, so the rightmost cell alone lights nothing on the way right.
 */
export const LIGHT: Uint16Array = /* @__PURE__ */ (() => {
  const table = new Uint16Array(1 << (2 * VIEW));
  for (let index = 0; index < table.length; index++) {
    const opaque = index & 0x7f;
    let lit = index >>> VIEW;
    let above = 0;
    for (let i = 0; i < VIEW - 1; i++) {
      if (!(lit & ~opaque & (1 << i))) continue;
      lit |= 1 << (i + 1);
      above |= 3 << i;
    }
    for (let i = VIEW - 1; i > 0; i--) {
      if (!(lit & ~opaque & (1 << i))) continue;
      lit |= 1 << (i - 1);
      above |= 3 << (i - 1);
    }
    table[index] = lit | (above << VIEW);
  }
  return table;
})();
