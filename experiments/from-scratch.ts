/**
 * Question    How far does the local policy come from scratch, by RL on the world's reward alone: in what two idle cores do
 *             in five minutes, and in more?
 * Command     npm run experiment -- textcraft|babyai [--cells N] [--minutes M]      (all that is missing by default)
 * Does        Three seeds of each arm: the short configuration, a longer one (TextCraft's with one epoch an update and with
 *             two), and where the distribution of training tasks differs (the authors' rule book; fresh levels). A uniform
 *             random policy and the scripted planner play the same lists. A finished seed is a line of
 *             experiments/results/<world>.jsonl, which is only ever appended to; an unfinished one goes on from its
 *             checkpoint in runs/<world>-study.
 * Prints      Each row as it comes; and writes experiments/results/<world>.md anew from all rows.
 * Expected    TextCraft in five minutes: all ≥ 85 % sampled and greedy, in a quarter of an hour ≥ 91 % at horizon 30,
 *             depth 4 ≥ 1 of 3;
 *             BabyAI on fresh levels in five minutes: the paper's 90 ≥ 93 %, the 360 ≥ 87 %; in an hour the 90 ≥ 97 %, the 360 some 88.
 * Wall-clock  Budgets are environment steps: some five minutes a seed of the short arms on two idle cores, a quarter of an hour or less
 *             than an hour of the long ones; their names show which.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { view as babyai } from '../envs/babyai/index.ts';
import { view as textcraft } from '../envs/textcraft/index.ts';
import { loadRunConfig } from '../src/config/load.ts';
import type { Env } from '../src/core/env.ts';
import { findWorld } from '../src/run/find-world.ts';
import { packageRoot } from '../src/runtime/module-url.ts';
import {
  type Cell,
  type CellRow,
  cellName,
  commonHash,
  type Evaluation,
  playCells,
  readRows,
  rowKey,
} from './cells.ts';
import { type List, listSection } from './from-scratch-report.ts';
import { rateOf } from './horizon-report.ts';
import { resultFiles } from './results.ts';

const SEEDS = 3;

/** One way of training, and the lists it is judged by. */
interface Arm {
  readonly name: string;
  /** Configuration under experiments/. */
  readonly file: string;
  /** `key=value` that differ from it. */
  readonly overrides: readonly string[];
  readonly lists: readonly ListKey[];
}

type ListKey = Pick<Evaluation, 'set' | 'horizon'>;

interface StudiedWorld {
  readonly id: string;
  /** Id of its view. */
  readonly view: string;
  readonly title: string;
  /** Paragraphs on what it trains on, and how long that takes. */
  readonly conditions: readonly string[];
  /** Success that was set as the aim before the study. */
  readonly bars: string;
  /** Comparability with the paper. */
  readonly comparable: string;
  readonly arms: readonly Arm[];
  readonly lists: readonly (List & { readonly options: Readonly<Record<string, unknown>> })[];
  /** Sampled episodes of each task. */
  readonly episodes: number;
}

const test24 = { set: 'test', horizon: 24 };
const test30 = { set: 'test', horizon: 30 };
const others24 = { set: 'not-train', horizon: 24 };
const test20 = { set: 'test', horizon: 20 };
const heldOut20 = { set: 'held-out', horizon: 20 };
const heldOut40 = { set: 'held-out', horizon: 40 };
const authors = 'env.options.order=agenttraj';

