/**
 * Knowledge of the embedded world, from a seed: people, towns, works, companies, universities and realms that do not
 * exist, dealt into components that share no fact, and beside them facts of real countries, time zones and elements.
 * Every fifth component is held out: only test questions are about it.
 */
import { Rng, seedFrom } from '../../../src/core/rng.ts';
import { ELEMENTS, LANDS, ZONES } from '../data/facts.ts';
import { NameMaker } from './names.ts';
import { type Kind, type Relation, relationsOf } from './schema.ts';
import { INDUSTRIES, JOBS, KINDS } from './words.ts';

/** Value of a relation: a thing, or a text. */
export type Value = { readonly thing: number } | { readonly text: string };

/** Thing that the made-up encyclopaedia knows: a person, a town, a work, … */
export interface Thing {
  /** Index into `Knowledge.things`. */
  readonly id: number;
  readonly kind: Kind;
  readonly name: string;
  /** A second name that every passage about it gives. */
  readonly alias: string | undefined;
  readonly component: number;
  readonly facts: ReadonlyMap<string, Value>;
}

/** Knowledge of the made-up world: its things and how they hang together, a pure function of the seed. */
export interface Knowledge {
  readonly seed: number;
  readonly things: readonly Thing[];
  /** Things by name and by alias. */
  readonly named: ReadonlyMap<string, readonly Thing[]>;
  /** Number of components; `isHeldOut` decides which are tested on. */
  readonly components: number;
}

/** True of a component that only test questions are about. */
export function isHeldOut(component: number): boolean {
  return component % 5 === 4;
}

/** Components of made-up things. */
const COMPONENTS = 30;
/** Things of each kind in a hundred. */
const SHARES: readonly (readonly [Kind, number])[] = [
  ['realm', 2],
  ['town', 14],
  ['person', 42],
  ['work', 28],
  ['company', 8],
  ['university', 6],
];
const ALIASED = 0.3;
/** Share of people who have a namesake in another component. */
const NAMESAKES = 0.05;
/** Share of towns that are named like another with a word before it. */
const NEAR_NAMES = 0.15;

interface Draft {
  readonly kind: Kind;
  name: string;
  alias: string | undefined;
  readonly component: number;
  readonly facts: Map<string, Value>;
}

/** The same seed and size give the same knowledge. @param size made-up things, about */
export function makeKnowledge(seed: number, size: number): Knowledge {
  const rng = Rng.fromSeed(seedFrom('searchqa-world', seed));
  const names = new NameMaker(rng.split('names'));
  const drafts: Draft[] = [];
  for (let component = 0; component < COMPONENTS; component++) {
    const share = size / COMPONENTS;
    const own = drafts.length;
    for (const [kind, percent] of SHARES) {
      const count = Math.max(2, Math.round((share * percent) / 100));
      for (let i = 0; i < count; i++) {
        const alias = kind !== 'realm' && rng.float() < ALIASED ? names.name(kind) : undefined;
        drafts.push({ kind, name: names.name(kind), alias, component, facts: new Map() });
      }
    }
    const rivers = Array.from({ length: 6 }, () => names.word());
    joinUp(drafts, own, rivers, names, rng);
  }
  nameAlike(drafts, rng);
  addFacts(drafts);
  const components = drafts.reduce((most, { component }) => Math.max(most, component), 0) + 1;
  const things = drafts.map((draft, id) => ({ id, ...draft }));
  const named = new Map<string, Thing[]>();
  for (const thing of things) {
    for (const name of thing.alias === undefined ? [thing.name] : [thing.name, thing.alias]) {
      const bearers = named.get(name);
      if (bearers) bearers.push(thing);
      else named.set(name, [thing]);
    }
  }
  return { seed, things, named, components };
}

