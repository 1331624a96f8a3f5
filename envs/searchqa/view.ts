/**
 * World in few tokens, for the local policy: the question, then what was read of the names in it and of the names they
 * led to. Names are running numbers in order of first mention, so that nothing is learnt of a name by heart; relations
 * are words. Each listed action says by which relations its name was reached from a name of the question, newest first.
 * Questions and passages are parsed by the embedded world's own templates (wiki/reader.ts): the policy matches the path
 * that is asked for with a candidate's, and reads no English.
 *
 *     ask spouse mayor 1 | search 1 realm 2 founding 3 mayor 4 | search 4 job 5 spouse 6
 *     candidates: search mayor · answer spouse mayor · answer job mayor
 *
 * Text that is not worded as the embedded world's is read as the names it mentions.
 */
import type { First } from '../../src/core/env.ts';
import type { Rendered, SeenTurn, Track, WindowView } from '../../src/core/view.ts';
import { parse } from './grammar.ts';
import { mentionsOf } from './mentions.ts';
import { readPassages, readQuestion } from './text.ts';
import { type ReadFact, readFacts, readForm } from './wiki/reader.ts';
import { COMPARED, RELATIONS } from './wiki/schema.ts';
import { JOBS } from './wiki/words.ts';

const MAX_MENTIONS = 6;
/** Facts shown at most, newest kept: two tokens each. */
const MAX_FACTS = 48;
/** Relations that a candidate names at most. */
const MAX_PATH = 5;

/** A fact read: subject and value by name, the subject's job where its passage tells it. */
interface SeenFact extends ReadFact {
  readonly subject: string;
  readonly job: string | undefined;
}

/** Memory of an episode: the question and what was read. */
interface Read {
  /** Tokens of the question, names among them as names. */
  readonly ask: readonly Token[];
  /** Names of the question. */
  readonly asked: readonly string[];
  /** Job that tells namesakes apart, where the question has one. */
  readonly job: string | undefined;
  /** Relations that are compared; empty for other questions. */
  readonly compared: readonly string[];
  readonly facts: readonly SeenFact[];
  readonly searched: readonly string[];
}

/** A word, or a name to be numbered. */
type Token = string | { readonly name: string };

const track: Track<Read> = { begin, after };

export const view: WindowView<Read> = {
  id: 'searchqa/paths@1',
  mode: 'window',
  lexicon: [],
  words: [
    ...['ask', 'first', 'same', 'or', 'search', 'answer', 'asked', 'other', 'least', 'most', 'yes', 'no', 'none'],
    ...RELATIONS.map(({ name }) => name),
    ...JOBS,
  ],
  track,
  candidate,
  render,
};

function begin({ observation }: First): Read {
  const question = readQuestion(observation);
  const form = readForm(question);
  const empty = { job: undefined, compared: [], facts: [], searched: [] };
  if (!form) {
    const asked = [...mentionsOf(question)];
    return { ...empty, asked, ask: asked.map((name) => ({ name })) };
  }
  const path = [...form.path].reverse();
  if (form.type === 'chain') {
    const { name, qualifier } = form.start;
    const job = qualifier === undefined ? [] : [qualifier];
    return { ...empty, asked: [name], ask: [...path, { name }, ...job], job: qualifier };
  }
  const [a, b] = [form.a.name, form.b.name];
  const ask = [form.type, ...path, { name: a }, 'or', { name: b }];
  return { ...empty, asked: [a, b], ask, compared: form.path };
}

function after(read: Read, { action, observation }: SeenTurn): Read {
  const command = parse(action);
  if (command?.type !== 'search') return read;
  const known = new Set(read.facts.map(keyOf));
  const facts = [...read.facts];
  for (const fact of factsOf(observation)) {
    if (known.has(keyOf(fact))) continue;
    known.add(keyOf(fact));
    facts.push(fact);
  }
  return { ...read, facts, searched: [...read.searched, command.content] };
}

function keyOf({ subject, relation, value, job }: SeenFact): string {
  return `${subject}\n${relation}\n${value}\n${job}`;
}

function factsOf(observation: string): SeenFact[] {
  return readPassages(observation).flatMap(({ title, text }) => {
    const facts = readFacts(title, text);
    const job = facts.find(({ relation }) => relation === 'job')?.value;
    if (facts.length > 0) return facts.map((fact) => ({ ...fact, subject: title, job }));
    return [...mentionsOf(text)].map((value) => ({ subject: title, relation: 'other', value, job }));
  });
}

