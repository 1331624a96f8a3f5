/**
 * World in few tokens, for the local policy: the question, then the searches made; and of each listed name the sentence
 * that it was last read in. Names become marks, so that nothing is learnt of a name by heart; the words between them are
 * what BM25 would read (lower case, without stop words, stemmed). Nothing is parsed and nothing is searched: a candidate
 * restates a sentence, and how the policy came by it.
 *
 *     Who is the father of the maker of Hollow Meadow?      ask who father maker asked
 *     The maker of Hollow Meadow is Dourork Moupux.         search maker of asked
 *     (after that search) The father of … is Hair Krazend.  answer father of maker of asked
 *
 * `of` goes from a sentence to the way its passage was come by: a passage that is titled by the query has the sentence
 * that the query's name was read in, and so on back to a name of the question (`asked`); `by` one that only mentions the
 * query, with the sentence that does; `far` one that does not. `both`: the passage names all that the question names.
 */
import type { First } from '../../src/core/env.ts';
import type { Rendered, SeenTurn, Track, WindowView } from '../../src/core/view.ts';
import { ANALYZERS } from '../../src/retrieval/analyzer.ts';
import { parse } from './grammar.ts';
import { cutAtMentions } from './mentions.ts';
import { type ReadPassage, readPassages, readQuestion } from './text.ts';
import { COMPARED, RELATIONS, SHARED } from './wiki/schema.ts';

/** Searches that the text tells, newest kept. */
const MAX_SEARCHES = 6;
/** Words of a candidate behind its first. */
const MAX_WORDS = 24;
/** Words of one sentence, and of a question. */
const MAX_SENTENCE = 8;
const MAX_QUESTION = 24;

const MARKS = [
  ...['ask', 'asked', 'search', 'answer', 'number', 'word', 'yes', 'no', 'none', 'unread'],
  ...['of', 'by', 'far', 'both', 'title', 'bare', 'other'],
];
/** Words of the embedded world's sentences that belong to no relation. */
const FURTHER =
  'whose birth release founding opening came first that, paternal grandfather, also called, little else on record, letters ' +
  'about survive in private hands, visitors still ask, some accounts differ in detail';
/** Vocabulary of the embedded world: a list of words, not how they are put together. */
const KNOWN: ReadonlySet<string> = new Set(
  ANALYZERS.english(
    [...RELATIONS.flatMap(({ says, nouns, asks }) => [...says, ...nouns, ...asks]), FURTHER]
      .concat(Object.values(COMPARED), Object.values(SHARED))
      .join(' ')
      .replace(/\{\w\}/g, ' '),
  ),
);

/** Memory of an episode: the question, and what was read of each name. */
interface Read {
  /** The question's words, its names as marks. */
  readonly ask: string;
  /** Names of the question. */
  readonly asked: ReadonlySet<string>;
  /** Readings by name: the words of the sentence it was last read in, and the way there. */
  readonly readings: ReadonlyMap<string, string>;
  /** Ways of the names searched for, in order. */
  readonly searches: readonly string[];
}

const track: Track<Read> = { begin, after };

export const view: WindowView<Read> = {
  id: 'searchqa/sentences@1',
  mode: 'window',
  lexicon: [],
  words: [...MARKS, ...KNOWN],
  track,
  candidate,
  render,
};

function begin({ observation }: First): Read {
  const pieces = cutAtMentions(readQuestion(observation));
  const asked = new Set(pieces.filter((_, i) => i % 2 === 1));
  const words = pieces.flatMap((piece, i) => (i % 2 === 1 ? [markOf(piece)] : stemsOf(piece)));
  return { ask: words.slice(0, MAX_QUESTION).join(' '), asked, readings: new Map(), searches: [] };
}

function markOf(name: string): string {
  return isName(name) ? 'asked' : 'word';
}

