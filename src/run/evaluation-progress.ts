/** Progress of evaluations: finished episodes of each plan, told now and then. */
import type { EvaluationPlan } from '../../actors/scheduler/protocol.ts';
import type { Trajectory } from '../core/trajectory.ts';

/** Counts what `onEpisodes` of a run tells. */
export class EvaluationProgress {
  readonly #report: (text: () => string) => void;
  readonly #plans = new Map<string, { readonly total: number; episodes: number; solved: number }>();

  /** @param tell gets words for each finished group; it is up to it how often it shows them */
  constructor(tell: (text: () => string) => void) {
    this.#report = tell;
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

/** Tells at most once in `everyMs`; the first time after that long. */
export function throttle(everyMs: number, say: (text: string) => void): (text: () => string) => void {
  let at = performance.now();
  return (text) => {
    const now = performance.now();
    if (now - at < everyMs) return;
    at = now;
    say(text());
  };
}
