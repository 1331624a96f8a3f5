/**
 * Question    Does stretching the horizon (ScalingInter-RL) beat fixed horizons, at equal environment steps and at equal
 *             tokens? Does a long fixed horizon collapse?
 * Command     npm run experiment -- horizon [--cells N] [--minutes M]      (all that is missing by default)
 * Does        Four schedules (fixed short, fixed long, ScalingInter, adaptive) × TextCraft and BabyAI × ten seeds, 600k
 *             environment steps each. A finished cell is one line of experiments/results/horizon.jsonl, which is only ever
 *             appended to: commit it, and the study goes on from there in any clone. An unfinished cell goes on from its
 *             checkpoint in runs/horizon.
 * Prints      Each cell as it ends; and writes experiments/results/horizon.md and its plots anew from all rows.
 * Expected    ScalingInter above fixed short by some 4 points in TextCraft and 3 in BabyAI; not significantly different
 *             from fixed long in TextCraft, 2 points below it in BabyAI; no collapse.
 * Wall-clock  On two cores some four to ten minutes a TextCraft cell, seven to eighteen a BabyAI cell, by machine and by
 *             what runs beside it; budgets are in steps, so that changes no result.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { view as babyai, createEnv as createBabyAI } from '../envs/babyai/index.ts';
import { createEnv as createTextCraft, view as textcraft } from '../envs/textcraft/index.ts';
import { loadRunConfig } from '../src/config/load.ts';
import type { Env } from '../src/core/env.ts';
import { plotCurves } from '../src/run/curve-plot.ts';
import { packageRoot } from '../src/runtime/module-url.ts';
import { type Cell, type CellRow, cellName, commonHash, playCells, readRows, rowKey } from './cells.ts';
import { COLLAPSE, curves, finalRate, type StudiedWorld, WORTH, worldSection } from './horizon-report.ts';
import { resultFiles } from './results.ts';

const SEEDS = 10;
/** Evaluations on a cell's curve, the last one at its end. */
const POINTS = 6;

const [SHORT, LONG, SCALING, ADAPTIVE] = ['fixed short', 'fixed long', 'ScalingInter', 'adaptive'] as const;
const ARMS = [SHORT, LONG, SCALING, ADAPTIVE] as const;
const PAIRS = [
  [SCALING, SHORT],
  [SCALING, LONG],
  [ADAPTIVE, SCALING],
] as const;

/** A world with what differs between its arms. */
interface World extends StudiedWorld {
  readonly createEnv: () => Env;
  /** Id of its view. */
  readonly view: string;
  /** Configuration that all its cells share. */
  readonly file: string;
  /** Evaluations of the last weights. */
  readonly evaluations: Cell['evaluations'];
  readonly horizons: Readonly<Record<(typeof ARMS)[number], string>>;
}

const WORLDS: readonly World[] = [
  {
    id: 'textcraft',
    createEnv: createTextCraft,
    view: textcraft.id,
    title: "TextCraft, the paper's 100 test ids under sorted order, horizon 24",
    file: 'horizon-textcraft.yaml',
    evaluations: [
      { set: 'test', horizon: 24, kind: 'sampled', episodes: 4 },
      { set: 'test', horizon: 24, kind: 'greedy', episodes: 1 },
    ],
    arms: ARMS,
    pairs: PAIRS,
    horizons: {
      [SHORT]: '{ type: fixed, rounds: 8 }',
      [LONG]: '{ type: fixed, rounds: 24 }',
      [SCALING]: '{ type: scaling_inter_stepwise, rounds: [8, 16, 24], steps_scaling_inter: 300 }',
      [ADAPTIVE]: '{ type: adaptive, rounds: [8, 16, 24] }',
    },
    paper:
      "The paper's ScalingInter-7B: 91.0 on its 100 ids at 30 turns, a pretrained language model without a list of actions. Its goals behind the ids are those of its authors' machine. Here item names are permuted in training, recipes are recombined for seven groups of ten, and listed amounts are powers of two up to a full stack.",
  },
  {
    id: 'babyai',
    createEnv: createBabyAI,
    view: babyai.id,
    title: "BabyAI, the paper's 90 test levels and 360 held-out ones, horizon 20",
    file: 'horizon-babyai.yaml',
    evaluations: [
      { set: 'test-and-held-out', horizon: 20, kind: 'sampled', episodes: 2 },
      { set: 'test-and-held-out', horizon: 20, kind: 'greedy', episodes: 1 },
    ],
    arms: ARMS,
    pairs: PAIRS,
    horizons: {
      [SHORT]: '{ type: fixed, rounds: 5 }',
      [LONG]: '{ type: fixed, rounds: 20 }',
      [SCALING]: '{ type: scaling_inter_stepwise, rounds: [5, 10, 20], steps_scaling_inter: 250 }',
      [ADAPTIVE]: '{ type: adaptive, rounds: [5, 10, 20] }',
    },
    paper:
      "The paper's ScalingInter-7B: 96.67 on the 90 alone at 20 turns. Our 360 are harder: random play makes 11 points less there.",
  },
];

