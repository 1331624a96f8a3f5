/** The encyclopaedia: search and articles. Nothing can be changed. */
import {
  type Block,
  button,
  form,
  group,
  heading,
  link,
  list,
  type Page,
  page,
  row,
  searchbox,
  table,
} from '../page.ts';
import type { WikiWorld } from '../worlds/wiki.ts';
import { paged, pager } from './paging.ts';
import { notFound, oneLine, type Site } from './site.ts';

export const wiki: Site = (world, _changes, { path, query }) => ({ page: get(world.wiki, path, query) });

function get(world: WikiWorld, path: string, query: URLSearchParams): Page {
  const [, section = '', item = ''] = path.split('/');
  if (section === '') return shell('Welcome', row(`${world.articles.length} articles`));
  if (section === 'search') {
    const asked = oneLine(query.get('q')).toLowerCase();
    const shown = paged(
      world.articles.filter(
        ({ title, facts }) => asked !== '' && [title, ...Object.values(facts)].join(' ').toLowerCase().includes(asked),
      ),
      query.get('page'),
    );
    return shell(
      'Search results',
      list(
        'Articles',
        shown.items.map(({ title, slug }) => [link(title, `/wiki/${slug}`)]),
      ),
      pager(shown, '/search', query),
    );
  }
  const article = world.articles.find(({ slug }) => section === 'wiki' && slug === item);
  if (!article) return notFound();
  return shell(article.title, row(article.text), table('Facts', ['Fact', 'Value'], Object.entries(article.facts)));
}

function shell(title: string, ...blocks: readonly Block[]): Page {
  return page(
    `${title} - Almanac`,
    row(link('Almanac', '/')),
    form('get', '/search', {}, row(searchbox('Search articles', 'q'), button('Search'))),
    group('main', '', row(heading(title)), ...blocks),
  );
}
