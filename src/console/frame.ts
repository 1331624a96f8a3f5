/**
 * Frames of a run's screen: `frame(state, size)` gives its lines. Pure: the same state and size give the same screen.
 */

import { type ClusterFacts, listWarnings } from '../cluster/cluster-monitor.ts';
import { append, largestOf } from '../core/extremes.ts';
import { countFailed, countUnaccounted } from '../core/failure.ts';
import { type Metric, type MetricsRow, metricTable, type PlainName } from '../metrics/metric-table.ts';
import type { WorldStatus } from '../metrics/run-status.ts';
import { TIME_PARTS, type TimePart, type TimeShares } from '../metrics/slot-time.ts';
import { advise, warnings } from './diagnose.ts';
import { compact, duration, mean, percent, smooth, sparkline, whole } from './numbers.ts';
import { type ConsoleState, newest } from './state.ts';
import { clip, cut, fill, type Line, lineWidth, pad, type Span, type Style, span, widthOf } from './text.ts';

export interface FrameSize {
  readonly width: number;
  readonly height: number;
  /** Cores of the machine, for advice. */
  readonly cores: number;
}

/** Height of the screen that this is laid out for; higher ones get more rows where there is more to show. */
const BASE_HEIGHT = 24;

/**
 * Lays out one screen.
 * @returns at most `height` lines, each at most `width` columns wide
 */
export function frame(state: ConsoleState, { width, height, cores }: FrameSize): Line[] {
  const extra = Math.max(0, height - BASE_HEIGHT);
  const tasks = 4 + Math.floor(extra / 3);
  const alarms = [...clusterAlarms(state), ...warnings(state.rows, state.config.env.id)];
  const actorRows = extra >= 2 ? 8 : 4;
  const gap: Line[] = [[]];
  const blocks: Line[][] = [
    [...header(state, width)],
    gap,
    sideBySide(outcomes(state, width), subTasks(state, tasks, width), width),
    gap,
    state.config.episodes === undefined ? learning(state, width) : renderServer(state, width),
    gap,
    [...timeBlock(state, width, cores)],
    gap,
    actors(state, state.cluster ? Math.max(2, actorRows - 2) : actorRows, width),
    ...(state.cluster ? [workers(state.cluster, 2 + Math.floor(extra / 3), state, width)] : []),
    [accounting(state, width)],
  ];
  const used = blocks.reduce((sum, block) => sum + block.length, 0);
  const room = height - used;
  const words: Line[] = [
    ...alarms.map((text): Line => [span('▲ ', 'yellow'), span(text, 'yellow')]),
    ...state.notices.map((text): Line => [span('· ', 'dim'), span(text, 'dim')]).reverse(),
  ];
  // A small screen with something to show does without blank lines.
  const squeezed = words.length > room ? blocks.filter((block) => block !== gap) : blocks;
  const lines = squeezed.flat();
  return [...lines, ...words.slice(0, Math.max(0, height - lines.length))]
    .slice(0, height)
    .map((line) => clip(line, width));
}

function header(state: ConsoleState, width: number): Line[] {
  const { row, progress } = newest(state);
  const elapsed = progress ? progress.elapsedMs / 1000 : (row.elapsed ?? 0);
  const done = progress?.progress ?? row.progress ?? 0;
  const left = done > 0.005 && done < 1 ? ` · ${duration((elapsed * (1 - done)) / done)} left` : '';
  const right = `${duration(elapsed)}${left} · ${percent(done)}`;
  const { episodes } = state.config;
  const at =
    episodes === undefined
      ? `update ${whole(row.update ?? progress?.version ?? 0)}`
      : `episode ${whole(progress?.episodes ?? 0)} of ${whole(episodes)}`;
  const name = `${state.name}  ${at}`;
  const title: Line = [span('longplay  ', 'bold'), span(name)];
  const room = Math.max(1, width - widthOf(right));
  const { worlds } = progress ?? {};
  return [
    [...fill(title, room), span(right, 'bold')],
    ...(worlds ? worldLines(state, worlds) : [horizonLine(state, width)]),
  ];
}

