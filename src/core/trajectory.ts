/**
 * Trajectories: records of finished episodes. A trajectory is self-sufficient: a learner, a trace reader and a viewer
 * need nothing else.
 */
import { smallestOf } from './extremes.ts';
import type { EpisodeEnd } from './horizon.ts';
import type { Task } from './task.ts';

/**
 * Decision: one choice among the listed actions, or a run of sampled tokens. Token ids are those that were sampled and
 * are the ones trained on; text is never tokenised again.
 */
export type Decision = ChoiceDecision | TokensDecision;

interface DecisionBase {
  /** Policy version (updates seen) of the weights that decided; of a run of tokens the oldest among them. */
  readonly version: number;
  /** Token ids read since the previous decision; on turn 0 the whole prompt. Not trained on. */
  readonly context: Int32Array;
  /** Critic's V at the position that decided; 0 without a value head. */
  readonly value: number;
}

/** Decision that chose one of the listed actions. */
export interface ChoiceDecision extends DecisionBase {
  readonly kind: 'choice';
  /** Index into the turn's `actions`. */
  readonly choice: number;
  /** log π of the choice over the turn's `actions`, under the behaviour policy. */
  readonly logprob: number;
  /**
   * [2·K] likeliest actions at temperature 1: K pairs of an index into the turn's `actions` and its π in ten-thousandths,
   * the likeliest first, K at most 8. For people: nothing is trained on it. Absent where the policy did not report them.
   */
  readonly likeliest?: Int32Array;
}

/** Decision that sampled a run of tokens. */
export interface TokensDecision extends DecisionBase {
  readonly kind: 'tokens';
  /** [T] sampled ids, the end token included if it was sampled. */
  readonly tokens: Int32Array;
  /** [T] log π of each, over the distribution that was sampled from (masked, where a mask was used). */
  readonly logprobs: Float32Array;
  /** True when sampling was masked: to a trie of the turn's `actions`, or to the grammar of an agent's reply. */
  readonly masked: boolean;
  /**
   * [2·R] versions of the tokens where an update came in the middle of the run, as R pairs in order. A pair is a
   * version and the number of tokens in a row that it sampled, T in all. Absent where all are of `version`.
   */
  readonly versions?: Int32Array;
}

/** Response of a language model, where the action is only a part of it. */
export interface ModelResponse {
  /** Text of the whole answer, with the reasoning where the server sends it. */
  readonly text: string;
  /** Reason why no action could be read from it; the env was then sent an empty action. */
  readonly formatError?: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Beginning of the conversation, on the episode's first turn. */
  readonly opening?: ConversationOpening;
}

/** Beginning of an episode's conversation with a language model; with it and the turns the whole can be rebuilt. */
export interface ConversationOpening {
  /** Content of a system message, where there was one. */
  readonly system?: string;
  /** Instructions, which the model read before the first observation. */
  readonly instructions: string;
  /** True when each observation was followed by the list of actions. */
  readonly listed: boolean;
}

/** Turn: one observation and the action that answers it. */
export interface Turn {
  readonly observation: string;
  /** Actions that were possible, as indices into the trajectory's `actionTable`. Empty where the env lists nothing. */
  readonly actions: Int32Array;
  /** Text that was sent to the env. */
  readonly action: string;
  /** Decision of the policy; absent for scripted and random ones. */
  readonly decision?: Decision;
  /**
   * True when the decision is not trained on: a demonstration's reply without loss, or an action that reached nobody
   * (`Mid.undelivered`).
   */
  readonly untrained?: true;
  /** Response of the language model, where one decided. */
  readonly response?: ModelResponse;
  /** Reward of the step that answered the action. */
  readonly reward: number;
  /**
   * True when the action was a stage of one (`Mid.partial`): it used no turn of the horizon, and nothing is discounted
   * over it.
   */
  readonly partial?: true;
  /** Milliseconds: waiting for the batch and computing it, and the env's answer. */
  readonly actMs: number;
  readonly envMs: number;
  /** Parts of `actMs` that the policy measured; the rest are messages. */
  readonly stages?: TurnStages;
}

/** Times of a turn inside the policy, in milliseconds: waiting, reading, writing. */
export interface TurnStages {
  /** Waiting for a call, or between two calls of one run of tokens. */
  readonly waitMs: number;
  /** Reading prompts and candidates for the first time, inside calls. */
  readonly prefillMs: number;
  /** Scoring actions or sampling tokens, inside calls. */
  readonly decodeMs: number;
}

/** Trajectory: the finished record of an episode. */
export interface Trajectory {
  /** Number of the episode, unique in the run, ascending in launch order. */
  readonly episode: number;
  readonly group: number;
  readonly task: Task;
  /** Turns the episode was allowed when it started; a group never mixes horizons. */
  readonly horizon: number;
  /** Attempt, 1 unless the episode was re-issued after a failure. */
  readonly attempt: number;
  /** Every action text the env listed in this episode, in order of first appearance. */
  readonly actionTable: readonly string[];
  readonly turns: readonly Turn[];
  /** Observation after the last action. */
  readonly finalObservation: string;
  readonly end: EpisodeEnd;
  /** True when the env reported that the task was solved. */
  readonly success: boolean;
  /** Id of the view the policy read through; absent for policies that read the raw text. */
  readonly view?: string;
}

/** Group: n trajectories of one task under one horizon, for group-relative baselines. */
export interface Group {
  readonly group: number;
  readonly task: Task;
  readonly horizon: number;
  readonly trajectories: readonly Trajectory[];
}

/** Turns of the horizon that were used: stages of an action (`partial`) use none. */
export function turnsUsed(turns: readonly Pick<Turn, 'partial'>[]): number {
  let used = 0;
  for (const turn of turns) if (!turn.partial) used++;
  return used;
}

/** Return of an episode: the undiscounted sum of its rewards. */
export function episodeReturn(trajectory: Trajectory): number {
  let sum = 0;
  for (const turn of trajectory.turns) sum += turn.reward;
  return sum;
}

/** Run of consecutive tokens that were sampled by the same weights. */
export interface VersionRun {
  readonly version: number;
  /** ≥ 1; a choice counts as one. */
  readonly tokens: number;
}

/** Versions of a decision's tokens, in the order of sampling. */
export function versionRuns(decision: Decision): VersionRun[] {
  if (decision.kind === 'choice') return [{ version: decision.version, tokens: 1 }];
  const { version, tokens, versions } = decision;
  if (!versions) return [{ version, tokens: tokens.length }];
  return Array.from({ length: versions.length / 2 }, (_, r) => ({
    version: versions[2 * r]!,
    tokens: versions[2 * r + 1]!,
  }));
}

/**
 * Versions of a decision's tokens in the form it keeps: the oldest, and all of them where they differ.
 * @param versions [T] of each token, T ≥ 1
 */
export function versionsKept(versions: readonly number[]): Pick<TokensDecision, 'version' | 'versions'> {
  const runs: number[] = [];
  for (const version of versions) {
    if (runs.at(-2) === version) runs[runs.length - 1]!++;
    else runs.push(version, 1);
  }
  const version = smallestOf(versions);
  return runs.length === 2 ? { version } : { version, versions: Int32Array.from(runs) };
}

/** Oldest policy version among the decisions, or `undefined` when nothing was decided by a versioned policy. */
export function oldestVersion(trajectory: Trajectory): number | undefined {
  let oldest: number | undefined;
  for (const { decision } of trajectory.turns) {
    if (decision && (oldest === undefined || decision.version < oldest)) oldest = decision.version;
  }
  return oldest;
}
