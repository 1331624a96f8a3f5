/** Command `longplay compare`: success of groups of runs, and the differences between them. */
import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { shareBar, shareScale } from '../../console/numbers.ts';
import { out } from '../../console/terminal.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import type { Difference } from '../../learning/evaluation/compare.ts';
import { columns, percent } from '../../learning/evaluation/table.ts';
import { type ComparedEvaluation, compareRuns, type RunComparison, type RunGroup } from '../../run/compare-runs.ts';
import { plotCurves } from '../../run/curve-plot.ts';
import { writeWhole } from '../../storage/atomic-file.ts';
import { runCommand } from '../fail.ts';

interface CompareFlags {
  readonly plot?: string;
  readonly json?: boolean;
}

/** Adds the command. */
export function compare(program: Command): void {
  program
    .command('compare')
    .description(
      'compare finished runs: success, differences and their intervals; runs that differ by the seed are a group',
    )
    .argument('<run...>', 'folders of runs of one world: runs/a-* runs/b-*')
    .option('--plot <file.svg>', 'write the learning curves as a picture')
    .option('--json', 'one JSON object')
    .action((dirs: string[], flags: CompareFlags) => runCommand(async () => print(compareRuns(dirs), flags)));
}

function print(comparison: RunComparison, { plot, json }: CompareFlags): void {
  const { groups, differingKeys, evaluations } = comparison;
  if (plot !== undefined) writePlot(plot, groups);
  if (json) {
    out.json({ format: 1, ...comparison });
    return;
  }
  for (const { name, runs, seeds } of groups) {
    out.line(`${name}: ${runs.length} ${runs.length === 1 ? 'run' : 'runs'}, seed ${seeds.join(', ')}`);
  }
  out.line(`they differ in ${differingKeys.slice(0, 8).join(', ')}${differingKeys.length > 8 ? ', …' : ''}`);
  for (const evaluation of evaluations) {
    out.line(`\n${columns(tableOf(evaluation, groups)).join('\n')}`);
    const methods = new Set(
      evaluation.labels.flatMap(({ differences }) => differences.flatMap((one) => one?.method ?? [])),
    );
    out.line(`differences: ${[...methods].join('; ')}\n`);
    out.line(drawIntervals(evaluation, groups).join('\n'));
  }
  if (plot !== undefined) out.line(`\nwritten: ${plot}`);
}

function tableOf({ name, labels }: ComparedEvaluation, groups: readonly RunGroup[]): string[][] {
  const first = groups[0]!.name;
  return [
    [
      `${name}, success % [95 %]`,
      ...groups.map((group) => group.name),
      ...groups.slice(1).map((g) => `${g.name} − ${first}`),
    ],
    ...labels.map(({ label, tasks, success, differences }) => [
      `${label} (${tasks} ${tasks === 1 ? 'task' : 'tasks'})`,
      ...success.map((one) => (one ? percent(one) : '–')),
      ...differences.slice(1).map(formatDifference),
    ]),
  ];
}

/** Difference in points, `+3.1 [−0.4, 6.6]`. */
function formatDifference(one: Difference | undefined): string {
  if (!one) return '–';
  const points = (share: number) => (100 * share).toFixed(1).replace('-', '−');
  const value = `${one.value > 0 ? '+' : ''}${points(one.value)}`;
  return one.method === 'no interval' ? value : `${value} [${points(one.low)}, ${points(one.high)}]`;
}

const WIDTH = 50;

/** Intervals of all tasks as bars, one line a group. */
function drawIntervals({ labels }: ComparedEvaluation, groups: readonly RunGroup[]): string[] {
  const { success } = labels.at(-1)!;
  const rows = groups.map(({ name }, g) => [name, shareBar(success[g]!, WIDTH)]);
  return columns([...rows, ['', shareScale(WIDTH)]]);
}

function writePlot(path: string, groups: readonly RunGroup[]): void {
  const curves = groups.filter(({ curve }) => curve.length > 0).map(({ name, curve }) => ({ name, points: curve }));
  if (curves.length === 0)
    throw new UserError('BAD_ARGUMENT', 'compare: --plot: the runs have no metrics.jsonl to draw');
  const plot = { title: 'Success while training', x: 'env steps', y: 'success', curves };
  try {
    writeWhole(path, (place) => writeFileSync(place, plotCurves(plot)));
  } catch (thrown) {
    throw new UserError('NO_PERMISSION', `compare: cannot write ${path}: ${messageOf(thrown)}`);
  }
}
