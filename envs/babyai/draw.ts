/** Drawing of the grid as a person sees it: the whole maze, cells out of the agent's sight dimmed. */
import type { Cell, Draw, Drawing } from '../../src/core/draw.ts';
import type { First } from '../../src/core/env.ts';
import type { Task } from '../../src/core/task.ts';
import type { SeenTurn } from '../../src/core/view.ts';
import { CorrectedText } from './corrected.ts';
import { COLOR_NAMES, DOOR, DX, DY, EMPTY, IMAGE_BYTES, VIEW, WALL } from './grid.ts';
import { LEVELS } from './levels.ts';
import { OriginalText } from './original.ts';
import { nameOf } from './scene.ts';
import { levelOf, seedOf } from './tasks.ts';
import type { World } from './world.ts';

const AGENT = ['>', 'v', '<', '^'] as const;
const FACING = ['right', 'down', 'left', 'up'] as const;
const GLYPHS = ['', ' ', '█', '', '', 'k', 'o', 'b'] as const;
const DOOR_GLYPHS = ['/', 'D', 'L'] as const;
const LEGEND = 'o ball, b box, k key, D door, / open, L locked';

/** Draws the state after `turns` by playing them again. The first observation shows which rules the episode has. */
export const draw: Draw = (task: Task, first: First, turns: readonly SeenTurn[]): Drawing => {
  const isOriginal = first.observation.includes('"check available actions"');
  const game = isOriginal ? new OriginalText(task.index) : new CorrectedText(task.index);
  for (const { action } of turns) game.step(action);
  const { world } = game;
  const level = levelOf(task.index);
  const carried = world.carrying === 0 ? 'nothing' : nameOf(world.codes[world.carrying]!);
  return {
    panels: [
      {
        kind: 'text',
        title: `level ${level} ${LEVELS[level - 1]!.id}, seed ${seedOf(task.index)}`,
        lines: [
          `goal      ${world.mission}`,
          `carrying  ${carried}`,
          `facing    ${FACING[world.agentDir]!}`,
          `steps     ${world.stepCount} of ${world.maxSteps}`,
        ],
      },
      { kind: 'grid', title: `maze: ${LEGEND}`, rows: drawGrid(world) },
    ],
  };
};

/** Cells of the grid, [height][width]. */
function drawGrid(world: World): Cell[][] {
  const visible = visibleCells(world);
  return Array.from({ length: world.height }, (_, y) =>
    Array.from({ length: world.width }, (_, x) => {
      const cell = world.at(x, y);
      if (x === world.agentX && y === world.agentY) {
        return { glyph: AGENT[world.agentDir]!, color: 'white', name: `you, facing ${FACING[world.agentDir]!}` };
      }
      const drawn = drawCode(world.codeAt(x, y));
      return visible.has(cell) ? drawn : { ...drawn, dim: true };
    }),
  );
}

function drawCode(code: number): Cell {
  const type = code & 0xff;
  if (type === EMPTY) return { glyph: '·', color: 'grey' };
  if (type === WALL) return { glyph: '█', color: 'grey', name: 'wall' };
  const color = COLOR_NAMES[(code >>> 8) & 0xff]!;
  const glyph = type === DOOR ? DOOR_GLYPHS[code >>> 16]! : GLYPHS[type]!;
  return { glyph, color, name: nameOf(code) };
}

/** Cells that the agent sees, by the image. */
function visibleCells(world: World): Set<number> {
  const image = new Uint8Array(IMAGE_BYTES);
  world.observe(image);
  const [fx, fy] = [DX[world.agentDir]!, DY[world.agentDir]!];
  const seen = new Set<number>();
  for (let i = 0; i < VIEW; i++) {
    for (let j = 0; j < VIEW; j++) {
      if (image[(i * VIEW + j) * 3] === 0) continue;
      const front = VIEW - 1 - j;
      const right = i - 3;
      seen.add(world.at(world.agentX + front * fx - right * fy, world.agentY + front * fy + right * fx));
    }
  }
  return seen;
}
