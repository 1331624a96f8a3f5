/**
 * Drivers: the two ways to play a page, in process and in Chromium. A driver carries out; the session (session.ts)
 * decides.
 */
import type { MaybePromise } from '../../../src/core/env.ts';
import type { AxNode } from '../tree.ts';

/** Tabs that may be open; a link that would open one more opens none. */
export const MAX_TABS = 8;

/** All of a browser that an observation is made of. */
export interface Snapshot {
  /** Nodes of the current page in tree order. */
  readonly nodes: readonly AxNode[];
  /** Pixels that the viewport stands below what the nodes' rectangles are relative to. */
  readonly scrolled: number;
  /** Titles of all tabs in the order they were opened. */
  readonly titles: readonly string[];
  readonly current: number;
  readonly url: string;
}

/** Driver of one episode's browser: takes snapshots, clicks, keys and addresses. */
export interface Driver {
  snapshot(): MaybePromise<Snapshot>;
  /** Mouse click at a point of the viewport, in CSS pixels. */
  click(x: number, y: number): MaybePromise<void>;
  hover(x: number, y: number): MaybePromise<void>;
  /** One key or a combination in Playwright's names, e.g. `Control+a`. */
  press(key: string): MaybePromise<void>;
  /** Types into whatever has the focus; with `replace` its text is selected first. */
  type(text: string, replace: boolean): MaybePromise<void>;
  /** Scrolls the document by one height of the viewport. */
  scroll(direction: 'up' | 'down'): MaybePromise<void>;
  /** Focuses a select without opening it. @param id of a snapshot's node */
  focusNode(id: string): MaybePromise<void>;
  /** Chooses an option of a select. @param id of the option's node */
  choose(id: string): MaybePromise<void>;
  goto(url: string): MaybePromise<void>;
  goBack(): MaybePromise<void>;
  forward(): MaybePromise<void>;
  newTab(): MaybePromise<void>;
  closeTab(): MaybePromise<void>;
  /** @param index in [0, tabs) */
  focusTab(index: number): MaybePromise<void>;
  /** Picture of what the current tab shows, as JPEG; absent where nothing is painted. */
  screenshot?(): Promise<Uint8Array>;
  close(): MaybePromise<void>;
}