/** Lines of worlds at most. */
const MAX_WORLDS = 8;

/** Lines of several worlds, one each: `mine  horizon 10  share 25 %  success 64 %  return 0.52  turns 6.1`. */
function worldLines({ rows }: ConsoleState, worlds: readonly WorldStatus[]): Line[] {
  const recent = rows.slice(-RECENT);
  const name = Math.min(20, largestOf(worlds.map((world) => widthOf(world.name))));
  const averageOf = (world: string, column: 'successByWorld' | 'returnByWorld' | 'turnsByWorld') => {
    let [sum, count] = [0, 0];
    for (const row of recent) {
      const value = row[column]?.[world];
      const episodes = row.episodesByWorld?.[world] ?? 0;
      if (value === undefined) continue;
      sum += value * episodes;
      count += episodes;
    }
    return count === 0 ? undefined : sum / count;
  };
  const shown = worlds.length > MAX_WORLDS ? worlds.slice(0, MAX_WORLDS - 1) : worlds;
  const lines = shown.map((world): Line => {
    const fact = (label: string, value: string): Span[] => [span(`  ${label} `, 'dim'), span(value, 'bold')];
    return [
      span(pad(cut(world.name, name), name), world.isUp ? 'plain' : 'red'),
      ...fact('horizon', pad(`${world.horizon}`, 3, 'start')),
      ...fact('share', pad(percent(world.share), 5, 'start')),
      ...fact('success', pad(percent(averageOf(world.name, 'successByWorld')), 5, 'start')),
      ...fact('return', pad(compact(averageOf(world.name, 'returnByWorld')), 6, 'start')),
      ...fact('turns', pad(compact(averageOf(world.name, 'turnsByWorld')), 5, 'start')),
      ...(world.isUp ? [] : [span('  does not answer', 'red')]),
    ];
  });
  const left = worlds.length - shown.length;
  return left === 0 ? lines : [...lines, [span(`and ${left} more`, 'dim')]];
}

/** Horizon line: `ScalingInter-RL 8 ━━━━ 16 ━━── 24 ──── horizon 16, 117 of 300 updates`. */
function horizonLine(state: ConsoleState, width: number): Line {
  const { row, progress } = newest(state);
  const { horizon } = state.config;
  const now = progress?.horizon ?? row.horizon;
  const version = progress?.version ?? row.update ?? 0;
  if (horizon.type === 'fixed')
    return [span('horizon ', 'dim'), span(`${horizon.rounds} turns`, 'bold'), span(', fixed', 'dim')];
  const { rounds } = horizon;
  const steps = horizon.type === 'adaptive' ? undefined : horizon.steps_scaling_inter;
  const phase =
    steps === undefined
      ? Math.max(0, rounds.indexOf(now ?? rounds[0]!))
      : Math.min(Math.floor(version / steps), rounds.length - 1);
  const last = phase === rounds.length - 1;
  const within = steps === undefined || last ? 1 : (version - phase * steps) / steps;
  const label = horizon.type === 'scaling_inter_stepwise' ? 'ScalingInter-RL' : `${horizon.type} horizon`;
  const where =
    steps === undefined
      ? `rung ${phase + 1} of ${rounds.length}`
      : last
        ? `last of ${rounds.length} phases`
        : `phase ${phase + 1} of ${rounds.length}, ${whole(version - phase * steps)} of ${whole(steps)} updates`;
  const tail = `  horizon ${now ?? rounds[phase]} · ${where}`;
  const numbers = rounds.reduce((sum, turns) => sum + String(turns).length + 2, 0);
  const each = Math.max(
    2,
    Math.floor((Math.min(width, 120) - widthOf(label) - 2 - widthOf(tail) - numbers) / rounds.length),
  );
  const line: Span[] = [span(`${label}  `, 'dim')];
  rounds.forEach((turns, i) => {
    const filled = i < phase ? each : i > phase ? 0 : Math.round(each * within);
    line.push(span(`${turns} `, i === phase ? 'bold' : 'dim'));
    line.push(span('━'.repeat(filled), 'cyan'), span(`${'─'.repeat(each - filled)} `, 'dim'));
  });
  return [...line, span(tail.slice(1))];
}

