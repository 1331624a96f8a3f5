/** Saved episodes as a user's function sees them when they are scored again. Pure. */
import { isAgentCall, readAgentCall, readReport } from '../../core/agent-call.ts';
import { isCallEpisode, listConversations } from '../../core/call-episode.ts';
import type { EpisodeEnd } from '../../core/horizon.ts';
import type { ConversationMessage } from '../../core/model-call.ts';
import { episodeReturn } from '../../core/trajectory.ts';
import type { VerifyFacts } from '../../core/verify.ts';
import type { TraceLine } from '../../storage/trace.ts';
import { buildRecordedConversation } from '../../text/prompts/conversation.ts';

/** Turn of a saved episode. */
export interface ScoredTurn {
  readonly observation: string;
  /** Text that was sent to the world. */
  readonly action: string;
  /** Recorded reward. */
  readonly reward: number;
  /** True when the action was a stage of one (`Mid.partial`). */
  readonly partial: boolean;
  /** Actions that were listed; empty where the world or the policy listed none. */
  readonly actions: readonly string[];
}

/** Saved episode as `verify` is given it. */
export interface RescoreRequest extends VerifyFacts {
  /** Env id of the world. */
  readonly env: string;
  /** Sub-task; empty where the trace names none. */
  readonly label: string;
  readonly turns: readonly ScoredTurn[];
  readonly finalObservation: string;
  readonly end: EpisodeEnd;
  /** Recorded success, and the recorded return: the sum of the rewards. */
  readonly success: boolean;
  readonly reward: number;
  /** Numbers that the world or the agent reported: parts of its reward, counts. */
  readonly metrics: Readonly<Record<string, number>>;
  readonly horizon: number;
  readonly episode: number;
  readonly group: number;
  /** `train`, `rollout`, or the name of an evaluation. */
  readonly purpose: string;
  /** Nothing is left of an episode's folder, nor of its server: `call` rejects. */
  readonly folder: undefined;
  call(name: string): Promise<never>;
}

/**
 * Makes the request of a saved episode.
 * @param entry of the world's list of tasks; absent: the task itself stands for it
 */
export function makeRescoreRequest(episode: TraceLine, entry?: unknown): RescoreRequest {
  const { task, turns, actionTable, finalObservation, end, success, horizon, group, purpose, label = '' } = episode;
  const transcript = transcriptOf(episode);
  const isCall = isCallEpisode(turns);
  const reply = transcript.findLast(({ role }) => role === 'assistant');
  return {
    task: entry ?? task,
    index: task.index,
    seed: task.seed,
    env: task.env,
    label,
    answer: isCall ? (reply?.content ?? '') : (turns.at(-1)?.response?.text ?? turns.at(-1)?.action ?? ''),
    transcript,
    turns: turns.map(({ observation, action, reward, partial = false, actions }) => ({
      observation,
      action,
      reward,
      partial,
      actions: Array.from(actions, (index) => actionTable[index]!),
    })),
    finalObservation,
    end,
    success,
    reward: episodeReturn(episode),
    metrics: readReport(finalObservation).metrics,
    horizon,
    episode: episode.episode,
    group,
    purpose,
    folder: undefined,
    call: (name) => Promise.reject(new Error(`call('${name}'): a saved episode has no server to call any more`)),
  };
}

/** Messages of an episode: of calls its last conversation and what came of it, of other worlds observations and answers. */
function transcriptOf({ turns, actionTable, finalObservation }: TraceLine): readonly ConversationMessage[] {
  if (!isCallEpisode(turns)) {
    const messages = buildRecordedConversation({ turns, actionTable });
    const said = messages.map(({ role, content }): ConversationMessage => ({ role, content }));
    return [...said, { role: 'user', content: finalObservation }];
  }
  const conversation = listConversations(turns).at(-1)?.messages ?? [];
  if (!isAgentCall(finalObservation)) return conversation;
  const results = readAgentCall(finalObservation).messages.filter(({ content, role }) => role === 'tool' || content);
  return [...conversation, ...results];
}
