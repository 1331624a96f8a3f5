/** Rollout watch: events for the console as of training, with episodes in the place of updates. */
import type { MetricsRecorded } from '../../actors/recorder/protocol.ts';
import type { Run } from '../../actors/tree.ts';
import type { RunConsole } from '../console/console.ts';
import type { Progress } from '../console/state.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import type { Trajectory } from '../core/trajectory.ts';
import { type GroupFacts, groupFacts, summarizeConsumed } from '../metrics/group-facts.ts';
import { earlierRows, type RowBefore, rolloutRow } from '../metrics/update-row.ts';

/** Milliseconds between looks at the run, and from row to row of metrics where episodes have finished. */
const LOOK_MS = 250;
const ROW_MS = 2000;

export interface RolloutCounts {
  /** Episodes finished by an earlier process. */
  readonly before: number;
  readonly total: number;
  readonly horizon: number;
}

/** Collects finished groups from the start of a run on; `watch` begins once it is there. */
export class RolloutWatch {
  readonly #labelOf: (index: number) => string;
  readonly #counts: RolloutCounts;
  readonly #clock: Clock;
  readonly #startedAt: number;
  #finished: GroupFacts[] = [];
  #earlier: RowBefore[] = [];
  #rowAt: number;
  #stopped = false;
  #cancel = () => {};
  #looking: Promise<void> = Promise.resolve();

  constructor(labelOf: (index: number) => string, counts: RolloutCounts, clock: Clock = systemClock) {
    this.#labelOf = labelOf;
    this.#counts = counts;
    this.#clock = clock;
    this.#startedAt = this.#rowAt = clock.now();
  }

  /** Records the episodes of a finished group. */
  recordFinished(trajectories: readonly Trajectory[]): void {
    const [first] = trajectories;
    if (first) this.#finished.push(groupFacts(trajectories, this.#labelOf(first.task.index)));
  }

  /** Watches the run: updates the display a few times a second, and writes a row of metrics every two seconds. */
  watch(run: Run, display: Pick<RunConsole, 'progress'>): void {
    const next = () => {
      this.#cancel = this.#clock.setTimer(LOOK_MS, () => {
        // Whatever ends the run is reported by the run.
        this.#looking = this.#look(run, display, false).catch(() => {});
        void this.#looking.then(() => {
          if (!this.#stopped) next();
        });
      });
    };
    next();
  }

  /** Stops with a last report, which includes what finished since the last row. The run is still up. */
  async stop(run: Run, display: Pick<RunConsole, 'progress'>): Promise<void> {
    this.cancel();
    await this.#looking;
    await this.#look(run, display, true).catch(() => {});
  }

  /** Cancels the watch of a run that broke: it has nothing to report, and a timer would keep the process alive. */
  cancel(): void {
    this.#stopped = true;
    this.#cancel();
  }

  async #look(run: Run, display: Pick<RunConsole, 'progress'>, last: boolean): Promise<void> {
    const [status, inference] = await Promise.all([run.status(), run.inference()]);
    const { before, total, horizon } = this.#counts;
    const now = this.#clock.now();
    const episodes = before + status.episodes;
    const progress: Progress = {
      ...status,
      horizon,
      episodes,
      elapsedMs: now - this.#startedAt,
      progress: Math.min(1, episodes / total),
      envSteps: inference.turns,
      tokens: inference.tokens,
      remote: inference.remote,
    };
    display.progress(progress);
    if ((!last && now - this.#rowAt < ROW_MS) || this.#finished.length === 0) return;
    this.#rowAt = now;
    const { actors, envs } = run.stats();
    const hostsReplaced = envs.hosts.reduce((sum, { replaced }) => sum + replaced, 0);
    const facts: RowBefore = { rollout: progress, actors: { actors, hostsReplaced } };
    this.#earlier = earlierRows(this.#earlier, progress.elapsedMs);
    const row = rolloutRow(summarizeConsumed(this.#finished), progress, facts.actors, this.#earlier[0]);
    this.#earlier.push(facts);
    this.#finished = [];
    const recorded: MetricsRecorded = { type: 'metrics', row };
    run.tell('/recorder', recorded);
  }
}