/** Metric as its trend is drawn. */
interface Shown {
  readonly name: PlainName;
  readonly label: string;
  readonly show: (value: number | undefined) => string;
  readonly top?: number;
  readonly ifPresent?: boolean;
}

/** Lists the metrics of a section of the screen, as the table of metrics defines them. */
function listShown(section: 'outcomes' | 'learning'): readonly Shown[] {
  return metricTable.flatMap((metric: Metric): Shown[] =>
    metric.console?.section === section
      ? [
          {
            name: metric.name as PlainName,
            label: metric.console.label,
            ifPresent: metric.console.ifPresent ?? false,
            ...(metric.share ? { show: percent, top: 1 } : { show: compact }),
          },
        ]
      : [],
  );
}

const OUTCOMES = listShown('outcomes');
const LEARNING = listShown('learning');

/** Updates that a shown share is averaged over. */
const RECENT = 10;

function outcomes(state: ConsoleState, width: number): Line[] {
  const room = computeLeftWidth(width);
  const unit = state.config.episodes === undefined ? 'updates' : 'intervals';
  const drawn = newest(state).progress?.worlds ? ', all worlds as drawn' : '';
  return [
    [
      span('OUTCOMES', 'dim'),
      span(`  last ${Math.min(RECENT, Math.max(1, state.rows.length))} ${unit}${drawn}`, 'dim'),
    ],
    ...OUTCOMES.filter(({ name, ifPresent }) => !ifPresent || state.rows.some((row) => row[name] !== undefined)).map(
      (shown) => trend(state.rows, shown, 10, 7, room),
    ),
  ];
}

function trend(rows: readonly MetricsRow[], shown: Shown, labelWidth: number, valueWidth: number, room: number): Line {
  const history = rows.flatMap((row) => row[shown.name] ?? []);
  const value = history.length === 0 ? undefined : mean(history.slice(-RECENT));
  const bars = smooth(history, Math.max(0, Math.min(48, room - labelWidth - valueWidth - 3)));
  return [
    span(pad(shown.label, labelWidth), 'dim'),
    span(pad(shown.show(value), valueWidth, 'start'), 'bold'),
    span(' '),
    span(sparkline(bars, shown.top), 'cyan'),
  ];
}

function computeLeftWidth(width: number): number {
  return Math.floor(width / 2);
}

function subTasks({ rows }: ConsoleState, maxRows: number, width: number): Line[] {
  const room = width - computeLeftWidth(width);
  const recent = rows.slice(-RECENT);
  const weight = new Map<string, number>();
  for (const { episodesByLabel = {} } of recent) {
    for (const [label, n] of Object.entries(episodesByLabel)) weight.set(label, (weight.get(label) ?? 0) + n);
  }
  const labels = [...weight].sort((a, b) => b[1] - a[1]).map(([label]) => label);
  const shown = (labels.length > maxRows ? labels.slice(0, maxRows - 1) : labels).sort((a, b) =>
    a.localeCompare(b, 'en', { numeric: true }),
  );
  const labelWidth = Math.min(18, largestOf(shown.map(widthOf), 8));
  const lines: Line[] = [[span('SUB-TASKS', 'dim'), span('  success · turns', 'dim')]];
  for (const label of shown) {
    const averageByLabel = (name: 'successByLabel' | 'turnsByLabel') => {
      let sum = 0;
      let n = 0;
      for (const row of recent) {
        const value = row[name]?.[label];
        const episodes = row.episodesByLabel?.[label] ?? 0;
        if (value === undefined) continue;
        sum += value * episodes;
        n += episodes;
      }
      return n === 0 ? undefined : sum / n;
    };
    const history = rows.flatMap((row) => row.successByLabel?.[label] ?? []);
    const bars = smooth(history, Math.max(0, Math.min(32, room - labelWidth - 6 - 6 - 3)));
    lines.push([
      span(pad(label, labelWidth)),
      span(pad(percent(averageByLabel('successByLabel')), 6, 'start'), 'bold'),
      span(pad(compact(averageByLabel('turnsByLabel')), 6, 'start')),
      span(' '),
      span(sparkline(bars, 1), 'cyan'),
    ]);
  }
  if (labels.length > shown.length) lines.push([span(`and ${labels.length - shown.length} more`, 'dim')]);
  if (labels.length === 0) lines.push([span('nothing yet', 'dim')]);
  return lines;
}

