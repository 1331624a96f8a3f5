/** Passages of the embedded world, in Search-R1's form: title in quotes, newline, sentences. */
import { seedFrom } from '../../../src/core/rng.ts';
import type { Passage } from '../../../src/retrieval/corpus.ts';
import { type Knowledge, nameOf, type Thing } from './knowledge.ts';
import { PASSAGES, relation } from './schema.ts';
import { article } from './words.ts';

/** Sentences without a fact. */
const ASIDES = [
  'Little else of {S} is on record',
  'Letters about {S} survive in private hands',
  'Visitors still ask about {S}',
  'Some accounts of {S} differ in detail',
];

/** All passages, each with its number as id; things in order, one to two passages a thing. */
export function writePassages(knowledge: Knowledge): Passage[] {
  const passages: Passage[] = [];
  for (const thing of knowledge.things) {
    for (const contents of passagesOf(knowledge, thing)) passages.push({ id: String(passages.length), contents });
  }
  return passages;
}

function passagesOf(knowledge: Knowledge, thing: Thing): string[] {
  const { name, alias, kind, id, facts } = thing;
  return PASSAGES[kind].map((relations, n) => {
    const sentences = alias === undefined ? [] : [`${name} is also called ${alias}`];
    for (const about of relations) {
      const { statements } = relation(about);
      const wording = statements[seedFrom(knowledge.seed, id, about) % statements.length]!;
      sentences.push(wordFact(wording, name, nameOf(knowledge, facts.get(about)!)));
    }
    const draw = seedFrom(knowledge.seed, id, n);
    if (draw % 2 === 0) sentences.push(wordFact(ASIDES[(draw >>> 1) % ASIDES.length]!, name, ''));
    return `"${name}"\n${sentences.map((sentence) => `${capital(sentence)}.`).join(' ')}`;
  });
}

/** A wording with its names; `a` becomes `an` where it must. */
export function wordFact(wording: string, subject: string, object: string): string {
  return wording
    .replace(/\ba \{O\}/, () => `${article(object)} ${object}`)
    .replace('{S}', () => subject)
    .replace('{O}', () => object);
}

function capital(sentence: string): string {
  return sentence[0]!.toUpperCase() + sentence.slice(1);
}
