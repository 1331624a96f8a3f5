/** Made-up trajectories for tests of traces, metrics and the viewer. */
import type { Decision, Trajectory } from '../../src/core/trajectory.ts';

export interface TrajectorySpec {
  readonly episode?: number;
  readonly group?: number;
  readonly index?: number;
  readonly env?: string;
  readonly horizon?: number;
  readonly actions?: readonly string[];
  /** Observation of every turn; `<n>` otherwise. */
  readonly observation?: string;
  readonly success?: boolean;
  readonly version?: number;
  /** `tokens` makes decisions runs of two tokens. */
  readonly kind?: Decision['kind'];
}

/** An episode with one reward at its end; every turn has a decision. */
export function trajectoryOf(spec: TrajectorySpec = {}): Trajectory {
  const { episode = 0, group = 0, index = 0, env = 'toy', horizon = 8, actions = ['look', 'go'] } = spec;
  const { success = false, version = 3, kind = 'choice' } = spec;
  const actionTable = [...new Set(actions)];
  return {
    episode,
    group,
    task: { env, index, seed: 7 },
    horizon,
    attempt: 1,
    actionTable,
    turns: actions.map((action, t) => ({
      observation: spec.observation ?? `observation ${t} of ${episode}`,
      actions: Int32Array.from(actionTable, (_, i) => i),
      action,
      decision: decision(kind, version, actionTable.indexOf(action), actionTable.length, t),
      reward: success && t === actions.length - 1 ? 1 : 0,
      actMs: 10 + t,
      envMs: 1,
      stages: { waitMs: 2, prefillMs: 3, decodeMs: 4 },
    })),
    finalObservation: spec.observation ?? 'the end',
    end: success ? 'terminated' : 'truncated',
    success,
    view: 'toy@1',
  };
}

function decision(kind: Decision['kind'], version: number, choice: number, listed: number, t: number): Decision {
  const base = { version, context: Int32Array.of(5, 6 + t), value: 0.25 * t };
  return kind === 'choice'
    ? {
        kind,
        ...base,
        choice,
        logprob: -0.5 * (t + 1),
        likeliest: Int32Array.of(choice, 7000, ...(listed > 1 ? [(choice + 1) % listed, 2500] : [])),
      }
    : {
        kind,
        ...base,
        tokens: Int32Array.of(70, 71),
        logprobs: Float32Array.of(-0.1, -2 - t),
        masked: false,
        versions: Int32Array.of(version, 1, version + 1, 1), // an update came in between
      };
}
