/** Map, encyclopaedia and home page of WebArena's sites, and what all sites share. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Episode } from '../../../envs/webarena/sites/episode.ts';
import { nearest } from '../../../envs/webarena/sites/map.ts';
import { pager, takePage } from '../../../envs/webarena/sites/paging.ts';
import {
  appendChange,
  BASES,
  type Changes,
  HOSTS,
  hasWords,
  listMade,
  oneLine,
  setChange,
  toggleChange,
} from '../../../envs/webarena/sites/site.ts';
import { kilometres, minutes } from '../../../envs/webarena/worlds/map.ts';
import { linksOf, siteOf, WORLD } from '../../support/web-pages.ts';

describe('the map', () => {
  const { map } = WORLD;
  const [from, to] = [map.places[3]!, map.places[40]!];

  it('shows all that is known of a place', () => {
    const text = siteOf('map').text(`/place/${from.id}`);
    for (const shown of [
      from.kind,
      from.address,
      from.city,
      from.postcode,
      from.phone,
      from.hours,
      `${from.latitude}, ${from.longitude}`,
    ])
      expect(text).toContain(`'${shown}'`);
  });

  it('finds places by name, kind, city and address together', () => {
    const links = linksOf(
      siteOf('map').page(`/search?q=${encodeURIComponent(`${from.kind} ${from.city} ${from.name}`)}`),
    );
    expect(links.get(from.name)).toBe(`/place/${from.id}`);
  });

  it.each(['car', 'bike', 'foot'] as const)('shows the way by %s', (mode) => {
    const metres = map.metres(from.id, to.id, mode);
    const text = siteOf('map').text(`/directions?from=${from.name.toUpperCase()}&to=${to.name}&mode=${mode}`);
    expect(text).toContain(`'${kilometres(metres)}'`);
    expect(text).toContain(`'${minutes(metres, mode)} minutes'`);
  });

  it('asks for both ends, and names the one it does not know', () => {
    expect(siteOf('map').text('/directions')).not.toContain('Distance');
    expect(siteOf('map').text(`/directions?from=${from.name}&to=Nowhere`)).toContain('No place is called Nowhere.');
    expect(siteOf('map').text(`/directions?from=Nowhere&to=${to.name}`)).toContain('No place is called Nowhere.');
  });

  it('shows the five nearest places of a kind, not in their order', () => {
    const kind = 'hotel';
    const five = nearest(map, from, kind).slice(0, 5);
    const far = (id: number) => map.metres(from.id, id, 'foot');
    for (const place of map.places)
      if (place.kind === kind && place.id !== from.id && !five.includes(place))
        expect(far(place.id)).toBeGreaterThanOrEqual(far(five.at(-1)!.id));
    const shown = [...linksOf(siteOf('map').page(`/near/${from.id}?kind=${kind}`)).values()].filter((href) =>
      href.startsWith('/place/'),
    );
    expect(shown).toEqual([...five].sort((a, b) => a.id - b.id).map(({ id }) => `/place/${id}`));
  });

  it('measures ways that are symmetric, and shorter on foot than by car', () => {
    const ids = fc.integer({ min: 0, max: map.places.length - 1 });
    fc.assert(
      fc.property(ids, ids, ids, (a, b, c) => {
        expect(map.metres(a, b, 'foot')).toBe(map.metres(b, a, 'foot'));
        expect(map.metres(a, b, 'foot')).toBeLessThanOrEqual(map.metres(a, b, 'car'));
        expect(map.metres(a, b, 'bike')).toBe(map.metres(a, b, 'foot'));
        expect(map.metres(a, c, 'car')).toBeLessThanOrEqual(map.metres(a, b, 'car') + map.metres(b, c, 'car'));
        expect(map.metres(a, a, 'car')).toBe(0);
      }),
    );
  });

  it.each([
    [1800, 'car', 3],
    [1801, 'car', 4],
    [250, 'bike', 1],
    [800, 'foot', 10],
  ] as const)('%i metres by %s take %i minutes', (metres, mode, expected) => {
    expect(minutes(metres, mode)).toBe(expected);
  });

  it('cannot be changed, and has no other pages', () => {
    const site = siteOf('map');
    expect(site.send('/search', { q: 'x' })).toBe('/search');
    for (const path of ['/place/9999', '/near/9999', '/none'])
      expect([path, site.page(path).status]).toEqual([path, 404]);
  });
});

describe('the encyclopaedia', () => {
  const { articles } = WORLD.wiki;
  const article = articles[5]!;

  it('shows an article with its facts', () => {
    const text = siteOf('wikipedia').text(`/wiki/${article.slug}`);
    for (const [fact, value] of Object.entries(article.facts)) {
      expect(text).toContain(`'${fact}'`);
      expect(text).toContain(`'${value}'`);
    }
    expect(siteOf('wikipedia').page('/wiki/none').status).toBe(404);
  });

  it('finds articles by title or by fact', () => {
    const find = (query: string) => linksOf(siteOf('wikipedia').page(`/search?${query}`)).get(article.title);
    const at = `/wiki/${article.slug}`;
    expect(find(`q=${article.title}`)).toBe(at);
    expect(find(`q=${article.facts.Architect}`)).toBe(at);
    expect(find(`q=${article.facts.Architect}&in=titles`)).toBeUndefined();
    expect(find(`q=${article.facts.Founded}&whole=on`)).toBe(at);
    expect(find(`q=${article.facts.Founded!.slice(0, 3)}&whole=on`)).toBeUndefined();
    expect(find('q=')).toBeUndefined();
  });

  it('has years that no two articles share', () => {
    const years = articles.map(({ facts }) => facts.Founded ?? facts['First described']);
    expect(new Set(years).size).toBe(articles.length);
  });
});

describe('the home page', () => {
  it('leads to every other site', () => {
    const links = [...linksOf(siteOf('homepage').page('/')).values()];
    expect(links.sort()).toEqual(
      Object.entries(BASES)
        .flatMap(([site, base]) => (site === 'homepage' ? [] : [site === 'shopping_admin' ? base : `${base}/`]))
        .sort(),
    );
    expect(siteOf('homepage').page('/x').status).toBe(404);
  });
});

describe('changes', () => {
  const keys = fc.constantFrom('a', 'b', 'c/1');
  const all = fc.dictionary(keys, fc.string({ minLength: 1 })) as fc.Arbitrary<Changes>;

  it('that are taken back leave nothing', () => {
    fc.assert(
      fc.property(all, keys, fc.string({ minLength: 1 }), (changes, key, value) => {
        const without = setChange(changes, key, '');
        expect(key in without).toBe(false);
        expect(setChange(setChange(without, key, value), key, '')).toEqual(without);
        expect(setChange(changes, key, value, value)).toEqual(without);
        expect(toggleChange(toggleChange(without, key), key)).toEqual(without);
      }),
    );
  });

  it('made one after the other are counted from 1', () => {
    let changes: Changes = {};
    for (const text of ['x', '', 'y']) changes = appendChange(changes, 'p', text);
    expect(changes).toEqual({ 'p/1': 'x', 'p/2': 'y' });
    expect(listMade(changes, 'p')).toEqual(['x', 'y']);
    expect(listMade(changes, 'q')).toEqual([]);
  });
});

describe('texts that are typed', () => {
  it('become one line of 400 characters at most', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 600 }), (text) => {
        const line = oneLine(text);
        expect(line.length).toBeLessThanOrEqual(400);
        expect(line).toBe(line.trim());
        expect(/[\n\r\t]|\s{2}/.test(line)).toBe(false);
      }),
    );
    expect(oneLine(null)).toBe('');
    expect(oneLine('a\u0000b\nc')).toBe('a b c');
  });

  it('are found by every word, of which there must be one', () => {
    expect(hasWords('Red Oak Pan', ['oak', 'red'])).toBe(true);
    expect(hasWords('Red Oak Pan', ['oak', 'blue'])).toBe(false);
    expect(hasWords('Red Oak Pan', [])).toBe(false);
  });
});

describe('long lists', () => {
  it('are cut into pages that hold every item once', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 60 }), fc.integer({ min: 1, max: 12 }), (items, size) => {
        const { pages } = takePage(items, null, size);
        const all = Array.from({ length: pages }, (_, i) => takePage(items, String(i + 1), size).items).flat();
        expect(all).toEqual(items);
      }),
    );
  });

  it.each([
    [null, 1],
    ['2', 2],
    ['0', 1],
    ['99', 3],
    ['-1', 1],
    ['two', 1],
    ['12345', 1],
  ])('at page %j are at page %i', (requested, page) => {
    expect(takePage(Array(25).fill(0), requested).page).toBe(page);
  });

  it('lead to their neighbours and keep the query', () => {
    const row = pager(takePage(Array(25).fill(0), '2'), '/list', new URLSearchParams('q=a b&page=2'));
    expect(row.cells).toMatchObject([
      { text: '25 found, page 2 of 3' },
      { text: 'Previous', href: '/list?q=a+b&page=1' },
      { text: 'Next', href: '/list?q=a+b&page=3' },
    ]);
    expect(pager(takePage([], null), '/list', new URLSearchParams()).cells).toHaveLength(1);
  });
});

describe('an episode', () => {
  it('has a page for every address, if only a "not found"', () => {
    const episode = new Episode(WORLD);
    expect(episode.get('http://nowhere.test/').status).toBe(404);
    expect(episode.get(`${BASES.shopping}/%E0%A4%A`).status).toBe(404);
    expect(episode.get(`${BASES.shopping}//`).status).toBe(200);
    expect([...HOSTS.keys()].every((host) => host.endsWith('.test'))).toBe(true);
  });

  it('shares pages with others as long as nothing was changed', () => {
    const [one, other] = [new Episode(WORLD), new Episode(WORLD)];
    const url = `${BASES.reddit}/settings`;
    expect(one.get(url)).toBe(other.get(url));
    one.post(url, new URLSearchParams({ bio: 'x' }));
    expect(one.get(url)).not.toBe(other.get(url));
  });
});
