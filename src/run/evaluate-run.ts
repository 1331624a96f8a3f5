/** Evaluations of a started run: the plans of a configuration, and their results. */
import type { EvaluationPlan, EvaluationRecord } from '../../actors/scheduler/protocol.ts';
import type { PreparedWorld, Run } from '../../actors/tree.ts';
import type { RunConfig } from '../config/run-config.ts';
import type { Env } from '../core/env.ts';
import { LongplayError } from '../core/errors.ts';
import { cureOf } from '../core/failure.ts';
import { seedFrom } from '../core/rng.ts';
import type { Task } from '../core/task.ts';
import type { EvaluationSummary } from '../learning/evaluation/summary.ts';
import { listEvaluatedTasks } from '../learning/evaluation/tasks.ts';
import type { EvaluationProgress } from './evaluation-progress.ts';
import { summariseIn } from './read-worlds.ts';
import { samplingOf } from './rollout-plan.ts';

/** Kind of an evaluation: each action sampled, or the best one. */
export type EvaluationKind = 'sampled' | 'greedy';

/**
 * Evaluates a run's present weights by all evaluations of its configuration.
 * @param progress receives the plans before they are played; the run reports to it what was played
 * @param onNotice receives why one of several worlds has no evaluation: the others have theirs
 */
export async function evaluateRun(
  run: Run,
  kinds?: readonly EvaluationKind[],
  progress?: EvaluationProgress,
  onNotice: (text: string) => void = () => {},
): Promise<EvaluationSummary[]> {
  const summaries: EvaluationSummary[] = [];
  const plans = evaluationPlans(run.worlds, kinds);
  progress?.expect(plans);
  for (const [i, plan] of plans.entries()) {
    try {
      summaries.push(await evaluate(run, plan));
    } catch (thrown) {
      const othersFinish = run.worlds.length > 1 && (summaries.length > 0 || i < plans.length - 1);
      if (!(thrown instanceof EvaluationFailed) || !othersFinish) throw thrown;
      onNotice(thrown.message);
    }
  }
  return summaries;
}

async function evaluate(run: Run, plan: EvaluationPlan): Promise<EvaluationSummary> {
  const record = await run.evaluate(plan);
  requireFinished(record);
  return summariseIn(run.worlds, record);
}

/** Evaluation of which no episode finished. */
class EvaluationFailed extends LongplayError {}

/** @throws {LongplayError} ENV_BROKEN, or REMOTE_FAILED where a server is to blame, for an evaluation without an episode */
export function requireFinished({ plan, results, failure }: EvaluationRecord): void {
  if (results.every(({ successes }) => successes.length === 0)) {
    const { cause, message } = failure ?? { cause: 'threw', message: 'unknown' };
    const code = cause === 'unreachable' || cause === 'policy' ? 'REMOTE_FAILED' : 'ENV_BROKEN';
    const what = `evaluation ${plan.name}: every episode failed (the last: ${cause}: ${message})`;
    throw new EvaluationFailed(code, `${what}; ${cureOf(cause, plan.tasks[0]?.env ?? '')}`);
  }
}

/**
 * Plans of a run's evaluations: each horizon of each world, sampled and perhaps greedy. Of several worlds each has its own, and its
 * name before theirs.
 */
export function evaluationPlans(
  worlds: readonly Pick<PreparedWorld, 'env' | 'config'>[],
  kinds?: readonly EvaluationKind[],
): EvaluationPlan[] {
  return worlds.flatMap(({ env, config }) => {
    const { horizons, greedy } = config.evaluation;
    const played = kinds ?? (greedy ? ['sampled', 'greedy'] : ['sampled']);
    const plans = horizons.flatMap((horizon) => played.map((kind) => evaluationPlan(env, config, horizon, kind)));
    return worlds.length === 1 ? plans : plans.map((plan) => ({ ...plan, name: `${env.id} ${plan.name}` }));
  });
}

/** Plan of one evaluation: every task of the evaluated split or set, under the seed that all evaluations share. */
export function evaluationPlan(env: Env, config: RunConfig, horizon: number, kind: EvaluationKind): EvaluationPlan {
  const { episodesPerTask } = config.evaluation;
  const sampling = samplingOf(config, kind === 'greedy' ? 0 : undefined);
  const tasks: Task[] = listEvaluatedTasks(env, config.evaluation).map((index) => ({
    env: env.id,
    index,
    seed: env.tasks.evalSeed,
  }));
  return {
    name: `h${horizon} ${kind}`,
    tasks,
    episodes: kind === 'greedy' ? 1 : episodesPerTask,
    horizon,
    ...sampling,
    seed: seedFrom(config.seed, 'evaluation', horizon, kind),
  };
}
