/** Small hand-made trajectories for tests of estimators, admission and the learner. */
import type { EpisodeEnd } from '../../src/core/horizon.ts';
import type { Decision, Group, Trajectory, Turn } from '../../src/core/trajectory.ts';

export interface TurnSpec {
  readonly reward?: number;
  readonly value?: number;
  readonly version?: number;
  readonly observation?: string;
  /** The action was a stage of one. */
  readonly partial?: true;
  /** Sampled tokens; 0 makes a choice decision, −1 a turn that no policy decided. */
  readonly tokens?: number;
}

export interface TrajectorySpec {
  readonly turns: readonly TurnSpec[];
  readonly end?: EpisodeEnd;
  readonly horizon?: number;
}

/** Makes a trajectory; fields that are not given hold harmless values. */
export function trajectory({ turns, end = 'terminated', horizon = 99 }: TrajectorySpec, episode = 0): Trajectory {
  return {
    episode,
    group: 0,
    task: { env: 'toy', index: 0, seed: 0 },
    horizon,
    attempt: 1,
    actionTable: ['go'],
    turns: turns.map(turn),
    finalObservation: '',
    end,
    success: end === 'terminated',
  };
}

/** A group of such trajectories. */
export function group(specs: readonly TrajectorySpec[], number = 0): Group {
  const trajectories = specs.map((spec, i) => ({ ...trajectory(spec, number * 1000 + i), group: number }));
  return { group: number, task: { env: 'toy', index: 0, seed: 0 }, horizon: 99, trajectories };
}

function turn(spec: TurnSpec): Turn {
  const { reward = 0, observation = '', tokens = 0 } = spec;
  const stage = spec.partial ? { partial: true as const } : {};
  const base = { observation, actions: Int32Array.of(0), action: 'go', reward, ...stage, actMs: 0, envMs: 0 };
  return tokens < 0 ? base : { ...base, decision: decision(spec, tokens) };
}

function decision({ value = 0, version = 0 }: TurnSpec, tokens: number): Decision {
  const base = { version, value, context: new Int32Array() };
  if (tokens === 0) return { ...base, kind: 'choice', choice: 0, logprob: 0 };
  return { ...base, kind: 'tokens', tokens: new Int32Array(tokens), logprobs: new Float32Array(tokens), masked: false };
}
