/** The world of an episode: everything the sites show, a pure function of one seed, drawn site by site on first use. */
import { Rng, seedFrom } from '../../../src/core/rng.ts';
import type { Page } from '../page.ts';
import { type CodeWorld, drawCode } from './code.ts';
import { drawForum, type ForumWorld } from './forum.ts';
import { drawMap, type MapWorld } from './map.ts';
import { drawShop, type ShopWorld } from './shop.ts';
import { drawWiki, type WikiWorld } from './wiki.ts';

/** Pages kept per world, as long as nothing has changed in the episode that asks. */
const MAX_PAGES = 60;

/** World of an episode: each site is drawn on first use. */
export class Embedded {
  readonly seed: number;
  readonly pages = new PageCache();
  #shop: ShopWorld | undefined;
  #forum: ForumWorld | undefined;
  #code: CodeWorld | undefined;
  #map: MapWorld | undefined;
  #wiki: WikiWorld | undefined;

  constructor(seed: number) {
    this.seed = seed;
  }

  get shop(): ShopWorld {
    this.#shop ??= drawShop(this.#rng('shop'));
    return this.#shop;
  }

  get forum(): ForumWorld {
    this.#forum ??= drawForum(this.#rng('forum'));
    return this.#forum;
  }

  get code(): CodeWorld {
    this.#code ??= drawCode(this.#rng('code'));
    return this.#code;
  }

  get map(): MapWorld {
    this.#map ??= drawMap(this.#rng('map'));
    return this.#map;
  }

  get wiki(): WikiWorld {
    this.#wiki ??= drawWiki(this.#rng('wiki'), this.map);
    return this.#wiki;
  }

  #rng(site: string): Rng {
    return Rng.fromSeed(seedFrom('webarena', site, this.seed));
  }
}

/** Pages of an unchanged world by address; the oldest go first. */
class PageCache {
  readonly #pages = new Map<string, Page>();

  get(url: string): Page | undefined {
    return this.#pages.get(url);
  }

  set(url: string, page: Page): void {
    if (this.#pages.size >= MAX_PAGES) this.#pages.delete(this.#pages.keys().next().value!);
    this.#pages.set(url, page);
  }
}

const MAX_WORLDS = 24;
const worlds = new Map<number, Embedded>();

/** The world of a seed, shared by all sessions of a thread; a few are kept. */
export function worldOf(seed: number): Embedded {
  const known = worlds.get(seed);
  if (known) {
    worlds.delete(seed);
    worlds.set(seed, known);
    return known;
  }
  const made = new Embedded(seed);
  worlds.set(seed, made);
  if (worlds.size > MAX_WORLDS) worlds.delete(worlds.keys().next().value!);
  return made;
}
