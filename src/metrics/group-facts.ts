/** Facts of a finished group: outcomes, and the signs of a policy's collapse. Pure. */
import { readReport } from '../core/agent-call.ts';
import { addToolCounts, NO_TOOL_COUNTS, type ToolCounts } from '../core/tool-counts.ts';
import { episodeReturn, type Trajectory } from '../core/trajectory.ts';

/** Sums over episodes. */
export interface EpisodeSums {
  readonly episodes: number;
  readonly successes: number;
  readonly truncated: number;
  readonly returns: number;
  readonly turns: number;
}

export interface GroupFacts {
  /** World of its task (`Task.env`). */
  readonly world: string;
  /** Sub-task label. */
  readonly label: string;
  readonly horizon: number;
  readonly sums: EpisodeSums;
  /** True when all members have the same return, so that there is nothing to compare. */
  readonly flat: boolean;
  /** Counts of each action text that was taken. */
  readonly actions: ReadonlyMap<string, number>;
  /** Turns that repeat an action in a situation (the same observation) in which the episode had taken it before. */
  readonly repeats: number;
  /** Answers of a language model, and those of them in which no action could be read. */
  readonly answers: number;
  readonly formatErrors: number;
  /** Numbers that agents and worlds reported, by name. */
  readonly reported: ReadonlyMap<string, Mean>;
  /** Counts of the calls of tools; all 0 outside worlds of tools. */
  readonly tools: ToolCounts;
}

/** Mean under construction. */
export interface Mean {
  sum: number;
  count: number;
}

/** Facts of the groups of one update, summed up. */
export interface ConsumedFacts {
  readonly all: EpisodeSums;
  readonly byLabel: Readonly<Record<string, EpisodeSums>>;
  readonly byHorizon: Readonly<Record<string, EpisodeSums>>;
  readonly byWorld: Readonly<Record<string, EpisodeSums>>;
  readonly groups: number;
  /** Groups of at least two members, and those of them that are flat: a group of one compares nothing. */
  readonly comparedGroups: number;
  readonly flatGroups: number;
  readonly repeats: number;
  readonly answers: number;
  readonly formatErrors: number;
  readonly reported: ReadonlyMap<string, Mean>;
  readonly tools: ToolCounts;
  /** Top action: the most frequent text and its count; absent without any action. */
  readonly top: { readonly action: string; readonly count: number } | undefined;
}

const noEpisodes: EpisodeSums = { episodes: 0, successes: 0, truncated: 0, returns: 0, turns: 0 };

export function groupFacts(trajectories: readonly Trajectory[], label: string): GroupFacts {
  const actions = new Map<string, number>();
  const sums = { ...noEpisodes };
  let repeats = 0;
  let answers = 0;
  let formatErrors = 0;
  const reported = new Map<string, Mean>();
  let tools = NO_TOOL_COUNTS;
  let flat = true;
  let first: number | undefined;
  for (const trajectory of trajectories) {
    const score = episodeReturn(trajectory);
    first ??= score;
    if (score !== first) flat = false;
    sums.episodes++;
    sums.returns += score;
    sums.turns += trajectory.turns.length;
    if (trajectory.success) sums.successes++;
    if (trajectory.end === 'truncated') sums.truncated++;
    const report = readReport(trajectory.finalObservation);
    if (report.tools) tools = addToolCounts(tools, report.tools);
    for (const [name, value] of Object.entries(report.metrics)) {
      addTo(reported, name, { sum: value, count: 1 });
    }
    const seen = new Set<string>();
    for (const { observation, action, response } of trajectory.turns) {
      if (response) answers++;
      if (response?.formatError !== undefined) formatErrors++;
      actions.set(action, (actions.get(action) ?? 0) + 1);
      seen.add(`${action}\n${observation}`);
    }
    repeats += trajectory.turns.length - seen.size;
  }
  return {
    world: trajectories[0]?.task.env ?? '',
    label,
    horizon: trajectories[0]?.horizon ?? 0,
    sums,
    flat,
    actions,
    repeats,
    answers,
    formatErrors,
    reported,
    tools,
  };
}

export function summarizeConsumed(groups: readonly GroupFacts[]): ConsumedFacts {
  const byLabel: Record<string, EpisodeSums> = {};
  const byHorizon: Record<string, EpisodeSums> = {};
  const byWorld: Record<string, EpisodeSums> = {};
  const actions = new Map<string, number>();
  const reported = new Map<string, Mean>();
  let all = noEpisodes;
  let tools = NO_TOOL_COUNTS;
  let repeats = 0;
  let answers = 0;
  let formatErrors = 0;
  let comparedGroups = 0;
  let flatGroups = 0;
  for (const group of groups) {
    all = add(all, group.sums);
    tools = addToolCounts(tools, group.tools);
    byLabel[group.label] = add(byLabel[group.label] ?? noEpisodes, group.sums);
    byHorizon[group.horizon] = add(byHorizon[group.horizon] ?? noEpisodes, group.sums);
    byWorld[group.world] = add(byWorld[group.world] ?? noEpisodes, group.sums);
    repeats += group.repeats;
    answers += group.answers;
    formatErrors += group.formatErrors;
    if (group.sums.episodes > 1) {
      comparedGroups++;
      if (group.flat) flatGroups++;
    }
    for (const [name, mean] of group.reported) addTo(reported, name, mean);
    for (const [action, count] of group.actions) actions.set(action, (actions.get(action) ?? 0) + count);
  }
  let top: ConsumedFacts['top'];
  for (const [action, count] of actions) if (count > (top?.count ?? 0)) top = { action, count };
  return {
    all,
    byLabel,
    byHorizon,
    byWorld,
    groups: groups.length,
    comparedGroups,
    flatGroups,
    repeats,
    answers,
    formatErrors,
    reported,
    tools,
    top,
  };
}

function addTo(means: Map<string, Mean>, name: string, { sum, count }: Mean): void {
  const mean = means.get(name);
  if (mean) {
    mean.sum += sum;
    mean.count += count;
  } else means.set(name, { sum, count });
}

function add(a: EpisodeSums, b: EpisodeSums): EpisodeSums {
  return {
    episodes: a.episodes + b.episodes,
    successes: a.successes + b.successes,
    truncated: a.truncated + b.truncated,
    returns: a.returns + b.returns,
    turns: a.turns + b.turns,
  };
}
