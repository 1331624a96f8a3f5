/**
 * Console of a run: one screen on a terminal, one `key=value` line per interval where there is none, one JSON object
 * per line where a program reads.
 */
import { availableParallelism } from 'node:os';
import type { Observable } from 'rxjs';
import type { ClusterFacts } from '../cluster/cluster-monitor.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import type { MetricsRow } from '../metrics/metric-table.ts';
import { warnOfAnswers } from './diagnose.ts';
import { frame } from './frame.ts';
import { Painter } from './painter.ts';
import { plainLine } from './plain.ts';
import { type ActorLine, type ConsoleConfig, type Progress, reduce, startState } from './state.ts';
import { divertForeign, type TerminalWriter } from './terminal.ts';

export interface ConsoleOptions {
  readonly out: TerminalWriter;
  /** Stream for notices when `out` is not a terminal. */
  readonly notices: TerminalWriter;
  readonly json: boolean;
  readonly config: ConsoleConfig;
  /** Name of the run. */
  readonly name: string;
  /** Colours. Default on, unless `NO_COLOR` is set. */
  readonly color?: boolean;
  readonly clock?: Clock;
  readonly cores?: number;
}

export interface RunConsole {
  progress(progress: Progress): void;
  /** Watches the actors: `actors` is called before each repaint. */
  watch(actors: () => readonly ActorLine[]): void;
  /** Watches a cluster: `facts` is called before each repaint. */
  watchCluster(facts: () => ClusterFacts | undefined): void;
  /** Shows a notice for a person, one line. */
  notice(text: string): void;
  /** Closes the display and restores the terminal; notices shown on it are kept. Closing twice does no harm. */
  close(): void;
}

/** Milliseconds between repaints, and between plain lines. */
const REPAINT_MS = 250;
const LINE_MS = 5000;
/** Notices of a screen that are printed again when it closes, the newest. */
const MAX_KEPT = 200;

export function openConsole(metrics$: Observable<MetricsRow>, options: ConsoleOptions): RunConsole {
  const { out, notices, json, config, name, clock = systemClock } = options;
  const cores = options.cores ?? availableParallelism();
  const color = options.color ?? !process.env.NO_COLOR;
  const live = out.isTTY && !json && process.env.TERM !== 'dumb';
  const painter = new Painter(out, color);
  let state = startState(config, name);
  let actors: (() => readonly ActorLine[]) | undefined;
  let cluster: (() => ClusterFacts | undefined) | undefined;
  let closed = false;
  let shown: MetricsRow | undefined;
  let kept: string[] = [];
  let warned = false;

  const tick = () => {
    if (closed) return;
    if (live) {
      if (actors) state = reduce(state, { type: 'actors', actors: actors(), at: clock.now() });
      const facts = cluster?.();
      if (facts) state = reduce(state, { type: 'cluster', facts });
      painter.paint(frame(state, { width: out.columns, height: out.rows, cores }));
    } else writeLine();
    cancel = clock.setTimer(live ? REPAINT_MS : LINE_MS, tick);
  };
  /** Writes the newest row, unless it was written already. */
  const writeLine = () => {
    const row = state.rows.at(-1);
    if (json || !row || row === shown) return;
    shown = row;
    out.line(plainLine(row));
  };
  /** Prints once what no line of figures shows; other warnings come and go, and a screen has them. */
  const warn = () => {
    const text = warnOfAnswers(state.rows);
    if (text === undefined) return;
    warned = true;
    notices.line(text);
  };
  const subscription = metrics$.subscribe((row) => {
    const first = state.rows.length === 0;
    state = reduce(state, { type: 'row', row });
    if (json) out.json(row);
    else if (!live && first) writeLine();
    if (!live && !warned) warn();
  });
  let cancel = clock.setTimer(live ? 0 : LINE_MS, tick);

  const notice = (text: string) => {
    if (live && !closed) {
      state = reduce(state, { type: 'notice', text });
      kept = [...kept, text].slice(-MAX_KEPT);
    } else notices.line(text);
  };
  const undivert = live ? divertForeign(notice) : () => {};

  return {
    progress(progress) {
      if (live) state = reduce(state, { type: 'progress', progress });
    },
    watch(source) {
      actors = source;
    },
    watchCluster(source) {
      cluster = source;
    },
    notice,
    close() {
      if (closed) return;
      closed = true;
      undivert();
      cancel();
      subscription.unsubscribe();
      if (!live) {
        writeLine();
        return;
      }
      painter.close();
      for (const text of kept) notices.line(text);
      const last = state.rows.at(-1);
      if (last) out.line(plainLine(last));
    },
  };
}
