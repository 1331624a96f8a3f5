/**
 * In-process driver: tabs, history, forms and keys over the sites' view trees, without a browser. A page is the same
 * object as long as nothing has changed, so many sessions share it.
 */
import { cellOfId, fieldValue, nodesOf } from '../nodes.ts';
import { layoutOf, type Page, type Placed, page as pageOf, ROW, SCREEN } from '../page.ts';
import type { Episode } from '../sites/episode.ts';
import { type Driver, MAX_TABS, type Snapshot } from './driver.ts';
import {
  type Effect,
  findFocusedCell,
  focus,
  insert,
  isFocusable,
  isText,
  type Live,
  press,
  scrollBy,
  selectRadio,
} from './keys.ts';

const BLANK: Page = pageOf('');
const BLANK_URL = 'about:blank';

interface Tab {
  /** Addresses; the first is the blank page a tab begins with. */
  readonly history: string[];
  at: number;
  live: Live;
}

function liveOf(page: Page): Live {
  return { layout: layoutOf(page), values: new Map(), focused: -1, scroll: 0, anchor: 0, caret: 0 };
}

/** Driver without a browser, over the view trees of one episode. */
export class InProcessDriver implements Driver {
  readonly #episode: Episode;
  readonly #focusesOpened: boolean;
  readonly #tabs: Tab[] = [];
  #current = 0;

  /** @param focusesOpened whether a tab that a link opens becomes the current one */
  constructor(episode: Episode, focusesOpened: boolean) {
    this.#episode = episode;
    this.#focusesOpened = focusesOpened;
    this.newTab();
  }

  get #tab(): Tab {
    return this.#tabs[this.#current]!;
  }

  get #live(): Live {
    return this.#tab.live;
  }

  snapshot(): Snapshot {
    const { live } = this.#tab;
    return {
      nodes: nodesOf(live.layout, this.#url(this.#tab), live),
      scrolled: live.scroll,
      titles: this.#tabs.map((tab) => tab.live.layout.page.title),
      current: this.#current,
      url: this.#url(this.#tab),
    };
  }

  #url(tab: Tab): string {
    return tab.history[tab.at]!;
  }

  click(x: number, y: number): void {
    const live = this.#live;
    const row = live.layout.rows[Math.floor((y + live.scroll) / ROW)];
    const hit = row?.find((placed) => x >= placed.x && x < placed.x + placed.width);
    if (!hit) {
      live.focused = -1;
      return;
    }
    const { cell } = hit;
    if (isFocusable(hit)) focus(live, hit);
    else live.focused = -1;
    if (cell.kind === 'link') this.#take({ type: 'follow', href: cell.href, blank: cell.blank });
    else if (cell.kind === 'button' && hit.form) this.#take({ type: 'submit', by: hit });
    else if (cell.kind === 'checkbox') live.values.set(hit.index, fieldValue(hit, live.values) === 'on' ? '' : 'on');
    else if (cell.kind === 'radio') selectRadio(live, hit);
  }

  hover(): void {}

  press(key: string): void {
    this.#take(press(this.#live, key));
  }

  type(text: string, replace: boolean): void {
    const live = this.#live;
    const field = findFocusedCell(live);
    if (!field || !isText(field)) return;
    if (replace) [live.anchor, live.caret] = [0, fieldValue(field, live.values).length];
    insert(live, text);
  }

  scroll(direction: 'up' | 'down'): void {
    scrollBy(this.#live, direction === 'down' ? SCREEN[1] : -SCREEN[1]);
  }

  focusNode(id: string): void {
    const placed = this.#live.layout.cells[cellOfId(id)?.index ?? -1];
    if (placed) focus(this.#live, placed);
  }

  choose(id: string): void {
    const { index, option = 0 } = cellOfId(id) ?? { index: -1 };
    const placed = this.#live.layout.cells[index];
    if (placed?.cell.kind === 'select') this.#live.values.set(index, placed.cell.options[option]!);
  }

  goto(url: string): void {
    this.#visit(this.#tab, url);
  }

  goBack(): void {
    this.#travel(-1);
  }

  forward(): void {
    this.#travel(1);
  }

  newTab(): void {
    this.#tabs.push({ history: [BLANK_URL], at: 0, live: liveOf(BLANK) });
    this.#current = this.#tabs.length - 1;
  }

  closeTab(): void {
    this.#tabs.splice(this.#current, 1);
    if (this.#tabs.length === 0) this.newTab();
    this.#current = this.#tabs.length - 1;
  }

  focusTab(index: number): void {
    this.#current = index;
  }

  close(): void {}

  #travel(by: 1 | -1): void {
    const tab = this.#tab;
    if (tab.history[tab.at + by] === undefined) return;
    tab.at += by;
    tab.live = liveOf(this.#load(this.#url(tab)));
  }

  #load(url: string): Page {
    return url === BLANK_URL ? BLANK : this.#episode.get(url);
  }

  /** Goes to an address; one that is open already is loaded again and leaves no entry, but for a form that was sent. */
  #visit(tab: Tab, url: string, sent = false): void {
    if (sent || this.#url(tab) !== url) {
      tab.history.splice(tab.at + 1, tab.history.length, url);
      tab.at++;
    }
    tab.live = liveOf(this.#load(url));
  }

  #take(effect: Effect | undefined): void {
    if (!effect) return;
    if (effect.type === 'submit') {
      this.#submit(effect.by);
      return;
    }
    const url = new URL(effect.href, this.#url(this.#tab)).href;
    if (!effect.blank) {
      this.#visit(this.#tab, url);
      return;
    }
    if (this.#tabs.length >= MAX_TABS) return;
    const current = this.#current;
    this.newTab();
    const opened = this.#tab;
    opened.history[0] = url; // a tab that a link opens has no blank page behind it
    opened.live = liveOf(this.#load(url));
    if (!this.#focusesOpened) this.#current = current;
  }

  #submit(by: Placed): void {
    const { action, method } = by.form!;
    const data = formData(this.#live, by);
    const url = new URL(action, this.#url(this.#tab));
    if (method === 'post') {
      this.#visit(this.#tab, this.#episode.post(url.href, data), true);
      return;
    }
    url.search = data.toString();
    this.#visit(this.#tab, url.href, true);
  }
}

/** Data that a form sends: hidden values, then fields in the page's order, and the button that was pressed. */
function formData({ layout, values }: Live, by: Placed): URLSearchParams {
  const data = new URLSearchParams(by.form!.hidden);
  for (const placed of layout.cells) {
    const { cell } = placed;
    if (placed.form !== by.form || !('name' in cell) || cell.name === '') continue;
    const value = fieldValue(placed, values);
    if (cell.kind === 'button') {
      if (placed === by) data.append(cell.name, cell.value);
    } else if (cell.kind === 'checkbox') {
      if (value === 'on') data.append(cell.name, 'on');
    } else if (cell.kind === 'radio') {
      if (value === 'on') data.append(cell.name, cell.value);
    } else data.append(cell.name, value);
  }
  return data;
}