const WORLDS: Readonly<Record<string, StudiedWorld>> = {
  textcraft: {
    id: 'textcraft',
    view: textcraft.id,
    title: 'TextCraft from scratch',
    conditions: [
      "It trains on the paper's 374 ids. Item names are permuted for every group of episodes, and seven books of recipes of ten are recombined. Nothing is demonstrated.",
      'The listed amounts are powers of two up to a full stack, and `inventory` is not listed.',
      'On two cores (a virtual AMD EPYC, AVX2), 360,000 steps take less than the 4.6 minutes of the quickstart. Two million steps take a quarter of an hour with one epoch an update, 1.2 million with two.',
    ],
    bars: 'Five minutes, horizon 24: 78 % sampled and 73 greedy; depths 1, 2 and 3 at 98, 80 and 35. An hour, horizon 30: 91 %, depth 3 at 76, depth 4 at 1 of 3. The 170 goals: 72 in five minutes, 85 in a quarter of an hour.',
    comparable:
      "In part. The paper's model is a pretrained language model that writes its actions; this policy chooses from a list. The list changes random play: a rule that learns nothing, to take what is least held, wins 71 % of the 100 at horizon 24. Training tasks are distributed differently.",
    episodes: 8,
    arms: [
      {
        name: 'five minutes',
        file: 'quickstart.yaml',
        overrides: ['stop={ envSteps: 360000 }'],
        lists: [test24, test30],
      },
      {
        name: 'a quarter of an hour',
        file: 'textcraft.yaml',
        overrides: ['stop={ envSteps: 2000000 }'],
        lists: [test24, test30],
      },
      {
        name: 'a quarter of an hour, two epochs',
        file: 'textcraft.yaml',
        overrides: ['stop={ envSteps: 1200000 }', 'learner.epochs=2'],
        lists: [test24, test30],
      },
      {
        name: "five minutes, the authors' order",
        file: 'quickstart.yaml',
        overrides: ['stop={ envSteps: 360000 }', authors],
        lists: [others24],
      },
      {
        name: "a quarter of an hour, two epochs, the authors' order",
        file: 'textcraft.yaml',
        overrides: ['stop={ envSteps: 1200000 }', 'learner.epochs=2', authors],
        lists: [others24],
      },
    ],
    lists: [
      {
        ...test24,
        title: "The paper's 100 test ids under sorted order, horizon 24",
        options: {},
        paper: [],
        note: 'Under sorted order, 65 of the 100 ids name goals that the authors demonstrate to their model.',
      },
      {
        ...test30,
        title: 'The same, horizon 30',
        options: {},
        paper: [
          [
            'ScalingInter-7B (the paper; 100 goals of its own, no list of actions)',
            '91.0',
            '100',
            '97.6',
            '76',
            '33.3',
          ],
        ],
        note: "The paper's scripts allow 30 turns.",
      },
      {
        ...others24,
        title: 'The 170 goals that no train id names under the authors’ order, horizon 24',
        options: { order: 'agenttraj' },
        weights: { 'depth 1': 31, 'depth 2': 41, 'depth 3': 25, 'depth 4': 3 },
        paper: [['ScalingInter-7B (the paper)', '91.0', '100', '97.6', '76', '33.3']],
        note: "The paper's 100 are among these. Success is weighted 31 : 41 : 25 : 3 by depth. So it estimates success over the 100 without bias, if the authors chose blindly within a depth.",
      },
    ],
  },
  babyai: {
    id: 'babyai',
    view: babyai.id,
    title: 'BabyAI from scratch',
    conditions: [
      "*Fresh levels* are level seeds 420 … 999 of the paper's 18 levels. They are in none of its lists and not held out. The other arms train on the paper's 810 levels.",
      'Two idle cores (a virtual AMD EPYC) take five minutes for 400,000 steps (AVX-512) and a quarter of an hour for 1.2 million (AVX2). Of two runs of 4.5 million steps side by side (AVX-512), each took 54 minutes.',
    ],
    bars: 'Five minutes: 93 % of the 90 and 87 of the 360. An hour on fresh levels: 97 of the 90 and 92 of the 360.',
    comparable:
      "In part. The 90 levels and the horizon are the paper's; the rules are corrected (`envs/babyai/README.md`). The paper's model is a pretrained language model; this policy chooses from a list. The paper's lists hold only levels that somebody had solved, the 360 hold all.",
    episodes: 8,
    arms: [
      {
        name: 'five minutes',
        file: 'babyai.yaml',
        overrides: ['stop={ envSteps: 400000 }'],
        lists: [test20, heldOut20, heldOut40],
      },
      {
        name: 'five minutes, fresh levels',
        file: 'babyai.yaml',
        overrides: ['stop={ envSteps: 400000 }', 'tasks.set=fresh'],
        lists: [test20, heldOut20],
      },
      {
        name: 'a quarter of an hour, fresh levels',
        file: 'babyai.yaml',
        overrides: ['stop={ envSteps: 1200000 }', 'tasks.set=fresh'],
        lists: [test20, heldOut20, heldOut40],
      },
      {
        name: 'an hour, fresh levels',
        file: 'babyai.yaml',
        overrides: ['stop={ envSteps: 4500000 }', 'tasks.set=fresh'],
        lists: [test20, heldOut20, heldOut40],
      },
    ],
    lists: [
      {
        ...test20,
        title: "The paper's 90 test levels, horizon 20",
        options: {},
        paper: [['ScalingInter-7B (the paper; horizon 20)', '96.7', '100', '93.3', '100', '80', '80', '100']],
        note: 'The paper’s lists hold only levels that somebody had solved.',
      },
      {
        ...heldOut20,
        title: '360 levels in none of the paper’s lists, horizon 20',
        options: {},
        paper: [],
        note: 'Level seeds 400 … 419 of the 18 levels, all of them.',
      },
      {
        ...heldOut40,
        title: 'The same 360, horizon 40',
        options: {},
        paper: [],
        note: 'The same weights, trained at horizons up to 20, have twice the turns. The difference is what the limit of 20 turns costs.',
      },
    ],
  },
};

export interface FromScratchOptions {
  readonly world: string;
  /** Cells to play at most; 0 writes the page only. */
  readonly cells?: number | undefined;
  /** Minutes after which the cell under way is broken off, to go on another time. */
  readonly minutes?: number | undefined;
}

