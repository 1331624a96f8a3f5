/** Sites as pure functions: (world, changes so far, request) → page, or where to go next and what has changed. */
import { heading, type Page, page, row } from '../page.ts';
import type { SiteId } from '../urls.ts';
import type { Embedded } from '../worlds/embedded.ts';

export interface SiteRequest {
  readonly site: SiteId;
  readonly method: 'GET' | 'POST';
  /** Path, decoded, without a slash at the end (`/` alone is ``). */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Fields of a posted form; empty for GET. */
  readonly form: URLSearchParams;
}

/**
 * Changes made in an episode: what differs from the world, by name of the thing (`shop/wishlist/12` → `yes`). Its text
 * is what tasks that change something are judged by, so a change that is taken back leaves nothing.
 */
export type Changes = Readonly<Record<string, string>>;

export type SiteResponse =
  | { readonly page: Page }
  /** Address to go to, and the changes as they are now. */
  | { readonly redirect: string; readonly changes: Changes };

export type Site = (world: Embedded, changes: Changes, request: SiteRequest) => SiteResponse;

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

/** @returns the changes with `key` set, or without it where `value` is what the world says anyway */
export function changed(changes: Changes, key: string, value: string, original = ''): Changes {
  const { [key]: _old, ...rest } = changes;
  return value === original ? rest : { ...rest, [key]: value };
}

/** The first free number of `prefix/1`, `prefix/2`, …: things made in an episode. */
export function nextNumber(changes: Changes, prefix: string): number {
  let n = 1;
  while (`${prefix}/${n}` in changes) n++;
  return n;
}

/** Values of `prefix/1`, `prefix/2`, … in order. */
export function madeUnder(changes: Changes, prefix: string): string[] {
  const made: string[] = [];
  for (let n = 1; `${prefix}/${n}` in changes; n++) made.push(changes[`${prefix}/${n}`]!);
  return made;
}

/** A text that somebody typed, as a page shows it: one line, no control characters, at most 400 characters. */
export function oneLine(text: string | null): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is cut
  const clean = (text ?? '').replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ').replace(/[\ud800-\udfff]/gu, '');
  return clean.trim().slice(0, 400);
}

/** The answer to an address that a site does not have. */
export function notFound(title = 'Page not found'): Page {
  return { ...page(title, row(heading(title))), status: 404 };
}
