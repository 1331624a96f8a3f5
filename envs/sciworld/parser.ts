/** Reading of commands: words as prefixes, names of things, and what remains ambiguous. */
import { plainNames } from './names.ts';
import { describedName } from './text.ts';
import type { Thing } from './thing.ts';

/** Pattern of a command: word groups (any of these words) and places for things (null). */
export type Pattern = readonly (readonly string[] | null)[];

/** One command that a text was read as. */
export interface Reading<A> {
  readonly action: A;
  readonly things: readonly Thing[];
}

/** A thing with its names and those of its container, both as `plain` text. */
interface Named {
  readonly thing: Thing;
  readonly own: readonly string[];
  readonly within: readonly string[];
}

/** Prepares the names of `things` for matching. */
export function named(things: readonly Thing[], viewer: Thing): Named[] {
  return things.map((thing) => {
    const container = thing.parent;
    const within = container && !container.portal ? plainNames(container, viewer) : [];
    return { thing, own: plainNames(thing, viewer), within };
  });
}

/** Names of `named` that `text` begins with, in order. */
function prefixes({ own, within }: Named, text: string): string[] {
  const found: string[] = [];
  for (const name of own) {
    if (!text.startsWith(name)) continue;
    if (name.length > 1) found.push(name);
    const rest = text.slice(name.length);
    const joint = rest.startsWith(' in ') ? ' in ' : rest.startsWith(' on ') ? ' on ' : '';
    if (!joint) continue;
    for (const place of within) if (rest.startsWith(place, 4)) found.push(name + joint + place);
  }
  return found.length > 1 ? [...new Set(found)].sort() : found;
}

/** Readings of `text` (as `plain` makes it) by one pattern: tuples of things, each once. */
export function match(pattern: Pattern, text: string, things: readonly Named[]): Thing[][] {
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
    for (const thing of things) {
      for (const name of prefixes(thing, rest)) {
        go(at + 1, rest.slice(name.length).trim(), [...chosen, thing.thing]);
      }
    }
  };
  go(0, text, []);
  return found;
}

/** One option of an ambiguous command as text: first words of the pattern, names, and the containers in brackets. */
export function optionText(pattern: Pattern, things: readonly Thing[], room: Thing): string {
  let next = 0;
  return pattern.map((words) => (words ? words[0] : whereabouts(things[next++]!, room))).join(' ');
}

function whereabouts(thing: Thing, room: Thing): string {
  if (thing.portal) return describedName(thing);
  const chain: string[] = [];
  for (let at = thing.parent; at && chain.length < 50; at = at.parent) {
    chain.push(`in ${describedName(at)}`);
    if (at === room) break;
  }
  return chain.length > 0 ? `${describedName(thing)} (${chain.join(', ')})` : describedName(thing);
}
