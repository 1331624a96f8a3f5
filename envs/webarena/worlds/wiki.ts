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
  /** Readers of each year, the newest first: longer than a screen. */
  readonly readers: readonly { readonly year: number; readonly count: number }[];
}

/** Years after all that the facts name. */
const LAST_YEAR = 2022;
const READER_YEARS = 23;

/** World of the encyclopaedia. */
export interface WikiWorld {
  readonly articles: readonly Article[];
}

/** Draws the encyclopaedia. */
export function drawWiki(rng: Rng, { places }: MapWorld): WikiWorld {
  const person = () => `${rng.pick(FIRST_NAMES)} ${rng.pick(LAST_NAMES)}`;
  const years = rng.shuffle(Array.from({ length: 220 }, (_, i) => 1780 + i));
  const counts = rng.split('readers');
  const readers = () =>
    Array.from({ length: READER_YEARS }, (_, i) => ({ year: LAST_YEAR - i, count: 2000 + counts.int(7999) }));
  const about = places.slice(0, 102).map((place, i): Article => {
    const facts = { Founded: String(years[i]!), Architect: person(), 'Named after': person() };
    return {
      title: place.name,
      slug: slug(place.name),
      facts,
      text: `${place.name} is a ${place.kind} in ${place.city}.`,
      readers: readers(),
    };
  });
  const subjects = FORUMS.map((forum, i): Article => {
    const title = `History of ${forum}`;
    const facts = { 'First described': String(years[102 + i]!), 'Described by': person() };
    const text = `People have written about ${forum} for a long time.`;
    return { title, slug: slug(title), facts, text, readers: readers() };
  });
  return { articles: [...about, ...subjects] };
}
