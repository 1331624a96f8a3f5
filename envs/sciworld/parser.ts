/** Reading of commands: words as prefixes, names of things, and what remains ambiguous. */
import { namesBeginning, type OwnSet, ownSet, ownSetsOf } from './names.ts';
import { describeName } from './text.ts';
import type { Thing } from './thing.ts';

/** Pattern of a command: word groups (any of these words) and places for things (null). */
export type Pattern = readonly (readonly string[] | null)[];

/** Reading of a text as one command: the action and its things. */
export interface Reading<A> {
  readonly action: A;
  readonly things: readonly Thing[];
}

/** Things a text may name, each with its names, and the place they are seen from. */
export interface Nameable {
  readonly things: readonly Thing[];
  readonly sets: readonly OwnSet[];
  readonly viewer: Thing;
  /** Things and names that each text so far could begin with. */
  readonly spoken: Map<string, readonly Spoken[]>;
}

/** One way in which a text can begin with the name of a thing. */
interface Spoken {
  readonly thing: Thing;
  readonly name: string;
}

/** Looks up the names of `things`. */
export function nameable(things: readonly Thing[], viewer: Thing): Nameable {
  return { things, sets: ownSetsOf(things, viewer), viewer, spoken: new Map() };
}

/** Names that `text` begins with, of a thing that has those of `beginning`, alone or in or on its container; sorted. */
function prefixes(thing: Thing, beginning: readonly string[], text: string, viewer: Thing): string[] {
  const found: string[] = [];
  for (const name of beginning) {
    if (name.length > 1) found.push(name);
    const rest = text.slice(name.length);
    const joint = rest.startsWith(' in ') ? ' in ' : rest.startsWith(' on ') ? ' on ' : '';
    const container = thing.parent;
    if (!joint || !container || container.portal) continue;
    for (const place of ownSet(container, viewer).plain.keys()) {
      if (rest.startsWith(place, 4)) found.push(name + joint + place);
    }
  }
  return found.length > 1 ? [...new Set(found)].sort() : found;
}

/** Things whose names `text` begins with, each with every such name. */
function findSpoken(text: string, { things, sets, viewer, spoken }: Nameable): readonly Spoken[] {
  const before = spoken.get(text);
  if (before) return before;
  const found: Spoken[] = [];
  const known = namesBeginning(text);
  for (let i = 0; known.length > 0 && i < sets.length; i++) {
    const { plain } = sets[i]!;
    let beginning: string[] | undefined;
    for (const name of known) {
      if (!plain.has(name)) continue;
      beginning ??= [];
      beginning.push(name);
    }
    if (!beginning) continue;
    const thing = things[i]!;
    for (const name of prefixes(thing, beginning, text, viewer)) found.push({ thing, name });
  }
  spoken.set(text, found);
  return found;
}

/** Readings of `text` (as `plain` makes it) by one pattern: tuples of things, each once. */
export function match(pattern: Pattern, text: string, near: Nameable): Thing[][] {
  const found: Thing[][] = [];
  const seen = new Set<string>();
  const go = (at: number, rest: string, chosen: Thing[]): void => {
    if (at === pattern.length) {
      if (rest !== '') return;
      const key = chosen.map((thing) => thing.id).join(',');
      if (!seen.has(key)) found.push(chosen);
      seen.add(key);
      return;
    }
    const words = pattern[at]!;
    if (words) {
      for (const word of words) if (rest.startsWith(word)) go(at + 1, rest.slice(word.length).trim(), chosen);
      return;
    }
    if (rest === '') return;
    for (const { thing, name } of findSpoken(rest, near)) {
      go(at + 1, rest.slice(name.length).trim(), [...chosen, thing]);
    }
  };
  go(0, text, []);
  return found;
}

/** One option of an ambiguous command as text: first words of the pattern, names, and the containers in brackets. */
export function optionText(pattern: Pattern, things: readonly Thing[], room: Thing): string {
  let next = 0;
  return pattern.map((words) => (words ? words[0] : describePlace(things[next++]!, room))).join(' ');
}

function describePlace(thing: Thing, room: Thing): string {
  if (thing.portal) return describeName(thing);
  const chain: string[] = [];
  for (let at = thing.parent; at && chain.length < 50; at = at.parent) {
    chain.push(`in ${describeName(at)}`);
    if (at === room) break;
  }
  return chain.length > 0 ? `${describeName(thing)} (${chain.join(', ')})` : describeName(thing);
}
