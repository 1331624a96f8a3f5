/** Launcher of groups: evaluations first, then training groups as admission allows. */
import { maxGroups } from '../../src/algo/dynamic-sampling.ts';
import { seedFrom } from '../../src/core/rng.ts';
import type { Task } from '../../src/core/task.ts';
import { groupsToStart } from '../../src/learning/schedule/admission.ts';
import type { GroupTicket } from '../rollout/protocol.ts';
import type { Evaluations } from './evaluations.ts';
import type { LaunchedGroups } from './groups.ts';
import { mayEvaluate, mayLaunch, type Phase } from './phase.ts';
import type { SchedulerInit } from './scheduler-actor.ts';
import { TrainingWorlds } from './worlds.ts';

export class Launcher {
  readonly worlds: TrainingWorlds;
  readonly #init: SchedulerInit;
  readonly #groups: LaunchedGroups;
  readonly #evaluations: Evaluations;
  #nextGroup: number;

  constructor(init: SchedulerInit, groups: LaunchedGroups, evaluations: Evaluations) {
    const { start, paths } = init;
    // A run that only plays draws no task: what was saved may be of another seed.
    const saved = paths.learner === undefined ? undefined : start.state;
    this.worlds = new TrainingWorlds(init, saved);
    this.#init = init;
    this.#groups = groups;
    this.#evaluations = evaluations;
    this.#nextGroup = start.state?.nextGroup ?? start.group;
  }

  /** State for a checkpoint; plain JSON. */
  get saved() {
    return { ...this.worlds.saved, nextGroup: this.#nextGroup };
  }

  /** Launches what may start in a phase. @returns its tickets, for the rollouts */
  launch(phase: Phase, version: number): readonly GroupTicket[] {
    const { concurrentGroups } = this.#init.rollout;
    const tickets: GroupTicket[] = [];
    const launch = (ticket: GroupTicket) => {
      this.#groups.launch(ticket);
      tickets.push(ticket);
    };
    // Training groups that rest in a pause take no evaluation's place: it may be the one that the pause waits for.
    const resting = phase.name !== 'idle' && phase.name !== 'running';
    const countTaken = () => this.#groups.counts.all - (resting ? this.#groups.counts.training : 0);
    while (mayEvaluate(phase) && countTaken() < concurrentGroups) {
      const next = this.#evaluations.next();
      if (!next) break;
      const { plan, task, purpose } = next;
      const { horizon, episodes: size, beginning } = plan;
      const ticket = { group: this.#nextGroup++, task, horizon, size, purpose, version };
      launch(beginning ? { ...ticket, beginning } : ticket);
    }
    for (let start = mayLaunch(phase) ? this.#countAdmitted(version) : 0; start > 0; start--) {
      const { task, horizon } = this.worlds.next(version);
      launch(trainingTicket(this.#init, this.#nextGroup++, task, horizon, version));
    }
    return tickets;
  }

  /** Number of training groups that may start now. */
  #countAdmitted(version: number): number {
    const { groupsPerUpdate, maxLag } = this.#init.learner;
    const { deliveries, counts } = this.#groups;
    return groupsToStart({
      maxLag,
      version,
      groupsPerUpdate,
      accepted: version * groupsPerUpdate + deliveries.size,
      running: counts.training,
      uninformative: deliveries.uninformative,
      maxPerUpdate: maxGroups(this.#init.learner),
      maxRunning: this.#init.rollout.concurrentGroups,
    });
  }
}

/** Ticket of a group to train on. */
export function trainingTicket(
  { seed, rollout }: Pick<SchedulerInit, 'seed' | 'rollout'>,
  group: number,
  task: Task,
  horizon: number,
  version: number,
): GroupTicket {
  const purpose = { name: 'train', temperature: 1, seed: seedFrom(seed, 'group', group) };
  return { group, task, horizon, size: rollout.groupSize, purpose, version };
}
