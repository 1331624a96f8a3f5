/** Memory that trajectories hold, for bounds in bytes; an estimate from above for plain ones. */
import type { Trajectory } from '../core/trajectory.ts';

/** Bytes of an object with its fields. */
const OBJECT = 200;

/** Approximate bytes of trajectories in memory. */
export function trajectoryBytes(trajectories: readonly Trajectory[]): number {
  let bytes = 0;
  for (const { actionTable, turns, finalObservation } of trajectories) {
    bytes += OBJECT + 2 * finalObservation.length;
    for (const text of actionTable) bytes += 2 * text.length;
    for (const { observation, action, actions, decision, response } of turns) {
      bytes += OBJECT + 2 * (observation.length + action.length + (response?.text.length ?? 0)) + actions.byteLength;
      if (!decision) continue;
      bytes += OBJECT + decision.context.byteLength;
      if (decision.kind === 'tokens') bytes += decision.tokens.byteLength + decision.logprobs.byteLength;
      else bytes += decision.likeliest?.byteLength ?? 0;
    }
  }
  return bytes;
}
