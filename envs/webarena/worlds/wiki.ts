/** Articles about places of the map and subjects of the forums: one fact a line. */
import type { Rng } from '../../../src/core/rng.ts';
import { slug } from './draw.ts';
import type { MapWorld } from './map.ts';
import { FIRST_NAMES, FORUMS, LAST_NAMES } from './words.ts';

/** Article of the encyclopaedia. */
export interface Article {
  readonly title: string;
  readonly slug: string;
  /** Facts by name, e.g. `Founded` → `1872`. */
  readonly facts: Readonly<Record<string, string>>;
  readonly text: string;
}

/** World of the encyclopaedia. */
export interface WikiWorld {
  readonly articles: readonly Article[];
}

/** Draws the encyclopaedia. */
export function drawWiki(rng: Rng, { places }: MapWorld): WikiWorld {
  const person = () => `${rng.pick(FIRST_NAMES)} ${rng.pick(LAST_NAMES)}`;
  const years = rng.shuffle(Array.from({ length: 220 }, (_, i) => 1780 + i));
  const about = places.slice(0, 102).map((place, i): Article => {
    const facts = { Founded: String(years[i]!), Architect: person(), 'Named after': person() };
    return {
      title: place.name,
      slug: slug(place.name),
      facts,
      text: `${place.name} is a ${place.kind} in ${place.city}.`,
    };
  });
  const subjects = FORUMS.map((forum, i): Article => {
    const title = `History of ${forum}`;
    const facts = { 'First described': String(years[102 + i]!), 'Described by': person() };
    return { title, slug: slug(title), facts, text: `People have written about ${forum} for a long time.` };
  });
  return { articles: [...about, ...subjects] };
}
