/** Comparison of finished runs: groups of configurations that differ by their seeds, success of each, and the differences. */
import { basename, join, resolve } from 'node:path';
import { z } from 'zod';
import type { RunConfig } from '../config/run-config.ts';
import { hasWorlds, listWorlds } from '../config/worlds.ts';
import { MAX_DATA_BYTES, readJsonFile, readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { largestOf, smallestOf } from '../core/extremes.ts';
import { parseJson } from '../core/json-text.ts';
import { type Difference, differenceOf, type EvaluatedRun, successOf } from '../learning/evaluation/compare.ts';
import type { Estimated } from '../learning/evaluation/intervals.ts';
import { averageOverSeeds } from '../learning/evaluation/over-seeds.ts';
import type { EvaluationSummary } from '../learning/evaluation/summary.ts';
import { firstIssue } from '../storage/trajectory-schema.ts';
import type { Curve } from './curve-plot.ts';
import { readRunConfig } from './run-folder.ts';

/** Group of runs whose configurations differ by the seed alone. */
export interface RunGroup {
  readonly name: string;
  /** Folders, by seed. */
  readonly runs: readonly string[];
  readonly seeds: readonly number[];
  /** Success while training by env steps, in [0, 1]: mean over runs, with the interval over seeds where there are several. */
  readonly curve: Curve['points'];
}

/** One sub-task of an evaluation, or `all`. */
export interface ComparedLabel {
  readonly label: string;
  readonly tasks: number;
  /** Success of each group; undefined where it has not played it. */
  readonly success: readonly (Estimated | undefined)[];
  /** Difference of each group from the first one; undefined for the first, and where one has not played it. */
  readonly differences: readonly (Difference | undefined)[];
}

/** Evaluation that the runs have in common. */
export interface ComparedEvaluation {
  readonly name: string;
  readonly labels: readonly ComparedLabel[];
}

/** Comparison of runs. */
export interface RunComparison {
  readonly groups: readonly RunGroup[];
  /** Keys of the configuration in which groups differ. */
  readonly differingKeys: readonly string[];
  readonly evaluations: readonly ComparedEvaluation[];
}

interface Run {
  readonly dir: string;
  readonly config: RunConfig;
  readonly evaluations: readonly EvaluationSummary[];
}

/**
 * Compares finished runs of one world. Runs whose configurations differ by the seed alone are a group; every group is compared
 * with the first.
 * @param dirs folders of runs, at least two
 * @throws {UserError} UNKNOWN_RUN for a folder that is no finished run; BAD_ARGUMENT for runs that cannot be compared
 */
export function compareRuns(dirs: readonly string[]): RunComparison {
  const runs = [...new Map(dirs.map((dir) => [resolve(dir), dir])).values()].map(readRun);
  const groups = groupRuns(runs);
  if (groups.length < 2) {
    throw new UserError(
      'BAD_ARGUMENT',
      `compare: expected runs of two configurations or more, got ${runs.length} of one (only the seed differs)`,
    );
  }
  const worlds = [...new Set(runs.map(({ config }) => nameWorlds(config)))];
  if (worlds.length > 1) {
    throw new UserError('BAD_ARGUMENT', `compare: expected runs of one world, got ${worlds.join(', ')}`);
  }
  const names = new Set(runs[0]!.evaluations.map(({ name }) => name));
  for (const { evaluations } of runs) {
    for (const name of names) if (!evaluations.some((one) => one.name === name)) names.delete(name);
  }
  if (names.size === 0) {
    const had = runs.map(
      ({ dir, evaluations }) => `${dir}: ${evaluations.map(({ name }) => name).join(', ') || 'none'}`,
    );
    throw new UserError('BAD_ARGUMENT', `compare: the runs have no evaluation in common (${had.join('; ')})`);
  }
  checkNumbering(runs, names);
  const labels = nameGroups(groups);
  return {
    groups: groups.map((own, g) => ({
      name: labels[g]!,
      runs: own.map(({ dir }) => dir),
      seeds: own.map(({ config }) => config.seed),
      // Success over several worlds depends on how much of each was drawn, which is what such runs differ in.
      curve: hasWorlds(own[0]!.config) ? [] : curveOf(own.map(({ dir }) => readCurve(dir))),
    })),
    differingKeys: differingKeys(groups.map(([first]) => first!.config)),
    evaluations: [...names].map((name) => compareEvaluation(name, groups)),
  };
}

/** Refuses evaluations whose task indices name different tasks. Results of earlier versions do not say. */
function checkNumbering(runs: readonly Run[], names: ReadonlySet<string>): void {
  const seen = new Map<string, string>();
  for (const { dir, evaluations } of runs) {
    for (const { name, numbering } of evaluations) {
      if (names.has(name) && numbering !== undefined && !seen.has(numbering)) seen.set(numbering, dir);
    }
  }
  if (seen.size < 2) return;
  const found = [...seen].map(([numbering, dir]) => `${numbering} in ${dir}`).join(', ');
  throw new UserError(
    'BAD_ARGUMENT',
    `compare: the same task numbers name different tasks (${found}); evaluate the runs under the same env.options`,
  );
}

const resultsSchema = z.looseObject({
  evaluations: z.array(z.looseObject({ name: z.string(), all: z.looseObject({}) })),
});

function readRun(dir: string): Run {
  const config = readRunConfig(dir);
  const path = join(dir, 'results.json');
  let results: unknown;
  try {
    results = readJsonFile(path, MAX_DATA_BYTES);
  } catch (thrown) {
    throw new UserError(
      'UNKNOWN_RUN',
      `${dir} has no results to compare: ${messageOf(thrown)}; results.json is written when training ends`,
    );
  }
  const checked = resultsSchema.safeParse(results);
  if (!checked.success) throw new UserError('UNKNOWN_RUN', `${path}: expected results: ${firstIssue(checked.error)}`);
  return { dir, config, evaluations: checked.data.evaluations as unknown as EvaluationSummary[] };
}

/** World of a configuration, or its worlds by name. */
function nameWorlds(config: RunConfig): string {
  if (!hasWorlds(config)) return config.env.id;
  return listWorlds(config)
    .map(({ name }) => name)
    .sort()
    .join(' + ');
}

/** Runs by configuration without the seed, in the order given; those of a group by seed. */
function groupRuns(runs: readonly Run[]): readonly (readonly Run[])[] {
  const groups = new Map<string, Run[]>();
  for (const run of runs) {
    const { fromRun: _, ...env } = run.config.env; // where the world lies from the run's folder
    const key = JSON.stringify({ ...run.config, env, seed: 0 });
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return [...groups.values()].map((own) => own.toSorted((a, b) => a.config.seed - b.config.seed));
}

/** Name of each group: what its folders' names have in common, without their numbers; the first folder's where that is none. */
function nameGroups(groups: readonly (readonly Run[])[]): readonly string[] {
  const short = groups.map((own) => {
    const bases = new Set(own.map(({ dir }) => basename(resolve(dir)).replace(/[-_.]?(s|seed)?\d+$/, '')));
    return bases.size === 1 && ![...bases][0]!.match(/^$/) ? [...bases][0]! : basename(resolve(own[0]!.dir));
  });
  return short.map((name, g) =>
    short.indexOf(name) === short.lastIndexOf(name) ? name : basename(resolve(groups[g]![0]!.dir)),
  );
}

/** Keys whose values differ between configurations, the seed left out. */
function differingKeys(configs: readonly RunConfig[]): readonly string[] {
  const flat = configs.map((config) => new Map(leavesOf(config, '')));
  const keys = new Set(flat.flatMap((one) => [...one.keys()]));
  return [...keys].filter((key) => key !== 'seed' && new Set(flat.map((one) => one.get(key))).size > 1).sort();
}

function leavesOf(value: unknown, path: string): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, child]) => leavesOf(child, path === '' ? key : `${path}.${key}`));
}

