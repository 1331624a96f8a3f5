/** Fold of a journal into the state of a checkpoint: the state in which the run was when its process ended. Pure. */

import { LongplayError } from '../../src/core/errors.ts';
import { largestOf } from '../../src/core/extremes.ts';
import type { Group } from '../../src/core/trajectory.ts';
import type { JournalEntry, Launched, PlayedEntry } from '../../src/storage/journal.ts';
import { LaunchedGroups } from './groups.ts';
import { trainingTicket } from './launcher.ts';
import type { SchedulerState } from './protocol.ts';
import { ResultQueue } from './result-queue.ts';
import type { SchedulerInit } from './scheduler-actor.ts';
import { TrainingWorlds } from './worlds.ts';

/** Facts of a run that the fold needs. */
export type FoldInit = Pick<SchedulerInit, 'worlds' | 'mixture' | 'seed' | 'rollout'>;

/** Task drawn for a ticket in the journal is another than the one it names. */
function createTaskMismatch(group: number): LongplayError {
  return new LongplayError(
    'BAD_CHECKPOINT',
    `journal: group ${group} has another task than the sampler draws for it; it belongs to another configuration`,
  );
}

/**
 * Folds the entries after a checkpoint into its state, by the rules that the scheduler itself keeps: a result counts only
 * if its group is outstanding. Groups that came back are handed to the learner again, in the same order; of groups still
 * outstanding nothing is kept but what the checkpoint holds. Updates are not applied: the learner makes them again.
 *
 * @param version of the checkpoint
 * @param position number of the last entry
 * @throws {LongplayError} BAD_CHECKPOINT for entries of another configuration
 */
export function replayJournal(
  init: FoldInit,
  version: number,
  state: SchedulerState,
  entries: readonly JournalEntry[],
  position: number,
): SchedulerState {
  const fold = new JournalReplay(init, version, state);
  for (const entry of entries) {
    if (entry.type === 'launched') fold.applyLaunched(entry);
    else if (entry.type === 'played') fold.applyPlayed(entry);
  }
  return { ...fold.state, journal: position };
}

class JournalReplay {
  readonly #groups: LaunchedGroups;
  readonly #worlds: TrainingWorlds;
  #state: SchedulerState;

  constructor(init: FoldInit, version: number, state: SchedulerState) {
    // The queue's labels and signals are for metrics and admission: the scheduler that takes the state over asks for its own.
    this.#groups = new LaunchedGroups(
      new ResultQueue(
        () => '',
        () => true,
      ),
      state.accounting,
    );
    this.#worlds = new TrainingWorlds(init, state);
    this.#state = state;
    this.#groups.restoring();
    for (const { group, progress } of state.delivered) this.#groups.deliveries.add(group, progress);
    for (const { group, task, horizon } of state.running) {
      this.#groups.restore(trainingTicket(init, group, task, horizon, version));
    }
    for (const ticket of state.tickets ?? []) this.#groups.restore(ticket);
  }

  applyLaunched({ tickets }: Launched): void {
    for (const ticket of tickets) {
      const { group, task, purpose } = ticket;
      if (group < this.#state.nextGroup) continue; // the checkpoint has it
      if (purpose.name === 'train') {
        const { task: drawn } = this.#worlds.next(ticket.version);
        const isSame = drawn.env === task.env && drawn.index === task.index && drawn.seed === task.seed;
        if (!isSame) throw createTaskMismatch(group);
      }
      this.#groups.launch(ticket);
      this.#state = { ...this.#state, nextGroup: group + 1 };
    }
  }

  applyPlayed({ groups, gaveUp, failed, elapsedMs }: PlayedEntry): void {
    for (const { group, failure } of failed) this.#groups.recordFailed(group, failure.cause);
    for (const { group, trajectories, envSteps, progress } of groups) {
      const ticket = this.#groups.recordFinished(group, trajectories.length);
      if (!ticket) continue;
      const { task, horizon, size, purpose } = ticket;
      const { episodes, nextEpisode } = this.#state;
      const next = largestOf(
        trajectories.map(({ episode }) => episode + 1),
        nextEpisode,
      );
      this.#state = { ...this.#state, envSteps, episodes: episodes + size, nextEpisode: next };
      if (purpose.name !== 'train') {
        this.#groups.filter(size);
        continue;
      }
      this.#worlds.observe(task, trajectories.filter(({ success }) => success).length / size);
      const finished: Group = { group, task, horizon, trajectories };
      this.#groups.deliveries.add(finished, progress);
    }
    for (const { group, failure } of gaveUp) {
      const ticket = this.#groups.recordGivenUp(group, failure.cause);
      if (ticket?.purpose.name === 'train') this.#worlds.giveUp(ticket.task, failure.cause);
    }
    this.#state = { ...this.#state, elapsedMs };
  }

  get state(): SchedulerState {
    const { tickets: _, ...before } = this.#state; // those that are left are named anew, or there are none
    return { ...before, ...this.#worlds.saved, ...this.#groups.snapshot(before.running, () => true) };
  }
}
