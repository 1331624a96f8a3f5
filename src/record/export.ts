/** Exports episodes in the forms that other trainers read. Pure. */
import { episodeReturn } from '../core/trajectory.ts';
import type { TraceLine } from './trace.ts';

/** Record of AgentTraj: human and model turns in alternation, `loss` on what is to be learned. */
export interface AgentTraj {
  readonly item_id: string;
  readonly conversations: readonly {
    readonly from: 'human' | 'gpt';
    readonly loss: boolean | null;
    readonly value: string;
  }[];
  readonly reward: number;
  readonly success: boolean;
}

/**
 * Converts an episode to AgentTraj.
 * @see https://huggingface.co/datasets/AgentGym/AgentTraj-L
 */
export function agentTraj(episode: TraceLine): AgentTraj {
  const { task, turns, success } = episode;
  return {
    item_id: `${task.env}_${task.index}`,
    conversations: turns.flatMap(({ observation, action }) => [
      { from: 'human' as const, loss: null, value: observation },
      { from: 'gpt' as const, loss: true, value: action },
    ]),
    reward: episodeReturn(episode),
    success,
  };
}

/** Chat record: ChatML messages, as chat templates take them. */
export interface ChatRecord {
  readonly messages: readonly { readonly role: 'user' | 'assistant'; readonly content: string }[];
  readonly task: { readonly env: string; readonly index: number; readonly seed: number };
  readonly reward: number;
  readonly success: boolean;
}

export function chatRecord(episode: TraceLine): ChatRecord {
  return {
    messages: episode.turns.flatMap(({ observation, action }) => [
      { role: 'user' as const, content: observation },
      { role: 'assistant' as const, content: action },
    ]),
    task: episode.task,
    reward: episodeReturn(episode),
    success: episode.success,
  };
}
