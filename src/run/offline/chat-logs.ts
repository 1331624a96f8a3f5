/**
 * Chat logs: conversations of a user and a model as other tools keep them, read as demonstrations. Pure but for the file that is
 * read.
 *
 *     { messages: [{ role: 'system' | 'user' | 'assistant' | 'tool', content, tool_calls? }] }      OpenAI, TRL, our ChatML
 *     { conversations: [{ from: 'system' | 'human' | 'gpt' | 'tool', value }] }                     ShareGPT
 *
 * A file holds one such object a line, a list of them, or one alone; a bare list of messages is a conversation too. Messages of
 * users and tools are observations. Every answer of the model is learnt, its thought and its call of a tool included.
 */
import { existsSync, statSync } from 'node:fs';
import { MAX_DATA_BYTES, readText } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import { recordOf } from '../../core/record.ts';
import { wholeLines } from '../../storage/lines.ts';
import { ACKNOWLEDGEMENT } from '../../text/prompts/conversation.ts';
import { actionOfCall, readReply } from '../../text/prompts/formats.ts';
import type { DemonstratedTurn, Demonstration } from './demonstrations.ts';

type Json = Record<string, unknown>;

/**
 * Reads the records of a JSON file, or of one with JSON lines.
 * @returns undefined for a folder, and for a trace
 * @throws {UserError} BAD_TRACE for a file that is neither
 */
export function parseRecords(path: string): unknown {
  const isLines = path.endsWith('.jsonl');
  if (!(isLines || path.endsWith('.json')) || (existsSync(path) && statSync(path).isDirectory())) return undefined;
  if (isLines) {
    if (!existsSync(path)) return undefined;
    const [first] = wholeLines(path, 0, 1);
    if (first?.text?.includes('"longplay-trace"')) return undefined;
  }
  let text: string;
  try {
    text = readText(path, MAX_DATA_BYTES);
  } catch (thrown) {
    throw new UserError('BAD_TRACE', `cannot read ${messageOf(thrown)}`);
  }
  const fail = (why: string) => new UserError('BAD_TRACE', `cannot read ${path}: ${why}`);
  if (!isLines) return parseOr(text, (why) => fail(`it is no JSON: ${why}`));
  return text
    .split('\n')
    .map((line, i) => [line.trim(), i + 1] as const)
    .filter(([line]) => line !== '')
    .map(([line, number]) => parseOr(line, (why) => fail(`line ${number} is no JSON: ${why}`)));
}

function parseOr(text: string, fail: (why: string) => UserError): unknown {
  try {
    return parseJson(text);
  } catch (thrown) {
    throw fail(messageOf(thrown));
  }
}

/** Conversations of a file: a list of them, or the one that it holds. */
export function conversationsOf(records: unknown): readonly unknown[] {
  return Array.isArray(records) && !records.every((one) => roleOf(one) !== undefined) ? records : [records];
}

/** Messages of a conversation: a list, or what `messages` or `conversations` holds. */
function messagesOf(conversation: unknown): readonly unknown[] | undefined {
  const { messages, conversations } = recordOf(conversation) ?? {};
  const list = Array.isArray(conversation) ? conversation : (messages ?? conversations);
  return Array.isArray(list) ? list : undefined;
}

/** True for logs in OpenAI's form or ShareGPT's. AgentTraj has `from` too, and marks what is learnt by `loss`. */
export function isChatLog(records: unknown): boolean {
  const messages = messagesOf(conversationsOf(records)[0]);
  if (!messages || messages.length === 0) return false;
  const isMarked = messages.some((message) => recordOf(message)?.loss !== undefined);
  return messages.every((message) => roleOf(message) !== undefined) && !isMarked;
}

/** Describes what a file of records seems to be, for messages. */
export function describeRecords(records: unknown): string {
  const first = Array.isArray(records) ? records[0] : records;
  const messages = messagesOf(first);
  if (messages) {
    const roles = [...new Set(messages.map((one) => recordOf(one)?.role ?? recordOf(one)?.from ?? 'none'))];
    return `conversations of the roles ${roles.slice(0, 6).map(String).join(', ').slice(0, 80)}`;
  }
  const { prompt, chosen, completion, trajectory, steps, turns } = recordOf(first) ?? {};
  if (prompt !== undefined && chosen !== undefined)
    return 'preference pairs (prompt, chosen, rejected), which hold no episodes';
  if (prompt !== undefined && completion !== undefined) return 'pairs of prompt and completion, which hold no episodes';
  if (trajectory !== undefined || steps !== undefined || turns !== undefined) return 'trajectories of another tool';
  const keys = Object.keys(recordOf(first) ?? {}).slice(0, 6);
  if (keys.length > 0) return `objects with the keys ${keys.join(', ').slice(0, 120)}`;
  return Array.isArray(records) ? `a list of ${typeof first}s` : `a ${typeof records}`;
}

type Role = 'system' | 'user' | 'assistant';

