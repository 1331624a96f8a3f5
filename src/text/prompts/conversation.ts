/** Conversation of an episode: instructions, the world's observations, the model's answers. */

import type { WorldPrompt } from '../../core/prompt.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import type { PromptFormat } from './formats.ts';
import { estimateTokens, type HistoryPolicy, selectTurns } from './history.ts';

export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** Turn that is finished, as the model saw and answered it. */
export interface PromptTurn {
  /** Message to the model, as `renderObservation` makes it. */
  readonly message: string;
  /** Answer of the model, whole. */
  readonly answer: string;
}

/** Reply of the model to the instructions, as in the original; it marks where the episode begins. */
export const ACKNOWLEDGEMENT = 'OK. I will follow the instructions and do my best to reach the goal.';

/** Length of instructions: as long as the original's, or the world's short form of them. */
export type InstructionLength = 'full' | 'short';

/** Instructions of a world in a format. */
export function instructions(world: WorldPrompt, format: PromptFormat, length: InstructionLength = 'full'): string {
  if (length === 'short' && world.short !== undefined) return `${world.short}\n${format.describe(world)}`;
  const parts = [world.role];
  const listsFunctions = format.id === 'function-calling' || format.id === 'code';
  if (world.forms.length > 0 && !listsFunctions) {
    const formatPlaceholders = (template: string) => template.replace(/\{([a-z_]+)\}/g, '<$1>');
    parts.push(
      `You can:\n${world.forms.map(({ template, meaning }) => `- ${formatPlaceholders(template)}: ${meaning}`).join('\n')}`,
    );
  }
  if (world.hints.length > 0) parts.push(`Remember:\n${world.hints.map((hint) => `- ${hint}`).join('\n')}`);
  parts.push(format.describe(world));
  return parts.join('\n\n');
}

/** Message to the model in a turn: the format error of its last answer first, then the observation, then the list. */
export function renderObservation(
  observation: string,
  error: string | undefined,
  actions: readonly string[] | undefined,
): string {
  const list = actions && actions.length > 0 ? `\n\nAvailable actions:\n${actions.join('\n')}` : '';
  return `${error === undefined ? '' : `${error}\n\n`}${observation}${list}`;
}

/**
 * Messages of a turn.
 * @param turns the finished turns, oldest first
 * @param message the newest message to the model
 */
export function conversation(
  start: string,
  turns: readonly PromptTurn[],
  message: string,
  history: HistoryPolicy,
): readonly Message[] {
  const messages: Message[] = [
    { role: 'user', content: start },
    { role: 'assistant', content: ACKNOWLEDGEMENT },
  ];
  const fixed = estimateTokens(start) + estimateTokens(ACKNOWLEDGEMENT) + estimateTokens(message);
  const costs = turns.map((turn) => estimateTokens(turn.message) + estimateTokens(turn.answer));
  for (const kept of selectTurns(history, costs, fixed)) {
    const turn = turns[kept]!;
    messages.push({ role: 'user', content: turn.message }, { role: 'assistant', content: turn.answer });
  }
  messages.push({ role: 'user', content: message });
  return messages;
}

/** Message of a recorded episode. */
export interface RecordedMessage extends Message {
  /** Reward of the step that an answer led to; absent on other messages. */
  readonly reward?: number;
  /** Reason why no action could be read from an answer. */
  readonly formatError?: string;
}

/**
 * Conversation of a recorded episode, whole, whatever part of it the history policy showed in each turn: instructions,
 * then the messages to the model and its answers, reasoning included. Of a policy that is no language model:
 * observations and actions.
 */
export function buildRecordedConversation({
  turns,
  actionTable,
}: Pick<Trajectory, 'turns' | 'actionTable'>): RecordedMessage[] {
  const opening = turns[0]?.response?.opening;
  const messages: RecordedMessage[] = [];
  if (opening?.system !== undefined) messages.push({ role: 'system', content: opening.system });
  if (opening) {
    messages.push({ role: 'user', content: opening.instructions }, { role: 'assistant', content: ACKNOWLEDGEMENT });
  }
  let error: string | undefined;
  for (const { observation, actions, action, reward, response } of turns) {
    const listed = opening?.listed ? Array.from(actions, (index) => actionTable[index]!) : undefined;
    messages.push({ role: 'user', content: renderObservation(observation, error, listed) });
    error = response?.formatError;
    const answer = { role: 'assistant', content: response?.text ?? action, reward } as const;
    messages.push(error === undefined ? answer : { ...answer, formatError: error });
  }
  return messages;
}
