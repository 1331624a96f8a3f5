/**
 * Maker of questions: draws a form for a task, and keeps drawing until one is fit: one answer by the solver, no thing
 * twice on the way, the answer not in the question, everything needed found by the searches it takes.
 */
import { Rng, seedFrom } from '../../../src/core/rng.ts';
import type { Bm25Index } from '../../../src/retrieval/bm25-index.ts';
import { mentionsOf } from '../mentions.ts';
import type { SetName } from '../questions.ts';
import { normalize } from '../scoring.ts';
import { type Form, type Reference, wordForm } from './form.ts';
import { isHeldOut, type Knowledge, nameOf, namesOf, type Thing } from './knowledge.ts';
import { wordFact } from './passages.ts';
import { COMPARED, leadsOn, relation, relationsOf, SHARED } from './schema.ts';
import { solve } from './solver.ts';

/** A question with how it is found out. */
export interface Made {
  readonly form: Form;
  readonly question: string;
  /** The answer, then its other names. */
  readonly answers: readonly string[];
  /** Names to search for, in order: after each, what the next step needs has been read. */
  readonly searches: readonly string[];
}

/** Shape and size of the question at one place of a set. */
export interface Recipe {
  readonly set: SetName;
  readonly shape: 'chain' | 'grandfather' | 'compare' | 'bridge-compare';
  readonly hops: number;
  /** The question joins two relations that no training question joins; no other one does. */
  readonly joinsAnew: boolean;
}

type Shape = Recipe['shape'];

/** The recipe of a set's n-th question: shapes and hops take turns, so that a table can be made without the world. */
export function recipeOf(set: SetName, split: 'train' | 'test', n: number): Recipe {
  const shape = shapeOf(set, n);
  const hops = hopsAt(set, shape, n);
  const isChain = shape === 'chain' && hops > 1 && set !== '2wikimultihopqa';
  return { set, shape, hops, joinsAnew: isChain && split === 'test' && n % 5 === 0 };
}

function shapeOf(set: SetName, n: number): Shape {
  if (set === 'hotpotqa') return n % 5 === 4 ? 'compare' : 'chain';
  if (set === '2wikimultihopqa') return (['chain', 'grandfather', 'compare', 'bridge-compare'] as const)[n % 4]!;
  return 'chain';
}

function hopsAt(set: SetName, shape: Shape, n: number): number {
  if (shape === 'bridge-compare') return 4;
  if (set === 'musique') return [2, 2, 3, 2, 3, 4, 2, 3, 4, 4][n % 10]!;
  return set === 'hotpotqa' || set === '2wikimultihopqa' || set === 'bamboogle' ? 2 : 1;
}

/** Every eighth pair of relations is kept out of training, so that tests can ask for what was never joined there. */
const KEPT_OUT = 8;

/** True where two relations that follow each other on the path are joined in tests only. */
function joinsAnew(path: readonly string[]): boolean {
  return path.some((name, i) => {
    const before = path[i - 1];
    if (before === undefined || (before === 'father' && name === 'father')) return false; // a set of its own
    return seedFrom('searchqa-pair', before, name) % KEPT_OUT === 0;
  });
}

const TRIES = 10_000;
/** Passages a search brings, as the world's default does. */
const TOPK = 3;

/** Makes questions over one world; the same place gives the same question. */
export class QuestionMaker {
  readonly #knowledge: Knowledge;
  readonly #index: Bm25Index;
  readonly #pools: Readonly<Record<'train' | 'test', readonly Thing[]>>;
  readonly #namesakes: ReadonlySet<string>;