const ROLES: Readonly<Record<string, Role>> = {
  ...{ system: 'system', developer: 'system' },
  ...{ user: 'user', human: 'user', tool: 'user', function: 'user', observation: 'user', function_response: 'user' },
  ...{ assistant: 'assistant', gpt: 'assistant', model: 'assistant', function_call: 'assistant' },
};

function roleOf(message: unknown): Role | undefined {
  const { role, from } = recordOf(message) ?? {};
  const name = role ?? from;
  return typeof name === 'string' && Object.hasOwn(ROLES, name) ? ROLES[name] : undefined;
}

/**
 * Converts logs to demonstrations. An exchange that only acknowledges the instructions, as ours does, is no part of the episode.
 * A record's `reward` is its score; `task: { env, index }`, as our ChatML has it, names world and task.
 * @param where names the source in messages
 * @param world by whose action forms answers are read
 * @throws {UserError} BAD_TRACE
 */
export function convertChatLog(records: unknown, where: string, world: WorldPrompt): Demonstration[] {
  return conversationsOf(records).map((conversation, i) => {
    const at = `conversation ${i}`;
    const fail = (place: string, expected: string) =>
      new UserError(
        'BAD_TRACE',
        `${where}: ${at}${place}: expected ${expected}; it seems to be ${describeRecords(conversation)}`,
      );
    const messages = messagesOf(conversation);
    if (!messages) throw fail('', '{ messages: [{ role, content }] } or { conversations: [{ from, value }] }');
    const { reward, task, id, item_id: item } = recordOf(conversation) ?? {};
    const { env, index } = recordOf(task) ?? {};
    const turns: DemonstratedTurn[] = [];
    let observation: string | undefined;
    for (const [j, message] of messages.entries()) {
      const role = roleOf(message);
      if (role === undefined) throw fail(`, message ${j}`, 'a role that is known (system, user, assistant, tool)');
      const { content, value } = message as Json;
      const text = textOf(content ?? value);
      if (role === 'system') continue;
      if (role === 'user') {
        if (text === undefined) throw fail(`, message ${j}`, 'a content');
        // Several results in a row answer several calls.
        observation = observation === undefined ? text : `${observation}\n${text}`;
        continue;
      }
      const answer = answerOf(message as Json, text ?? '', world);
      const acknowledges = turns.length === 0 && answer.action === ACKNOWLEDGEMENT;
      if (!acknowledges) {
        if (observation === undefined) throw fail(`, message ${j}`, 'a message of the user before it');
        turns.push({ observation, ...answer });
      }
      observation = undefined;
    }
    const name = [item, id].find((one) => typeof one === 'string') as string | undefined;
    return {
      source: `${where}, ${name ?? at}`,
      ...(typeof env === 'string' ? { world: env } : {}),
      ...(typeof index === 'number' ? { index } : {}),
      task: name ?? (typeof env === 'string' && typeof index === 'number' ? `${env}_${index}` : at),
      turns,
      finalObservation: observation ?? '',
      score: typeof reward === 'number' ? reward : 1,
    };
  });
}

/** Action of an answer, and the whole of it where that is more. A call of a tool is written as the call of a function. */
function answerOf(
  message: Json,
  text: string,
  world: WorldPrompt,
): Pick<DemonstratedTurn, 'action' | 'reply' | 'untrained'> {
  const { reasoning_content: reasoning } = message;
  const thought = typeof reasoning === 'string' && reasoning !== '' ? `<think>\n${reasoning}\n</think>\n` : '';
  const [call, ...others] = callsOf(message);
  if (call) {
    const parsed = actionOfCall(world, call.name, call.args);
    const args = objectOf(call.args) ?? call.args;
    const reply = thought + JSON.stringify({ thought: text, function_name: call.name, arguments: args });
    // Several calls at once are no action of a world.
    if ('error' in parsed || others.length > 0) return { action: '', reply, untrained: true };
    return { action: parsed.action, reply };
  }
  const whole = thought + text;
  const { action } = readReply(whole, world);
  if (action === '') return { action, reply: whole, untrained: true }; // it ends inside its thought, or is empty
  return action === whole.trim() ? { action } : { action, reply: whole };
}

function callsOf({ tool_calls: calls, function_call: legacy, from, value }: Json): { name: string; args: string }[] {
  const shown = from === 'function_call' && typeof value === 'string' ? objectOf(value) : undefined;
  const all = [...(Array.isArray(calls) ? calls.map((one) => recordOf(one)?.function ?? one) : []), legacy, shown];
  return all.flatMap((one) => {
    const { name, arguments: args } = recordOf(one) ?? {};
    if (typeof name !== 'string') return [];
    return [{ name, args: typeof args === 'string' ? args : JSON.stringify(args ?? {}) }];
  });
}

/** Text of a content: a text, or the texts of its parts. */
function textOf(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((part) => recordOf(part)?.text ?? part).filter((text) => typeof text === 'string');
  return texts.join('');
}

function objectOf(text: string): Json | undefined {
  try {
    return recordOf(parseJson(text));
  } catch {
    return undefined;
  }
}
