/**
 * Cells of a study: one configuration trained and evaluated. A finished cell is one line of an append-only file, so a study
 * goes on after any interruption and in any clone that has the file; an unfinished one goes on from its newest checkpoint.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { startRun } from '../actors/tree.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { TimeStep } from '../src/core/env.ts';
import { messageOf, UserError } from '../src/core/errors.ts';
import { evaluatedTasks } from '../src/evaluation/tasks.ts';
import { type LoadedCheckpoint, listCheckpoints, loadCheckpoint, loadNewest } from '../src/record/checkpoint.ts';
import { evaluationPlan } from '../src/run/evaluate-run.ts';
import { type FoundWorld, findWorld, worldUrl } from '../src/run/find-world.ts';
import { createRunFolder } from '../src/run/run-folder.ts';
import { markEnded, markStarted } from '../src/run/started-mark.ts';

/** Place in a study's table. */
export interface CellKey {
  readonly world: string;
  readonly arm: string;
  readonly seed: number;
}

/** A cell to be played. */
export interface Cell extends CellKey {
  readonly config: RunConfig;
  /** `commonHash` of its configuration file. */
  readonly common: string;
}

/** One evaluation of a whole list of tasks. */
export interface Evaluated {
  /** `h24 sampled`, `h24 greedy` */
  readonly name: string;
  /** Episodes of each task. */
  readonly episodes: number;
  /** [T] episodes won of each task, in the order of the row's `tasks`; null where not all of them could be played. */
  readonly wins: readonly (number | null)[];
}

/** Progress of training at one point of its curve. */
export interface Mark {
  readonly update: number;
  readonly envSteps: number;
  /** Tokens that the policy computed for training episodes so far, padding left out. */
  readonly tokens: number;
}

/** Finished cell: a line of the study's file. */
export interface CellRow extends CellKey {
  readonly format: 1;
  /** Hash of what all cells of a world have in common (`commonHash`): rows of another one belong to another study. */
  readonly common: string;
  /** Id of the view that the policy read through; absent where the world has none. */
  readonly view?: string;
  /** Task indices that were evaluated, ascending. */
  readonly tasks: readonly number[];
  readonly minutes: number;
  readonly curve: readonly (Mark & { readonly evaluated: Evaluated })[];
  /** Evaluations of the last weights. */
  readonly final: readonly Evaluated[];
}

export interface CellOptions {
  /** Folder for the runs of unfinished cells. */
  readonly folder: string;
  /** Evaluations along the way, the last one at the end; spread evenly over `stop.envSteps`. */
  readonly points: number;
  /** Ends the cell with a checkpoint, to go on from another time. */
  readonly interrupt: AbortSignal;
  readonly say: (line: string) => void;
}

/** Hash of what a configuration file says, but for seed and horizon: those differ between the cells of a world. */
export function commonHash(text: string): string {
  const { seed: _seed, horizon: _horizon, ...common } = parse(text) as Record<string, unknown>;
  return createHash('sha256').update(JSON.stringify(common)).digest('hex').slice(0, 12);
}

/** Name of a cell in its study. */
export function rowKey(cell: CellKey & { readonly common: string }): string {
  return `${cellName(cell)} ${cell.common}`;
}

/** `textcraft/fixed 8/3` */
export function cellName({ world, arm, seed }: CellKey): string {
  return `${world}/${arm}/${seed}`;
}

/**
 * Rows of a file, the first of each cell; none where there is no file.
 * @throws {UserError} BAD_TRACE naming the line that is no row
 */
export function readRows(path: string): CellRow[] {
  if (!existsSync(path)) return [];
  const rows = new Map<string, CellRow>();
  for (const [n, line] of readFileSync(path, 'utf8').split('\n').entries()) {
    if (line.trim() === '') continue;
    let row: CellRow;
    try {
      row = JSON.parse(line) as CellRow;
    } catch (thrown) {
      throw new UserError('BAD_TRACE', `${path}, line ${n + 1}: not a row: ${messageOf(thrown)}; repair or remove it`);
    }
    if (row.format !== 1) throw new UserError('BAD_TRACE', `${path}, line ${n + 1}: expected a row of format 1`);
    if (!rows.has(rowKey(row))) rows.set(rowKey(row), row);
  }
  return [...rows.values()];
}

