/**
 * Listed actions: searches for names of the question and of passages read, answers with what passages read hold. An
 * answer is listed only once a passage that was read contains it. Works on any corpus of English text.
 */

import { print } from './grammar.ts';
import { mentionsOf } from './mentions.ts';
import * as text from './text.ts';

/** What an episode has read so far; observations are looked at when actions are asked for. */
export interface Memory {
  readonly question: string;
  readonly searched: Set<string>;
  /** Observations not looked at yet. */
  readonly unread: string[];
  /** Mentions of passages, oldest first; one mentioned again moves to the end. */
  readonly found: Set<string>;
}

export function startMemory(question: string): Memory {
  return { question, searched: new Set(), unread: [], found: new Set() };
}

/** Keeps a search and what it was answered. */
export function remember(memory: Memory, query: string, observation: string): void {
  memory.searched.add(query);
  memory.unread.push(observation);
}

/** Searches listed at most, of the longest list. */
const SEARCH_SHARE = 24 / 64;
const LOWER = /^\p{Ll}/u;
const IS_NUMBER = /^\d+$/;
const IS_CLOSED_QUESTION = /^(?:Is|Are|Was|Were|Do|Does|Did|Has|Have|Can) /;

/** Whether a question is answered with yes or no. */
export function isClosedQuestion(question: string): boolean {
  return IS_CLOSED_QUESTION.test(question) && !isComparison(question);
}

/** Whether a question offers its answers itself: `…, A or B?` */
export function isComparison(question: string): boolean {
  return question.includes(' or ');
}

/**
 * The actions of an episode, newest names first: searches, then answers.
 * @param most actions at most
 */
export function listActions(memory: Memory, most: number): readonly string[] {
  const { question, searched, unread, found } = memory;
  for (const observation of unread) {
    for (const { title, text: body } of text.readPassages(observation).reverse()) {
      for (const mention of mentionsOf(`${title}\n${body}`)) {
        found.delete(mention);
        found.add(mention);
      }
    }
  }
  unread.length = 0;
  const asked = mentionsOf(question);
  const names = [...found].reverse();
  const actions: string[] = [];
  const searches = Math.floor(most * SEARCH_SHARE);
  for (const name of new Set([...asked, ...names])) {
    if (actions.length >= searches) break;
    if (!searched.has(name) && !isListWord(name)) actions.push(search(name));
  }
  if (found.size === 0) return actions;
  if (isClosedQuestion(question)) actions.push(answer('yes'), answer('no'));
  const takesAsked = isComparison(question);
  for (const name of names) {
    if (actions.length >= most) break;
    if (takesAsked || !asked.has(name)) actions.push(answer(name));
  }
  return actions;
}

function isListWord(name: string): boolean {
  return IS_NUMBER.test(name) || LOWER.test(name);
}

function search(content: string): string {
  return print({ type: 'search', content });
}

function answer(content: string): string {
  return print({ type: 'answer', content });
}
