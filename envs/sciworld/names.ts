/**
 * Names things answer to, and the choice of one name for each thing that no other has. The choice draws from the
 * session's random numbers wherever names collide, so its rounds are kept exactly as the original runs them.
 */
import type { JavaRandom } from './java-random.ts';
import { behind, describedName, grownTraits, isGrown, plantName, seedTraits } from './text.ts';
import type { Thing } from './thing.ts';

const STOP_WORDS = new Set(['a', 'an', 'the']);

/** Text in lower case, blanks collapsed, articles dropped. */
export function plain(text: string): string {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '' && !STOP_WORDS.has(word))
    .join(' ');
}

const PORTAL_AS_CONTAINER = ['ERROR: SHOULD USE OVERRIDE FOR PORTAL.'];

/** Names of a thing by itself, without its container. @param viewer place they are used in; only doors look at it */
export function ownNames(thing: Thing, viewer: Thing | null): string[] {
  if (thing.portal) return portalNames(thing, viewer);
  const names = new Set<string>(thing.kind.references);
  const described = describedName(thing);
  switch (thing.kind.form) {
    case 'terminal':
      terminalNames(thing, described, names);
      break;
    case 'plant':
      plantNames(thing, described, names);
      break;
    case 'animal':
      names.add(`${thing.life!.stage} ${thing.name}`).add(`${thing.life!.stage} ${described}`);
      break;
    case 'document':
      documentNames(thing, described, names);
      break;
    case 'picture':
      names.add(`${thing.name} of ${thing.print!.title}`).add(`${described} of ${thing.print!.title}`);
      break;
    case 'flower':
      if (thing.bloom!.step > 0) names.add(`wilting ${thing.kind.name}`);
      break;
    case 'pollen':
      names.add(`${thing.bloom!.species} pollen`);
      break;
    case 'plane':
      for (const name of ['inclined plane', 'plane']) {
        names.add(name);
        if (thing.plane!.letter) names.add(`${name} ${thing.plane!.letter}`);
      }
      break;
  }
  if (thing.kind.id !== 'agent') names.add(thing.name);
  names.add(described);
  if (thing.kind.containing) containingNames(thing, names);
  return [...names];
}

function portalNames(portal: Thing, viewer: Thing | null): string[] {
  const { from, to } = portal.portal!;
  if (portal.kind.id === 'drain') {
    const owner =
      viewer === from || viewer === to ? viewer : from.parent === viewer ? from : to.parent === viewer ? to : null;
    return owner ? [portal.name, `${owner.name} ${portal.name}`] : [portal.name];
  }
  const place = behind(portal, viewer);
  if (place) return [portal.name, `${portal.name} to ${place.name}`, `${place.name} ${portal.name}`];
  return [
    portal.name,
    `${portal.name} from ${from.name} to ${to.name}`,
    `${portal.name} from ${to.name} to ${from.name}`,
  ];
}

function terminalNames(thing: Thing, described: string, names: Set<string>): void {
  const parent = thing.contact!.owner.name;
  names.add(`${thing.name} on ${parent}`).add(`${parent} ${thing.name}`).add(`${described} on ${parent}`);
}

function plantNames(thing: Thing, described: string, names: Set<string>): void {
  const life = thing.life!;
  const { stage } = life;
  const named = plantName(thing);
  names.add(`${thing.name} in the ${stage} stage`).add(`${stage} plant`).add(`${described} in the ${stage} stage`);
  names.add(named).add(`${named} in the ${stage} stage`).add(`${stage} ${named}`);
  names.add(thing.name).add(described);
  if (life.genes) {
    names.add(life.species);
    const traits = stage === 'seed' ? seedTraits(thing) : isGrown(thing) ? joinTraits(thing) : '';
    if (traits) for (const name of [...names]) names.add(name.replaceAll(named, `${traits} ${named}`));
  }
  if (life.sickly) for (const name of [...names]) names.add(`sick ${name}`);
}

function joinTraits(thing: Thing): string {
  const { height, leaves } = grownTraits(thing);
  if (height) return leaves ? `${height} and ${leaves}` : height;
  return leaves && `with ${leaves}`;
}

function documentNames(thing: Thing, described: string, names: Set<string>): void {
  const { title = '', author = '' } = thing.print ?? {};
  if (thing.kind.id === 'book') {
    names.add('book').add(title).add(`book by ${author}`).add(`${title} book`);
    names.add(`${described} by ${author}`).add(`${described} called ${title}`);
    return;
  }
  names.add(title).add(`${thing.name} called ${title}`).add(`${described} called ${title}`);
}

