/** Drawing of an episode: the question, each query with its passages, and the answer against the right ones. */
import type { Draw, ListPanel, TextPanel } from '../../src/core/draw.ts';
import { parse } from './grammar.ts';
import { normalize } from './scoring.ts';
import { RIGHT, readPassages, readQuestion } from './text.ts';

const MAX_LINES = 60;

export const draw: Draw = (_task, first, turns) => {
  const question = readQuestion(first.observation);
  const lines: string[] = [];
  const answers: { name: string; mark: 'good' | 'bad' }[] = [];
  for (const { action, observation } of turns) {
    const command = parse(action);
    if (command?.type === 'search') lines.push(`search: ${command.content}`, ...found(command.content, observation));
    else if (command) answers.push({ name: command.content, mark: observation === RIGHT ? 'good' : 'bad' });
    else lines.push('no action');
  }
  const read: TextPanel = { kind: 'text', title: 'Searches', lines: bounded(lines) };
  const asked: TextPanel = { kind: 'text', title: 'Question', lines: [question] };
  const given: ListPanel = { kind: 'list', title: 'Answers', items: answers };
  return { panels: [asked, read, given] };
};

/** A line a passage; words of the query stand between asterisks. */
function found(query: string, observation: string): string[] {
  const asked = new Set(words(query));
  const marked = (text: string) =>
    text.replace(/[\p{L}\p{M}\p{N}]+/gu, (word) => (asked.has(normalize(word)) ? `*${word}*` : word));
  return readPassages(observation).map(({ title, text }, i) => `  ${i + 1} ${title}: ${marked(text)}`);
}

function words(text: string): string[] {
  return (text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).map(normalize);
}

function bounded(lines: readonly string[]): readonly string[] {
  if (lines.length <= MAX_LINES) return lines;
  return [`… ${lines.length - MAX_LINES + 1} lines before`, ...lines.slice(1 - MAX_LINES)];
}
