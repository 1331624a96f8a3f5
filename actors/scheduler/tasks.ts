/** Tasks of training groups: drawn by the sampler, without those that kept failing. */
import { AGENT } from '../../src/core/agent-call.ts';
import { LongplayError } from '../../src/core/errors.ts';
import { cureOf, type FailureCause } from '../../src/core/failure.ts';
import type { Task } from '../../src/core/task.ts';
import type { TaskSampler, TaskSamplerState } from '../../src/learning/schedule/task-sampler.ts';

/** Redraws before it gives up finding a task that is not quarantined. */
const MAX_REDRAWS = 1000;

export class TrainingTasks {
  readonly #sampler: TaskSampler;
  readonly #quarantined: Set<number>;
  /** Cause of the last failure that quarantined a task. */
  #cause: FailureCause = 'threw';

  /** Resumes from `saved`. @throws {LongplayError} BAD_CHECKPOINT when it belongs to another seed, env or task list */
  constructor(
    sampler: TaskSampler,
    saved: { readonly sampler: TaskSamplerState; readonly quarantined: readonly number[] } | undefined,
  ) {
    this.#sampler = sampler;
    this.#quarantined = new Set(saved?.quarantined);
    if (saved) sampler.restore(saved.sampler);
  }

  /** Draws the next task. @throws {LongplayError} ENV_BROKEN when none is found that is not quarantined */
  next(): Task {
    let env = '';
    for (let i = 0; i < MAX_REDRAWS; i++) {
      const task = this.#sampler.next();
      env = task.env;
      if (!this.#quarantined.has(task.index)) return task;
    }
    throw new LongplayError(
      'ENV_BROKEN',
      `every task drawn is quarantined (${this.#quarantined.size} tasks failed too often); the ${env === AGENT ? 'agent' : 'environment'} is broken: ${cureOf(this.#cause, env)}`,
    );
  }

  /** Observes the share of a group's episodes that solved the task, in [0, 1]. */
  observe({ index }: Task, success: number): void {
    this.#sampler.observe(index, success);
  }

  /**
   * Quarantines a task that failed too often.
   * @returns false for one that already was, and for one that its server did not answer, which is no fault of the task
   */
  quarantine({ index }: Task, cause: FailureCause): boolean {
    if (cause === 'unreachable' || this.#quarantined.has(index)) return false;
    this.#quarantined.add(index);
    this.#cause = cause;
    return true;
  }

  /** State for a checkpoint; plain JSON. */
  get saved() {
    return { sampler: this.#sampler.state, quarantined: [...this.#quarantined] };
  }
}
