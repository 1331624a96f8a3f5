/**
 * Worlds of a run, as its scheduler knows them: what is drawn of each next, its horizon, and whether it answers. A run of one world
 * has a list of one, and no draw between worlds.
 */
import { largestOf } from '../../src/core/extremes.ts';
import type { FailureCause } from '../../src/core/failure.ts';
import { seedFrom } from '../../src/core/rng.ts';
import type { Task } from '../../src/core/task.ts';
import {
  type HorizonState,
  horizon,
  next as nextHorizon,
  type UpdateStats,
} from '../../src/learning/schedule/horizon-schedule.ts';
import { TaskSampler, type TaskSampling } from '../../src/learning/schedule/task-sampler.ts';
import { type DrawnWorld, type Mixture, WorldSampler } from '../../src/learning/schedule/world-sampler.ts';
import type { WorldStatus } from '../../src/metrics/run-status.ts';
import type { SchedulerState } from './protocol.ts';
import { TrainingTasks } from './tasks.ts';

/** World that is played. */
export interface ScheduledWorld extends DrawnWorld {
  /** Indices to draw training tasks from. */
  readonly tasks: readonly number[];
  readonly sampling: TaskSampling;
  /** Sub-task of a task index. */
  readonly labelOf: (index: number) => string;
  /** Horizon schedule, as the run begins or goes on. */
  readonly horizon: HorizonState;
}

/** Worlds of a run and how they are drawn. */
export interface ScheduledWorlds {
  readonly seed: number;
  readonly worlds: readonly ScheduledWorld[];
  readonly mixture: Mixture;
}

/** State of the worlds that a checkpoint keeps: of the first where a run of one world has its own, of the others beside. */
export type SavedWorlds = Pick<SchedulerState, 'sampler' | 'quarantined' | 'mixture'>;

export class TrainingWorlds {
  readonly #worlds: readonly ScheduledWorld[];
  readonly #tasks: readonly TrainingTasks[];
  readonly #sampler: WorldSampler;
  readonly #horizons: HorizonState[];
  readonly #indices: ReadonlyMap<string, number>;

  /**
   * Resumes from `saved`; the horizons are those of `worlds`.
   * @throws {LongplayError} BAD_CHECKPOINT when it belongs to another seed, world or list of tasks
   */
  constructor({ seed, worlds, mixture }: ScheduledWorlds, saved: SavedWorlds | undefined) {
    this.#worlds = worlds;
    this.#tasks = worlds.map(({ name, tasks, sampling, labelOf }, i) => {
      const own = worlds.length === 1 ? seed : seedFrom(seed, 'world', name);
      const kept = i === 0 ? saved : saved?.mixture?.others[i - 1];
      return new TrainingTasks(new TaskSampler(name, tasks, own, sampling, labelOf), kept);
    });
    this.#sampler = new WorldSampler(worlds, mixture);
    if (saved?.mixture) this.#sampler.restore(saved.mixture.draw);
    this.#horizons = worlds.map((world) => world.horizon);
    this.#indices = new Map(worlds.map(({ name }, i) => [name, i]));
  }

  /** Draws the next task and its horizon. @throws {LongplayError} ENV_BROKEN where its world has none left */
  next(version: number): { readonly task: Task; readonly horizon: number } {
    const world = this.#hasSeveral ? this.#sampler.next(version) : 0;
    return { task: this.#tasks[world]!.next(), horizon: horizon(this.#horizons[world]!) };
  }

  /**
   * Observes the share of a group's episodes that solved its task, in [0, 1].
   * @returns true where its world answers again
   */
  observe(task: Task, success: number): boolean {
    const world = this.#indexOf(task);
    this.#tasks[world]!.observe(task, success);
    if (!this.#hasSeveral) return false;
    const wasDown = !this.#sampler.isUp(world);
    this.#sampler.observe(world, success);
    return wasDown;
  }

  /**
   * Records a group that was given up. One of several worlds that did not answer is drawn no more, but for probes.
   * @returns whether its task is quarantined, and whether its world was up until now and is not
   */
  giveUp(task: Task, cause: FailureCause): { readonly quarantined: boolean; readonly down: boolean } {
    const world = this.#indexOf(task);
    const down = this.#hasSeveral && cause === 'unreachable' && this.#sampler.rest(world);
    return { quarantined: this.#tasks[world]!.quarantine(task, cause), down };
  }

  /** Advances the horizons by an update. One of several worlds advances by the updates that consumed episodes of it. */
  advance({ byHorizon }: UpdateStats): void {
    for (const [i, { name }] of this.#worlds.entries()) {
      const own = this.#hasSeveral ? byHorizon.filter(({ world }) => world === name) : byHorizon;
      if (this.#hasSeveral && own.length === 0) continue;
      this.#horizons[i] = nextHorizon(this.#horizons[i]!, { byHorizon: own });
    }
  }

  /** Horizon of the episodes that start now, in turns; of several worlds the largest. */
  get horizon(): number {
    return largestOf(this.#horizons.map(horizon));
  }

  /** Horizon schedule of the first world, which stands beside the scheduler's state in a checkpoint. */
  get firstHorizon(): HorizonState {
    return this.#horizons[0]!;
  }

  /** Status of several worlds; undefined where there is one. */
  status(version: number): readonly WorldStatus[] | undefined {
    if (!this.#hasSeveral) return undefined;
    const shares = this.#sampler.shares(version);
    return this.#worlds.map(({ name }, i) => ({
      name,
      horizon: horizon(this.#horizons[i]!),
      share: shares[i]!,
      isUp: this.#sampler.isUp(i),
    }));
  }

  /** State for a checkpoint; plain JSON. */
  get saved(): SavedWorlds {
    const [first, ...others] = this.#tasks.map(({ saved }) => saved);
    if (!this.#hasSeveral) return first!;
    return {
      ...first!,
      mixture: {
        draw: this.#sampler.state,
        others: others.map((one, i) => ({ ...one, horizon: this.#horizons[i + 1]! })),
      },
    };
  }

  get #hasSeveral(): boolean {
    return this.#worlds.length > 1;
  }

  #indexOf({ env }: Task): number {
    return this.#hasSeveral ? this.#indices.get(env)! : 0;
  }
}