/** Appends a row. */
export function appendRow(path: string, row: CellRow): void {
  const whole = !existsSync(path) || readFileSync(path, 'utf8').endsWith('\n');
  appendFileSync(path, `${whole ? '' : '\n'}${JSON.stringify(row)}\n`);
}

/**
 * Trains and evaluates a cell, from the checkpoint of its folder where it was begun before.
 * @returns undefined where it was interrupted
 * @throws {UserError} RUN_EXISTS while another process plays it
 */
export async function playCell(cell: Cell, options: CellOptions): Promise<CellRow | undefined> {
  const config: RunConfig = {
    ...cell.config,
    checkpoint: { everyUpdates: 1_000_000, keep: options.points + 2 },
    trace: { ...cell.config.trace, everyGroups: 0 },
    metrics: { tensorboard: false },
  };
  const dir = join(options.folder, folderOf(cell));
  if (!existsSync(dir)) createRunFolder(dir, config);
  markStarted(dir);
  try {
    const { marks, finished } = await trained(config, dir, options);
    if (!finished) return undefined;
    const curve: (Mark & { evaluated: Evaluated })[] = [];
    for (const mark of marks) {
      if (options.interrupt.aborted) return undefined;
      const [evaluated] = await evaluate(config, dir, mark.update, [{ kind: 'sampled', episodes: 1 }]);
      curve.push({ ...mark, evaluated: evaluated! });
    }
    const final = await evaluate(config, dir, marks.at(-1)!.update, [
      { kind: 'sampled', episodes: config.evaluation.episodesPerTask },
      { kind: 'greedy', episodes: 1 },
    ]);
    return rowOf(cell, await findWorld(config.env.id, config.env.options), readProgress(dir).minutes, curve, final);
  } finally {
    markEnded(dir);
  }
}

/** The cell of a player that is not trained: the uniform random policy, or the world's scripted planner. */
export async function playBaseline(cell: Cell, player: 'random' | 'planner', folder: string): Promise<CellRow> {
  const { config } = cell;
  const found = await findWorld(config.env.id, config.env.options);
  const started = performance.now();
  const tasks = evaluatedTasks(found.env, config.evaluation);
  const final = player === 'random' ? await randomly(cell, folder) : [await planned(config, tasks)];
  return rowOf(cell, found, (performance.now() - started) / 60_000, [], final);
}

function rowOf(
  { world, arm, seed, common, config }: Cell,
  found: FoundWorld,
  minutes: number,
  curve: CellRow['curve'],
  final: readonly Evaluated[],
): CellRow {
  const { view } = found.world;
  const tasks = evaluatedTasks(found.env, config.evaluation);
  const key = { world, arm, seed, common, ...(view ? { view: view.id } : {}) };
  return { format: 1, ...key, tasks, minutes: Math.round(100 * minutes) / 100, curve, final };
}

async function randomly(cell: Cell, folder: string): Promise<Evaluated[]> {
  const { policy, trace, evaluation } = cell.config;
  const config: RunConfig = {
    ...cell.config,
    policy: { ...policy, kind: 'random' },
    trace: { ...trace, everyGroups: 0 },
    metrics: { tensorboard: false },
  };
  discardCell(cell, folder);
  createRunFolder(join(folder, folderOf(cell)), config);
  try {
    const asked = [{ kind: 'sampled', episodes: evaluation.episodesPerTask }] as const;
    return await evaluate(config, join(folder, folderOf(cell)), undefined, asked);
  } finally {
    discardCell(cell, folder);
  }
}

/** The planner's one episode of each task at the configured horizon. */
async function planned({ env: { id, options }, evaluation }: RunConfig, tasks: readonly number[]): Promise<Evaluated> {
  const { world, env } = await findWorld(id, options);
  const horizon = evaluation.horizons[0]!;
  const oracle = world.createOracle?.(options);
  if (!oracle) throw new UserError('BAD_ARGUMENT', `${id} has no planner`);
  const wins: number[] = [];
  for (const index of tasks) {
    const task = { env: env.id, index, seed: env.tasks.evalSeed };
    const session = await env.open(task);
    const next = oracle(task);
    let step: TimeStep = session.first;
    for (let turn = 0; turn < horizon && step.kind !== 'terminated'; turn++) {
      const action = next(step);
      if (action === undefined) break;
      step = await session.step(action);
    }
    await session.close();
    wins.push(step.kind === 'terminated' && step.success ? 1 : 0);
  }
  return { name: `h${horizon} planner`, episodes: 1, wins };
}