function sideBySide(left: readonly Line[], right: readonly Line[], width: number): Line[] {
  const room = computeLeftWidth(width);
  return Array.from({ length: Math.max(left.length, right.length) }, (_, i) => [
    ...fill(left[i] ?? [], room - 1),
    span(' '),
    ...(right[i] ?? []),
  ]);
}

function learning(state: ConsoleState, width: number): Line[] {
  const { row } = newest(state);
  const room = Math.floor(width / 3);
  const lag: Line = [
    span(pad('lag', 9), 'dim'),
    span(`${compact(row.lagMin)} / ${compact(row.lagMean)} / ${compact(row.lagMax)}`, 'bold'),
    span(` of ${state.config.learner.maxLag}`, 'dim'),
  ];
  const cells = [...LEARNING.map((shown) => trend(state.rows, shown, 10, 8, Math.min(room, 40))), lag];
  return [0, 3].map((from) => cells.slice(from, from + 3).flatMap((cell) => fill(cell, room)));
}

/** Server statistics of a remote policy; empty for one in this process. */
function renderServer(state: ConsoleState, width: number): Line[] {
  const remote = newest(state).progress?.remote;
  if (!remote) return [];
  const { requests, inFlight, latencyMs, promptTokens, completionTokens, formatErrors, failures } = remote;
  const fact = (name: string, value: string): Span[] => [span(value, 'bold'), span(` ${name}  `, 'dim')];
  const trouble = Object.entries(remote.retries).map(([why, count]) => `${why} ×${count}`);
  return [
    asManyAsFit(
      [
        [span('SERVER   ', 'dim')],
        fact('in flight', whole(inFlight)),
        fact('answered', whole(requests)),
        fact('ms each', compact(requests === 0 ? undefined : Math.round(latencyMs / requests))),
        fact('tokens read', compact(promptTokens)),
        fact('written', compact(completionTokens)),
      ],
      width,
    ),
    [
      span('TROUBLE  ', 'dim'),
      ...fact('not understood', whole(formatErrors)),
      ...fact('gave up', whole(failures)),
      span(trouble.length === 0 ? 'nothing sent again' : `sent again: ${trouble.join(', ')}`, 'dim'),
    ],
  ];
}

const PARTS: Readonly<Record<TimePart, { readonly name: string; readonly glyph: string; readonly style: Style }>> = {
  env: { name: 'env', glyph: '█', style: 'green' },
  batchWait: { name: 'wait', glyph: '░', style: 'yellow' },
  prefill: { name: 'prefill', glyph: '▓', style: 'blue' },
  decode: { name: 'decode', glyph: '▒', style: 'cyan' },
  learner: { name: 'learner', glyph: '▚', style: 'magenta' },
  group: { name: 'group', glyph: '╱', style: 'dim' },
  messages: { name: 'messages', glyph: '─', style: 'red' },
};

