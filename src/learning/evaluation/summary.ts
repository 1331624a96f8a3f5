/** Summary of an evaluation: success, score and pass@k kept apart, split by sub-task. Pure. */
import type { EpisodeReport } from '../../core/agent-call.ts';
import { smallestOf } from '../../core/extremes.ts';
import type { TokenSampling } from '../../core/model-call.ts';
import type { Task, TaskTable } from '../../core/task.ts';
import { addToolCounts, NO_TOOL_COUNTS, toolRates } from '../../core/tool-counts.ts';
import { averageOverTasks, type Estimated, passAtK } from './intervals.ts';

/** Finished episodes of one task. */
export interface TaskOutcome {
  readonly task: Task;
  /** Episodes of it that were to be played; those that failed for good are among them alone. Default: those that finished. */
  readonly asked?: number | undefined;
  readonly successes: readonly boolean[];
  readonly returns: readonly number[];
  readonly turns: readonly number[];
  /** Reports of the finished episodes: what agents and worlds of tools measured. Default: none. */
  readonly reports?: readonly EpisodeReport[] | undefined;
}

/** Summary of one sub-task, or of all tasks. */
export interface LabelSummary {
  readonly label: string;
  readonly tasks: number;
  /** Episodes that finished. */
  readonly episodes: number;
  /** Episodes that were to be played: those that failed for good count here. */
  readonly asked: number;
  /** Success rate of finished episodes: mean over tasks, interval over tasks. */
  readonly success: Estimated;
  /** Share of the episodes asked for that solved their task, in [0, 1]: one that failed for good did not. */
  readonly successOfAsked: number;
  /** Mean return. */
  readonly score: number;
  readonly turns: number;
  /** Unbiased pass@k for k = 1, 2, 4, … up to the episodes per task. */
  readonly passAtK: Readonly<Record<string, number>>;
}

/** Summary of an evaluation: success of all tasks, and of each sub-task. */
export interface EvaluationSummary {
  readonly name: string;
  /** World of its tasks, in a run of several. */
  readonly world?: string;
  readonly horizon: number;
  readonly temperature: number;
  /** Settings of a language model's sampling; absent: the whole distribution. */
  readonly sampling?: TokenSampling | undefined;
  /** Numbering of its task indices (`TaskTable.numbering`). */
  readonly numbering?: string;
  readonly labels: readonly LabelSummary[];
  readonly all: LabelSummary;
  /** Tasks that training has not met in part (`TaskTable.seen`); absent where it has met none, or all, of those played. */
  readonly unseen?: LabelSummary;
  /** Episodes that failed for good; they count in `asked` and `successOfAsked` alone. */
  readonly failed: number;
  /**
   * Means over episodes of what agents and worlds reported, and the rates of calls of tools, by the names of metrics; absent where
   * nothing was reported.
   */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Counts of each task, for comparisons task by task. */
  readonly byTask: readonly TaskCounts[];
}

/** Counts of one task. */
export interface TaskCounts {
  readonly index: number;
  readonly seed: number;
  readonly asked: number;
  readonly episodes: number;
  readonly successes: number;
}

export interface EvaluationFacts {
  readonly plan: Pick<EvaluationSummary, 'name' | 'horizon' | 'temperature' | 'sampling'>;
  readonly results: readonly TaskOutcome[];
  readonly failed: number;
}

/** Summary of an evaluation: success, by sub-task too, with intervals. */
export function summarise({ plan, results, failed }: EvaluationFacts, tasks: TaskTable): EvaluationSummary {
  const labels = tasks.labels.flatMap((label) => {
    const own = results.filter(({ task }) => tasks.label(task.index) === label);
    return own.length === 0 ? [] : [summary(label, own)];
  });
  const { name, horizon, temperature, sampling } = plan;
  const unseen = tasks.isSeen ? results.filter(({ task }) => !tasks.isSeen!(task.index)) : results;
  return {
    name,
    horizon,
    temperature,
    ...(sampling ? { sampling } : {}),
    ...(tasks.numbering === undefined ? {} : { numbering: tasks.numbering }),
    labels,
    all: summary('all', results),
    ...(unseen.length > 0 && unseen.length < results.length ? { unseen: summary('unseen', unseen) } : {}),
    failed,
    ...reportedMetrics(results),
    byTask: results.map((one) => ({
      index: one.task.index,
      seed: one.task.seed,
      asked: askedOf(one),
      episodes: one.successes.length,
      successes: count(one.successes),
    })),
  };
}

function reportedMetrics(results: readonly TaskOutcome[]): Pick<EvaluationSummary, 'metrics'> {
  const reports = results.flatMap(({ reports = [] }) => reports);
  const values: Record<string, number[]> = {};
  let tools = NO_TOOL_COUNTS;
  for (const report of reports) {
    if (report.tools) tools = addToolCounts(tools, report.tools);
    for (const [name, value] of Object.entries(report.metrics)) (values[name] ??= []).push(value);
  }
  const means = Object.fromEntries(Object.entries(values).map(([name, list]) => [name, mean(list)]));
  const metrics = { ...means, ...toolRates(tools) };
  return Object.keys(metrics).length > 0 ? { metrics } : {};
}

function askedOf({ asked, successes }: TaskOutcome): number {
  return asked ?? successes.length;
}

function summary(label: string, outcomes: readonly TaskOutcome[]): LabelSummary {
  const played = outcomes.filter(({ successes }) => successes.length > 0);
  const rates = played.map(({ successes }) => count(successes) / successes.length);
  const most = played.length === 0 ? 0 : smallestOf(played.map(({ successes }) => successes.length));
  const passes: Record<string, number> = {};
  for (let k = 1; k <= most; k *= 2) {
    passes[k] = mean(played.map(({ successes }) => passAtK(successes.length, count(successes), k)));
  }
  const episodes = played.reduce((sum, { successes }) => sum + successes.length, 0);
  const asked = outcomes.reduce((sum, one) => sum + askedOf(one), 0);
  const solved = played.reduce((sum, { successes }) => sum + count(successes), 0);
  return {
    label,
    tasks: played.length,
    episodes,
    asked,
    success: averageOverTasks(rates, episodes),
    successOfAsked: asked === 0 ? Number.NaN : solved / asked,
    score: mean(played.flatMap(({ returns }) => returns)),
    turns: mean(played.flatMap(({ turns }) => turns)),
    passAtK: passes,
  };
}

function count(successes: readonly boolean[]): number {
  return successes.filter(Boolean).length;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
}
