/**
 * Check of episodes that another machine played. It refuses whatever would break the learner, and whatever an honest
 * rollout cannot have produced. It cannot see false observations and rewards, which only playing again shows
 * (`--verify`), nor the policy's own numbers and which of the possible actions it drew.
 */
import { ACTION_LIMITS, type Env, MAX_PARTIAL_STEPS } from '../core/env.ts';
import { messageOf } from '../core/errors.ts';
import { type TokensDecision, type Trajectory, turnsUsed } from '../core/trajectory.ts';
import type { TokenMask } from '../text/grammar/token-mask.ts';
import { maskOf } from '../text/reading/answer-mask.ts';
import type { Codec } from '../text/reading/codec.ts';
import { replayTurns } from '../text/reading/replay-turns.ts';
import { equalTokens, type Prompt } from '../text/reading/transcript.ts';

/** Facts of a run that its episodes must fit. */
export interface EpisodeFacts {
  readonly env: Pick<Env, 'rewardRange' | 'maxObservationChars'>;
  readonly codec: Codec;
  /** Longest sequence that the model reads. */
  readonly maxPositions: number;
  readonly decoder: 'choice' | 'tokens';
  /** True where runs of tokens are sampled under a trie of the listed actions. */
  readonly masked: boolean;
}

/** Creates the check of a run's episodes. */
export function createEpisodeCheck(facts: EpisodeFacts): EpisodeCheck {
  return (trajectories, isTrained) => {
    for (const one of trajectories) {
      const why = explainInvalidEpisode(one, facts, isTrained);
      if (why !== undefined) return why;
    }
    const isDecided = trajectories.every(({ turns }) => turns.every(({ decision }) => decision !== undefined));
    if (!isDecided) return undefined;
    try {
      for (const one of trajectories) checkReading(one, facts);
    } catch (thrown) {
      return messageOf(thrown);
    }
    return undefined;
  };
}

/** Returns what is wrong with a group's episodes; undefined where nothing is. @param isTrained false where they are only evaluated */
export type EpisodeCheck = (trajectories: readonly Trajectory[], isTrained: boolean) => string | undefined;

function explainInvalidEpisode(one: Trajectory, facts: EpisodeFacts, isTrained: boolean): string | undefined {
  const { env, decoder } = facts;
  const { turns, horizon, end, success, actionTable, finalObservation } = one;
  const [low, high] = env.rewardRange;
  const used = turnsUsed(turns);
  if (turns.length > (horizon + 1) * (MAX_PARTIAL_STEPS + 1)) return `${turns.length} turns under horizon ${horizon}`;
  if (success && end !== 'terminated') return 'a success of an episode that did not end by itself';
  if (end === 'truncated' && used !== horizon && !isRefused(one, facts.codec))
    return `cut after ${used} turns, its horizon is ${horizon}`;
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
    if (decision.kind === 'tokens') {
      const why = explainInvalidTokens(decision, facts, actions.length > 0);
      if (why !== undefined) return why;
    }
  }
  return undefined;
}

function explainInvalidTokens(
  { tokens, masked }: TokensDecision,
  { codec, ...facts }: EpisodeFacts,
  hasActions: boolean,
): string | undefined {
  if (tokens.length === 0) return 'a decision without a token';
  // The learner's program was compiled for one of the two. An agent's calls are masked where they ask for it.
  if (masked !== facts.masked && (masked || hasActions))
    return `tokens sampled ${masked ? 'under' : 'without'} a mask, unlike this policy's`;
  const { from, to } = codec.sampled;
  const stray = masked ? undefined : tokens.find((id) => id < from || id >= to);
  return stray === undefined ? undefined : `token ${stray}, which is never sampled`;
}

/**
 * Reads an episode as the learner will (`trainUnits`), in a third of its time: no batch is laid out. The recorded tokens
 * must be what its codec reads, and every decision must have been possible.
 * @throws {RangeError} naming what is invalid, and whatever the view throws
 */
function checkReading(one: Trajectory, { codec, maxPositions }: EpisodeFacts): void {
  let read: Prompt | undefined;
  let length = 0; // of what the model reads under this prompt
  replayTurns(codec, one, (transcript, t) => {
    const { prompt } = transcript;
    if (prompt !== read) length = 0;
    read = prompt;
    const { decision, actions, action } = one.turns[t]!;
    const context = transcript.takeContext();
    if (!decision || !equalTokens(context, decision.context)) {
      throw new RangeError(`the tokens recorded of turn ${t} are not what this view and vocabulary read`);
    }
    length += context.length;
    if (decision.kind === 'choice') {
      // The world's view restates what was listed: an invalid text may break it.
      for (let i = 0; i < actions.length; i++) transcript.candidate(one.actionTable[actions[i]!]!);
    } else {
      length += decision.tokens.length;
      if (decision.masked && !isPossible(maskOf(codec, transcript, actions), decision.tokens)) {
        throw new RangeError(`turn ${t}: what was decided was not possible`);
      }
      const spelt = codec.answer([...decision.tokens], transcript).action;
      if (spelt !== action) throw new RangeError(`turn ${t}: its tokens do not spell '${action.slice(0, 40)}'`);
    }
    if (length > maxPositions) throw new RangeError(`${length} tokens, the model reads ${maxPositions}`);
  });
}

/** Returns true for tokens that a mask allows, one after another. */
function isPossible(mask: TokenMask | undefined, tokens: Int32Array): boolean {
  if (!mask) return false;
  for (const id of tokens) {
    if (!mask.allowed().includes(id)) return false;
    mask.advance(id);
  }
  return true;
}

/** Returns true for an episode whose last observation no policy can answer: it leaves no room for an answer. */
function isRefused(one: Trajectory, codec: Codec): boolean {
  try {
    return replayTurns(codec, one).refusal?.ends === true;
  } catch {
    return false; // what the view cannot read, it has not refused
  }
}
