/** Every site by its label. */
import type { SiteId } from '../urls.ts';
import { admin } from './admin.ts';
import { code } from './code.ts';
import { forum } from './forum.ts';
import { home } from './home.ts';
import { map } from './map.ts';
import { shop } from './shop.ts';
import type { Site } from './site.ts';
import { wiki } from './wiki.ts';

export const sites: Readonly<Record<SiteId, Site>> = {
  shopping: shop,
  shopping_admin: admin,
  reddit: forum,
  gitlab: code,
  map,
  wikipedia: wiki,
  homepage: home,
};