function timeBlock(state: ConsoleState, width: number, cores: number): Line[] {
  const { rates } = state;
  const { row } = newest(state);
  const rate = (name: string, value: number | undefined): Span[] => [
    span(compact(value === undefined ? undefined : value >= 100 ? Math.round(value) : value), 'bold'),
    span(` ${name}  `, 'dim'),
  ];
  const speeds = asManyAsFit(
    [
      rate('steps/s', rates?.stepsPerSecond ?? row.stepsPerSecond),
      rate('tokens/s', rates?.tokensPerSecond ?? row.tokensPerSecond),
      rate('episodes/s', rates?.episodesPerSecond ?? row.episodesPerSecond),
      rate('turns a call', rates?.batchSize ?? row.batchSize),
      rate('learner tokens/s', row.learnerTokensPerSecond),
    ],
    width,
  );
  const time = rates?.time ?? row.time;
  if (!time) return [speeds, [span('where the time goes: nothing has run yet', 'dim')], [], []];
  const advice = advise(time as TimeShares, state.config, cores);
  const knob: Line = advice
    ? [
        span('→ ', 'bold'),
        span('best knob: ', 'dim'),
        span(`${advice.key} ${advice.from} → ${advice.to}`, 'bold'),
        span(`  ${advice.why}`, 'dim'),
      ]
    : [span('→ no single knob stands out', 'dim')];
  return [speeds, bar(time as TimeShares, width), legend(time as TimeShares, width), knob];
}

/** Spans in whole groups, as many as fit. */
function asManyAsFit(groups: readonly Line[], width: number): Line {
  const out: Span[] = [];
  let used = 0;
  for (const group of groups) {
    used += lineWidth(group);
    if (used > width + 2) break; // the last one's blanks may hang over
    append(out, group);
  }
  return out;
}

/** Bar that fills the width; rounding goes to the largest remainder, so that no part is drawn twice or lost. */
function bar(time: TimeShares, width: number): Line {
  const exact = TIME_PARTS.map((part) => ({ part, size: time[part] * width }));
  const cells = new Map(exact.map(({ part, size }) => [part, Math.floor(size)]));
  let left = width - [...cells.values()].reduce((sum, n) => sum + n, 0);
  for (const { part } of [...exact].sort((a, b) => (b.size % 1) - (a.size % 1))) {
    if (left-- <= 0) break;
    cells.set(part, cells.get(part)! + 1);
  }
  return TIME_PARTS.map((part) => span(PARTS[part].glyph.repeat(cells.get(part)!), PARTS[part].style));
}

function legend(time: TimeShares, width: number): Line {
  const entries = TIME_PARTS.filter((part) => time[part] >= 0.005).map((part): Line => {
    const { glyph, name, style } = PARTS[part];
    return [span(glyph, style), span(`${name} ${Math.round(100 * time[part])}%`)];
  });
  const gaps = entries.reduce((sum, entry) => sum + lineWidth(entry) + 2, 0) <= width + 2 ? '  ' : ' ';
  return entries.flatMap((entry, i) => (i === 0 ? entry : [span(gaps), ...entry]));
}

/** Main actors, which a small screen shows first. */
const MAIN_ACTORS = ['inference', 'learner', 'env hosts', 'rollout'];

function actors(state: ConsoleState, maxRows: number, width: number): Line[] {
  const rank = (path: string) => {
    const at = MAIN_ACTORS.indexOf(nameOf(path));
    return at < 0 ? MAIN_ACTORS.length : at;
  };
  const shown = [...state.actors].sort((a, b) => rank(a.path) - rank(b.path)).slice(0, maxRows);
  if (shown.length === 0) return [[span('ACTORS', 'dim'), span('  starting', 'dim')]];
  return shown.map((actor) => {
    const cells = Math.round(10 * actor.busy);
    const doing =
      actor.state !== 'running'
        ? actor.state
        : actor.note !== undefined
          ? actor.note
          : actor.waitingFor.length > 0
            ? `waits for ${actor.waitingFor.map(nameOf).join(', ')}`
            : actor.message !== undefined
              ? `${actor.message} for ${duration10(actor.oldestMs)}`
              : 'idle';
    const trouble = actor.restarts > 0 ? `  ${actor.restarts} restarts` : '';
    const style: Style = actor.state === 'running' ? 'plain' : 'red';
    return [
      span(pad(nameOf(actor.path), 11), style),
      span('█'.repeat(cells), 'green'),
      span('░'.repeat(10 - cells), 'dim'),
      span(pad(percent(actor.busy), 7, 'start'), 'bold'),
      span(pad(`${whole(actor.depth)} waiting`, 14, 'start')),
      span('   '),
      span(cut(doing, Math.max(0, width - 45 - trouble.length)), actor.state === 'running' ? 'dim' : 'red'),
      span(trouble, 'red'),
    ];
  });
}

