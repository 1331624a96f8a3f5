/**
 * Check of episodes that another machine played: whatever the learner would stumble over, or an honest rollout cannot have
 * produced, is found before it counts. What is left to a liar are observations and rewards, which only playing again shows
 * (`--verify`), and the policy's own numbers.
 */
import { ACTION_LIMITS, type Env, MAX_PARTIAL_STEPS } from '../core/env.ts';
import { messageOf } from '../core/errors.ts';
import { type Trajectory, turnsUsed } from '../core/trajectory.ts';
import { trainUnits } from '../learner/training-batch.ts';
import type { Codec } from '../reading/codec.ts';

/** Facts of a run that its episodes must fit. */
export interface EpisodeFacts {
  readonly env: Pick<Env, 'rewardRange' | 'maxObservationChars'>;
  readonly codec: Codec;
  /** Longest sequence that the model reads. */
  readonly maxPositions: number;
  readonly decoder: 'choice' | 'tokens';
}

/** @returns says what is wrong with a group's episodes; undefined where nothing is */
export function episodeCheck(facts: EpisodeFacts): EpisodeCheck {
  return (trajectories, isTrained) => {
    for (const one of trajectories) {
      const why = oddEpisode(one, facts, isTrained);
      if (why !== undefined) return why;
    }
    const isDecided = trajectories.every(({ turns }) => turns.every(({ decision }) => decision !== undefined));
    return isDecided ? unreadable(trajectories, facts) : undefined;
  };
}

/** Check of a group's episodes. @param isTrained false where they are only evaluated */
export type EpisodeCheck = (trajectories: readonly Trajectory[], isTrained: boolean) => string | undefined;

function oddEpisode(one: Trajectory, { env, decoder }: EpisodeFacts, isTrained: boolean): string | undefined {
  const { turns, horizon, end, success, actionTable, finalObservation } = one;
  const [low, high] = env.rewardRange;
  const used = turnsUsed(turns);
  if (turns.length > (horizon + 1) * (MAX_PARTIAL_STEPS + 1)) return `${turns.length} turns under horizon ${horizon}`;
  if (success && end !== 'terminated') return 'a success of an episode that did not end by itself';
  if (end === 'truncated' && used !== horizon) return `cut after ${used} turns, its horizon is ${horizon}`;
  if (actionTable.some((text) => text.length > ACTION_LIMITS.chars)) return 'an action longer than worlds may list';
  if (finalObservation.length > env.maxObservationChars) return 'an observation longer than the world states';
  for (const [t, turn] of turns.entries()) {
    const { observation, reward, partial, actions, action, decision, untrained } = turn;
    if (observation.length > env.maxObservationChars) return 'an observation longer than the world states';
    if (!(reward >= low && reward <= high)) return `reward ${reward}, the world states ${low} to ${high}`;
    if (partial && reward !== 0) return `a stage of an action that pays ${reward}`;
    if (partial && t === turns.length - 1) return 'an episode that ends within an action';
    if (actions.length > ACTION_LIMITS.count) return `${actions.length} listed actions`;
    if (untrained) return 'a turn that is not to be trained on';
    if (!decision && !isTrained) continue; // where a server sampled at another temperature
    if (decision?.kind !== decoder) return `a decision of kind ${decision?.kind}, this policy's are ${decoder}`;
    if (decision.kind === 'choice' && actionTable[actions[decision.choice]!] !== action) {
      return `action '${action.slice(0, 40)}' was not the chosen one`;
    }
    if (decision.kind === 'tokens' && decision.tokens.length === 0) return 'a decision without a token';
  }
  return undefined;
}

/** Reads the episodes as the learner will: their recorded tokens must be what its codec reads. */
function unreadable(trajectories: readonly Trajectory[], { codec, maxPositions }: EpisodeFacts): string | undefined {
  try {
    for (const unit of trainUnits(codec, trajectories, 0)) {
      for (const { prompt, members } of unit) {
        for (const { tokens, decisions } of members) {
          const length = prompt.tokens.length + tokens.length;
          if (length > maxPositions) return `${length} tokens, the model reads ${maxPositions}`;
          const stray = decisions.find(({ allowed, chosen }) => allowed !== undefined && !allowed.includes(chosen));
          if (stray) return `turn ${stray.turn}: what was decided was not possible`;
        }
      }
    }
  } catch (thrown) {
    return messageOf(thrown);
  }
  return undefined;
}