function compareEvaluation(name: string, groups: readonly (readonly Run[])[]): ComparedEvaluation {
  const evaluated = groups.map((own) =>
    own.map(
      ({ config, evaluations }): EvaluatedRun => ({
        seed: config.seed,
        evaluation: evaluations.find((one) => one.name === name)!,
      }),
    ),
  );
  const labels = new Set(evaluated.flat().flatMap(({ evaluation }) => evaluation.labels.map(({ label }) => label)));
  return {
    name,
    labels: [...labels, 'all'].map((label) => ({
      label,
      tasks: largestOf(
        evaluated.flat().map(({ evaluation }) => {
          const part = label === 'all' ? evaluation.all : evaluation.labels.find((one) => one.label === label);
          return part?.tasks ?? 0;
        }),
      ),
      success: evaluated.map((own) => successOf(own, label)),
      differences: evaluated.map((own, g) => (g === 0 ? undefined : differenceOf(evaluated[0]!, own, label))),
    })),
  };
}

/** Rows of metrics over which the curve of a run is averaged. */
const SMOOTHED_ROWS = 10;
/** Points of a curve. */
const POINTS = 60;

type Point = readonly [envSteps: number, success: number];

/** Success of training by env steps, averaged over rows; damaged lines are left out. */
function readCurve(dir: string): readonly Point[] {
  let text: string;
  try {
    text = readText(join(dir, 'metrics.jsonl'), MAX_DATA_BYTES);
  } catch {
    return []; // the figures do not need it
  }
  const points = text.split('\n').flatMap((line): Point[] => {
    try {
      const { envSteps, success } = parseJson(line) as { envSteps?: unknown; success?: unknown };
      return typeof envSteps === 'number' && typeof success === 'number' ? [[envSteps, success]] : [];
    } catch {
      return [];
    }
  });
  return points.map(([steps], i) => {
    const last = points.slice(Math.max(0, i + 1 - SMOOTHED_ROWS), i + 1);
    return [steps, last.reduce((sum, [, success]) => sum + success, 0) / last.length];
  });
}

/** Mean curve of runs, as far as all of them go. */
function curveOf(curves: readonly (readonly Point[])[]): Curve['points'] {
  if (curves.some((one) => one.length === 0)) return [];
  const end = smallestOf(curves.map((one) => one.at(-1)![0]));
  return Array.from({ length: POINTS }, (_, i) => {
    const x = ((i + 1) / POINTS) * end;
    const values = curves.map((one) => (one.findLast(([steps]) => steps <= x) ?? one[0]!)[1]);
    const { value, low, high } = averageOverSeeds(values);
    const isOne = values.length === 1;
    return { x, y: value, low: isOne ? value : Math.max(0, low), high: isOne ? value : Math.min(1, high) };
  });
}
