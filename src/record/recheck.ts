/** Rechecks a recorded episode: plays it again in its env and finds where the two differ. */
import type { Env } from '../core/env.ts';
import { withHorizon } from '../core/horizon.ts';
import { type Trajectory, turnsUsed } from '../core/trajectory.ts';

/** Difference: the first place where the env answers otherwise than recorded. */
export interface Difference {
  /** Turn, 0 for the opening, else the number of the action. */
  readonly turn: number;
  readonly what: 'observation' | 'reward' | 'end' | 'success';
  readonly recorded: string;
  readonly now: string;
}

/**
 * Plays an episode again.
 * @returns the first difference, or `undefined` when the env gives the very same episode
 */
export async function recheck(env: Env, trajectory: Trajectory): Promise<Difference | undefined> {
  const { turns, finalObservation, task, horizon, end, success } = trajectory;
  const session = await env.open(task);
  try {
    const first = turns[0]?.observation ?? finalObservation;
    const opening = differs(0, 'observation', first, session.first.observation);
    if (opening) return opening;
    for (const [t, { action, reward }] of turns.entries()) {
      const step = withHorizon(await session.step(action), turnsUsed(turns.slice(0, t + 1)), horizon);
      const last = t === turns.length - 1;
      const expected = last ? finalObservation : turns[t + 1]!.observation;
      const now = step.kind === 'mid' ? 'goes on' : step.kind;
      const solved = step.kind === 'terminated' && step.success;
      const difference =
        differs(t + 1, 'observation', expected, step.observation) ??
        differs(t + 1, 'reward', String(reward), String(step.reward)) ??
        differs(t + 1, 'end', last ? end : 'goes on', now) ??
        (last ? differs(t + 1, 'success', String(success), String(solved)) : undefined);
      if (difference) return difference;
    }
    return undefined;
  } finally {
    await session.close();
  }
}

function differs(turn: number, what: Difference['what'], recorded: string, now: string): Difference | undefined {
  return recorded === now ? undefined : { turn, what, recorded, now };
}