/** Each name also with what the thing holds: "cup containing tea and milk". */
function containingNames(thing: Thing, names: Set<string>): void {
  const inside = new Set<string>();
  for (const held of thing.contents) if (!held.hidden) inside.add(describedName(held));
  const holding = inside.size === 0 ? 'nothing' : [...inside].sort().join(' and ');
  for (const name of [...names]) names.add(`${name} containing ${holding}`);
}

/** Names by number, so that choosing them compares numbers. Emptied when full; `era` tells whose numbers still hold. */
const table = { numbers: new Map<string, number>(), texts: [] as string[], era: 0 };
const TABLE_LIMIT = 200_000;
const SET_LIMIT = 20_000;
/** Sets of own names by what they are made of, and all names by the sets of a thing and its container. */
const ownSets = new Map<string, OwnSet>();
const fullSets = new Map<number, Int32Array>();
const MAX_SETS = 2 ** 20;

interface OwnSet {
  readonly id: number;
  readonly names: readonly string[];
  /** The same as the parser compares them: `plain`, blank ones left out. */
  readonly plain: readonly string[];
}

/** Own set of a thing as of its last look, and what it was made of. */
interface Remembered {
  era: number;
  name: string;
  detail: string;
  set: OwnSet;
}

const remembered = new WeakMap<Thing, Remembered>();
const NOWHERE: OwnSet = { id: 0, names: [], plain: [] };

function forget(): void {
  table.numbers.clear();
  table.texts = [];
  table.era++;
  ownSets.clear();
  fullSets.clear();
}

/** Detail that own names depend on besides kind and name, as one text. */
function detail(thing: Thing): string {
  const matter = thing.matter;
  const fire = matter ? (matter.burning ? 'f' : matter.burned ? 'b' : '') : '';
  switch (thing.kind.form) {
    case 'terminal':
      return thing.contact!.owner.name;
    case 'animal':
    case 'bee':
      return `${thing.life!.species}|${thing.life!.stage}`;
    case 'plant': {
      const { species, stage, sickly, genes } = thing.life!;
      if (!genes) return `${fire}|${species}|${stage}|${sickly}`;
      const { height, leaves } = grownTraits(thing);
      return `${fire}|${species}|${stage}|${sickly}|${seedTraits(thing)}|${height}|${leaves}`;
    }
    case 'flower':
      return `${fire}${thing.bloom!.step > 0}`;
    case 'pollen':
      return `${fire}${thing.bloom!.species}`;
    case 'document':
    case 'picture':
      return `${fire}${thing.print?.title}|${thing.print?.author}`;
    case 'plane':
      return `${fire}${thing.plane!.letter}|${thing.plane!.surface}`;
  }
  if (!thing.kind.containing) return fire;
  let holding = fire;
  for (const held of thing.contents) if (!held.hidden) holding += `|${describedName(held)}`;
  return holding;
}

function ownSet(thing: Thing, viewer: Thing | null): OwnSet {
  if (thing.portal) return setOf(`portal|${portalNames(thing, viewer).join('|')}`, thing, viewer);
  const made = detail(thing);
  let known = remembered.get(thing);
  if (known && known.era === table.era && known.name === thing.name && known.detail === made) return known.set;
  const set = setOf(`${thing.kind.id}|${thing.name}|${made}`, thing, viewer);
  known = { era: table.era, name: thing.name, detail: made, set };
  remembered.set(thing, known);
  return set;
}

function setOf(key: string, thing: Thing, viewer: Thing | null): OwnSet {
  let set = ownSets.get(key);
  if (!set) {
    if (ownSets.size >= SET_LIMIT || table.texts.length > TABLE_LIMIT) forget();
    const names = ownNames(thing, viewer);
    set = { id: ownSets.size + 2, names, plain: names.filter((name) => name.trim() !== '').map(plain) };
    ownSets.set(key, set);
  }
  return set;
}

/** Portals as containers have one name of their own. */
const PORTAL_SET: OwnSet = { id: 1, names: PORTAL_AS_CONTAINER, plain: [] };

/**
 * All names of a thing as numbers, in the order of the names in lower case: its own, and its own in or on each name of
 * its container.
 */
function allNames(thing: Thing, viewer: Thing | null): Int32Array {
  const container = thing.parent;
  let within = NOWHERE;
  let own = NOWHERE;
  for (let era = -1; era !== table.era; ) {
    era = table.era;
    if (container) within = container.portal ? PORTAL_SET : ownSet(container, viewer);
    own = ownSet(thing, viewer);
  }
  const key = own.id * MAX_SETS + within.id;
  let numbers = fullSets.get(key);
  if (!numbers) {
    numbers = Int32Array.from(spelled(own.names, within.names), numberOf);
    fullSets.set(key, numbers);
  }
  return numbers;
}

function numberOf(name: string): number {
  let number = table.numbers.get(name);
  if (number === undefined) {
    number = table.texts.length;
    table.texts.push(name);
    table.numbers.set(name, number);
  }
  return number;
}

