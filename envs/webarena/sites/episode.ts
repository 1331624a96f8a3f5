/** The sites of one episode: its world, what has changed in it, and answers to requests. */
import type { Page } from '../page.ts';
import type { SiteId } from '../urls.ts';
import type { Embedded } from '../worlds/embedded.ts';
import { BASES, type Changes, notFound, type SiteRequest } from './site.ts';
import { sites } from './sites.ts';

/** Redirects that are followed in a row. */
const MAX_REDIRECTS = 4;

const HOSTS: ReadonlyMap<string, SiteId> = new Map(
  Object.entries(BASES).map(([site, base]) => [new URL(base).host, site as SiteId]),
);

/** Answer to a request that may lead elsewhere. */
export type Answer = { readonly page: Page } | { readonly redirect: string };

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
    const answer = this.answer('GET', url, new URLSearchParams());
    const made = 'page' in answer ? answer.page : this.#follow(answer.redirect, 1);
    if (untouched) this.world.pages.set(url, made);
    return made;
  }

  /** Sends a form. @returns the address it leads to */
  post(url: string, form: URLSearchParams): string {
    const answer = this.answer('POST', url, form);
    return 'redirect' in answer ? answer.redirect : url;
  }

  #follow(url: string, redirects: number): Page {
    const answer = this.answer('GET', url, new URLSearchParams());
    if ('page' in answer) return answer.page;
    if (redirects >= MAX_REDIRECTS) throw new Error(`webarena: more than ${MAX_REDIRECTS} redirects at ${url}`);
    return this.#follow(answer.redirect, redirects + 1);
  }

  /** One request, as the loopback server asks it too. */
  answer(method: 'GET' | 'POST', url: string, form: URLSearchParams): Answer {
    const { host, pathname, searchParams } = new URL(url);
    const site = HOSTS.get(host);
    if (site === undefined) return { page: notFound('No such site') };
    const request: SiteRequest = { site, method, path: pathOf(pathname), query: searchParams, form };
    const response = sites[site](this.world, this.#changes, request);
    if ('page' in response) return response;
    this.#changes = response.changes;
    return { redirect: new URL(response.redirect, url).href };
  }
}

function pathOf(pathname: string): string {
  const path = pathname.replace(/\/+$/, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
