/** The page with links to all sites. */
import { heading, linkInNewTab, list, page, row } from '../page.ts';
import { frontPage, renderNotFound, type Site } from './site.ts';

const LINKS = [
  ['Shop', 'shopping'],
  ['Shop administration', 'shopping_admin'],
  ['Forum', 'reddit'],
  ['Code', 'gitlab'],
  ['Map', 'map'],
  ['Encyclopaedia', 'wikipedia'],
] as const;

export const home: Site = {
  get(_world, _changes, path) {
    if (path !== '') return renderNotFound();
    const links = LINKS.map(([name, site]) => [linkInNewTab(name, frontPage(site))]);
    return page('Homepage', row(heading('Homepage')), list('Sites', links));
  },
};
