/**
 * Names things answer to, and the choice of one name for each thing that no other has. The choice draws from the
 * session's random numbers wherever names collide, so its rounds are kept exactly as the original runs them.
 */
import type { JavaRandom } from './java-random.ts';
import {
  describeColored,
  describeGrownTraits,
  describeName,
  findBehind,
  isGrown,
  plantName,
  seedTraits,
} from './text.ts';
import type { Census, OwnNames, Thing } from './thing.ts';

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
function ownNames(thing: Thing, viewer: Thing | null): string[] {
  if (thing.portal) return portalNames(thing, viewer);
  const names = new Set<string>(thing.kind.references);
  const described = describeName(thing);
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
      if (thing.bloom!.step > 0) {
        for (const name of [thing.kind.name, thing.name, described]) names.add(`wilting ${name}`);
      }
      break;
    case 'pollen':
      names.add(`${thing.bloom!.species} pollen`);
      break;
    case 'plane':
      for (const name of ['inclined plane', 'plane', thing.name, described]) {
        names.add(name);
        if (thing.plane!.letter) names.add(`${name} ${thing.plane!.letter}`);
      }
      break;
  }
  if (thing.kind.id !== 'agent') names.add(thing.name);
  names.add(described);
  if (thing.kind.color) names.add(describeColored(thing));
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
  const place = findBehind(portal, viewer);
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
    // The original searches by pattern, and finds no name with "(on fire)" in it.
    if (traits && !thing.matter!.burning) {
      for (const name of [...names]) names.add(name.replaceAll(named, `${traits} ${named}`));
    }
  }
  if (life.sickly) for (const name of [...names]) names.add(`sick ${name}`);
}

function joinTraits(thing: Thing): string {
  const { height, leaves } = describeGrownTraits(thing);
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
  for (const held of thing.contents) if (!held.hidden) inside.add(describeName(held));
  const holding = inside.size === 0 ? 'nothing' : [...inside].sort().join(' and ');
  for (const name of [...names]) names.add(`${name} containing ${holding}`);
}

/**
 * Names by number, so that choosing and looking them up compares numbers. All sessions of a thread share it: it holds
 * texts, nothing of an episode. Emptied when full; `era` marks whose numbers still hold.
 */
const table = {
  numbers: new Map<string, number>(),
  texts: [] as string[],
  /** Names as the parser compares them: `plain`. */
  plain: new Map<string, number>(),
  /** Length of the longest of them. */
  longest: 0,
  era: 0,
};
const TABLE_LIMIT = 200_000;
const SET_LIMIT = 20_000;
/** Sets of own names by what they are made of, and all names by the sets of a thing and its container. */
const ownSets = new Map<string, OwnSet>();
const fullSets = new Map<number, Int32Array>();
const MAX_SETS = 2 ** 20;

/** Own names of a thing: of all things of this kind, name and state. */
export interface OwnSet extends OwnNames {
  /** Never 0 for a set that lasts; compared with the table's era. */
  readonly era: number;
  readonly names: readonly string[];
  /** Name of the thing itself, as `plain`. */
  readonly raw: string;
  /** The names as the parser compares them, blank ones left out, with their numbers; shorter ones first. */
  readonly plain: ReadonlyMap<string, number>;
}

const NOWHERE: OwnSet = { id: 0, era: 0, names: [], raw: '', plain: new Map() };

function forget(): void {
  table.numbers.clear();
  table.texts = [];
  table.plain.clear();
  table.longest = 0;
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
      const { height, leaves } = describeGrownTraits(thing);
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
  for (const held of thing.contents) if (!held.hidden) holding += `|${describeName(held)}`;
  return holding;
}

/** Own names of a thing. @param viewer place they are used in; only doors look at it */
export function ownSet(thing: Thing, viewer: Thing | null): OwnSet {
  const known = thing.known as OwnSet | null;
  if (known && known.era === table.era && (!thing.portal || thing.knownFrom === viewer)) return known;
  const key = thing.portal
    ? `portal|${portalNames(thing, viewer).join('|')}`
    : `${thing.kind.id}|${thing.name}|${detail(thing)}`;
  const set = setOf(key, thing, viewer);
  thing.known = set;
  thing.knownFrom = viewer;
  return set;
}