function after(read: Read, { action, observation }: SeenTurn): Read {
  const command = parse(action);
  if (command?.type !== 'search') return read;
  const query = command.content;
  const way = read.asked.has(query) ? 'asked' : (read.readings.get(query) ?? 'other');
  const found = new Map<string, string>();
  for (const passage of readPassages(observation)) {
    const from = wayOf(passage, query, way) + (isAboutAll(passage, read.asked) ? ' both' : '');
    for (const { names, words } of sentencesOf(passage)) {
      for (const name of names) {
        if (name !== passage.title && !found.has(name)) found.set(name, bounded(`${words} ${from}`));
      }
    }
    if (!found.has(passage.title)) found.set(passage.title, bounded(`title ${from}`));
  }
  const readings = new Map(read.readings);
  for (const [name, reading] of found) {
    // What stands far from the search says less than what is known already.
    if (!(readings.has(name) && FAR.test(reading))) readings.set(name, reading);
  }
  return { ...read, readings, searches: [...read.searches, way].slice(-MAX_SEARCHES) };
}

const FAR = / far(?: both)?$/;

/** The way to a passage: how its query was come by, where the passage speaks of that. */
function wayOf(passage: ReadPassage, query: string, way: string): string {
  if (passage.title === query) return `of ${way}`;
  const link = sentencesOf(passage).find(({ names }) => names.has(query));
  return link ? `by ${link.words} of ${way}` : 'far';
}

function isAboutAll(passage: ReadPassage, asked: ReadonlySet<string>): boolean {
  if (asked.size < 2) return false;
  const sentences = sentencesOf(passage);
  for (const name of asked) {
    if (name !== passage.title && !sentences.some(({ names }) => names.has(name))) return false;
  }
  return true;
}

function bounded(text: string): string {
  const words = text.split(' ');
  return words.length > MAX_WORDS ? words.slice(0, MAX_WORDS).join(' ') : text;
}

/** A sentence as it is read: its names, and the stems of the words between them. */
interface Sentence {
  readonly names: ReadonlySet<string>;
  readonly words: string;
}

const REMEMBERED = 32_768;
const remembered = new Map<string, readonly Sentence[]>();

/** The sentences of a passage. Remembers texts: the same passages are read often. */
function sentencesOf({ text }: ReadPassage): readonly Sentence[] {
  const kept = remembered.get(text);
  if (kept) return kept;
  const sentences = text.split('. ').map((sentence) => {
    const pieces = cutAtMentions(sentence);
    const names = new Set(pieces.filter((_, i) => i % 2 === 1));
    const words = pieces.flatMap((piece, i) => (i % 2 === 1 ? [] : stemsOf(piece)));
    return { names, words: words.slice(0, MAX_SENTENCE).join(' ') || 'bare' };
  });
  if (remembered.size >= REMEMBERED) remembered.clear();
  remembered.set(text, sentences);
  return sentences;
}

/** Stems as BM25 reads them; `other` for those that no sentence of the embedded world has. */
function stemsOf(text: string): string[] {
  return ANALYZERS.english(text).map((stem) => (KNOWN.has(stem) ? stem : 'other'));
}

function candidate(action: string, { asked, readings }: Read): string {
  const command = parse(action);
  if (!command) return 'none';
  const { type, content } = command;
  if (type === 'answer' && (content === 'yes' || content === 'no')) return `answer ${content}`;
  const reading = readings.get(content) ?? (asked.has(content) ? 'asked' : 'unread');
  return `${type === 'search' ? type : formOf(content)} ${reading}`;
}

/** Form of an answer: `number`, `word` (written small), or `answer`, a name. */
function formOf(content: string): string {
  if (/\d/.test(content)) return 'number';
  return isName(content) ? 'answer' : 'word';
}

function isName(content: string): boolean {
  return !/^\p{Ll}/u.test(content);
}

function render(first: First, _turns: readonly SeenTurn[], state?: Read): Rendered {
  const { ask, searches } = state ?? begin(first);
  const segments = [`ask ${ask}`, ...searches.map((way) => ` search ${way}`)];
  return { segments, focus: ask, mentions: () => [] };
}
