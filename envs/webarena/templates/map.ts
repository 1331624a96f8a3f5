/** Tasks on the map. */
import type { Rng } from '../../../src/core/rng.ts';
import { nearest, placesWith } from '../sites/map.ts';
import type { Embedded } from '../worlds/embedded.ts';
import { MODES, type Mode, minutes, type Place } from '../worlds/map.ts';
import { CITIES, PLACE_KINDS } from '../worlds/words.ts';
import { choose, click, enter, fill, press, type Step, templatesOf } from './template.ts';

const WORDS: Readonly<Record<Mode, string>> = { car: 'by car', bike: 'by bike', foot: 'on foot' };

/** Two places whose names are the only ones of their kind, and the steps to the way between them. */
function way(world: Embedded, rng: Rng) {
  const [a, b, mode] = [drawNamed(world, rng), drawNamed(world, rng), rng.pick(MODES)];
  if (!a || !b || a.id === b.id) return undefined;
  const metres = world.map.metres(a.id, b.id, mode);
  const find = (by: Mode): Step[] => [choose('Mode', by), press('Find route')];
  const open = [click('Directions'), fill('From', a.name), fill('To', b.name)];
  return { a, b, mode, metres, open, find, plan: [...open, ...find(mode)] };
}

function drawNamed({ map }: Embedded, rng: Rng): Place | undefined {
  const place = rng.pick(map.places);
  return map.places.filter(({ name }) => name === place.name).length === 1 ? place : undefined;
}

function open({ name }: Place): Step[] {
  return [enter('Search places', name), click(name)];
}

/** Draws about one place's page. */
function about(what: string, of: (place: Place) => string) {
  return (world: Embedded, rng: Rng) => {
    const place = drawNamed(world, rng);
    return (
      place &&
      ({
        intent: `What ${what} of "${place.name}"?`,
        answer: { type: 'text', value: of(place) },
        plan: open(place),
      } as const)
    );
  };
}

export const map = templatesOf('map', 'map', {
  distance(world, rng) {
    const at = way(world, rng);
    return (
      at && {
        intent: `How far is it from "${at.a.name}" to "${at.b.name}" ${WORDS[at.mode]}?`,
        answer: { type: 'distance', value: at.metres },
        plan: at.plan,
      }
    );
  },
  time(world, rng) {
    const at = way(world, rng);
    return (
      at && {
        intent: `How long does it take from "${at.a.name}" to "${at.b.name}" ${WORDS[at.mode]}?`,
        answer: { type: 'minutes', value: minutes(at.metres, at.mode) },
        plan: at.plan,
      }
    );
  },
  within(world, rng) {
    const at = way(world, rng);
    if (!at) return undefined;
    const takes = minutes(at.metres, at.mode);
    const limit = Math.max(1, takes + (rng.int(2) === 0 ? -1 : 1) * (1 + rng.int(5)));
    return {
      intent: `Can I get from "${at.a.name}" to "${at.b.name}" ${WORDS[at.mode]} within ${limit} minutes?`,
      answer: { type: 'yesno', value: takes <= limit },
      plan: at.plan,
    };
  },
  compare(world, rng) {
    const at = way(world, rng);
    if (!at) return undefined;
    const by = (mode: Mode) => minutes(world.map.metres(at.a.id, at.b.id, mode), mode);
    return {
      intent: `How many minutes longer does it take from "${at.a.name}" to "${at.b.name}" on foot than by bike?`,
      answer: { type: 'minutes', value: by('foot') - by('bike') },
      plan: [...at.open, ...at.find('foot'), ...at.find('bike')],
    };
  },
  'show-route'(world, rng) {
    const at = way(world, rng);
    if (!at) return undefined;
    const query = new URLSearchParams({ from: at.a.name, to: at.b.name, mode: at.mode });
    return {
      intent: `Show me the route from "${at.a.name}" to "${at.b.name}" ${WORDS[at.mode]}.`,
      url: `/directions?${query}`,
      plan: at.plan,
    };
  },
  nearest(world, rng) {
    const place = drawNamed(world, rng);
    const { kind } = rng.pick(PLACE_KINDS);
    if (!place) return undefined;
    const [first, second] = nearest(world.map, place, kind);
    const metres = (one: Place | undefined) => (one ? Math.round(world.map.metres(place.id, one.id, 'foot') / 100) : 0);
    if (!first || metres(first) === metres(second)) return undefined;
    return {
      intent: `What is the nearest "${kind}" to "${place.name}" on foot?`,
      answer: { type: 'text', value: first.name },
      plan: [...open(place), choose('Kind', kind), press('Show')],
    };
  },
  coordinates: about('are the coordinates', ({ latitude, longitude }) => `${latitude}, ${longitude}`),
  postcode: about('is the postcode', ({ postcode }) => postcode),
  address: about('is the street address', ({ address }) => address),
  phone: about('is the phone number', ({ phone }) => phone),
  hours: about('are the opening hours', ({ hours }) => hours),
  fee(world, rng) {
    const place = drawNamed(world, rng);
    return (
      place && {
        intent: `What is the entrance fee of "${place.name}"?`,
        answer: { type: 'none' },
        url: `/place/${place.id}`,
        plan: open(place),
      }
    );
  },
  'how-many*'(world, rng) {
    const [{ kind }, city] = [rng.pick(PLACE_KINDS), rng.pick(CITIES)];
    return {
      intent: `How many results does a search for "${kind} ${city}" give?`,
      answer: { type: 'number', value: placesWith(world.map, [kind, city.toLowerCase()]).length },
      plan: [enter('Search places', `${kind} ${city}`)],
    };
  },
  'nearest-distance*'(world, rng) {
    const place = drawNamed(world, rng);
    const { kind } = rng.pick(PLACE_KINDS);
    const first = place && nearest(world.map, place, kind)[0];
    return (
      first && {
        intent: `How far on foot is the nearest "${kind}" from "${place.name}"?`,
        answer: { type: 'distance', value: world.map.metres(place.id, first.id, 'foot') },
        plan: [...open(place), choose('Kind', kind), press('Show')],
      }
    );
  },
});