function clusterAlarms(state: ConsoleState): string[] {
  const { cluster, config } = state;
  if (!cluster) return [];
  const { maxLag, groupsPerUpdate } = config.learner;
  return listWarnings(cluster, { version: versionOf(state), maxLag, groups: (maxLag + 1) * groupsPerUpdate });
}

function versionOf(state: ConsoleState): number {
  const { row, progress } = newest(state);
  return progress?.version ?? row.update ?? 0;
}

/** Workers of a cluster, one a row, and what is out. @param maxRows rows of workers */
function workers(
  { workers: all, counts, load }: ClusterFacts,
  maxRows: number,
  state: ConsoleState,
  width: number,
): Line[] {
  const here = all.filter((one) => one.state === 'here').length;
  const fact = (name: string, value: number | undefined): Span[] => [
    span(compact(value), 'bold'),
    span(` ${name}  `, 'dim'),
  ];
  const totals = asManyAsFit(
    [
      [span('WORKERS  ', 'dim'), span(`${here} here  `, 'bold')],
      fact('tickets out', counts.outstanding),
      fact('results waiting', load?.results),
      fact('duplicates', counts.duplicates),
      fact('issued again', counts.reissued),
      fact('lost episodes', newest(state).progress?.accounting.failed.worker ?? 0),
    ],
    width,
  );
  const shown = [...all].sort((a, b) => Number(b.state === 'here') - Number(a.state === 'here')).slice(0, maxRows);
  const room = Math.max(8, Math.min(28, width - 56));
  const rows = shown.map((one): Line => {
    const style: Style = one.state === 'here' ? 'plain' : 'dim';
    const lag = versionOf(state) - one.version;
    const seen = one.state === 'here' ? '' : `${one.state}, last seen ${duration10(one.silentMs)} ago`;
    return [
      span(`${pad(cut(one.name, room - 1), room)}`, style),
      span(pad(`${whole(one.held)}/${whole(one.slots)}`, 7, 'start'), style),
      span(pad(`${compact(one.groupsPerSecond)} groups/s`, 15, 'start'), one.state === 'here' ? 'bold' : 'dim'),
      span(pad(`${compact(Math.round(one.tokensPerSecond))} tok/s`, 13, 'start'), style),
      span(pad(`lag ${whole(lag)}`, 8, 'start'), lag > state.config.learner.maxLag ? 'red' : style),
      span(`  ${seen}${one.refused > 0 ? `${whole(one.refused)} refused` : ''}`, one.refused > 0 ? 'red' : 'dim'),
    ];
  });
  const more = all.length - shown.length;
  return [totals, ...rows, ...(more > 0 ? [[span(`and ${more} more`, 'dim')]] : [])];
}

function nameOf(path: string): string {
  return path.replace(/^\//, '');
}

/** Duration as `12 ms` or `3.4 s`. */
function duration10(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function accounting(state: ConsoleState, width: number): Line {
  const { progress } = newest(state);
  if (!progress) return [span('no episode yet', 'dim')];
  const { accounting: a } = progress;
  const off = countUnaccounted(a);
  const terms: readonly (readonly [number, string, string])[] = [
    [a.trained, 'trained', 'trained'],
    [a.stale, 'stale', 'stale'],
    state.config.episodes === undefined ? [a.filtered, 'filtered', 'filt'] : [a.filtered, 'finished', 'done'],
    [countFailed(a), 'failed', 'failed'],
    [a.inFlight, 'in flight', 'live'],
  ];
  const text = (short: boolean) =>
    `${whole(a.launched)} ${short ? 'episodes' : 'episodes launched'} = ${terms.map(([n, long, brief]) => `${whole(n)} ${short ? brief : long}`).join(' + ')}`;
  const words = widthOf(text(false)) + 2 <= width ? text(false) : text(true);
  return off === 0
    ? [span('✓ ', 'green'), span(words)]
    : [span('✗ ', 'red'), span(`${words}; ${off} unaccounted for`, 'red')];
}
