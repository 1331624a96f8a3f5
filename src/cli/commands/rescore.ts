/** Command `longplay rescore`: a new reward for every saved episode, by the user's function, and the difference it makes. */
import type { Command } from 'commander';
import { compact, estimate, whole } from '../../console/numbers.ts';
import { err, out } from '../../console/terminal.ts';
import { UserError } from '../../core/errors.ts';
import { recordOf } from '../../core/record.ts';
import { taskName } from '../../core/task.ts';
import { columns, percent } from '../../learning/evaluation/table.ts';
import { type Rescored, rescore } from '../../run/rescore/rescore.ts';
import { type EpisodeScore, isChanged, type RescoredPart } from '../../run/rescore/rescore-report.ts';
import { findTracedEnv } from '../../run/traced-env.ts';
import { TraceStore } from '../../storage/trace-store.ts';
import { reportLosses, runCommand } from '../fail.ts';
import { MOST, oneOf, wholeNumber } from '../flags.ts';
import { firstSignal } from '../interrupt.ts';
import { ProgressLine } from '../progress-line.ts';

interface RescoreFlags {
  readonly verify: string;
  readonly purpose?: string;
  readonly by: 'label' | 'task';
  readonly limit: number;
  readonly threads: number;
  readonly out?: string;
  readonly json?: boolean;
}

/** Threads that are of use to a function which waits for a model. */
const MAX_THREADS = 64;

/** Adds the command. */
export function rescoreTraces(program: Command): void {
  program
    .command('rescore')
    .description('give saved episodes a new reward by a function of yours, and show the difference')
    .argument('<trace>', 'a run, its traces folder, or a trace file')
    .requiredOption('--verify <module>', 'module that exports verify: it gets an episode and answers its reward')
    .option('--purpose <purpose>', 'only episodes of this purpose: train, or the name of an evaluation')
    .option('--by <label|task>', 'a row for each sub-task, or for each task', oneOf(['label', 'task']), 'label')
    .option(
      '--limit <seconds>',
      'time that one episode may take; a function that takes longer has failed on it',
      wholeNumber(1, MOST.seconds),
      60,
    )
    .option('--threads <n>', 'episodes scored at once, each in a thread of its own', wholeNumber(1, MAX_THREADS), 1)
    .option('--out <folder>', 'write a trace with the new rewards; the recorded ones stay beside them')
    .option('--json', 'one JSON object')
    .action((path: string, flags: RescoreFlags) => runCommand(() => rescoreCommand(path, flags)));
}

async function rescoreCommand(path: string, flags: RescoreFlags): Promise<void> {
  const store = TraceStore.open(path);
  reportLosses(store);
  const [first] = store.episodes;
  if (!first) throw new UserError('BAD_TRACE', `${path}: no episode has been recorded yet`);
  if (recordOf(store.config)?.worlds !== undefined) {
    throw new UserError('BAD_TRACE', `rescore: ${path} has episodes of several worlds; it takes a trace of one`);
  }
  const line = new ProgressLine();
  const signal = firstSignal();
  try {
    const rescored = await rescore({
      store,
      path,
      env: findTracedEnv(store.config, path, first.env),
      verify: flags.verify,
      limitMs: flags.limit * 1000,
      threads: flags.threads,
      purpose: flags.purpose,
      byTask: flags.by === 'task',
      out: flags.out,
      onNotice: (text) => err.line(text),
      onProgress: (done, of) => line.show(() => `${whole(done)} of ${whole(of)} episodes scored`),
      interrupted: signal.signal,
    });
    line.end();
    if (flags.json) out.json({ format: 1, trace: path, verify: flags.verify, ...rescored, out: flags.out });
    else print(rescored, flags);
    reportMissing(rescored);
  } finally {
    signal.stop();
    line.end();
  }
}

/** Reports episodes without a new reward: the result is not the whole. */
function reportMissing({ asked, episodes }: Rescored): void {
  const failed = episodes.filter((one) => one.failed !== undefined);
  const left = asked - episodes.length;
  if (failed.length === 0 && left === 0) return;
  process.exitCode = 1;
  const parts = [
    ...(failed.length === 0 ? [] : [`verify failed on ${failed.length}, first: ${failed[0]!.failed}`]),
    ...(left === 0 ? [] : [`${left} were not reached`]),
  ];
  err.line(`longplay: ${failed.length + left} of ${asked} episodes have no new reward: ${parts.join('; ')}`);
}

/** Episodes that are listed one by one; `--json` has them all. */
const MAX_LISTED = 20;

function print(rescored: Rescored, { out: folder }: RescoreFlags): void {
  const { episodes, parts, all, groups } = rescored;
  printEpisodes(episodes.filter(isChanged), describeChange);
  printEpisodes(
    episodes.filter(({ failed }) => failed !== undefined),
    (one) => `failed: ${one.failed}`,
  );
  out.line(columns([HEAD, ...parts.map(rowOf), ...(parts.length > 1 ? [rowOf(all)] : [])]).join('\n'));
  const { groups: compared, changed, reversed, gained, lost } = groups;
  if (compared > 0) {
    const how = `${reversed} reinforce what they discouraged, or the reverse; ${gained} had no signal; ${lost} have none now`;
    out.line(`\n${changed} of ${compared} groups would teach GRPO something else (${how})`);
  }
  if (folder !== undefined && all.episodes > 0) {
    out.line(`${all.episodes} episodes → ${folder}: longplay view ${folder}`);
  }
}

function printEpisodes(list: readonly EpisodeScore[], describe: (one: EpisodeScore) => string): void {
  for (const one of list.slice(0, MAX_LISTED)) {
    out.line(`episode ${one.episode} (${taskName(one.task)}, ${one.purpose}): ${describe(one)}`);
  }
  if (list.length > MAX_LISTED) out.line(`… and ${list.length - MAX_LISTED} more; --json lists all`);
  if (list.length > 0) out.line('');
}

function describeChange({ old, new: fresh }: EpisodeScore): string {
  const parts = Object.entries(fresh!.metrics).map(([name, value]) => `${name} ${compact(value)}`);
  const solved = old.success === fresh!.success ? '' : fresh!.success ? ', now a success' : ', a success no more';
  return `${compact(old.reward)} → ${compact(fresh!.reward)}${solved}${parts.length === 0 ? '' : ` (${parts.join(', ')})`}`;
}

const HEAD = [
  'reward',
  'episodes',
  'old',
  'new',
  'new − old [95 %]',
  'changed',
  'failed',
  'old success %',
  'new success %',
];

function rowOf(part: RescoredPart): string[] {
  const { label, tasks, episodes, failed, changed, difference, oldSuccess, newSuccess } = part;
  return [
    `${label} (${tasks} ${tasks === 1 ? 'task' : 'tasks'})`,
    whole(episodes),
    compact(part.old),
    compact(part.new),
    estimate(difference),
    whole(changed),
    whole(failed),
    percent(oldSuccess),
    percent(newSuccess),
  ];
}
