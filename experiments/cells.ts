/**
 * Cells of a study: one configuration trained and evaluated. A finished cell is one line of an append-only file, so a study
 * goes on after any interruption and in any clone that has the file; an unfinished one goes on from its newest checkpoint.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { onInterrupt } from '../src/cli/interrupt.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { Env, Oracle, TimeStep } from '../src/core/env.ts';
import { messageOf, UserError } from '../src/core/errors.ts';
import type { Task } from '../src/core/task.ts';
import { listEvaluatedTasks } from '../src/learning/evaluation/tasks.ts';
import { evaluationPlan } from '../src/run/evaluate-run.ts';
import { type FoundWorld, findWorld, worldUrl } from '../src/run/find-world.ts';
import { createRunFolder } from '../src/run/run-folder.ts';
import { acquireRunLock, releaseRunLock } from '../src/run/run-lock.ts';
import { startRun } from '../src/run/start-run.ts';
import { type LoadedCheckpoint, listCheckpoints, loadCheckpoint, loadNewest } from '../src/storage/checkpoint.ts';

/** Place in a study's table. */
export interface CellKey {
  readonly world: string;
  readonly arm: string;
  readonly seed: number;
}

/** Cell to be played: a configuration, its evaluations, and its place in the table. */
export interface Cell extends CellKey {
  readonly config: RunConfig;
  /** `commonHash` of its configuration file. */
  readonly common: string;
  /** Id of the view that the policy reads through. */
  readonly view: string;
  /** Evaluations of the last weights; the first one, with one episode a task, is made along the way too. */
  readonly evaluations: readonly [Evaluation, ...Evaluation[]];
  /** A player that is not trained. */
  readonly player?: 'random' | 'planner';
}

/** Evaluation of a whole list of tasks. */
export interface Evaluation {
  /** A split or a named set of the world. */
  readonly set: string;
  /** Turns. */
  readonly horizon: number;
  readonly kind: 'sampled' | 'greedy' | 'planner';
  /** Episodes of each task. */
  readonly episodes: number;
}

/** Outcome of an evaluation. */
export interface Evaluated extends Evaluation {
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
  /** Task indices of each set that was evaluated, ascending. */
  readonly tasks: Readonly<Record<string, readonly number[]>>;
  readonly minutes: number;
  readonly curve: readonly (Mark & { readonly evaluated: Evaluated })[];
  /** Evaluations of the last weights. */
  readonly final: readonly Evaluated[];
}

/** Options of playing a cell. */
export interface CellOptions {
  /** Folder for the runs of unfinished cells. */
  readonly folder: string;
  /** Evaluations along the way, the last one at the end; spread evenly over `stop.envSteps`. */
  readonly points: number;
  /** Ends the cell with a checkpoint, to go on from another time. */
  readonly interrupt: AbortSignal;
  readonly print: (line: string) => void;
}

/**
 * Hash of a configuration file without its seed and horizon: those differ between the cells of a world.
 * @param overrides further `key=value` that the cells have in common
 */
export function commonHash(text: string, overrides: readonly string[] = []): string {
  const { seed: _seed, horizon: _horizon, ...common } = parse(text) as Record<string, unknown>;
  const hashed = overrides.length === 0 ? [common] : [common, overrides];
  return createHash('sha256').update(JSON.stringify(hashed)).digest('hex').slice(0, 12);
}

/** Key of a row: the name of its cell, the hash of its configuration, and the view, under another of which it would be another outcome. */
export function rowKey(cell: CellKey & { readonly common: string; readonly view?: string }): string {
  return `${cellName(cell)} ${cell.common} ${cell.view ?? ''}`;
}

/** Name of a cell for people: `textcraft/fixed 8/3`. */
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
    // All are kept: those of the curve are evaluated at the end, and every interruption adds one.
    checkpoint: { everyUpdates: 1_000_000, keep: 1_000_000 },
    trace: { ...cell.config.trace, everyGroups: 0 },
    metrics: { tensorboard: false },
  };
  const dir = join(options.folder, folderOf(cell));
  if (!existsSync(dir)) createRunFolder(dir, config);
  acquireRunLock(dir);
  try {
    const { marks, minutes, finished } = await trainCell(config, dir, options);
    if (!finished) return undefined;
    const curve: (Mark & { evaluated: Evaluated })[] = [];
    for (const mark of marks) {
      if (options.interrupt.aborted) return undefined;
      const [evaluated] = await evaluate(config, dir, mark.update, [{ ...cell.evaluations[0], episodes: 1 }]);
      curve.push({ ...mark, evaluated: evaluated! });
    }
    const final = await evaluate(config, dir, marks.at(-1)!.update, cell.evaluations);
    return rowOf(cell, await findWorld(config.env.id, config.env.options), minutes, curve, final);
  } finally {
    releaseRunLock(dir);
  }
}

