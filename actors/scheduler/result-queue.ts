/** Deliveries: finished groups with the learner, not yet consumed by an update. */
import type { Task } from '../../src/core/task.ts';
import type { Group } from '../../src/core/trajectory.ts';
import { type GroupFacts, groupFacts } from '../../src/metrics/group-facts.ts';
import { reviveTrajectory, toJson } from '../../src/storage/trace.ts';

interface Delivered {
  readonly group: Group;
  /** Share of the run that was done when it finished. */
  readonly progress: number;
  readonly facts: GroupFacts;
  readonly informative: boolean;
}

/** Deliveries: keeps finished groups and their facts until an update has consumed them. */
export class ResultQueue {
  readonly #labelOf: (task: Task) => string;
  readonly #informative: (group: Group) => boolean;
  readonly #groups = new Map<number, Delivered>();

  /** @param informative whether the learner will train on a group; it asks the same */
  constructor(labelOf: (task: Task) => string, informative: (group: Group) => boolean) {
    this.#labelOf = labelOf;
    this.#informative = informative;
  }

  /** Number of groups. */
  get size(): number {
    return this.#groups.size;
  }

  get uninformative(): number {
    let count = 0;
    for (const { informative } of this.#groups.values()) if (!informative) count++;
    return count;
  }

  get episodes(): number {
    let count = 0;
    for (const { group } of this.#groups.values()) count += group.trajectories.length;
    return count;
  }

  /** Keeps a finished group until an update has consumed it. */
  add(group: Group, progress: number): void {
    const facts = groupFacts(group.trajectories, this.#labelOf(group.task));
    this.#groups.set(group.group, { group, progress, facts, informative: this.#informative(group) });
  }

  /** All groups, in the order in which they finished. */
  list(): readonly { readonly group: Group; readonly progress: number }[] {
    return [...this.#groups.values()];
  }

  /** Facts for the metrics of the groups that an update consumed. */
  factsOf(groups: readonly number[]): readonly GroupFacts[] {
    return groups.flatMap((group) => this.#groups.get(group)?.facts ?? []);
  }

  /** Collects a group that was consumed. @returns its episodes; 0 for one that is not here */
  collect(group: number): number {
    const episodes = this.#groups.get(group)?.group.trajectories.length ?? 0;
    this.#groups.delete(group);
    return episodes;
  }

  /** State for a checkpoint; plain data. */
  snapshot(): readonly { readonly group: Group; readonly progress: number }[] {
    return this.list().map(({ group, progress }) => toJson({ group, progress }));
  }
}

/** Group of a checkpoint, revived with its typed arrays. */
export function reviveGroup(group: Group): Group {
  return { ...group, trajectories: group.trajectories.map(reviveTrajectory) };
}
