/** Stop conditions: pure decisions over the progress of training. */
import { largestOf } from '../../core/extremes.ts';

/** Stop condition: whichever comes first; without any of them training goes on until it is halted. */
export interface StopCondition {
  readonly updates?: number;
  readonly minutes?: number;
  readonly envSteps?: number;
}

/** Progress of training so far. */
export interface TrainedSoFar {
  /** Policy version: updates made. */
  readonly updates: number;
  readonly envSteps: number;
  /** Milliseconds of training, over all resumes. */
  readonly elapsedMs: number;
}

/** Condition that is met, or undefined. */
export function stopReached(
  { updates, minutes, envSteps }: StopCondition,
  so: TrainedSoFar,
): keyof StopCondition | undefined {
  if (updates !== undefined && so.updates >= updates) return 'updates';
  if (envSteps !== undefined && so.envSteps >= envSteps) return 'envSteps';
  if (minutes !== undefined && so.elapsedMs >= minutes * 60_000) return 'minutes';
  return undefined;
}

/** Share of the run that is done, in [0, 1]: of the condition that is nearest. */
export function progressOf({ updates, minutes, envSteps }: StopCondition, so: TrainedSoFar): number {
  const shares = [
    updates === undefined ? 0 : so.updates / updates,
    envSteps === undefined ? 0 : so.envSteps / envSteps,
    minutes === undefined ? 0 : so.elapsedMs / (minutes * 60_000),
  ];
  return Math.min(1, largestOf(shares));
}
