/** Drawing of an episode: the question, each query with its passages, and the answer against the right ones. */

import type { Draw, ListPanel, TextPanel } from '../../src/core/draw.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { append } from '../../src/core/extremes.ts';
import { fileQuestions } from './data-files.ts';
import { parse } from './grammar.ts';
import { readOptions, type Sources } from './options.ts';
import type { Questions } from './questions.ts';
import { exactMatch, normalize } from './scoring.ts';
import { asQuestion, RIGHT, readPassages, readQuestion, WRONG_AND_OVER } from './text.ts';
import { openWiki, wikiQuestions } from './wiki/world.ts';

const MAX_LINES = 60;

export const draw: Draw = (task, first, turns, options) => {
  const question = readQuestion(first.observation);
  const lines: string[] = [];
  const answers: { name: string; mark: 'good' | 'bad' | 'goal' }[] = [];
  const gold = options && turns.length > 0 ? goldOf(task.index, question, options) : [];
  let isOver = false;
  for (const { action, observation } of turns) {
    const command = parse(action);
    if (command?.type === 'search')
      append(lines, [`search: ${command.content}`, ...drawFound(command.content, observation)]);
    else if (command) {
      const isRight = observation === RIGHT || exactMatch(command.content, gold);
      answers.push({ name: command.content, mark: isRight ? 'good' : 'bad' });
      isOver ||= ENDS.has(observation);
    } else lines.push('no action');
  }
  // The right answers stand there once it is over; the player does not see them before.
  if (isOver) for (const name of gold) answers.push({ name, mark: 'goal' });
  const read: TextPanel = { kind: 'text', title: 'Searches', lines: boundLines(lines) };
  const asking: TextPanel = { kind: 'text', title: 'Question', lines: [question] };
  const given: ListPanel = { kind: 'list', title: 'Answers', items: answers };
  return { panels: [asking, read, given] };
};

/** Observations after the last answer; Search-R1's dialect has none. */
const ENDS: ReadonlySet<string> = new Set([RIGHT, WRONG_AND_OVER, '']);

/** Questions of the sources drawn last: files are read, and a world is made, once. */
let held: { readonly key: string; readonly questions: Questions | undefined } | undefined;

/** Right answers of a task; none where the options have no such question. */
function goldOf(index: number, question: string, options: EnvOptions): readonly string[] {
  const { data, world } = options;
  const key = JSON.stringify([data, world]);
  if (held?.key !== key) held = { key, questions: questionsOf(options) };
  try {
    const found = held.questions?.at(index);
    return found && asQuestion(found.question) === asQuestion(question) ? found.answers : [];
  } catch {
    return []; // no such index
  }
}

/**
 * Questions of the configured world; undefined where the files are gone, or the options are those of another world that
 * plays this one.
 */
function questionsOf(options: EnvOptions): Questions | undefined {
  try {
    const { data, world, train }: Sources = readOptions(options);
    return data ? fileQuestions(data, train) : wikiQuestions(openWiki(world), train);
  } catch {
    return undefined;
  }
}

/** A line a passage; words of the query stand between asterisks. */
function drawFound(query: string, observation: string): string[] {
  const queryWords = new Set(words(query));
  const markWords = (text: string) =>
    text.replace(/[\p{L}\p{M}\p{N}]+/gu, (word) => (queryWords.has(normalize(word)) ? `*${word}*` : word));
  return readPassages(observation).map(({ title, text }, i) => `  ${i + 1} ${title}: ${markWords(text)}`);
}

function words(text: string): string[] {
  return (text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map(normalize);
}

function boundLines(lines: readonly string[]): readonly string[] {
  if (lines.length <= MAX_LINES) return lines;
  return [`… ${lines.length - MAX_LINES + 1} lines before`, ...lines.slice(1 - MAX_LINES)];
}
