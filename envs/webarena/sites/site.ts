/** Sites as pure functions: (world, changes so far, request) → page, or the address to go to and the changes then. */
import { heading, type Page, page, type Row, row, status } from '../page.ts';
import type { SiteId } from '../urls.ts';
import type { Embedded } from '../worlds/embedded.ts';

/**
 * Changes made in an episode: what differs from the world, by name of the thing (`shop/wishlist/12` → `yes`). Its text
 * is what tasks that change something are judged by, so a change that is taken back leaves nothing.
 */
export type Changes = Readonly<Record<string, string>>;

/** Answer to a form: the address to go to, and the changes as they are now. */
export interface Posted {
  readonly redirect: string;
  readonly changes: Changes;
}

/** Paths are decoded and have no slash at the end (`/` alone is ``). */
export interface Site {
  get(world: Embedded, changes: Changes, path: string, query: URLSearchParams): Page;
  /** Takes a form's fields. @returns undefined where nothing can be done with them */
  post?(world: Embedded, changes: Changes, path: string, sent: URLSearchParams): Posted | undefined;
}

/** Base addresses of the sites of our own. `.test` never leads out of the machine. */
export const BASES = {
  shopping: 'http://shop.test',
  shopping_admin: 'http://admin.test/admin',
  reddit: 'http://forum.test',
  gitlab: 'http://code.test',
  wikipedia: 'http://wiki.test',
  map: 'http://map.test',
  homepage: 'http://home.test',
} as const satisfies Readonly<Record<SiteId, string>>;

/** The site of each host. */
export const HOSTS: ReadonlyMap<string, SiteId> = new Map(
  Object.entries(BASES).map(([site, base]) => [new URL(base).host, site as SiteId]),
);

/** Address of a site's front page. */
export function frontPage(site: SiteId): string {
  return site === 'shopping_admin' ? BASES[site] : `${BASES[site]}/`;
}

/** @returns the changes with `key` set, or without it where `value` is what the world has anyway */
export function setChange(changes: Changes, key: string, value: string, original = ''): Changes {
  const { [key]: _old, ...rest } = changes;
  return value === original ? rest : { ...rest, [key]: value };
}

/** @returns the changes with one more of `prefix/1`, `prefix/2`, …: things made in an episode; an empty text makes none */
export function appendChange(changes: Changes, prefix: string, text: string): Changes {
  return setChange(changes, `${prefix}/${listMade(changes, prefix).length + 1}`, text);
}

/** @returns the changes with `key` on where it was off, and off where it was on */
export function toggleChange(changes: Changes, key: string): Changes {
  return setChange(changes, key, key in changes ? '' : 'yes');
}

/** Values of `prefix/1`, `prefix/2`, … in order. */
export function listMade(changes: Changes, prefix: string): string[] {
  const made: string[] = [];
  for (let n = 1; `${prefix}/${n}` in changes; n++) made.push(changes[`${prefix}/${n}`]!);
  return made;
}

/** Typed text as a page shows it: one line, no control characters, at most 400 characters. */
export function oneLine(text: string | null): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is cut
  const clean = (text ?? '').replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ').replace(/[\ud800-\udfff]/gu, '');
  return clean.trim().slice(0, 400);
}

/** Words of the search that an address asks for. */
export function searchWords(query: URLSearchParams): string[] {
  return oneLine(query.get('q'))
    .toLowerCase()
    .split(' ')
    .filter((word) => word !== '');
}

/** True if a text has every word, and there is one. */
export function hasWords(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase();
  return words.length > 0 && words.every((word) => lower.includes(word));
}

/** Line that is shown where the address has `key` in its query: the answer to a form. */
export function notice(query: URLSearchParams, key: string, text: string): Row[] {
  return query.get(key) ? [row(status(text))] : [];
}

/** The answer to an address that a site does not have. */
export function renderNotFound(title = 'Page not found'): Page {
  return { ...page(title, row(heading(title))), status: 404 };
}