/** Plays a baseline as a cell: the uniform random policy, or the world's scripted planner. */
export async function playBaseline(cell: Cell, player: 'random' | 'planner', folder: string): Promise<CellRow> {
  const found = await findWorld(cell.config.env.id, cell.config.env.options);
  const started = performance.now();
  const final = player === 'random' ? await randomly(cell, folder) : await listPlanned(cell, found);
  return rowOf(cell, found, (performance.now() - started) / 60_000, [], final);
}

function rowOf(
  { world, arm, seed, common }: Cell,
  { env, world: { view } }: FoundWorld,
  minutes: number,
  curve: CellRow['curve'],
  final: readonly Evaluated[],
): CellRow {
  const tasks = Object.fromEntries(final.map(({ set }) => [set, tasksOf(env, set)]));
  const key = { world, arm, seed, common, ...(view ? { view: view.id } : {}) };
  return { format: 1, ...key, tasks, minutes: Math.round(100 * minutes) / 100, curve, final };
}

/** Tasks of a split or of a named set. */
function tasksOf(env: Env, set: string): readonly number[] {
  if (set === 'train' || set === 'test') return env.tasks.split(set);
  return listEvaluatedTasks(env, { split: 'test', tasks: set });
}

async function randomly(cell: Cell, folder: string): Promise<Evaluated[]> {
  const { policy, trace } = cell.config;
  const config: RunConfig = {
    ...cell.config,
    policy: { ...policy, kind: 'random' },
    trace: { ...trace, everyGroups: 0 },
    metrics: { tensorboard: false },
  };
  const dir = join(folder, folderOf(cell));
  discardCell(cell, folder);
  createRunFolder(dir, config);
  try {
    const sampled = cell.evaluations.filter(({ kind }) => kind === 'sampled');
    return await evaluate(config, dir, undefined, sampled);
  } finally {
    discardCell(cell, folder);
  }
}

/** Lists the planner's one episode of each requested task, at each horizon. */
async function listPlanned({ config, evaluations }: Cell, { world, env }: FoundWorld): Promise<Evaluated[]> {
  const oracle = world.createOracle?.(config.env.options);
  if (!oracle) throw new UserError('BAD_ARGUMENT', `${env.id} has no planner`);
  const evaluated: Evaluated[] = [];
  for (const { set, horizon, kind } of evaluations) {
    if (kind !== 'sampled') continue;
    const wins: number[] = [];
    for (const index of tasksOf(env, set)) {
      wins.push((await solves(env, oracle, { env: env.id, index, seed: env.tasks.evalSeed }, horizon)) ? 1 : 0);
    }
    evaluated.push({ set, horizon, kind: 'planner', episodes: 1, wins });
  }
  return evaluated;
}

async function solves(env: Env, oracle: Oracle, task: Task, horizon: number): Promise<boolean> {
  const session = await env.open(task);
  const next = oracle(task);
  let step: TimeStep = session.first;
  for (let turn = 0; turn < horizon && step.kind !== 'terminated'; turn++) {
    const action = next(step);
    if (action === undefined) break;
    step = await session.step(action);
  }
  await session.close();
  return step.kind === 'terminated' && step.success;
}

/** Cells to play, and for how long. */
export interface Session {
  /** Cells that have no row yet, in their order. */
  readonly missing: readonly Cell[];
  /** File of the rows. */
  readonly path: string;
  /** Folder for the runs of unfinished cells. */
  readonly folder: string;
  readonly points: number;
  /** Cells to train at most; random play and the planner come besides, but for 0. */
  readonly cells?: number | undefined;
  /** Minutes after which the cell under way is broken off, to go on another time. */
  readonly minutes?: number | undefined;
  /** Gets each row after it was appended. */
  readonly onRow: (row: CellRow) => void;
}

/**
 * Plays missing cells one after the other and appends their rows, until all are there, the budget is spent or a signal
 * comes. Where none is missing it prints so, and how to repeat one.
 */
export async function playCells(session: Session): Promise<void> {
  const { missing, path, folder, points, cells = Number.POSITIVE_INFINITY, minutes, onRow } = session;
  mkdirSync(folder, { recursive: true });
  const print = (line: string) => void process.stderr.write(`${line}\n`);
  if (missing.length === 0 && cells > 0) {
    print(`all cells have their row in ${path}: none is left to play; delete a cell's row there to play it again`);
  }
  const interrupt = onInterrupt(print);
  const budget = new AbortController();
  const timer = minutes === undefined ? undefined : setTimeout(() => budget.abort(), minutes * 60_000);
  const signal = AbortSignal.any([interrupt.signal, budget.signal]);
  try {
    for (const cell of isWithin(missing, cells)) {
      if (signal.aborted) break;
      const row = cell.player
        ? await playBaseline(cell, cell.player, folder)
        : await playCell(cell, { folder, points, interrupt: signal, print });
      if (!row) {
        process.stdout.write(`${cellName(cell)}: broken off; the same command goes on with it\n`);
        break;
      }
      appendRow(path, row);
      discardCell(cell, folder);
      onRow(row);
    }
  } finally {
    clearTimeout(timer);
    interrupt.close();
  }
}

