/**
 * Names things answer to, and the choice of one name for each thing that no other has. The choice draws from the
 * session's random numbers wherever names collide, so its rounds are kept exactly as the original runs them.
 */
import type { JavaRandom } from './java-random.ts';
import { behind, describedName, grownTraits, isGrown, plantName, seedTraits } from './text.ts';
import type { Thing } from './thing.ts';

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
    const owner = viewer === from || viewer === to ? viewer : from.parent === viewer ? from : to.parent === viewer ? to : null;
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

/** All names of a thing, in lower case and sorted: its own, and its own in or on each name of its container. */
export function allNames(thing: Thing, viewer: Thing | null): string[] {
  const names = new Set<string>();
  const container = thing.parent;
  const within = container ? (container.portal ? PORTAL_AS_CONTAINER : ownNames(container, viewer)) : [];
  for (const own of ownNames(thing, viewer)) {
    if (own.trim() === '') continue;
    const name = own.toLowerCase();
    if (name.length > 1) names.add(name);
    for (const place of within) {
      const lower = place.toLowerCase();
      names.add(`${name} in ${lower}`);
      names.add(`${name} on ${lower}`);
    }
  }
  return [...names].sort();
}

/** Everything the valid list speaks of, in its order: `top`, the doors and places behind, the contents, closed or not. */
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
  for (const inside of [...thing.contents, ...thing.portals].sort((a, b) => a.id - b.id)) collect(inside, hidden, found);
}

/** Rounds of the choice, and the first of them that draws. */
const ROUNDS = 20;
const DRAWING = 10;

/**
 * One name for each thing. Names that two things share are dropped where others remain; then everyone takes its first
 * and, for 20 rounds, moves on while it shares its choice: to the next name at first, to a random one later.
 */
export function chooseNames(things: readonly Thing[], viewer: Thing, random: JavaRandom): string[] {
  const all = things.map((thing) => allNames(thing, viewer));
  const owners = new Map<string, number>();
  for (const names of all) for (const name of names) owners.set(name, (owners.get(name) ?? 0) + 1);
  const choices = all.map((names) => {
    const single = names.filter((name) => owners.get(name) === 1);
    return single.length > 0 ? single : names;
  });
  const at = new Int32Array(choices.length);
  for (let round = 0; round < ROUNDS; round++) {
    const taken = new Map<string, number>();
    for (let i = 0; i < at.length; i++) {
      const name = choices[i]![at[i]!]!;
      taken.set(name, (taken.get(name) ?? 0) + 1);
    }
    for (let i = 0; i < at.length; i++) {
      const names = choices[i]!;
      if (taken.get(names[at[i]!]!)! <= 1) continue;
      at[i] = round < DRAWING ? (at[i]! + 1) % names.length : random.int(names.length);
    }
  }
  return things.map((thing, i) => (thing.portal ? portalChoice(thing, viewer) : choices[i]![at[i]!]!));
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