function setOf(key: string, thing: Thing, viewer: Thing | null): OwnSet {
  const known = ownSets.get(key);
  if (known) return known;
  if (ownSets.size >= SET_LIMIT || table.texts.length > TABLE_LIMIT) forget();
  const names = ownNames(thing, viewer);
  const compared = new Set(names.filter((name) => name.trim() !== '').map(plain));
  const set = {
    id: ownSets.size + 2,
    era: table.era,
    names,
    raw: plain(thing.name),
    plain: new Map([...compared].sort((a, b) => a.length - b.length).map((name) => [name, plainNumber(name)])),
  };
  ownSets.set(key, set);
  return set;
}

function plainNumber(name: string): number {
  const known = table.plain.get(name);
  if (known !== undefined) return known;
  const number = table.plain.size;
  table.plain.set(name, number);
  table.longest = Math.max(table.longest, name.length);
  return number;
}

/** Own names of all these things, of one era of the table. */
export function ownSetsOf(things: readonly Thing[], viewer: Thing | null): OwnSet[] {
  for (;;) {
    const { era } = table;
    const sets = things.map((thing) => ownSet(thing, viewer));
    if (table.era === era) return sets;
  }
}

/** Names that `text` begins with, of all that anything seen in this era has. */
export function namesBeginning(text: string): string[] {
  const found: string[] = [];
  const most = Math.min(text.length, table.longest);
  for (let length = 1; length <= most; length++) {
    const name = text.slice(0, length);
    if (table.plain.has(name)) found.push(name);
  }
  return found;
}

/** Counts of the sets that have each name, by its number; good until the next call. */
export function countPlain(sets: readonly OwnSet[]): Int32Array {
  if (plainCounts.length < table.plain.size) plainCounts = new Int32Array(2 * table.plain.size);
  else plainCounts.fill(0, 0, table.plain.size);
  for (const set of sets) for (const number of set.plain.values()) plainCounts[number]!++;
  return plainCounts;
}

let plainCounts = new Int32Array(4096);

/** Portals as containers have one name of their own. */
const PORTAL_SET: OwnSet = { id: 1, era: 0, names: PORTAL_AS_CONTAINER, raw: '', plain: new Map() };

/**
 * All names of a thing as numbers, in the order of the names in lower case: its own, and its own in or on each name of
 * its container.
 */
