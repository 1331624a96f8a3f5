/** The sites of one episode: its world, the changes made in it, and answers to requests. */
import type { Page } from '../page.ts';
import type { Embedded } from '../worlds/embedded.ts';
import { type Changes, HOSTS, renderNotFound, type Site } from './site.ts';
import { sites } from './sites.ts';

/** Sites of one episode: a world, and the changes made in it. */
export class Episode {
  readonly world: Embedded;
  #changes: Changes = {};

  constructor(world: Embedded) {
    this.world = world;
  }

  get changes(): Changes {
    return this.#changes;
  }

  /** The page of an address. */
  get(url: string): Page {
    const untouched = Object.keys(this.#changes).length === 0;
    const known = untouched ? this.world.pages.get(url) : undefined;
    if (known) return known;
    const { host, pathname, searchParams } = new URL(url);
    const made =
      siteAt(host)?.get(this.world, this.#changes, pathOf(pathname), searchParams) ?? renderNotFound('No such site');
    if (untouched) this.world.pages.set(url, made);
    return made;
  }

  /** Sends a form. @returns the address it leads to; the form's own where nothing could be done */
  post(url: string, form: URLSearchParams): string {
    const { host, pathname } = new URL(url);
    const posted = siteAt(host)?.post?.(this.world, this.#changes, pathOf(pathname), form);
    if (!posted) return url;
    this.#changes = posted.changes;
    return new URL(posted.redirect, url).href;
  }
}

function siteAt(host: string): Site | undefined {
  const id = HOSTS.get(host);
  return id && sites[id];
}

function pathOf(pathname: string): string {
  const path = pathname.replace(/\/+$/, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
