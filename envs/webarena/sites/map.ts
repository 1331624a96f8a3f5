/** Map site: search, pages of places, directions, what is near. Nothing can be changed. */
import { type Block, button, form, link, main, type Page, page, row, select, status, table, textbox } from '../page.ts';
import { kilometres, type MapWorld, MODES, type Mode, minutes, type Place } from '../worlds/map.ts';
import { PLACE_KINDS } from '../worlds/words.ts';
import { pager, takePage } from './paging.ts';
import { hasWords, oneLine, renderNotFound, type Site, searchWords } from './site.ts';

export const map: Site = { get: (world, _changes, path, query) => get(world.map, path, query) };

const KINDS = PLACE_KINDS.map(({ kind }) => kind);

function get(world: MapWorld, path: string, query: URLSearchParams): Page {
  const [, section = '', item = ''] = path.split('/');
  if (section === '') return shell('Map', row('Search for a place, or ask for directions.'));
  if (section === 'search') return search(world, query);
  if (section === 'directions') return directions(world, query);
  const place = world.places.find(({ id }) => String(id) === item);
  if (section === 'place' && place) return placePage(place);
  if (section === 'near' && place) return renderNear(world, place, query);
  return renderNotFound();
}

function shell(title: string, ...blocks: readonly Block[]): Page {
  return page(
    `${title} | Cartographer`,
    row(link('Cartographer', '/'), link('Directions', '/directions')),
    form('get', '/search', {}, row(textbox('Search places', 'q'), button('Go'))),
    main(title, ...blocks),
  );
}

/** Places that a search finds. */
export function placesWith({ places }: MapWorld, words: readonly string[]): Place[] {
  return places.filter(({ name, kind, city, address }) => hasWords(`${name} ${kind} ${city} ${address}`, words));
}

function search(world: MapWorld, query: URLSearchParams): Page {
  const shown = takePage(placesWith(world, searchWords(query)), query.get('page'));
  return shell(
    'Results',
    table(
      'Places',
      ['Place', 'Kind', 'City'],
      shown.items.map(({ id, name, kind, city }) => [link(name, `/place/${id}`), kind, city]),
    ),
    pager(shown, '/search', query),
  );
}

function placePage(place: Place): Page {
  return shell(
    place.name,
    row('Kind', place.kind),
    row('Address', place.address),
    row('City', place.city),
    row('Postcode', place.postcode),
    row('Coordinates', `${place.latitude}, ${place.longitude}`),
    row('Phone', place.phone),
    row('Opening hours', place.hours),
    form('get', `/near/${place.id}`, {}, row('Near this place', select('Kind', 'kind', KINDS, ''), button('Show'))),
    form(
      'get',
      '/directions',
      { from: place.name },
      row(textbox('To', 'to'), select('Mode', 'mode', MODES, ''), button('Directions from here')),
    ),
  );
}

function placeNamed({ places }: MapWorld, name: string): Place | undefined {
  return places.find((one) => one.name.toLowerCase() === name.toLowerCase());
}

function directions(world: MapWorld, query: URLSearchParams): Page {
  const [from, to] = [oneLine(query.get('from')), oneLine(query.get('to'))];
  const mode: Mode = MODES.find((one) => one === query.get('mode')) ?? 'car';
  const [a, b] = [placeNamed(world, from), placeNamed(world, to)];
  const request = form(
    'get',
    '/directions',
    {},
    row('From', textbox('From', 'from', from)),
    row('To', textbox('To', 'to', to)),
    row('Mode', select('Mode', 'mode', MODES, mode)),
    row(button('Find route')),
  );
  if (from === '' && to === '') return shell('Directions', request);
  if (!a || !b) return shell('Directions', request, row(status(`No place is called ${a ? to : from}.`)));
  const metres = world.metres(a.id, b.id, mode);
  return shell(
    'Directions',
    request,
    row('Distance', kilometres(metres)),
    row('Time', `${minutes(metres, mode)} minutes`),
  );
}

/** Places of a kind by distance on foot, nearest first. */
export function nearest(world: MapWorld, place: Place, kind: string): Place[] {
  const found = world.places.filter((one) => one.kind === kind && one.id !== place.id);
  return found.sort(
    (a, b) => world.metres(place.id, a.id, 'foot') - world.metres(place.id, b.id, 'foot') || a.id - b.id,
  );
}

function renderNear(world: MapWorld, place: Place, query: URLSearchParams): Page {
  const kind = KINDS.find((one) => one === query.get('kind')) ?? KINDS[0]!;
  const found = nearest(world, place, kind)
    .slice(0, 5)
    .sort((a, b) => a.id - b.id);
  return shell(
    `${kind} near ${place.name}`,
    table(
      'Places',
      ['Place', 'Distance on foot'],
      found.map((one) => [link(one.name, `/place/${one.id}`), kilometres(world.metres(place.id, one.id, 'foot'))]),
    ),
  );
}
