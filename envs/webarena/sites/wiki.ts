/** Encyclopaedia site: search and articles. Nothing can be changed. */
import {
  type Block,
  button,
  checkbox,
  form,
  heading,
  link,
  list,
  main,
  type Page,
  page,
  radio,
  row,
  searchbox,
  table,
} from '../page.ts';
import type { Article, WikiWorld } from '../worlds/wiki.ts';
import { pager, takePage } from './paging.ts';
import { oneLine, renderNotFound, type Site } from './site.ts';

export const wiki: Site = { get: (world, _changes, path, query) => get(world.wiki, path, query) };

function get(world: WikiWorld, path: string, query: URLSearchParams): Page {
  const [, section = '', item = ''] = path.split('/');
  if (section === '') return shell('Welcome', row(`${world.articles.length} articles`));
  if (section === 'search') {
    const wanted = oneLine(query.get('q')).toLowerCase();
    const fits = ({ title, facts }: Article): boolean => {
      const texts = query.get('in') === 'titles' ? [title] : [title, ...Object.values(facts)];
      return texts.some((text) =>
        query.has('whole') ? text.toLowerCase() === wanted : text.toLowerCase().includes(wanted),
      );
    };
    const shown = takePage(
      world.articles.filter((article) => wanted !== '' && fits(article)),
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
  if (!article) return renderNotFound();
  return shell(
    article.title,
    row(article.text),
    table('Facts', ['Fact', 'Value'], Object.entries(article.facts)),
    row(heading('Readers', 2)),
    table(
      'Readers',
      ['Year', 'Readers'],
      article.readers.map(({ year, count }) => [year, count]),
    ),
  );
}

function shell(title: string, ...blocks: readonly Block[]): Page {
  return page(
    `${title} - Almanac`,
    row(link('Almanac', '/')),
    form(
      'get',
      '/search',
      {},
      row(searchbox('Search articles', 'q'), button('Search')),
      row(
        radio('Everywhere', 'in', 'all', true),
        radio('Titles only', 'in', 'titles', false),
        checkbox('Whole titles and facts', 'whole', false),
      ),
    ),
    main(title, ...blocks),
  );
}
