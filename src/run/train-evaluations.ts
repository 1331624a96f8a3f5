/** Evaluations of a training run: those made while it goes on, those at its end, and the random policy beside them. */

import { join } from 'node:path';
import type { Run } from '../../actors/tree.ts';
import type { RunConfig } from '../config/run-config.ts';
import { hasWorlds } from '../config/worlds.ts';
import { LongplayError, messageOf } from '../core/errors.ts';
import { append } from '../core/extremes.ts';
import type { EvaluationSummary } from '../learning/evaluation/summary.ts';
import { appendWhole } from '../storage/atomic-file.ts';
import { evaluateRun } from './evaluate-run.ts';
import { EvaluationProgress, throttle } from './evaluation-progress.ts';
import { runUrl } from './find-world.ts';
import { startRun } from './start-run.ts';

/** Milliseconds between two notices of an evaluation's progress. */
export const PROGRESS_MS = 10_000;

/** Run that is evaluated. */
interface EvaluatedRun {
  readonly config: RunConfig;
  /** Folder of the run. */
  readonly dir: string;
  readonly mode: 'async' | 'serial';
  readonly onNotice: (message: string) => void;
  /** Ends the evaluations early. */
  readonly interrupt: AbortSignal;
}

/**
 * Evaluates what was trained, and the random policy where the configuration asks for it.
 * @param run that trained, whose actors are still up
 * @returns no evaluations where it is interrupted
 */
export function evaluateTrained(
  run: Run,
  request: EvaluatedRun,
  progress: EvaluationProgress,
): Promise<EvaluationSummary[]> {
  const { config, interrupt, onNotice } = request;
  return evaluateUnlessInterrupted(interrupt, async () => {
    const all = await evaluateRun(run, undefined, progress, onNotice);
    if (!config.evaluation.randomBaseline || all.length === 0) return all;
    try {
      append(all, await evaluateBaseline(request));
    } catch (thrown) {
      // One of several worlds may be down: what was trained has been evaluated in the others.
      const isDown = thrown instanceof LongplayError && thrown.code === 'REMOTE_FAILED';
      if (!hasWorlds(config) || !isDown) throw thrown;
      onNotice(`random policy: ${thrown.message}; it is not evaluated`);
    }
    return all;
  });
}

/** Evaluates what a warm start made, as update 0: what reinforcement adds is measured from there. */
export async function evaluateStart(run: Run, request: EvaluatedRun, progress: EvaluationProgress): Promise<void> {
  const { interrupt } = request;
  const found = await evaluateUnlessInterrupted(interrupt, () => evaluateRun(run, undefined, progress));
  for (const summary of found) recordEvaluation(request, 0, summary);
}

/** Evaluates, or gives no evaluations once the run is interrupted: those under way end with the run. */
async function evaluateUnlessInterrupted(
  interrupt: AbortSignal,
  evaluate: () => Promise<EvaluationSummary[]>,
): Promise<EvaluationSummary[]> {
  if (interrupt.aborted) return [];
  const evaluations = evaluate();
  const cut = new Promise<EvaluationSummary[]>((resolve) => {
    interrupt.addEventListener('abort', () => resolve([]), { once: true });
  });
  evaluations.catch(() => {}); // cut off, it fails when the run stops
  return Promise.race([evaluations, cut]);
}

/** Records an evaluation made while training went on: its episodes may span several versions from `version` on. */
export function recordEvaluation(
  { dir, onNotice }: Pick<EvaluatedRun, 'dir' | 'onNotice'>,
  version: number,
  summary: EvaluationSummary,
): void {
  const { name, all } = summary;
  onNotice(
    `update ${version}, ${name}: success ${(100 * all.success.value).toFixed(1)} % of ${all.episodes} episodes (${all.tasks} tasks)`,
  );
  try {
    appendWhole(
      join(dir, 'evaluations.jsonl'),
      `${JSON.stringify({ format: 1, update: version, evaluation: summary })}\n`,
    );
  } catch (thrown) {
    onNotice(`cannot write evaluations.jsonl: ${messageOf(thrown)}; the run goes on without it`);
  }
}

/** Evaluates the random baseline: the same evaluations for a uniform random policy over the same lists. */
async function evaluateBaseline(request: EvaluatedRun): Promise<EvaluationSummary[]> {
  const config: RunConfig = {
    ...request.config,
    policy: { ...request.config.policy, kind: 'random' },
    trace: { ...request.config.trace, everyGroups: 0 },
  };
  const progress = new EvaluationProgress(throttle(PROGRESS_MS, (text) => request.onNotice(`random policy: ${text}`)));
  const run = await startRun({
    config,
    dir: request.dir,
    mode: request.mode,
    envModule: runUrl(config),
    learn: false,
    onNotice: request.onNotice,
    onEpisodes: (trajectories, purpose) => progress.recordFinished(trajectories, purpose),
  });
  try {
    const summaries = await evaluateRun(run, ['sampled'], progress, request.onNotice);
    return summaries.map((summary) => ({ ...summary, name: summary.name.replace(/sampled$/, 'random') }));
  } finally {
    await run.stop();
  }
}
