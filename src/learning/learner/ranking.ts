/**
 * Relative rewards of a group: a judge reads all its episodes at once and scores them against each other; those scores take the
 * place of the world's rewards in training. It serves worlds and agents that have no reward, or one that is seldom earned.
 *
 * An episode is shown by its actions and what answered them; its rewards are not shown. A judge that fails ends the
 * run; no group is trained on by a guess.
 *
 * @see RULER of ART (OpenPipe 2025), https://art.openpipe.ai/fundamentals/ruler
 */
import { isAgentCall, readAgentCall, readAgentReply } from '../../core/agent-call.ts';
import { describeReply } from '../../core/call-text.ts';
import type { Judge } from '../../core/judge.ts';
import type { Group, Trajectory } from '../../core/trajectory.ts';

/** Settings of a ranking. */
export interface RankingOptions {
  /** Words for the judge about what is better; empty: it goes by the task alone. */
  readonly criterion: string;
  /** Characters of all episodes of a group together; each has the same share, and loses its middle beyond it. */
  readonly maxChars: number;
}

/**
 * Scores the episodes of a group against each other.
 * @returns the group with the scores, each in [0, 1], as the rewards of the last turns; all other rewards are 0
 * @throws {LongplayError} REMOTE_FAILED where the judge does not answer, or not in its form
 */
export async function rankGroup(group: Group, judge: Judge, { criterion, maxChars }: RankingOptions): Promise<Group> {
  const { trajectories } = group;
  const [first] = trajectories;
  const given = first!.turns[0]?.observation ?? first!.finalObservation;
  const isShared = trajectories.every(({ turns }) => turns[0]?.observation === given);
  const share = Math.floor(maxChars / trajectories.length);
  const texts = trajectories.map((one) => cutMiddle(describeEpisode(one, isShared), share));
  const scores = await judge.rank(texts, criterion, isShared ? cutMiddle(describeObservation(given), share) : '');
  return { ...group, trajectories: trajectories.map((one, i) => withReward(one, scores[i]!)) };
}

/** Episode with one reward, at its last turn. */
function withReward(trajectory: Trajectory, reward: number): Trajectory {
  const last = trajectory.turns.length - 1;
  return { ...trajectory, turns: trajectory.turns.map((turn, t) => ({ ...turn, reward: t === last ? reward : 0 })) };
}

function describeEpisode({ turns, finalObservation, end }: Trajectory, isFirstLeftOut: boolean): string {
  const lines = turns.flatMap(({ observation, action }, t) => [
    ...(t === 0 && isFirstLeftOut ? [] : [describeObservation(observation)]),
    `> ${isAgentCall(observation) ? describeReply(readAgentReply(action)) : action}`,
  ]);
  // The last answer of an agent or a world of tools is a call, or its reward, which the judge must not see.
  if (finalObservation !== '' && !finalObservation.startsWith('{"reward":'))
    lines.push(describeObservation(finalObservation));
  if (end === 'truncated') lines.push('(cut off by the limit of turns)');
  return lines.join('\n');
}

function describeObservation(observation: string): string {
  if (!isAgentCall(observation)) return observation;
  return readAgentCall(observation)
    .messages.map((message) => `${message.role}: ${describeReply(message)}`)
    .join('\n');
}

function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const half = Math.floor(maxChars / 2);
  const cut = text.length - 2 * half;
  // A cut may part the halves of a surrogate pair, which servers refuse.
  return `${text.slice(0, half)}\n[… ${cut.toLocaleString('en')} characters left out …]\n${text.slice(text.length - half)}`.toWellFormed();
}
