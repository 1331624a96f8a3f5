/**
 * Listed actions: searches for names of the question and of passages read, answers with what passages read hold. An
 * answer is listed only once a passage that was read contains it. Works on any corpus of English text.
 */

import { print } from './grammar.ts';
import { mentionsOf } from './mentions.ts';

/** A name with the actions it stands in; one object a name. */
interface Option {
  readonly name: string;
  /** Undefined where it is not worth searching for: a number, a common word. */
  readonly search: string | undefined;
  readonly answer: string;
}

/** Question and passages of an episode so far. */
export interface Memory {
  readonly question: string;
  /** Names that the question mentions. */
  readonly questionOptions: readonly Option[];
  readonly searched: Set<string>;
  /** Passages read, the best of a search last. */
  readonly passages: string[];
}

/** Starts the memory of an episode: the question, nothing searched yet. */
export function startMemory(question: string): Memory {
  return { question, questionOptions: optionsOf(question), searched: new Set(), passages: [] };
}

/** Keeps a search and the passages it was answered with, best first. */
export function remember(memory: Memory, query: string, passages: readonly string[]): void {
  memory.searched.add(query);
  for (let i = passages.length - 1; i >= 0; i--) memory.passages.push(passages[i]!);
}

const REMEMBERED = 32_768;
const options = new Map<string, Option>();
const optionsIn = new Map<string, readonly Option[]>();

/** Options of a text: its mentions. Remembers texts and names: the same passages are listed often. */
function optionsOf(text: string): readonly Option[] {
  const kept = optionsIn.get(text);
  if (kept) return kept;
  const found = Array.from(mentionsOf(text), optionOf);
  if (optionsIn.size >= REMEMBERED) optionsIn.clear();
  optionsIn.set(text, found);
  return found;
}

function optionOf(name: string): Option {
  const kept = options.get(name);
  if (kept) return kept;
  const search = LOWER.test(name) || IS_NUMBER.test(name) ? undefined : print({ type: 'search', content: name });
  const made = { name, search, answer: print({ type: 'answer', content: name }) };
  if (options.size >= REMEMBERED) options.clear();
  options.set(name, made);
  return made;
}

/** Searches listed at most, of the longest list. */
const SEARCH_SHARE = 24 / 64;
const LOWER = /^\p{Ll}/u;
const IS_NUMBER = /^\d+$/;
const IS_CLOSED_QUESTION = /^(?:Is|Are|Was|Were|Do|Does|Did|Has|Have|Can) /;

/** True of a question that is answered with yes or no. */
function isClosedQuestion(question: string): boolean {
  return IS_CLOSED_QUESTION.test(question) && !isComparison(question);
}

/** True of a question that offers its answers itself: `…, A or B?` */
function isComparison(question: string): boolean {
  return question.includes(' or ');
}

/**
 * Lists the actions of an episode, newest names first: searches, then answers.
 * @param max actions at most
 */
export function listActions({ question, questionOptions, searched, passages }: Memory, max: number): readonly string[] {
  const names = new Set<string>();
  const newest: Option[] = [];
  for (let p = passages.length - 1; p >= 0; p--) {
    const found = optionsOf(passages[p]!);
    for (let i = found.length - 1; i >= 0; i--) {
      const option = found[i]!;
      if (names.size < names.add(option.name).size) newest.push(option);
    }
  }
  const actions: string[] = [];
  const searches = Math.floor(max * SEARCH_SHARE);
  const questionNames = new Set<string>();
  for (const { name, search } of questionOptions) {
    questionNames.add(name);
    if (search !== undefined && actions.length < searches && !searched.has(name)) actions.push(search);
  }
  for (const { name, search } of newest) {
    if (actions.length >= searches) break;
    if (search !== undefined && !searched.has(name) && !questionNames.has(name)) actions.push(search);
  }
  if (newest.length === 0) return actions;
  if (isClosedQuestion(question)) actions.push(YES, NO);
  if (isComparison(question)) {
    // First, so that no number of newer names takes their place.
    for (const { name, answer } of questionOptions) if (names.has(name)) actions.push(answer);
  }
  for (const { name, answer } of newest) {
    if (actions.length >= max) break;
    if (!questionNames.has(name)) actions.push(answer);
  }
  return actions;
}

const YES = print({ type: 'answer', content: 'yes' });
const NO = print({ type: 'answer', content: 'no' });
