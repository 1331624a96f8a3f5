/**
 * Listed actions: searches for names of the question and of passages read, answers with what passages read hold. An
 * answer is listed only once a passage that was read contains it. Works on any corpus of English text.
 */

import { print } from './grammar.ts';
import * as text from './text.ts';
import { LIST_WORDS } from './wiki/words.ts';

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
/** Runs of capitalised words, numbers, and words of the embedded world's closed lists. */
const MENTION =
  /UTC[+-]\d\d:\d\d|\p{Lu}[\p{L}\p{M}\p{N}'’/_-]*(?: (?:of )?\p{Lu}[\p{L}\p{M}\p{N}'’/_-]*)*|\d+|\p{Ll}+/gu;
/** Words that begin sentences and questions; taken off the front of a mention. */
const STARTERS = new Set(
  (
    'The A An In On At By For Of To And From Its It His Her He She Their They This That There Who Whom Whose What Which ' +
    'Where When Why How Is Are Was Were Do Does Did Has Have Had Name Into Doc Title'
  ).split(' '),
);
const LOWER = /^\p{Ll}/u;
const IS_NUMBER = /^\d+$/;
const IS_CLOSED_QUESTION = /^(?:Is|Are|Was|Were|Do|Does|Did|Has|Have|Can) /;

/** Names, numbers and listed words of a text, in order, each once. */
export function mentionsOf(passage: string): Set<string> {
  const mentions = new Set<string>();
  for (const [run] of passage.matchAll(MENTION)) {
    if (LOWER.test(run)) {
      if (LIST_WORDS.has(run)) mentions.add(run);
      continue;
    }
    let mention = run;
    for (let blank = mention.indexOf(' '); STARTERS.has(blank < 0 ? mention : mention.slice(0, blank)); ) {
      mention = blank < 0 ? '' : mention.slice(blank + 1).replace(/^of /, '');
      blank = mention.indexOf(' ');
      if (mention === '') break;
    }
    if (mention !== '') mentions.add(mention);
  }
  return mentions;
}

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
