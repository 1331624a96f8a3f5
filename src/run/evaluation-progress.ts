/** Progress of evaluations: finished episodes of each plan, reported now and then. */
import type { EvaluationPlan } from '../../actors/scheduler/protocol.ts';
import type { Trajectory } from '../core/trajectory.ts';

/** Counts the episodes that `onEpisodes` of a run reports. */
export class EvaluationProgress {
  readonly #report: (text: () => string) => void;
  readonly #plans = new Map<string, { readonly total: number; episodes: number; solved: number }>();

  /** @param report receives a text for each finished group, and decides how often to show one */
  constructor(report: (text: () => string) => void) {
    this.#report = report;
  }

  /** Takes the plans that are to be played. */
  expect(plans: readonly EvaluationPlan[]): void {
    for (const { name, tasks, episodes } of plans) {
      this.#plans.set(name, { total: tasks.length * episodes, episodes: 0, solved: 0 });
    }
  }

  /** Takes the episodes of a finished group. @param purpose the plan's name; others are left out */
  recordFinished(trajectories: readonly Trajectory[], purpose: string): void {
    const plan = this.#plans.get(purpose);
    if (!plan) return;
    plan.episodes += trajectories.length;
    plan.solved += trajectories.filter(({ success }) => success).length;
    const { episodes, total, solved } = plan;
    const success = Math.round((100 * solved) / Math.max(1, episodes));
    this.#report(() => `evaluating ${purpose}: ${episodes} of ${total} episodes, success ${success} %`);
  }
}

/** Limits notices to one in `everyMs`; the first comes after that long. */
export function throttle(everyMs: number, notify: (text: string) => void): (text: () => string) => void {
  let at = performance.now();
  return (text) => {
    const now = performance.now();
    if (now - at < everyMs) return;
    at = now;
    notify(text());
  };
}