function spelled(own: readonly string[], within: readonly string[]): string[] {
  const names = new Set<string>();
  for (const each of own) {
    if (each.trim() === '') continue;
    const name = each.toLowerCase();
    if (name.length > 1) names.add(name);
    for (const place of within) {
      const lower = place.toLowerCase();
      names.add(`${name} in ${lower}`);
      names.add(`${name} on ${lower}`);
    }
  }
  return [...names].sort();
}

/** Names of a thing by itself, as the parser compares them. */
export function plainNames(thing: Thing, viewer: Thing | null): readonly string[] {
  return ownSet(thing, viewer).plain;
}

/**
 * Listed things: those that the valid list speaks of, in its order: `top`, the doors and places behind, the contents,
 * closed or not.
 */
export function listed(top: Thing, hidden: boolean): Thing[] {
  const found = new Set<Thing>();
  collect(top, hidden, found);
  return [...found];
}

function collect(thing: Thing, hidden: boolean, found: Set<Thing>): void {
  const shown = hidden || !thing.hidden;
  if (shown) found.add(thing);
  for (const portal of thing.portals) {
    found.add(portal);
    const place = behind(portal, thing);
    if (place) found.add(place);
  }
  if (!shown) return;
  if (thing.portals.length === 0) {
    for (const inside of thing.contents) collect(inside, hidden, found);
    return;
  }
  for (const inside of [...thing.contents, ...thing.portals].sort((a, b) => a.id - b.id))
    collect(inside, hidden, found);
}

/** Rounds of the choice, and the first of them that draws. */
const ROUNDS = 20;
const DRAWING = 10;

/**
 * One name for each thing. Names that two things share are dropped where others remain; then everyone takes its first
 * and, for 20 rounds, moves on while it shares its choice: to the next name at first, to a random one later.
 */
export function chooseNames(things: readonly Thing[], viewer: Thing, random: JavaRandom): string[] {
  const era = table.era;
  const all = things.map((thing) => allNames(thing, viewer));
  // Numbers of an emptied table mean nothing: once more, with the new one.
  if (table.era !== era) return chooseNames(things, viewer, random);
  const counts = new Int32Array(table.texts.length);
  for (const names of all) for (let i = 0; i < names.length; i++) counts[names[i]!]!++;
  const choices = all.map((names) => {
    const single = names.filter((name) => counts[name] === 1);
    return single.length > 0 ? single : names;
  });
  settle(choices, random);
  return things.map((thing, i) => (thing.portal ? portalChoice(thing, viewer) : table.texts[chosen[i]!]!));
}

/** Numbers chosen last, by position. */
let chosen = new Int32Array(1024);

/** Runs the rounds of the choice. */
function settle(choices: readonly Int32Array[], random: JavaRandom): void {
  const count = choices.length;
  if (chosen.length < count) chosen = new Int32Array(2 * count);
  const at = new Int32Array(count);
  const taken = new Int32Array(table.texts.length);
  for (let i = 0; i < count; i++) chosen[i] = choices[i]![0]!;
  const moving: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < count; i++) taken[chosen[i]!]!++;
    moving.length = 0;
    for (let i = 0; i < count; i++) if (taken[chosen[i]!]! > 1) moving.push(i);
    for (let i = 0; i < count; i++) taken[chosen[i]!] = 0;
    if (moving.length === 0) return;
    for (const i of moving) {
      const names = choices[i]!;
      at[i] = round < DRAWING ? (at[i]! + 1) % names.length : random.int(names.length);
      chosen[i] = names[at[i]!]!;
    }
  }
}

function portalChoice(portal: Thing, viewer: Thing): string {
  const place = behind(portal, viewer);
  const { from, to } = portal.portal!;
  return place ? `${portal.name} to ${place.name}` : `${portal.name} from ${from.name} to ${to.name}`;
}

/**
 * Things a command can speak of, in id order: the agent's place, its doors, the places behind them and all that is not
 * shut away, and the same for the agent itself.
 */
export function candidates(agent: Thing): Thing[] {
  const found = new Set<Thing>();
  for (const top of [agent.parent!, agent]) {
    found.add(top);
    for (const portal of top.portals) {
      found.add(portal);
      const place = behind(portal, top);
      if (place) found.add(place);
    }
    reach(top, found);
  }
  return [...found].sort((a, b) => a.id - b.id);
}

function reach(container: Thing, found: Set<Thing>): void {
  for (const thing of container.contents) {
    found.add(thing);
    for (const terminal of thing.terminals ?? []) found.add(terminal);
    for (const portal of thing.portals) found.add(portal);
    if (thing.isOpen) reach(thing, found);
  }
}
