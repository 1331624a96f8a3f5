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
 *
 * Where a question names two things, they are distinguished (`asked one`, `asked two`), and of the passages that were
 * searched for by their title the text restates each number, and whether it is more or less than the last one read
 * as many steps from the question, and each name that stood in an earlier one, too:
 *
 *     Which was released first, Hollow Meadow or Dark Hill?
 *     … search asked one search asked two read number releas of asked one read number releas of asked two less
 */
import type { First } from '../../src/core/env.ts';
import type { Rendered, SeenTurn, Track, WindowView } from '../../src/core/view.ts';
import { ANALYZERS } from '../../src/retrieval/analyzer.ts';
import { parse } from './grammar.ts';
import { cutAtMentions } from './mentions.ts';
import { type ReadPassage, readPassages, readQuestion } from './text.ts';
import { COMPARED, RELATIONS, SHARED } from './wiki/schema.ts';

/** Searches that the text lists, newest kept. */
const MAX_SEARCHES = 6;
/** Numbers and names met again that the text lists, newest kept. */
const MAX_NOTES = 6;
/** Words of a candidate behind its first. */
const MAX_WORDS = 24;
/** Words of one sentence, and of a question. */
const MAX_SENTENCE = 8;
const MAX_QUESTION = 24;

const MARKS = [
  ...['ask', 'asked', 'search', 'answer', 'number', 'word', 'yes', 'no', 'none', 'unread'],
  ...['of', 'by', 'far', 'both', 'title', 'bare', 'other'],
  ...['one', 'two', 'read', 'more', 'less', 'same', 'again'],
];
/** Marks that distinguish the names of a question that has several. */
const ORDER = ['one', 'two'];
/** Words of the embedded world's sentences that belong to no relation. */
const FURTHER =
  'whose birth release founding opening came first that, paternal grandfather, also called, little else on record, letters ' +
  'about survive in private hands, visitors still ask, some accounts differ in detail';
/** Vocabulary of the embedded world: a list of words, not how they are put together. */
const KNOWN: ReadonlySet<string> = new Set(
  ANALYZERS.english(
    [...RELATIONS.flatMap(({ statements, nouns, asks }) => [...statements, ...nouns, ...asks]), FURTHER]
      .concat(Object.values(COMPARED), Object.values(SHARED))
      .join(' ')
      .replace(/\{\w\}/g, ' '),
  ),
);

/** Memory of an episode: the question, and what was read of each name. */
interface Read {
  /** The question's words, its names as marks. */
  readonly ask: string;
  /** Names of the question, each with its mark. */
  readonly marks: ReadonlyMap<string, string>;
  /** Readings by name: the words of the sentence it was last read in, and the way there. */
  readonly readings: ReadonlyMap<string, string>;
  /** Ways of the names searched for, in order. */
  readonly searches: readonly string[];
  /** Numbers and names met again, of a question that names several things. */
  readonly notes: readonly string[];
  /** Number that was read last, by the steps from the question to its passage. */
  readonly numbers: ReadonlyMap<number, number>;
  /** Ways of the searched-for passages that each name has stood in. */
  readonly stood: ReadonlyMap<string, string>;
}

const track: Track<Read> = { begin, reduce: updateRead };

export const view: WindowView<Read> = {
  id: 'searchqa/sentences@2',
  mode: 'window',
  lexicon: [],
  words: [...MARKS, ...KNOWN],
  track,
  candidate,
  render,
};

function begin({ observation }: First): Read {
  const pieces = cutAtMentions(readQuestion(observation));
  const marks = marksOf(pieces.filter((_, i) => i % 2 === 1));
  const words = pieces.flatMap((piece, i) => (i % 2 === 1 ? marks.get(piece)!.split(' ') : stemsOf(piece)));
  const ask = words.slice(0, MAX_QUESTION).join(' ');
  return { ask, marks, readings: new Map(), searches: [], notes: [], numbers: new Map(), stood: new Map() };
}

/** Marks of a question's mentions: `asked`, with its place among them where there are several; `word`. */
function marksOf(mentions: readonly string[]): ReadonlyMap<string, string> {
  const names = new Set(mentions.filter(isName));
  const marks = new Map(mentions.map((mention) => [mention, 'word']));
  let place = 0;
  for (const name of names) marks.set(name, names.size === 1 ? 'asked' : `asked ${ORDER[place++] ?? 'other'}`);
  return marks;
}