/** Ways in which names were reached from the question: the relations, the last one first. */
type Paths = ReadonlyMap<string, readonly string[]>;

const remembered = new WeakMap<Read, Paths>();

/** Shortest ways, over facts in the order they were read. */
function pathsOf(read: Read): Paths {
  const known = remembered.get(read);
  if (known) return known;
  const paths = new Map<string, readonly string[]>(read.asked.map((name) => [name, []]));
  const reached = [...read.asked];
  for (let i = 0; i < reached.length; i++) {
    const name = reached[i]!;
    const path = paths.get(name)!;
    if (path.length >= MAX_PATH) continue;
    for (const fact of read.facts) {
      if (fact.subject !== name || paths.has(fact.value)) continue;
      // Of namesakes, the path tells which one it is.
      const of = path.length === 0 && read.job !== undefined ? [fact.job ?? 'none'] : path;
      paths.set(fact.value, [fact.relation, ...of]);
      reached.push(fact.value);
    }
  }
  remembered.set(read, paths);
  return paths;
}

function candidate(action: string, read: Read): string {
  const command = parse(action);
  if (!command) return 'none';
  const { type, content } = command;
  if (type === 'answer' && (content === 'yes' || content === 'no')) {
    return [type, content, ...sharedOf(read)].join(' ');
  }
  const path = pathsOf(read).get(content);
  if (!path) return `${type} other`;
  if (path.length > 0) return [type, ...path].join(' ');
  return [type, 'asked', ...(type === 'answer' ? rankOf(content, read) : [])].join(' ');
}

/** Rank of a name that is compared: its number is the least or the most of those read. */
function rankOf(name: string, read: Read): string[] {
  const own = endOf(name, read);
  const others = read.asked.filter((other) => other !== name).map((other) => endOf(other, read));
  const last = read.compared.at(-1);
  if (own === undefined || last === undefined || !Object.hasOwn(COMPARED, last)) return [];
  const numbers = others.filter((other) => other !== undefined).map(Number);
  if (numbers.length === 0) return [last];
  return [last, Number(own) < Math.min(...numbers) ? 'least' : 'most'];
}

/** The values that two names have of what they may share, as their numbers. */
function sharedOf(read: Read): string[] {
  const numbers = numbersOf(read);
  return read.asked.map((name) => String(numbers.get(endOf(name, read) ?? '') ?? 'none'));
}

/** The value at the end of the compared relations, as far as they were read. */
function endOf(name: string, read: Read): string | undefined {
  let value: string | undefined = name;
  for (const relation of read.compared) {
    value = read.facts.find((fact) => fact.subject === value && fact.relation === relation)?.value;
  }
  return value;
}

/** Numbers of the names that are shown, from 1 in order of first mention. */
function numbersOf(read: Read): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  for (const name of [...read.asked, ...shownFacts(read).flatMap(({ subject, value }) => [subject, value])]) {
    if (!numbers.has(name) && numbers.size < 99) numbers.set(name, numbers.size + 1);
  }
  return numbers;
}

/** Facts about names that were reached, the newest. */
function shownFacts(read: Read): readonly SeenFact[] {
  const paths = pathsOf(read);
  return read.facts.filter(({ subject }) => paths.has(subject)).slice(-MAX_FACTS);
}

function render(_first: First, _turns: readonly SeenTurn[], state?: Read): Rendered {
  const read = state ?? begin(_first);
  const numbers = numbersOf(read);
  const segments: string[] = ['ask'];
  const places = new Map<string, number[]>();
  const put = (token: Token) => {
    if (typeof token === 'string') {
      segments.push(` ${token}`);
      return;
    }
    const list = places.get(token.name) ?? [];
    if (list.length < MAX_MENTIONS) list.push(segments.length);
    places.set(token.name, list);
    segments.push(` ${numbers.get(token.name) ?? 'other'}`);
  };
  for (const token of read.ask) put(token);
  let subject: string | undefined;
  for (const fact of shownFacts(read)) {
    if (fact.subject !== subject) {
      put('search');
      put({ name: fact.subject });
      subject = fact.subject;
    }
    put(fact.relation);
    put({ name: fact.value });
  }
  return {
    segments,
    focus: read.ask.filter((token) => typeof token === 'string').join(' '),
    mentions: (action) => places.get(parse(action)?.content ?? '') ?? [],
  };
}
