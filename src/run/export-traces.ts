/** Exports episodes in the forms that other trainers read. Pure. */
import { isCallEpisode, listConversations } from '../core/call-episode.ts';
import { UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { isRecord } from '../core/record.ts';
import { episodeReturn } from '../core/trajectory.ts';
import { printChatMessage } from '../policy/remote/chat-body.ts';
import type { ConversationRow } from '../storage/conversation-parquet.ts';
import type { TraceLine } from '../storage/trace.ts';
import { buildRecordedConversation, type Message, type RecordedMessage } from '../text/prompts/conversation.ts';
import { printChatTool, renderPlainTools } from '../text/tools/plain-tools.ts';

/** Record of AgentTraj: human and model turns in alternation, `loss` on what is to be learned. */
export interface AgentTraj {
  readonly item_id: string;
  readonly conversations: readonly {
    readonly from: 'human' | 'gpt';
    readonly loss: boolean | null;
    readonly value: string;
  }[];
  /** Sum of the rewards. */
  readonly reward: number;
  /** Rewards of the answers that are learned, in order. */
  readonly rewards: readonly number[];
  readonly success: boolean;
}

/**
 * Converts an episode to AgentTraj. Its records know no system message: one is put before the instructions.
 * @see https://huggingface.co/datasets/AgentGym/AgentTraj-L
 * @throws {UserError} BAD_ARGUMENT for an episode of calls
 */
export function agentTraj(episode: TraceLine): AgentTraj {
  refuseCalls(episode, 'AgentTraj');
  const { task, success } = episode;
  const [first, ...rest] = buildRecordedConversation(episode);
  const messages = first?.role === 'system' ? withSystem(first.content, rest) : first ? [first, ...rest] : [];
  return {
    item_id: `${task.env}_${task.index}`,
    conversations: messages.map((message) =>
      message.role === 'assistant'
        ? {
            from: 'gpt' as const,
            loss: isLearnt(message),
            value: message.content,
          }
        : { from: 'human' as const, loss: null, value: message.content },
    ),
    reward: episodeReturn(episode),
    rewards: rewardsOf(rest),
    success,
  };
}

/** Refuses an episode of calls, whose tools a form of plain messages has no place for. @throws {UserError} BAD_ARGUMENT */
function refuseCalls({ episode, turns }: TraceLine, form: string): void {
  if (!isCallEpisode(turns)) return;
  throw new UserError(
    'BAD_ARGUMENT',
    `${form} has no place for calls of tools, and episode ${episode} is of them; export it with --format chatml, trl, verl or atif`,
  );
}

/** True for an answer of the episode that could be read: one that could not is context. */
function isLearnt({ reward, formatError }: RecordedMessage): boolean {
  return reward !== undefined && formatError === undefined;
}

function withSystem(system: string, [instructions, ...rest]: readonly RecordedMessage[]): RecordedMessage[] {
  return [{ role: 'user', content: `${system}\n\n${instructions?.content ?? ''}` }, ...rest];
}

function rewardsOf(messages: readonly RecordedMessage[]): number[] {
  return messages.flatMap((message) => (isLearnt(message) ? [message.reward!] : []));
}

/** Chat record: messages as chat templates and TRL's SFT trainer take them. */
export interface ChatRecord {
  readonly messages: readonly Message[];
  readonly task: { readonly env: string; readonly index: number; readonly seed: number };
  /** Sum of the rewards. */
  readonly reward: number;
  /** Reward of each assistant message, in order; 0 for the one that takes note of the instructions. */
  readonly rewards: readonly number[];
  readonly success: boolean;
}

/** Chat record of an agent or a world of tools: a conversation of its tree, as OpenAI has them. */
export interface ConversationRecord {
  readonly messages: readonly object[];
  readonly tools: readonly object[];
  readonly task: ChatRecord['task'];
  /** Return of the whole episode. */
  readonly reward: number;
  readonly success: boolean;
}

/** Chat records of an episode: one; of an agent's or of a world of tools one for each leaf of its tree of calls. */
export function chatRecords(episode: TraceLine): readonly (ChatRecord | ConversationRecord)[] {
  const { turns, task, success } = episode;
  if (!isCallEpisode(turns)) return [chatRecord(episode)];
  const reward = episodeReturn(episode);
  return listConversations(turns).map(({ messages, tools }) => ({
    messages: messages.map(printChatMessage),
    tools: tools.map(printChatTool),
    task,
    reward,
    success,
  }));
}

/**
 * Chat records as TRL's and Unsloth's trainers give them to a chat template: the arguments of calls are objects. Templates
 * print a text of JSON as a text, within quotation marks. Broken arguments stay as they were written.
 */
export function templateRecords(episode: TraceLine): readonly object[] {
  return chatRecords(episode).map((record) => ({ ...record, messages: record.messages.map(parseArguments) }));
}

function parseArguments(message: object): object {
  const { tool_calls: calls } = message as { readonly tool_calls?: readonly ChatCall[] };
  if (!calls) return message;
  const parsed = calls.map((call) => {
    let value: unknown;
    try {
      value = parseJson(call.function.arguments);
    } catch {} // as it was written
    return isRecord(value) ? { ...call, function: { ...call.function, arguments: value } } : call;
  });
  return { ...message, tool_calls: parsed };
}

interface ChatCall {
  readonly function: { readonly name: string; readonly arguments: string };
}

/**
 * Conversations of an episode in plain messages, as verl's datasets read them: declared tools and calls are text in Hermes's
 * form, since a column of Parquet has one shape for the schemas of all tools.
 */
export function conversationRows(episode: TraceLine): readonly ConversationRow[] {
  const { turns, task, success } = episode;
  const facts = { env: task.env, task: task.index, reward: episodeReturn(episode), success };
  if (!isCallEpisode(turns)) return [{ messages: buildRecordedConversation(episode).map(plainMessage), ...facts }];
  return listConversations(turns).map(({ messages, tools }) => ({
    messages: renderPlainTools(messages, tools),
    ...facts,
  }));
}

export function chatRecord(episode: TraceLine): ChatRecord {
  const messages = buildRecordedConversation(episode);
  return {
    messages: messages.map(plainMessage),
    task: episode.task,
    reward: episodeReturn(episode),
    rewards: messages.flatMap(({ role, reward = 0 }) => (role === 'assistant' ? [reward] : [])),
    success: episode.success,
  };
}

function plainMessage({ role, content }: Message): Message {
  return { role, content };
}

/** Preference record, as TRL's DPO trainer takes it: both continuations answer the same prompt. */
export interface PreferenceRecord {
  readonly prompt: readonly Message[];
  readonly chosen: readonly Message[];
  readonly rejected: readonly Message[];
  readonly task: { readonly env: string; readonly index: number; readonly seed: number };
  /** Returns of the two episodes. */
  readonly score_chosen: number;
  readonly score_rejected: number;
}

/**
 * Pairs two episodes of one task: the prompt is what they share, up to the message that each first answered otherwise.
 * @returns undefined where they share no prompt, or one continues the other
 * @throws {UserError} BAD_ARGUMENT for an episode of calls
 */
export function preferenceRecord(chosen: TraceLine, rejected: TraceLine): PreferenceRecord | undefined {
  for (const episode of [chosen, rejected]) refuseCalls(episode, 'dpo');
  const [good, bad] = [chosen, rejected].map((episode) => buildRecordedConversation(episode).map(plainMessage));
  const isSameMessage = (at: number) => good![at]?.role === bad![at]?.role && good![at]?.content === bad![at]?.content;
  let shared = 0;
  while (shared < Math.min(good!.length, bad!.length) && isSameMessage(shared)) shared++;
  if (shared >= good!.length || shared >= bad!.length) return undefined;
  while (shared > 0 && good![shared - 1]!.role === 'assistant') shared--; // a continuation begins with an answer
  if (shared === 0) return undefined;
  return {
    prompt: good!.slice(0, shared),
    chosen: good!.slice(shared),
    rejected: bad!.slice(shared),
    task: chosen.task,
    score_chosen: episodeReturn(chosen),
    score_rejected: episodeReturn(rejected),
  };
}
