/** The page with links to all sites. */
import { heading, linkInNewTab, list, page, row } from '../page.ts';
import { BASES, notFound, type Site } from './site.ts';

export const home: Site = (_world, _changes, { path }) => {
  if (path !== '') return { page: notFound() };
  const links = [
    ['Shop', BASES.shopping],
    ['Shop administration', BASES.shopping_admin],
    ['Forum', BASES.reddit],
    ['Code', BASES.gitlab],
    ['Map', BASES.map],
    ['Encyclopaedia', BASES.wikipedia],
  ] as const;
  return {
    page: page(
      'Homepage',
      row(heading('Homepage')),
      list(
        'Sites',
        links.map(([name, base]) => [linkInNewTab(name, `${base}${base.endsWith('admin') ? '' : '/'}`)]),
      ),
    ),
  };
};