  constructor(knowledge: Knowledge, index: Bm25Index) {
    this.#knowledge = knowledge;
    this.#index = index;
    const { things } = knowledge;
    this.#pools = {
      train: things.filter(({ component }) => !isHeldOut(component)),
      test: things.filter(({ component }) => isHeldOut(component)),
    };
    const seen = new Set<string>();
    this.#namesakes = new Set(things.flatMap(({ name }) => (seen.size === seen.add(name).size ? [name] : [])));
  }

  /**
   * @param taken questions that it must not be
   * @throws {Error} where a world is too small to hold such a question
   */
  make(recipe: Recipe, split: 'train' | 'test', n: number, taken?: ReadonlySet<string>): Made {
    const rng = Rng.fromSeed(seedFrom('searchqa-task', this.#knowledge.seed, split, recipe.set, n));
    for (let i = 0; i < TRIES; i++) {
      const made = this.#try(recipe, split, rng);
      if (made && !taken?.has(made.question)) return made;
    }
    throw new Error(`searchqa: no ${recipe.shape} question of ${recipe.hops} hops for ${recipe.set} in this world`);
  }

  #try(recipe: Recipe, split: 'train' | 'test', rng: Rng): Made | undefined {
    const { shape, set } = recipe;
    const pool = this.#pools[split];
    const form =
      shape === 'compare' || shape === 'bridge-compare' ? this.#pair(shape, pool, rng) : this.#chain(recipe, pool, rng);
    if (!form || joinsAnew(form.path) !== recipe.joinsAnew) return undefined;
    const solved = solve(this.#knowledge, form);
    if (solved.size !== 1) return undefined;
    const answers = this.#answersOf(form, [...solved.values()][0]!);
    if (set === 'triviaqa' && answers.length < 2) return undefined;
    const question = wordForm(form, (k) => rng.int(k), set === 'bamboogle');
    const asking = normalize(question);
    if (form.type === 'chain' && answers.some((answer) => asking.includes(normalize(answer)))) return undefined;
    const searches = this.#route(form, answers[0]!);
    if (!searches) return undefined;
    if ((set === 'musique' || set === 'bamboogle') && this.#isShort(question, answers[0]!)) return undefined;
    return { form, question, answers, searches };
  }

  #chain({ set, shape, hops }: Recipe, pool: readonly Thing[], rng: Rng): Form | undefined {
    const start = rng.pick(pool);
    const path: string[] = [];
    const visited = new Set([start.id]);
    let thing = start;
    for (let hop = 0; hop < hops; hop++) {
      const isLast = hop === hops - 1;
      const open = relationsOf(thing.kind).filter((one) => isLast || leadsOn(one));
      if (open.length === 0) return undefined;
      const chosen = shape === 'grandfather' ? 'father' : rng.pick(open).name;
      const value = thing.facts.get(chosen);
      if (!value) return undefined;
      path.push(chosen);
      if (!('thing' in value)) continue;
      if (visited.has(value.thing)) return undefined;
      visited.add(value.thing);
      thing = this.#knowledge.things[value.thing]!;
    }
    const reference = this.#reference(set, start, path[0]!, rng);
    return reference && { type: 'chain', start: reference, path };
  }

  /** Name of the start in the question; undefined where the set wants another start. */
  #reference(set: SetName, { name, alias, facts, kind }: Thing, first: string, rng: Rng): Reference | undefined {
    const isNamesake = this.#namesakes.has(name);
    if (set === 'popqa') {
      if (kind === 'town') return name.includes(' ') ? { name } : undefined;
      if (!isNamesake || first === 'job') return undefined;
    }
    const job = isNamesake ? facts.get('job') : undefined;
    if (job && 'text' in job) return first === 'job' ? undefined : { name, qualifier: job.text };
    return set === 'triviaqa' && alias !== undefined && rng.int(2) === 0 ? { name: alias } : { name };
  }

  #pair(shape: 'compare' | 'bridge-compare', pool: readonly Thing[], rng: Rng): Form | undefined {
    const a = rng.pick(pool);
    const isYear = rng.int(3) > 0;
    const names = relationsOf(a.kind).map(({ name }) => name);
    if (shape === 'compare') {
      const fit = names.filter((name) => Object.hasOwn(isYear ? COMPARED : SHARED, name));
      if (fit.length === 0) return undefined;
      const path = [rng.pick(fit)];
      const b = this.#partner(a, path, pool, isYear, rng);
      if (!b) return undefined;
      return { type: isYear ? 'first' : 'same', a: { name: a.name }, b: { name: b.name }, path };
    }
    const bridges = relationsOf(a.kind).filter(leadsOn);
    if (bridges.length === 0) return undefined;
    const bridge = rng.pick(bridges);
    const ends = relationsOf(bridge.to as Thing['kind']).filter(({ name }) => Object.hasOwn(COMPARED, name));
    if (ends.length === 0) return undefined;
    const b = rng.pick(pool);
    if (b.kind !== a.kind || b.id === a.id) return undefined;
    return { type: 'first', a: { name: a.name }, b: { name: b.name }, path: [bridge.name, rng.pick(ends).name] };
  }

  /** Partner to compare with; in questions about something shared, half share it. */
  #partner(a: Thing, path: readonly string[], pool: readonly Thing[], isYear: boolean, rng: Rng): Thing | undefined {
    const wantsSame = !isYear && rng.int(2) === 0;
    const value = a.facts.get(path[0]!)!;
    for (let i = 0; i < 200; i++) {
      const b = rng.pick(pool);
      if (b.id === a.id || b.kind !== a.kind) continue;
      const other = b.facts.get(path[0]!)!;
      const isSame = 'thing' in value && 'thing' in other && value.thing === other.thing;
      if (isSame === wantsSame) return b;
    }
    return undefined;
  }

  /** The answer's names; of one that two things bear, only that. */
  #answersOf(form: Form, answer: string): string[] {
    const things = form.type === 'same' ? [] : (this.#knowledge.named.get(answer) ?? []);
    return things.length === 1 && things[0]!.name === answer
      ? namesOf(this.#knowledge, { thing: things[0]!.id })
      : [answer];
  }

  /** The searches that bring every passage needed, or undefined where a search misses one. */
  #route(form: Form, answer: string): string[] | undefined {
    const searches: string[] = [];
    const ends = form.type === 'chain' ? [form.start] : [form.a, form.b];
    for (const start of ends) {
      let name = start.name;
      for (const hop of form.path) {
        if (searches.includes(name)) return undefined;
        searches.push(name);
        const next = this.#read(name, start, hop, searches.length === 1);
        if (next === undefined) return undefined;
        name = next;
      }
      if (form.type === 'chain' && name !== answer) return undefined;
    }
    return searches;
  }

  /** Value of a relation that a search for a name finds, if its sentence was found and can be read. */
  #read(name: string, start: Reference, hop: string, isStart: boolean): string | undefined {
    const holders = (this.#knowledge.named.get(name) ?? []).filter(({ facts }) => facts.has(hop));
    const isKnown = (thing: Thing) => {
      const job = thing.facts.get('job');
      return !isStart || start.qualifier === undefined || (job && 'text' in job && job.text === start.qualifier);
    };
    const fit = holders.filter(isKnown);
    if (fit.length !== 1) return undefined;
    const value = nameOf(this.#knowledge, fit[0]!.facts.get(hop)!);
    // Without the first letter, which may be a capital in the passage.
    const wordings = relation(hop).statements.map((statement) => wordFact(statement, fit[0]!.name, value).slice(1));
    const found = this.#index.search(name, TOPK).map(({ passage }) => this.#index.passage(passage).contents);
    const passage = found.find((contents) => wordings.some((wording) => contents.includes(wording)));
    return passage !== undefined && mentionsOf(passage).has(value) ? value : undefined;
  }

  /** True where the question itself, searched for, brings the answer. */
  #isShort(question: string, answer: string): boolean {
    return this.#index
      .search(question, TOPK)
      .some(({ passage }) => this.#index.passage(passage).contents.includes(answer));
  }
}