function listNames(thing: Thing, viewer: Thing | null): Int32Array {
  const container = thing.parent;
  let within = NOWHERE;
  let own = NOWHERE;
  for (let era = -1; era !== table.era; ) {
    era = table.era;
    if (container) within = container.portal ? PORTAL_SET : ownSet(container, viewer);
    own = ownSet(thing, viewer);
  }
  const { spelled: known } = thing;
  if (known && known.own === own && known.within === within) return known.numbers;
  const key = own.id * MAX_SETS + within.id;
  let numbers = fullSets.get(key);
  if (!numbers) {
    numbers = Int32Array.from(combineNames(own.names, within.names), numberOf);
    fullSets.set(key, numbers);
  }
  thing.spelled = { own, within, numbers };
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

function combineNames(own: readonly string[], within: readonly string[]): string[] {
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

/**
 * Listed things: those that the valid list speaks of, in its order: `top`, the doors and places behind, the contents,
 * closed or not.
 */
export function listThings(top: Thing, hidden: boolean): Thing[] {
  const found: Thing[] = [];
  collect(top, hidden, found, ++top.changes.walks);
  return found;
}

function pass(thing: Thing, found: Thing[], walk: number): void {
  if (thing.passed === walk) return;
  thing.passed = walk;
  found.push(thing);
}

function collect(thing: Thing, hidden: boolean, found: Thing[], walk: number): void {
  const shown = hidden || !thing.hidden;
  if (shown) pass(thing, found, walk);
  for (const portal of thing.portals) {
    pass(portal, found, walk);
    const place = findBehind(portal, thing);
    if (place) pass(place, found, walk);
  }
  if (!shown) return;
  if (thing.portals.length === 0) {
    for (const inside of thing.contents) collect(inside, hidden, found, walk);
    return;
  }
  for (const inside of [...thing.contents, ...thing.portals].sort((a, b) => a.id - b.id))
    collect(inside, hidden, found, walk);
}

/** Things that lie open to view in a place, with its doors and the places behind them, by id. */
export function listAccessible(place: Thing): Thing[] {
  const found: Thing[] = [];
  const walk = ++place.changes.walks;
  pass(place, found, walk);
  for (const portal of place.portals) {
    pass(portal, found, walk);
    const behind = findBehind(portal, place);
    if (behind) pass(behind, found, walk);
  }
  const look = (container: Thing) => {
    for (const thing of container.contents) {
      if (thing.hidden) continue;
      pass(thing, found, walk);
      if (thing.terminals && thing.kind.circuit !== 'none') for (const end of thing.terminals) pass(end, found, walk);
      if (thing.container?.open) look(thing);
    }
  };
  look(place);
  return found.sort((a, b) => a.id - b.id);
}

/** Rounds of the choice, and the first of them that draws. */
const ROUNDS = 20;
const DRAWING = 10;

/** A thing in the choice: its names, the one it has now, and where that stands among them. */
interface Chooser {
  readonly names: Int32Array;
  choice: number;
  at: number;
}

/** Counts by a name's number, all 0 between two choices. */
let counts = new Int32Array(4096);

/**
 * One name for each thing. Names that two things share are dropped where others remain; then everyone takes its first
 * and, for 20 rounds, moves on while it shares its choice: to the next name at first, to a random one later.
 */
export function chooseNames(things: readonly Thing[], viewer: Thing, random: JavaRandom): string[] {
  const chosen = chooseNumbers(things, viewer, random);
  return things.map((thing, i) => (thing.portal ? portalChoice(thing, viewer) : table.texts[chosen[i]!]!));
}

/** One name for each thing, chosen in the same way; doors are named as things are. */
export function chooseReferents(things: readonly Thing[], viewer: Thing, random: JavaRandom): string[] {
  const chosen = chooseNumbers(things, viewer, random);
  return things.map((_, i) => table.texts[chosen[i]!]!);
}

/**
 * Draws of the choice of names alone. Things that have a name of their own draw nothing, so the census only keeps, from one
 * call to the next, how many have each name.
 */
export function drawNames(things: readonly Thing[], viewer: Thing, random: JavaRandom, census: Census): void {
  const { era } = table;
  const all = things.map((thing) => listNames(thing, viewer));
  if (table.era !== era) {
    drawNames(things, viewer, random, census);
    return;
  }
  count(things, all, census);
  const { counts } = census;
  const choosers: Chooser[] = [];
  for (const thing of things) {
    const own = thing.counted!;
    if (own.single >= 0 && counts[own.single] === 1) continue;
    own.single = singleOf(own.numbers, counts);
    if (own.single < 0) choosers.push({ names: own.numbers, choice: own.numbers[0]!, at: 0 });
  }
  settle(choosers, random);
}

/** Brings the census up to these things with these names. */
function count(things: readonly Thing[], all: readonly Int32Array[], census: Census): void {
  const at = ++census.at;
  if (census.era !== table.era) {
    census.era = table.era;
    census.counts = new Int32Array(table.texts.length);
    for (const thing of census.things) thing.counted = null;
    census.things = [];
  }
  if (census.counts.length < table.texts.length) {
    const wider = new Int32Array(table.texts.length + 1024);
    wider.set(census.counts);
    census.counts = wider;
  }
  for (const [i, thing] of things.entries()) {
    const numbers = all[i]!;
    const own = thing.counted;
    if (own?.numbers === numbers) {
      own.at = at;
      continue;
    }
    if (own) add(own.numbers, -1, census.counts);
    add(numbers, 1, census.counts);
    thing.counted = { numbers, single: -1, at };
  }
  for (const thing of census.things) {
    if (thing.counted === null || thing.counted.at === at) continue;
    add(thing.counted.numbers, -1, census.counts);
    thing.counted = null;
  }
  census.things = things;
}

function add(numbers: Int32Array, by: number, to: Int32Array): void {
  for (let i = 0; i < numbers.length; i++) to[numbers[i]!]! += by;
}

/** First of these names that one thing alone has, or −1. */
function singleOf(numbers: Int32Array, among: Int32Array): number {
  for (let i = 0; i < numbers.length; i++) if (among[numbers[i]!] === 1) return numbers[i]!;
  return -1;
}

function chooseNumbers(things: readonly Thing[], viewer: Thing, random: JavaRandom): number[] {
  const { era } = table;
  const all = things.map((thing) => listNames(thing, viewer));
  // Numbers of an emptied table mean nothing: once more, with the new one.
  if (table.era !== era) return chooseNumbers(things, viewer, random);
  widen();
  for (const names of all) add(names, 1, counts);
  // A name that is one thing's alone stays its choice: no other thing can take it.
  const chosen = all.map((names) => singleOf(names, counts));
  for (const names of all) for (let i = 0; i < names.length; i++) counts[names[i]!] = 0;
  const choosers: Chooser[] = [];
  for (const [i, names] of all.entries()) {
    if (chosen[i] === -1) choosers.push({ names, choice: names[0]!, at: 0 });
  }
  settle(choosers, random);
  let next = 0;
  for (let i = 0; i < chosen.length; i++) if (chosen[i] === -1) chosen[i] = choosers[next++]!.choice;
  return chosen;
}

/** Makes room for the counts of all names there are. */
function widen(): void {
  if (counts.length < table.texts.length) counts = new Int32Array(2 * table.texts.length);
}

/** Runs the rounds of the choice. */
function settle(choosers: readonly Chooser[], random: JavaRandom): void {
  widen();
  const moving: Chooser[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < choosers.length; i++) counts[choosers[i]!.choice]!++;
    moving.length = 0;
    for (let i = 0; i < choosers.length; i++) if (counts[choosers[i]!.choice]! > 1) moving.push(choosers[i]!);
    for (let i = 0; i < choosers.length; i++) counts[choosers[i]!.choice] = 0;
    if (moving.length === 0) return;
    for (let i = 0; i < moving.length; i++) {
      const chooser = moving[i]!;
      const { names } = chooser;
      chooser.at = round < DRAWING ? (chooser.at + 1) % names.length : random.int(names.length);
      chooser.choice = names[chooser.at]!;
    }
  }
}

function portalChoice(portal: Thing, viewer: Thing): string {
  const place = findBehind(portal, viewer);
  const { from, to } = portal.portal!;
  return place ? `${portal.name} to ${place.name}` : `${portal.name} from ${from.name} to ${to.name}`;
}

/**
 * Things a command can speak of, in no order: the agent's place, its doors, the places behind them and all that is not
 * shut away, and the same for the agent itself.
 */
export function candidates(agent: Thing): Thing[] {
  const found: Thing[] = [];
  const walk = ++agent.changes.walks;
  for (const top of [agent.parent!, agent]) {
    pass(top, found, walk);
    for (const portal of top.portals) {
      pass(portal, found, walk);
      const place = findBehind(portal, top);
      if (place) pass(place, found, walk);
    }
    reach(top, found, walk);
  }
  return found;
}

/** Things that a command to teleport can speak of, by id: all in the world that is not shut away or carried. */
export function candidatesAnywhere(universe: Thing): Thing[] {
  const found: Thing[] = [];
  const walk = ++universe.changes.walks;
  pass(universe, found, walk);
  reach(universe, found, walk);
  return found.sort((a, b) => a.id - b.id);
}

function reach(container: Thing, found: Thing[], walk: number): void {
  for (const thing of container.contents) {
    pass(thing, found, walk);
    if (thing.terminals) for (const terminal of thing.terminals) pass(terminal, found, walk);
    for (const portal of thing.portals) pass(portal, found, walk);
    if (thing.isOpen) reach(thing, found, walk);
  }
}