export interface HorizonOptions {
  /** Cells to play at most; 0 writes the page only. */
  readonly cells?: number | undefined;
  /** Minutes after which the cell under way is broken off, to go on another time. */
  readonly minutes?: number | undefined;
}

/** Runs the study. */
export async function horizon({ cells, minutes }: HorizonOptions): Promise<void> {
  const path = rowsPath();
  const onRow = (row: CellRow) => {
    const rate = finalRate(row, row.arm === 'planner' ? 'planner' : 'sampled');
    process.stdout.write(`${cellName(row)}: ${(100 * rate).toFixed(1)} % after ${row.minutes.toFixed(1)} min\n`);
    report();
  };
  const missing = missingCells(readRows(path));
  await playCells({ missing, path, folder: join('runs', 'horizon'), points: POINTS, cells, minutes, onRow });
  report();
}

function rowsPath(): string {
  return fileURLToPath(new URL('experiments/results/horizon.jsonl', packageRoot));
}

/** Cells without a row: baselines first, then seed by seed, so that what is there is always a fair comparison. */
export function missingCells(rows: readonly CellRow[]): Cell[] {
  const done = new Set(rows.map(rowKey));
  const all: Cell[] = WORLDS.flatMap((world) =>
    (['random', 'planner'] as const).map((player) => ({
      world: world.id,
      arm: player,
      seed: 0,
      player,
      ...configureCell(world, SCALING, 0),
    })),
  );
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const world of WORLDS) {
      for (const arm of ARMS) all.push({ world: world.id, arm, seed, ...configureCell(world, arm, seed) });
    }
  }
  return all.filter((cell) => !done.has(rowKey(cell)));
}

function configureCell(
  { file, view, horizons, evaluations }: World,
  arm: (typeof ARMS)[number],
  seed: number,
): Pick<Cell, 'config' | 'common' | 'view' | 'evaluations'> {
  const text = readFileSync(new URL(`experiments/${file}`, packageRoot), 'utf8');
  const config = loadRunConfig(text, file, [`seed=${seed}`, `horizon=${horizons[arm]}`]);
  return { config, common: commonHash(text), view, evaluations };
}

/** Writes page and plots from the rows that belong to the study as it is configured now. */
function report(): void {
  const all = readRows(rowsPath());
  const missing = missingCells(all);
  const sections: string[] = [];
  for (const world of WORLDS) {
    const { common, view } = configureCell(world, SCALING, 0);
    const own = all.filter((row) => row.world === world.id && row.common === common && row.view === view);
    const plots = own.some(({ curve }) => curve.length > 0)
      ? (['envSteps', 'tokens'] as const).map((by) => plot(world, own, by))
      : [];
    sections.push(worldSection(world, own, world.createEnv().tasks), ...plots);
  }
  const trained = ARMS.length * WORLDS.length * SEEDS;
  const left = missing.filter(({ player }) => !player).length;
  writeFileSync(
    resultFiles('horizon').markdown,
    `${[
      '# Horizon schedules at equal environment steps and at equal tokens',
      '**Question.** Is a stretched horizon (ScalingInter-RL) better than a fixed one, at equal environment steps and at equal tokens?',
      `**Command.** \`npm run experiment -- horizon\` plays what is missing (\`--cells N\`, \`--minutes M\`). It then writes this page from \`horizon.jsonl\`. ${trained - left} of ${trained} cells are there.`,
      `**Conditions.** Four schedules, two worlds, ${SEEDS} seeds, 600,000 environment steps each. Everything but seed and schedule is \`experiments/horizon-textcraft.yaml\` and \`experiments/horizon-babyai.yaml\`.`,
      `Sampled success is over several episodes of each task with the last weights, the curves over one. Intervals of means and differences are Student's t over seeds; IQM is the interquartile mean.`,
      'Tokens are those that the policy computed for training episodes. Success at equal tokens is read off each curve, at the largest count of tokens that all cells have seen.',
      `*Mean of curve* is the mean success at the ${POINTS} points of a curve: how soon something was learnt. It was added after TextCraft's first seed, which ended alike under all four schedules.`,
      `A cell has *collapsed* when its last point has lost ${100 * COLLAPSE} % or more of what its best point has above random play, where that is ${100 * WORTH} points or more. This was fixed before any cell was played.`,
      'What was tried: [LOG.md](../LOG.md#horizon).',
      ...sections,
    ].join('\n\n')}\n`,
  );
}

/** Writes a plot. @returns its line of the page */
function plot(world: World, rows: readonly CellRow[], by: 'envSteps' | 'tokens'): string {
  const name = `horizon-${world.id}-${by === 'envSteps' ? 'steps' : 'tokens'}`;
  const x = by === 'envSteps' ? 'environment steps' : 'tokens computed for training episodes';
  const title = `${world.id}: success, IQM over seeds`;
  writeFileSync(resultFiles(name).svg, plotCurves({ title, x, y: 'success', curves: curves(world, rows, by) }));
  return `![${title} by ${x}](${name}.svg)`;
}