/** Gives every thing of a component its facts, all within the component. */
function joinUp(drafts: readonly Draft[], from: number, rivers: readonly string[], names: NameMaker, rng: Rng): void {
  const idsOf = new Map<string, number[]>();
  for (let id = from; id < drafts.length; id++) {
    const list = idsOf.get(drafts[id]!.kind) ?? [];
    list.push(id);
    idsOf.set(drafts[id]!.kind, list);
  }
  for (let id = from; id < drafts.length; id++) {
    const { kind, facts } = drafts[id]!;
    for (const relation of relationsOf(kind)) {
      const others = idsOf.get(relation.to)?.filter((other) => other !== id);
      facts.set(relation.name, others ? { thing: rng.pick(others) } : { text: literal(relation, rivers, names, rng) });
    }
  }
}

function literal({ name, to }: Relation, rivers: readonly string[], names: NameMaker, rng: Rng): string {
  if (to === 'year') return String((YEARS[name] ?? 1700) + rng.int(200));
  if (name === 'river') return rng.pick(rivers);
  const words: Readonly<Record<string, readonly string[]>> = { job: JOBS, kind: KINDS, industry: INDUSTRIES };
  return words[name] ? rng.pick(words[name]) : names.word();
}

const YEARS: Readonly<Record<string, number>> = { founding: 1100, opening: 1400, birthyear: 1750, release: 1800 };

/** Makes namesakes of other components, with different jobs, and near names. */
function nameAlike(drafts: readonly Draft[], rng: Rng): void {
  const people = drafts.filter(({ kind }) => kind === 'person');
  const taken = new Set<Draft>();
  for (let i = 0; i < (NAMESAKES / 2) * people.length; i++) {
    const [a, b] = [rng.pick(people), rng.pick(people)];
    const jobs = [a, b].map(({ facts }) => (facts.get('job') as { text: string }).text);
    if (a.component === b.component || jobs[0] === jobs[1] || taken.has(a) || taken.has(b)) continue;
    b.name = a.name;
    taken.add(a).add(b);
  }
  const towns = drafts.filter(({ kind }) => kind === 'town');
  const plain = new Set(towns.map(({ name }) => name));
  for (const town of towns) {
    if (rng.float() >= NEAR_NAMES) continue;
    const near = `${rng.pick(['Port', 'Lower', 'Upper', 'New'])} ${rng.pick(towns).name.split(' ').at(-1)}`;
    if (plain.has(near)) continue;
    plain.add(near);
    town.name = near;
  }
}

/** Real facts: a country with its time zones is a component, and so is each element. */
function addFacts(drafts: Draft[]): void {
  let component = COMPONENTS;
  const text = (value: string | number): Value => ({ text: String(value) });
  const add = (kind: Kind, name: string, at: number, facts: readonly (readonly [string, Value])[]) => {
    drafts.push({ kind, name, alias: undefined, component: at, facts: new Map(facts) });
    return drafts.length - 1;
  };

  for (const [name, capital, continent, currency, prefix, language] of LANDS) {
    const land = add('country', name, component, [
      ['continent', text(continent)],
      ['metropolis', text(capital)],
      ['tender', text(currency)],
      ['prefix', text(prefix)],
      ['speech', text(language)],
    ]);
    for (const [zone, of, offset] of ZONES) {
      if (of !== name) continue;
      add('zone', zone, component, [
        ['land', { thing: land }],
        ['offset', text(offset)],
      ]);
    }
    component++;
  }
  for (const [name, symbol, number] of ELEMENTS) {
    add('element', name, component++, [
      ['symbol', text(symbol)],
      ['atomic', text(number)],
    ]);
  }
}

/** Name of a value. */
export function nameOf({ things }: Knowledge, value: Value): string {
  return 'thing' in value ? things[value.thing]!.name : value.text;
}

/** A value's names: a thing's alias counts. */
export function namesOf({ things }: Knowledge, value: Value): string[] {
  if (!('thing' in value)) return [value.text];
  const { name, alias } = things[value.thing]!;
  return alias === undefined ? [name] : [name, alias];
}
