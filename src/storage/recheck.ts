/** Rechecks a recorded episode: plays it again in its env and finds where the two differ. */
import type { Env, Session } from '../core/env.ts';
import { messageOf } from '../core/errors.ts';
import { withHorizon } from '../core/horizon.ts';
import type { Trajectory } from '../core/trajectory.ts';

/** Difference: the first place where the env answers otherwise than recorded. */
export interface Difference {
  /** Turn, 0 for the opening, else the number of the action. */
  readonly turn: number;
  readonly what: 'observation' | 'actions' | 'reward' | 'end' | 'success' | 'answer';
  readonly recorded: string;
  readonly now: string;
}

/**
 * Plays an episode again.
 * @param listed true to compare the actions that were listed, too
 * @returns the first difference, or `undefined` when the env gives the very same episode; an env that throws differs
 */
export async function recheck(env: Env, trajectory: Trajectory, listed = false): Promise<Difference | undefined> {
  const { task, horizon } = trajectory;
  let turn = 0;
  try {
    const session = await env.open(task, { horizon });
    try {
      const onTurn = (at: number) => {
        turn = at;
      };
      return await compareEpisode(session, trajectory, listed, onTurn);
    } finally {
      await session.close();
    }
  } catch (thrown) {
    return differs(turn, 'answer', 'an answer', `the env threw: ${messageOf(thrown)}`);
  }
}

/** @param onTurn called before each action with its number */
async function compareEpisode(
  session: Session,
  { turns, finalObservation, horizon, end, success, actionTable }: Trajectory,
  listed: boolean,
  onTurn: (turn: number) => void,
): Promise<Difference | undefined> {
  const first = turns[0]?.observation ?? finalObservation;
  const opening = differs(0, 'observation', first, session.first.observation);
  if (opening) return opening;
  let used = 0;
  for (const [t, { action, actions, reward, partial }] of turns.entries()) {
    onTurn(t + 1);
    const offered = Array.from(actions, (index) => actionTable[index]!);
    const strayed = listed && differs(t + 1, 'actions', lines(offered), lines(session.actions()));
    if (strayed) return strayed;
    if (!partial) used++;
    const step = withHorizon(await session.step(action), used, horizon);
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
}

function lines(texts: readonly string[]): string {
  return texts.join('\n');
}

function differs(turn: number, what: Difference['what'], recorded: string, now: string): Difference | undefined {
  return recorded === now ? undefined : { turn, what, recorded, now };
}
