/**
 * Site addresses and their public names. A page's address is shown under the public name; an address that the policy
 * writes is turned back. Plain text replacement, as AgentGym does it.
 */

/** The seven sites, under the labels of the original's task files. */
const SITES = ['reddit', 'shopping', 'shopping_admin', 'gitlab', 'wikipedia', 'map', 'homepage'] as const;
/** Name of a site. */
export type SiteId = (typeof SITES)[number];
/** Base address by site, without a slash at the end; a site without one is left out. */
export type SiteBases = Readonly<Partial<Record<SiteId, string>>>;

/** Public names under which addresses are shown. */
export const PUBLIC: Readonly<Record<SiteId, string>> = {
  reddit: 'http://reddit.com',
  shopping: 'http://onestopmarket.com',
  shopping_admin: 'http://luma.com/admin',
  gitlab: 'http://gitlab.com',
  wikipedia: 'http://wikipedia.org',
  map: 'http://openstreetmap.org',
  homepage: 'http://homepage.com',
};

/** The text with every base address under its public name. */
export function toPublic(text: string, bases: SiteBases): string {
  let out = text;
  for (const site of SITES) {
    const base = bases[site];
    if (base && out.includes(base)) out = out.replaceAll(base, PUBLIC[site]);
  }
  return out;
}

/** The text with every public name (also as https) as the base address. */
export function toLocal(text: string, bases: SiteBases): string {
  if (!text.includes('://')) return text;
  let out = text;
  for (const site of SITES) {
    const base = bases[site];
    if (!base) continue;
    out = out.replaceAll(PUBLIC[site], base).replaceAll(PUBLIC[site].replace('http://', 'https://'), base);
  }
  return out;
}
