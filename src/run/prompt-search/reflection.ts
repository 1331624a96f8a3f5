/** Reflection: the request by which a model writes a better prompt from episodes that the old one played. Pure. */
import type { ConversationMessage } from '../../core/model-call.ts';
import { episodeReturn, type Trajectory, turnsUsed } from '../../core/trajectory.ts';
import { buildRecordedConversation } from '../../text/prompts/conversation.ts';

/** UTF-16 units of one episode in the request; its middle is left out beyond. */
const EPISODE_CHARS = 6000;
/** UTF-16 units of a prompt that is accepted from the model. */
export const MAX_PROMPT_CHARS = 20_000;

/**
 * Makes the request. Its parts are those of GEPA's meta-prompt (2507.19457, appendix B): the present prompt, inputs with answers
 * and feedback, and what to write.
 * @param prompt present system message; empty where there is none yet
 */
export function makeReflection(prompt: string, episodes: readonly Trajectory[]): readonly ConversationMessage[] {
  const shown = episodes.map((one, i) => `## Episode ${i + 1}\n\n${describeEpisode(one)}`);
  const content = [
    'An agent acts over several turns. It reads a system message first, then instructions about its world, then observations.',
    `This is its present system message:\n\n\`\`\`\n${prompt}\n\`\`\``,
    'These are episodes that it played, each with feedback:',
    ...shown,
    [
      'Write a better system message. Say what kind of task this is, and what the agent has to know of the world to do it:',
      'facts that the episodes show, mistakes to avoid, and a way of working that leads to success on other tasks of the kind.',
      'Do not write about these tasks alone, and do not change the form of answers that the instructions ask for.',
      'Put the whole new system message between ``` and ```.',
    ].join(' '),
  ].join('\n\n');
  return [{ role: 'user', content }];
}

/** Describes an episode: its conversation, then what came of it. */
function describeEpisode(episode: Trajectory): string {
  const { turns, finalObservation, end, success, horizon } = episode;
  const lines = buildRecordedConversation(episode)
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }) => `${role === 'assistant' ? 'Agent' : 'World'}: ${content}`);
  const text = [...lines, `World: ${finalObservation}`].join('\n');
  const unread = turns.filter(({ response }) => response?.formatError !== undefined);
  const feedback = [
    `${success ? 'The task was solved' : 'The task was not solved'}; the sum of rewards is ${episodeReturn(episode)}.`,
    end === 'truncated'
      ? `It was cut off after ${turnsUsed(turns)} of ${horizon} turns.`
      : `It ended by itself after ${turnsUsed(turns)} turns.`,
    ...(unread.length === 0
      ? []
      : [`${unread.length} answers could not be read as an action: ${unread[0]!.response!.formatError}`]),
  ];
  return `${cutMiddle(text)}\n\nFeedback: ${feedback.join(' ')}`;
}

function cutMiddle(text: string): string {
  if (text.length <= EPISODE_CHARS) return text;
  const half = EPISODE_CHARS / 2;
  return `${text.slice(0, half).toWellFormed()}\n[…]\n${text.slice(-half).toWellFormed()}`;
}

/**
 * Reads the new prompt: what stands between the first and the last fence, else the whole reply.
 * @returns undefined for one that is empty, too long, or the old one
 */
export function readProposal(reply: string, old: string): string | undefined {
  const fenced = /```[^\n`]*\n([\s\S]*)\n?```/.exec(reply)?.[1] ?? reply.replaceAll('```', '');
  const prompt = fenced.trim().toWellFormed();
  return prompt === '' || prompt === old.trim() || prompt.length > MAX_PROMPT_CHARS ? undefined : prompt;
}
