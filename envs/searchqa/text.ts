/** Texts of the world, every sentence: the two originals' word for word, and the few that are ours. */
import { strip } from '../../src/core/python-text.ts';

/** Dialect. `agentgym`: a dialogue of turns. `search-r1`: one long answer into which results are inserted. */
export type Dialect = 'agentgym' | 'search-r1';

const AGENTGYM_TASK =
  'You must reason inside <think>...</think> first. If you do not have enough knowledge, issue a <search>...</search> ' +
  'and then STOP. Do not generate <information> or <answer> yet. Wait for external input wrapped in ' +
  '<information>...</information>. After receiving information, reason again in <think>. If confident, output your ' +
  'final answer in <answer>...</answer>. Do not output <answer> before receiving <information> unless you are fully ' +
  'confident. If you find no further external knowledge needed, you can directly provide the answer inside <answer> ' +
  'and </answer>, without detailed illustrations. For example, <answer> Beijing </answer>. Follow this process every ' +
  'time.\n\n Question: ';

const SEARCH_R1_TASK =
  'Answer the given question. You must conduct reasoning inside <think> and </think> first every time you get new ' +
  'information. After reasoning, if you find you lack some knowledge, you can call a search engine by <search> query ' +
  '</search> and it will return the top searched results between <information> and </information>. You can search as ' +
  'many times as your want. If you find no further external knowledge needed, you can directly provide the answer ' +
  'inside <answer> and </answer>, without detailed illustrations. For example, <answer> Beijing </answer>. Question: ';

/** Opening: the first observation. */
export function opening(dialect: Dialect, question: string): string {
  return dialect === 'agentgym' ? AGENTGYM_TASK + strip(question) : `${SEARCH_R1_TASK}${question}\n`;
}

/** The question of a first observation; empty where it is none of ours. */
export function readQuestion(first: string): string {
  for (const task of [AGENTGYM_TASK, SEARCH_R1_TASK])
    if (first.startsWith(task)) return strip(first.slice(task.length));
  return '';
}

/** A question as the data scripts write it: without white space around it, with its mark. */
export function asQuestion(raw: string): string {
  const question = strip(raw);
  return question.endsWith('?') ? question : `${question}?`;
}

/** Observation after a right answer. */
export const RIGHT = 'Congratulations! You have answered the question correctly.';
/** Observation after a wrong answer. */
export const WRONG = 'Sorry, your answer is incorrect. Please try again.';
/** Reply where a wrong answer ends the episode. */
export const WRONG_AND_OVER = 'The answer is incorrect.';
/** Observation of an action after the end. */
export const OVER = 'The question has been answered.';

const INVALID: Readonly<Record<Dialect, string>> = {
  agentgym:
    'Your previous action is invalid. If you want to search, you should put the query between <search> and </search>. ' +
    'If you want to give the final answer, you should put the answer between <answer> and </answer>. Please try again.',
  'search-r1':
    '\nMy previous action is invalid. If I want to search, I should put the query between <search> and </search>. ' +
    'If I want to give the final answer, I should put the answer between <answer> and </answer>. Let me try again.\n',
};

/** Reply to a text without an action. */
export function invalid(dialect: Dialect): string {
  return INVALID[dialect];
}

/** Information: the passages found, as an observation. */
export function information(dialect: Dialect, passages: string): string {
  const block = `<information>${strip(passages)}</information>`;
  return dialect === 'agentgym' ? block : `\n\n${block}\n\n`;
}

/** Passages numbered from 1, title (the first line) and text each: `Doc 1(Title: "T") text`. */
export function listPassages(contents: readonly string[]): string {
  let list = '';
  for (const [i, passage] of contents.entries()) {
    const end = passage.indexOf('\n');
    const title = end < 0 ? passage : passage.slice(0, end);
    list += `Doc ${i + 1}(Title: ${title}) ${end < 0 ? '' : passage.slice(end + 1)}\n`;
  }
  return list;
}

const TAG = /<(\/?(?:think|search|information|answer))>/g;
const MAX_TITLE = 200;

/** Tames a passage, so that it can close no tag of the protocol and is no longer than `maxChars`, cut at a word. */
export function tame(contents: string, maxChars: number): string {
  const safe = contents.replace(TAG, '‹$1›');
  const end = safe.indexOf('\n');
  const title = end < 0 ? safe : safe.slice(0, end);
  if (safe.length <= maxChars && title.length <= MAX_TITLE) return safe;
  const rest = end < 0 ? '' : safe.slice(end);
  return cutAtWord(title, Math.min(MAX_TITLE, maxChars)) + cutAtWord(rest, Math.max(0, maxChars - title.length));
}

function cutAtWord(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const blank = text.lastIndexOf(' ', maxChars);
  let end = blank > 0 ? blank : maxChars;
  if (end > 0 && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--; // not inside a surrogate pair
  return text.slice(0, end);
}

/** Longest observation of `topk` passages of at most `passageChars` each. */
export function longestInformation(topk: number, passageChars: number): number {
  return topk * (passageChars + 40) + 100;
}

/** One passage of an observation. */
export interface ReadPassage {
  readonly title: string;
  readonly text: string;
}

const DOC = /Doc \d+\(Title: /;

/** The passages of an observation; none in any other observation. */
export function readPassages(observation: string): ReadPassage[] {
  const start = observation.indexOf('<information>');
  if (start < 0) return [];
  const end = observation.lastIndexOf('</information>');
  const inside = observation.slice(start + '<information>'.length, end < 0 ? undefined : end);
  const passages: ReadPassage[] = [];
  for (const piece of inside.split(DOC).slice(1)) {
    const close = piece.startsWith('"') ? piece.indexOf('") ') + 1 : piece.indexOf(') ');
    const title = close > 0 ? piece.slice(0, close) : piece;
    passages.push({ title: title.replace(/^"(.*)"$/s, '$1'), text: close > 0 ? strip(piece.slice(close + 2)) : '' });
  }
  return passages;
}

/** Conversation as one assistant turn of a chat template, as Search-R1 scores it; behind its prompt, where given. */
export function conversation(turns: string, question?: string): string {
  const prompt = question === undefined ? '' : `<|im_start|>user\n${opening('search-r1', question)}<|im_end|>\n`;
  return `${prompt}<|im_start|>assistant\n${turns}`;
}