/** Runs the study of a world. */
export async function fromScratch({ world: id, cells, minutes }: FromScratchOptions): Promise<void> {
  const world = WORLDS[id]!;
  const path = fileURLToPath(new URL(`experiments/results/${id}.jsonl`, packageRoot));
  const onRow = (row: CellRow) => {
    const rates = row.final.map((one) => `${one.set} h${one.horizon} ${one.kind} ${(100 * rateOf(one)).toFixed(1)}`);
    process.stdout.write(`${cellName(row)}: ${rates.join(' · ')}\n`);
  };
  const missing = missingCells(world, readRows(path));
  await playCells({ missing, path, folder: join('runs', `${id}-study`), points: 4, cells, minutes, onRow });
  await report(world, readRows(path));
}

/** Cells without a row: random play and the planner first. */
function missingCells(world: StudiedWorld, rows: readonly CellRow[]): Cell[] {
  const done = new Set(rows.map(rowKey));
  return cellsOf(world).filter((cell) => !done.has(rowKey(cell)));
}

function cellsOf(world: StudiedWorld): Cell[] {
  const cells: Cell[] = [];
  const { view } = world;
  for (const arm of world.arms) {
    const text = readFileSync(new URL(`experiments/${arm.file}`, packageRoot), 'utf8');
    const config = (seed: number) => loadRunConfig(text, arm.file, [...arm.overrides, `seed=${seed}`]);
    const common = commonHash(text, arm.overrides);
    const evaluations = arm.lists.flatMap((list): Evaluation[] => [
      { ...list, kind: 'sampled', episodes: world.episodes },
      { ...list, kind: 'greedy', episodes: 1 },
    ]) as unknown as Cell['evaluations'];
    for (let seed = 1; seed <= SEEDS; seed++) {
      cells.push({ world: world.id, arm: arm.name, seed, config: config(seed), common, view, evaluations });
    }
    if (arm.file !== world.arms[0]!.file || arm.overrides.includes('tasks.set=fresh')) continue;
    for (const player of ['planner', 'random'] as const) {
      const name = `${player}, ${arm.lists.map(({ set }) => set).join(' and ')}`;
      cells.unshift({ world: world.id, arm: name, seed: 0, config: config(0), common, view, evaluations, player });
    }
  }
  return cells;
}

/** Minutes that each arm's rows took, from the least to the most. */
function minutesOf({ arms }: StudiedWorld, rows: readonly CellRow[]): string {
  const parts = arms.flatMap(({ name }) => {
    const minutes = rows.filter(({ arm }) => arm === name).map((row) => row.minutes);
    if (minutes.length === 0) return [];
    const [least, most] = [Math.min(...minutes), Math.max(...minutes)].map((one) => one.toFixed(1));
    return [`${name} ${least} to ${most}`];
  });
  return parts.join('; ');
}

async function report(world: StudiedWorld, all: readonly CellRow[]): Promise<void> {
  const wanted = new Set(cellsOf(world).map(rowKey));
  const rows = all.filter((row) => wanted.has(rowKey(row)));
  const envs = new Map<string, Env>();
  const sections: string[] = [];
  for (const list of world.lists) {
    const key = JSON.stringify(list.options);
    const env = envs.get(key) ?? (await findWorld(world.id, list.options)).env;
    envs.set(key, env);
    sections.push(listSection(list, rows, env.tasks));
  }
  const left = missingCells(world, all).filter(({ player }) => !player).length;
  const trained = world.arms.length * SEEDS;
  const page = [
    `# ${world.title}`,
    '**Question.** How far does the local policy come from random weights, by the reward of the world alone?',
    `**Command.** \`npm run experiment -- ${world.id}\` trains the seeds that are missing (\`--cells N\`, \`--minutes M\`). It then writes this page from \`${world.id}.jsonl\`. ${trained - left} of ${trained} trained seeds are there.`,
    `**Conditions.** ${world.conditions[0]}`,
    ...world.conditions.slice(1),
    `Each task has ${world.episodes} sampled episodes at temperature 1 and one greedy. Means are over seeds. Their 95 % intervals take seeds and tasks both as draws. *Unseen* leaves out tasks that training has met in part: a goal that is crafted on the way to a train goal, or a level that opens with the words of a train level.`,
    `**Bars** (means over seeds). ${world.bars}`,
    `**Minutes by the clock** of the rows; an arm is named by what idle cores take: ${minutesOf(world, rows)}.`,
    `**Comparable with the paper?** ${world.comparable}`,
    `What was tried: [LOG.md](../LOG.md#${world.id}).`,
    ...sections,
  ];
  writeFileSync(resultFiles(world.id).markdown, `${page.join('\n\n')}\n`);
}
