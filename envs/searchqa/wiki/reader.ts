/**
 * Reader of the embedded world's English: sentences of passages back into facts, questions back into forms, by the
 * wordings of schema.ts that the generator used. It knows nothing else of what was generated.
 */
import { mentionsOf } from '../mentions.ts';
import type { Form, Reference } from './form.ts';
import { COMPARED, RELATIONS, SHARED } from './schema.ts';
import { JOBS } from './words.ts';

/** One sentence's fact about the thing that its passage is titled by. */
export interface ReadFact {
  readonly relation: string;
  readonly value: string;
}

interface Pattern {
  readonly relation: string;
  readonly regex: RegExp;
  /** Letters that are not a place: the pattern with more of them is the closer one. */
  readonly literal: number;
}

const SUBJECT = '\u0001';

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

function patternsOf(wordings: (relation: (typeof RELATIONS)[number]) => readonly string[]): Pattern[] {
  const patterns = RELATIONS.flatMap((relation) =>
    wordings(relation).map((wording) => ({
      relation: relation.name,
      literal: wording.length,
      regex: new RegExp(
        `^${escapePattern(wording)
          .replace('a \\{O\\}', 'an? \\{O\\}')
          .replace('\\{S\\}', SUBJECT)
          .replace(/\\\{[OX]\\\}/, '(.+)')}$`,
      ),
    })),
  );
  return patterns.sort((a, b) => b.literal - a.literal);
}

const SENTENCES = patternsOf(({ statements }) => statements);
const NOUNS = patternsOf(({ nouns }) => nouns);
const QUESTIONS = patternsOf(({ asks }) => asks);

/** Facts of a passage, in order. */
export function readFacts(title: string, text: string): ReadFact[] {
  const facts: ReadFact[] = [];
  for (const sentence of text.replace(/\.$/, '').split('. ')) {
    const marked = markSubject(sentence, title);
    if (!marked.includes(SUBJECT)) continue; // every wording names it
    const line = marked[0]!.toLowerCase() + marked.slice(1);
    for (const wording of marked === line ? [marked] : [marked, line]) {
      const pattern = SENTENCES.find(({ regex }) => regex.test(wording));
      if (!pattern) continue;
      const value = pattern.regex.exec(wording)![1]!.replaceAll(SUBJECT, title); // Mexico City is in Mexico
      facts.push({ relation: pattern.relation, value });
      break;
    }
  }
  return facts;
}

const LETTER_BEFORE = /\p{L}$/u;
const LETTER_BEHIND = /^\p{L}/u;

/** Marks a name where it stands as whole words: Bulgaria is no part of Bulgarian. */
function markSubject(sentence: string, name: string): string {
  if (name === '') return sentence;
  let marked = '';
  let from = 0;
  let end: number;
  for (let at = sentence.indexOf(name); at >= 0; at = sentence.indexOf(name, end)) {
    end = at + name.length;
    if (
      LETTER_BEFORE.test(sentence.slice(Math.max(0, at - 2), at)) ||
      LETTER_BEHIND.test(sentence.slice(end, end + 2))
    ) {
      end = at + 1;
      continue;
    }
    marked += sentence.slice(from, at) + SUBJECT;
    from = end;
  }
  return marked + sentence.slice(from);
}

/** The second name that a passage gives of its title. */
export function readAlias(title: string, text: string): string | undefined {
  const mark = `${title} is also called `;
  const at = text.indexOf(mark);
  return at < 0 ? undefined : text.slice(at + mark.length, text.indexOf('.', at));
}

/** The form of a question; undefined for one that is not worded as ours are. */
export function readForm(question: string): Form | undefined {
  const text = question.replace(/\?$/, '');
  return readComparison(text) ?? readShared(text) ?? readChain(text);
}

function readChain(text: string): Form | undefined {
  const grandfather = /^Who is the paternal grandfather of (.+)$/.exec(text);
  if (grandfather) return { type: 'chain', start: reference(grandfather[1]!), path: ['father', 'father'] };
  for (const { regex, relation } of QUESTIONS) {
    const match = regex.exec(text);
    const inner = match && readNoun(match[1]!);
    if (inner) return { type: 'chain', start: inner.start, path: [...inner.path, relation] };
  }
  return undefined;
}

function readNoun(text: string): { start: Reference; path: string[] } | undefined {
  const name = reference(text);
  if (mentionsOf(name.name).has(name.name)) return { start: name, path: [] };
  for (const { regex, relation } of NOUNS) {
    const match = regex.exec(text);
    const inner = match && readNoun(match[1]!);
    if (inner) return { start: inner.start, path: [...inner.path, relation] };
  }
  return undefined;
}

const BRIDGED = /^Of (.+), whose (\w+) came first, that of (.+) or (.+)$/;
const ENDS: Readonly<Record<string, string>> = {
  birth: 'birthyear',
  release: 'release',
  founding: 'founding',
  opening: 'opening',
};

function readComparison(text: string): Form | undefined {
  for (const [relation, ask] of Object.entries(COMPARED)) {
    if (!text.startsWith(`${ask}, `)) continue;
    const [a, b] = text.slice(ask.length + 2).split(' or ');
    return b === undefined ? undefined : { type: 'first', a: reference(a!), b: reference(b), path: [relation] };
  }
  const bridged = BRIDGED.exec(text);
  if (!bridged) return undefined;
  const [, nouns, end, a, b] = bridged as unknown as [string, string, string, string, string];
  for (const { regex, relation } of NOUNS) {
    // Two noun phrases of the same wording, joined by `and`.
    const wording = regex.source.slice(1, -1);
    const both = new RegExp(`^${wording} and ${wording}$`).exec(nouns);
    if (both?.[1] === a && both[2] === b) {
      return { type: 'first', a: reference(a), b: reference(b), path: [relation, ENDS[end] ?? end] };
    }
  }
  return undefined;
}

function readShared(text: string): Form | undefined {
  for (const [relation, ask] of Object.entries(SHARED)) {
    const match = new RegExp(`^${escapePattern(ask).replace('\\{A\\}', '(.+)').replace('\\{B\\}', '(.+)')}$`).exec(
      text,
    );
    if (match) return { type: 'same', a: reference(match[1]!), b: reference(match[2]!), path: [relation] };
  }
  return undefined;
}

/** `the painter Anna Bel` or a name alone. */
function reference(text: string): Reference {
  const [the, job, ...name] = text.split(' ');
  if (the === 'the' && job !== undefined && JOBS.includes(job)) return { name: name.join(' '), qualifier: job };
  return { name: text };
}