/** Cells to play now: at most `cells` that are trained, and all the others; none for 0. */
export function isWithin(missing: readonly Cell[], cells: number): Cell[] {
  const trained = new Set(missing.filter(({ player }) => !player).slice(0, cells));
  return cells === 0 ? [] : missing.filter((cell) => cell.player || trained.has(cell));
}

/** Removes the run of a cell whose row is kept. */
function discardCell(cell: Cell, folder: string): void {
  rmSync(join(folder, folderOf(cell)), { recursive: true, force: true });
}

/** Folder of a cell's run: a cell of the same name under another configuration is another run. */
function folderOf(cell: Cell): string {
  return rowKey(cell).replaceAll(/[^\w.-]+/g, '-');
}

/** State that a cell's folder keeps beside its checkpoints. */
interface Progress {
  readonly marks: readonly Mark[];
  /** Minutes of training so far, and the tokens of it, over all its parts. */
  readonly minutes: number;
  readonly tokens: number;
  readonly finished: boolean;
}

function readProgress(dir: string): Progress {
  const path = join(dir, 'progress.json');
  if (!existsSync(path)) return { marks: [], minutes: 0, tokens: 0, finished: false };
  return JSON.parse(readFileSync(path, 'utf8')) as Progress;
}

/** Trains to the end or to an interruption; a checkpoint and a mark at each point of the curve. */
async function trainCell(config: RunConfig, dir: string, { points, interrupt, print }: CellOptions): Promise<Progress> {
  const total = config.stop.envSteps ?? Number.POSITIVE_INFINITY;
  let progress = readProgress(dir);
  if (progress.finished) return progress;
  const before = progress.tokens;
  const checkpoint = newest(join(dir, 'checkpoints'));
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn: true,
    onNotice: print,
    ...(checkpoint ? { checkpoint } : {}),
  });
  /** Writes a checkpoint and what belongs to it. */
  const keep = async (point: boolean, finished = false) => {
    const saved = await run.save();
    if (!saved.ok) throw new UserError('NO_PERMISSION', `the checkpoint could not be written: ${saved.message}`);
    const { envSteps, tokens: computed, elapsedMs } = await run.status();
    const tokens = before + computed;
    const marks = point ? [...progress.marks, { update: saved.update, envSteps, tokens }] : progress.marks;
    progress = { marks, minutes: elapsedMs / 60_000, tokens, finished };
    writeFileSync(join(dir, 'progress.json'), JSON.stringify(progress));
  };
  try {
    let writing: Promise<void> = Promise.resolve();
    let due = progress.marks.length + 1;
    run.metrics$.subscribe(({ envSteps = 0 }) => {
      if (due >= points || envSteps < (due * total) / points) return;
      due++;
      writing = writing.then(() => keep(true));
      writing.catch(() => run.halt()); // it is thrown again below
    });
    const halt = () => run.halt();
    interrupt.addEventListener('abort', halt, { once: true });
    const training = run.train();
    if (interrupt.aborted) run.halt(); // the signal came while the run was starting; before `train` nothing would heed it
    const { why } = await training;
    interrupt.removeEventListener('abort', halt);
    await writing;
    await keep(why !== 'halted', why !== 'halted');
    return progress;
  } finally {
    await run.stop();
  }
}

function newest(checkpoints: string): LoadedCheckpoint | undefined {
  return existsSync(checkpoints) && listCheckpoints(checkpoints).length > 0 ? loadNewest(checkpoints) : undefined;
}

/** Plays evaluations. @param update whose weights play; undefined for a policy without weights */
async function evaluate(
  config: RunConfig,
  dir: string,
  update: number | undefined,
  evaluations: readonly Evaluation[],
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
    for (const { set, horizon, kind, episodes } of evaluations) {
      const requested = { ...config, evaluation: { ...config.evaluation, tasks: [...tasksOf(run.env, set)] } };
      const plan = evaluationPlan(run.env, requested, horizon, kind === 'greedy' ? 'greedy' : 'sampled');
      const { results } = await run.evaluate({ ...plan, name: `${set} ${plan.name}`, episodes });
      const wins = results.map(({ successes }) =>
        successes.length === episodes ? successes.filter(Boolean).length : null,
      );
      evaluated.push({ set, horizon, kind, episodes, wins });
    }
    return evaluated;
  } finally {
    await run.stop();
  }
}