function updateRead(read: Read, { action, observation }: SeenTurn): Read {
  const command = parse(action);
  if (command?.type !== 'search') return read;
  const query = command.content;
  const way = read.marks.get(query) ?? read.readings.get(query) ?? 'other';
  const found = new Map<string, string>();
  for (const passage of readPassages(observation)) {
    const from = wayOf(passage, query, way) + (isAboutAll(passage, read.marks) ? ' both' : '');
    for (const { names, words } of sentencesOf(passage)) {
      for (const name of names) {
        if (name !== passage.title && !found.has(name)) found.set(name, boundText(`${words} ${from}`));
      }
    }
    if (!found.has(passage.title)) found.set(passage.title, boundText(`title ${from}`));
  }
  const readings = new Map(read.readings);
  for (const [name, reading] of found) {
    // A passage far from the search adds less than what is known already.
    if (!(readings.has(name) && FAR.test(reading))) readings.set(name, reading);
  }
  const updated = { ...read, readings, searches: [...read.searches, way].slice(-MAX_SEARCHES) };
  if (!namesSeveral(read)) return updated;
  const own = readPassages(observation).filter(({ title }) => title === query);
  return own.reduce<Read>((noted, passage) => withNotes(noted, passage, `of ${way}`), updated);
}

function namesSeveral({ marks }: Read): boolean {
  return [...marks.values()].includes(`asked ${ORDER[0]}`);
}

/** Notes what a passage that was searched for holds: its numbers, and the names that stood in an earlier one. */
function withNotes(read: Read, passage: ReadPassage, way: string): Read {
  const notes = [...read.notes];
  const stood = new Map(read.stood);
  const numbers = new Map(read.numbers);
  const steps = way.split(' of ').length;
  for (const { names, words } of sentencesOf(passage)) {
    for (const name of names) {
      if (/^\d+$/.test(name)) {
        const number = Number(name);
        notes.push(boundText(`read number ${words} ${way} ${compareNumbers(numbers.get(steps), number)}`.trimEnd()));
        numbers.set(steps, number);
      } else if (isName(name) && name !== passage.title && !read.marks.has(name)) {
        if (read.stood.has(name) && read.stood.get(name) !== way) notes.push(boundText(`read again ${words} ${way}`));
        if (!stood.has(name)) stood.set(name, way);
      }
    }
  }
  return { ...read, notes: notes.slice(-MAX_NOTES), numbers, stood };
}

/** Mark of a number beside the one that was read before it. */
function compareNumbers(before: number | undefined, number: number): string {
  if (before === undefined) return '';
  return number === before ? 'same' : number > before ? 'more' : 'less';
}

const FAR = / far(?: both)?$/;

/** The way to a passage: how its query was come by, where the passage speaks of that. */
function wayOf(passage: ReadPassage, query: string, way: string): string {
  if (passage.title === query) return `of ${way}`;
  const link = sentencesOf(passage).find(({ names }) => names.has(query));
  return link ? `by ${link.words} of ${way}` : 'far';
}

function isAboutAll(passage: ReadPassage, marks: ReadonlyMap<string, string>): boolean {
  if (marks.size < 2) return false;
  const sentences = sentencesOf(passage);
  for (const name of marks.keys()) {
    if (name !== passage.title && !sentences.some(({ names }) => names.has(name))) return false;
  }
  return true;
}

function boundText(text: string): string {
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

function candidate(action: string, { marks, readings }: Read): string {
  const command = parse(action);
  if (!command) return 'none';
  const { type, content } = command;
  if (type === 'answer' && (content === 'yes' || content === 'no')) return `answer ${content}`;
  const reading = readings.get(content) ?? marks.get(content) ?? 'unread';
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
  const { ask, searches, notes } = state ?? begin(first);
  const segments = [`ask ${ask}`, ...searches.map((way) => ` search ${way}`), ...notes.map((note) => ` ${note}`)];
  return { segments, focus: ask, mentions: () => [] };
}