/** Removes the run of a cell whose row is kept. */
export function discardCell(cell: CellKey, folder: string): void {
  rmSync(join(folder, folderOf(cell)), { recursive: true, force: true });
}

function folderOf(cell: CellKey): string {
  return cellName(cell).replaceAll(/[^\w.-]+/g, '-');
}

/** State that a cell's folder keeps beside its checkpoints. */
interface Progress {
  readonly marks: readonly Mark[];
  /** Minutes of training so far, and the tokens of it, over all its parts. */
  readonly minutes: number;
  readonly tokens: number;
}

function readProgress(dir: string): Progress {
  const path = join(dir, 'progress.json');
  if (!existsSync(path)) return { marks: [], minutes: 0, tokens: 0 };
  return JSON.parse(readFileSync(path, 'utf8')) as Progress;
}

/** Trains to the end or to an interruption; a checkpoint and a mark at each point of the curve. */
async function trained(
  config: RunConfig,
  dir: string,
  { points, interrupt, say }: CellOptions,
): Promise<{ readonly marks: readonly Mark[]; readonly finished: boolean }> {
  const total = config.stop.envSteps!;
  const before = readProgress(dir);
  const marks = [...before.marks];
  if ((marks.at(-1)?.envSteps ?? 0) >= total) return { marks, finished: true };
  const checkpoint = newest(join(dir, 'checkpoints'));
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn: true,
    onNotice: say,
    ...(checkpoint ? { checkpoint } : {}),
  });
  /** Writes a checkpoint and what belongs to it. */
  const keep = async (onCurve: boolean) => {
    const saved = await run.save();
    if (!saved.ok) throw new UserError('NO_PERMISSION', `the checkpoint could not be written: ${saved.message}`);
    const { envSteps, tokens, elapsedMs } = await run.status();
    const all = before.tokens + tokens;
    if (onCurve) marks.push({ update: saved.update, envSteps, tokens: all });
    const progress: Progress = { marks, minutes: elapsedMs / 60_000, tokens: all };
    writeFileSync(join(dir, 'progress.json'), JSON.stringify(progress));
  };
  try {
    let writing: Promise<void> = Promise.resolve();
    let due = marks.length + 1;
    run.metrics$.subscribe(({ envSteps = 0 }) => {
      if (due >= points || envSteps < (due * total) / points) return;
      due++;
      writing = writing.then(() => keep(true));
      writing.catch(() => run.halt()); // it is thrown again below
    });
    const halt = () => run.halt();
    interrupt.addEventListener('abort', halt, { once: true });
    if (interrupt.aborted) run.halt();
    const { why } = await run.train();
    interrupt.removeEventListener('abort', halt);
    await writing;
    await keep(why !== 'halted');
    return { marks, finished: why !== 'halted' };
  } finally {
    await run.stop();
  }
}

function newest(checkpoints: string): LoadedCheckpoint | undefined {
  return existsSync(checkpoints) && listCheckpoints(checkpoints).length > 0 ? loadNewest(checkpoints) : undefined;
}

interface Asked {
  readonly kind: 'sampled' | 'greedy';
  readonly episodes: number;
}

/**
 * Plays the configured tasks at the first configured horizon.
 * @param update whose weights play; undefined for a policy without weights
 */
export async function evaluate(
  config: RunConfig,
  dir: string,
  update: number | undefined,
  asked: readonly Asked[],
): Promise<Evaluated[]> {
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn: false,
    ...(update === undefined ? {} : { checkpoint: loadCheckpoint(join(dir, 'checkpoints'), update) }),
  });
  try {
    const evaluated: Evaluated[] = [];
    for (const { kind, episodes } of asked) {
      const plan = { ...evaluationPlan(run.env, config, config.evaluation.horizons[0]!, kind), episodes };
      const { results } = await run.evaluate(plan);
      const wins = results.map(({ successes }) =>
        successes.length === episodes ? successes.filter(Boolean).length : null,
      );
      evaluated.push({ name: plan.name, episodes, wins });
    }
    return evaluated;
  } finally {
    await run.stop();
  }
}
