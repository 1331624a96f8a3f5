/**
 * Chromium driver: one browser context an episode, real keys and clicks, the observation from one `getFullAXTree` and
 * one `captureSnapshot`. Serves the sites of our own and, by adapter, others.
 *
 * Source   the settings of AgentGym's `environment.py`: viewport 1280×720, device scale 1
 * Differs  rectangles come from one DOM snapshot instead of two calls a node; instead of a fixed sleep the driver waits
 *          for the page to load and come to rest
 */
import type { BrowserContext, Page as BrowserPage, CDPSession } from 'playwright-core';
import { messageOf } from '../../../src/core/errors.ts';
import type { AxNode, AxProperty, Rect } from '../tree.ts';
import { type Driver, MAX_TABS, type Snapshot } from './driver.ts';

/** Options of a Chromium driver. */
export interface ChromiumOptions {
  readonly screen: readonly [width: number, height: number];
  /** A tab that a link opens becomes the current one. */
  readonly focusesOpened: boolean;
  /** Text nodes lie where their element is: the layout of our own sites, where no text leaves its cell. */
  readonly rows: boolean;
  /** Longest wait for a page to load, and for one call of the browser. */
  readonly loadMs: number;
  /** Quiet time after an action on pages whose script does not mark that they leave. */
  readonly settleMs: number;
}

interface CdpNode {
  readonly nodeId: string;
  readonly childIds?: readonly string[];
  readonly parentId?: string;
  readonly backendDOMNodeId?: number;
  readonly role?: { readonly value: string };
  readonly name?: { readonly value: string };
  readonly value?: { readonly value: unknown };
  readonly properties?: readonly { readonly name: string; readonly value: { readonly value?: unknown } }[];
}

/** Driver of one browser context of a Chromium. */
export class ChromiumDriver implements Driver {
  readonly #context: BrowserContext;
  readonly #options: ChromiumOptions;
  readonly #sessions = new WeakMap<BrowserPage, Promise<CDPSession>>();
  /** Tabs in the order they were opened. */
  #pages: BrowserPage[] = [];
  #current = 0;
  #aside = false;
  /** DOM node behind each id of the last snapshot. */
  #backends: ReadonlyMap<string, number> = new Map();

  private constructor(context: BrowserContext, options: ChromiumOptions) {
    this.#context = context;
    this.#options = options;
    context.setDefaultTimeout(options.loadMs);
    context.on('page', (page) => this.#handleOpened(page));
  }

  static async open(context: BrowserContext, options: ChromiumOptions): Promise<ChromiumDriver> {
    const driver = new ChromiumDriver(context, options);
    await driver.newTab();
    return driver;
  }

  #handleOpened(page: BrowserPage): void {
    if (this.#aside) return;
    page.on('dialog', (dialog) => dialog.dismiss().catch(() => {}));
    page.on('close', () => {
      this.#pages = this.#pages.filter((one) => one !== page);
      this.#current = Math.min(this.#current, Math.max(0, this.#pages.length - 1));
    });
    if (this.#pages.length >= MAX_TABS) {
      page.close().catch(() => {});
      return;
    }
    this.#pages.push(page);
  }

  /** A page in the same login that is no tab of the agent's: the agent opens none while it is used. */
  async openAsidePage(): Promise<BrowserPage> {
    this.#aside = true;
    return this.#context.newPage();
  }

  /** The current tab's page. @throws {Error} where the browser has closed it */
  get page(): BrowserPage {
    const page = this.#pages[this.#current];
    if (!page) throw new Error('webarena: the browser has closed the episode’s tabs');
    return page;
  }

  #cdp(page: BrowserPage): Promise<CDPSession> {
    let session = this.#sessions.get(page);
    if (!session) {
      session = this.#context.newCDPSession(page);
      this.#sessions.set(page, session);
    }
    return session;
  }

  async snapshot(): Promise<Snapshot> {
    const { page } = this;
    const titles = await Promise.all(this.#pages.map((one) => one.title()));
    const cdp = await this.#cdp(page);
    const [tree, layout] = await Promise.all([
      cdp.send('Accessibility.getFullAXTree') as Promise<{ nodes: readonly CdpNode[] }>,
      cdp.send('DOMSnapshot.captureSnapshot', RECTANGLES) as unknown as Promise<DomSnapshot>,
    ]);
    const rects = rectsOf(layout);
    this.#backends = new Map(tree.nodes.map(({ nodeId, backendDOMNodeId = -1 }) => [nodeId, backendDOMNodeId]));
    const nodes = axNodes(tree.nodes, rects, this.#options.rows);
    return {
      nodes: this.#options.rows ? withTextInFields(nodes) : await this.#readInFields(cdp, nodes),
      scrolled: 0, // the rectangles are relative to the viewport already
      titles,
      current: this.#current,
      url: page.url(),
    };
  }

  /** The snapshot leaves out what lies inside fields (text, spinners): those few nodes are read one by one. */
  async #readInFields(cdp: CDPSession, nodes: readonly AxNode[]): Promise<AxNode[]> {
    const inside = insideFields(nodes);
    return Promise.all(
      nodes.map(async (node) =>
        inside.has(node) && node.rect === null ? { ...node, rect: await this.#rectOf(cdp, node.id) } : node,
      ),
    );
  }

  /** Milliseconds for the rectangles of the current page, both ways; medians of `runs`. */
  async compareRectangles(runs: number): Promise<{ snapshot: number; oneByOne: number }> {
    const cdp = await this.#cdp(this.page);
    const { nodes } = await this.snapshot();
    const measureMs = async (ask: () => Promise<unknown>): Promise<number> => {
      const times: number[] = [];
      for (let run = 0; run < runs; run++) {
        const began = performance.now();
        await ask();
        times.push(performance.now() - began);
      }
      return times.sort((a, b) => a - b)[Math.floor(runs / 2)]!;
    };
    const snapshot = await measureMs(() => cdp.send('DOMSnapshot.captureSnapshot', RECTANGLES));
    const oneByOne = await measureMs(async () => {
      for (const { id } of nodes) await this.#rectOf(cdp, id);
    });
    return { snapshot, oneByOne };
  }

  /** `getBoundingClientRect` of a node, of a text by a range around it. */
  async #rectOf(cdp: CDPSession, id: string): Promise<Rect | null> {
    const backendNodeId = this.#backends.get(id);
    if (backendNodeId === undefined) return null;
    try {
      const { object } = (await cdp.send('DOM.resolveNode', { backendNodeId })) as { object: { objectId?: string } };
      const { result } = (await cdp.send('Runtime.callFunctionOn', {
        objectId: object.objectId!,
        functionDeclaration: RECT_OF,
        returnByValue: true,
      })) as { result: { value?: Rect } };
      return result.value ?? null;
    } catch {
      return null; // the node is gone
    }
  }

  async click(x: number, y: number): Promise<void> {
    const before = this.#pages.length;
    await this.page.mouse.click(x, y);
    await this.#settle(before);
  }

  async hover(x: number, y: number): Promise<void> {
    await this.page.mouse.move(x, y);
    await this.#settle(this.#pages.length);
  }

  async press(key: string): Promise<void> {
    const before = this.#pages.length;
    await this.page.keyboard.press(key);
    await this.#settle(before);
  }

  async type(text: string, replace: boolean): Promise<void> {
    if (replace) await this.page.keyboard.press('Control+a');
    if (text !== '') await this.page.keyboard.insertText(text);
    else if (replace) await this.page.keyboard.press('Delete');
    await this.#settle(this.#pages.length);
  }

  async scroll(direction: 'up' | 'down'): Promise<void> {
    await this.page.evaluate(
      (sign) => {
        (document.scrollingElement ?? document.body).scrollTop += sign * window.innerHeight;
      },
      direction === 'down' ? 1 : -1,
    );
    await this.#settle(this.#pages.length);
  }

  async focusNode(id: string): Promise<void> {
    await this.#onNode(id, 'function () { this.focus({ preventScroll: true }); }');
  }

  async choose(id: string): Promise<void> {
    await this.#onNode(
      id,
      `function () {
        const box = this.closest('select');
        if (!box || this.disabled) return;
        if (box.multiple) this.selected = !this.selected; else box.selectedIndex = this.index;
        box.dispatchEvent(new Event('input', { bubbles: true }));
        box.dispatchEvent(new Event('change', { bubbles: true }));
      }`,
    );
    await this.#settle(this.#pages.length);
  }

  async #onNode(id: string, functionDeclaration: string): Promise<void> {
    const cdp = await this.#cdp(this.page);
    const backendNodeId = this.#backends.get(id);
    if (backendNodeId === undefined) return;
    const { object } = (await cdp.send('DOM.resolveNode', { backendNodeId })) as { object: { objectId?: string } };
    await cdp.send('Runtime.callFunctionOn', { objectId: object.objectId!, functionDeclaration });
  }

  /** @throws {Error} naming the address, where the site is down or does not answer in time */
  async goto(url: string): Promise<void> {
    await this.page.goto(url, { waitUntil: 'load', timeout: this.#options.loadMs }).catch((thrown) => {
      throw new Error(`webarena: ${url} cannot be loaded: ${messageOf(thrown).split('\n')[0]}`);
    });
    await this.#settle(this.#pages.length);
  }

  async goBack(): Promise<void> {
    await this.page.goBack({ waitUntil: 'load', timeout: this.#options.loadMs });
    await this.#settle(this.#pages.length);
  }

  async forward(): Promise<void> {
    await this.page.goForward({ waitUntil: 'load', timeout: this.#options.loadMs });
    await this.#settle(this.#pages.length);
  }

  async newTab(): Promise<void> {
    const page = await this.#context.newPage();
    this.#current = Math.max(0, this.#pages.indexOf(page));
  }

  async closeTab(): Promise<void> {
    await this.page.close();
    if (this.#pages.length === 0) await this.newTab();
    this.#current = this.#pages.length - 1;
  }

  async focusTab(index: number): Promise<void> {
    this.#current = index;
    await this.page.bringToFront();
  }

  /** Screenshot by the browser itself: Playwright's own would hide the caret by a style of its own in the page. */
  async screenshot(): Promise<Uint8Array> {
    const cdp = await this.#cdp(this.page);
    const { data } = await cdp.send('Page.captureScreenshot', { format: 'jpeg', quality: 60 });
    return Buffer.from(data, 'base64');
  }

  async close(): Promise<void> {
    await this.#context.close().catch(() => {});
  }

  /** Waits until what the action began has come to rest: a page that loads, a tab that opens. */
  async #settle(tabsBefore: number): Promise<void> {
    const { page } = this;
    const opens = await this.#rest(page);
    // A tab that the page has announced opens a little later.
    const deadline = performance.now() + this.#options.loadMs;
    while (opens && this.#pages.length <= tabsBefore && tabsBefore < MAX_TABS && performance.now() < deadline) {
      await new Promise((done) => setTimeout(done, 5));
    }
    if (this.#pages.length > tabsBefore) {
      const opened = this.#pages.at(-1)!;
      await opened.waitForLoadState('load').catch(() => {});
      if (this.#options.focusesOpened) this.#current = this.#pages.length - 1;
    }
  }

  /** Waits until the page rests. @returns whether it has announced a tab */
  async #rest(page: BrowserPage): Promise<boolean> {
    const deadline = performance.now() + this.#options.loadMs;
    while (performance.now() < deadline) {
      try {
        const { leaving, opens, elements, chars } = await page.evaluate(async (settleMs) => {
          const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          await Promise.race([frames(), new Promise((done) => setTimeout(done, 100))]);
          if (settleMs > 0) await new Promise((done) => setTimeout(done, settleMs));
          const flags = window as { leaving?: boolean; opens?: number };
          const opens = (flags.opens ?? 0) > 0;
          flags.opens = 0;
          return {
            leaving: flags.leaving === true || document.readyState !== 'complete',
            opens,
            elements: document.getElementsByTagName('*').length,
            chars: document.documentElement.textContent?.length ?? 0,
          };
        }, this.#options.settleMs);
        checkSize(page.url(), elements, chars);
        if (!leaving) return opens;
      } catch (thrown) {
        // The page was left while it was read: the next one is read instead.
        if (page.isClosed()) return false;
        if (
          thrown instanceof PageTooLarge ||
          !/context was destroyed|navigat|Cannot find context/i.test(String(thrown))
        )
          throw thrown;
      }
      await page.waitForLoadState('load').catch(() => {});
    }
    return false;
  }
}

/** Largest page that is read: its accessibility tree is several times as large, and is read after every action. */
const MAX_ELEMENTS = 100_000;
const MAX_CHARS = 5_000_000;

class PageTooLarge extends Error {}

function checkSize(url: string, elements: number, chars: number): void {
  if (elements <= MAX_ELEMENTS && chars <= MAX_CHARS) return;
  throw new PageTooLarge(
    `webarena: ${url.slice(0, 200)} is too large to read: ${elements} elements, ${chars} characters; at most ${MAX_ELEMENTS} and ${MAX_CHARS}`,
  );
}

/** A DOM snapshot with rectangles and no styles. */
const RECTANGLES = { computedStyles: [], includeDOMRects: true };

const RECT_OF = `function () {
  let box = this;
  if (this.nodeType === 3) { box = document.createRange(); box.selectNode(this); }
  else if (!this.getBoundingClientRect) return null;
  const { x, y, width, height } = box.getBoundingClientRect();
  return [x, y, width, height];
}`;

const FIELDS = new Set(['textbox', 'searchbox', 'spinbutton', 'Date', 'DateTime', 'InputTime', 'combobox']);

/** Nodes below a field. */
function insideFields(nodes: readonly AxNode[]): ReadonlySet<AxNode> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const inside = new Set<AxNode>();
  const mark = (ids: readonly string[]): void => {
    for (const id of ids) {
      const node = byId.get(id);
      if (!node || inside.has(node)) continue;
      inside.add(node);
      mark(node.childIds);
    }
  };
  for (const node of nodes) if (FIELDS.has(node.role ?? '')) mark(node.childIds);
  return inside;
}

/** On our own sites the text of a field lies where the field is. */
function withTextInFields(nodes: readonly AxNode[]): AxNode[] {
  const fieldOf = new Map<string, AxNode>();
  return nodes.map((node) => {
    const field = node.role === 'textbox' || node.role === 'searchbox' ? node : fieldOf.get(node.id);
    if (field) for (const id of node.childIds) fieldOf.set(id, field);
    return field && node !== field && node.role === 'StaticText' ? { ...node, rect: field.rect } : node;
  });
}

interface DomSnapshot {
  readonly documents: readonly {
    readonly scrollOffsetX?: number;
    readonly scrollOffsetY?: number;
    readonly nodes: { readonly backendNodeId: readonly number[]; readonly parentIndex: readonly number[] };
    readonly layout: { readonly nodeIndex: readonly number[]; readonly bounds: readonly (readonly number[])[] };
  }[];
}

/** Rectangle of each DOM node of the main frame, relative to the viewport, and its parent. */
interface Placed {
  readonly rects: ReadonlyMap<number, Rect>;
  readonly parents: ReadonlyMap<number, number>;
}

function rectsOf({ documents }: DomSnapshot): Placed {
  const rects = new Map<number, Rect>();
  const parents = new Map<number, number>();
  const [document] = documents;
  if (!document) return { rects, parents };
  const { nodes, layout, scrollOffsetX = 0, scrollOffsetY = 0 } = document;
  for (const [i, nodeIndex] of layout.nodeIndex.entries()) {
    const [x = 0, y = 0, width = 0, height = 0] = layout.bounds[i]!;
    rects.set(nodes.backendNodeId[nodeIndex]!, [x - scrollOffsetX, y - scrollOffsetY, width, height]);
  }
  for (const [i, parent] of nodes.parentIndex.entries()) {
    if (parent >= 0) parents.set(nodes.backendNodeId[i]!, nodes.backendNodeId[parent]!);
  }
  return { rects, parents };
}

function axNodes(nodes: readonly CdpNode[], { rects, parents }: Placed, rows: boolean): AxNode[] {
  return nodes.map((node): AxNode => {
    const backend = node.backendDOMNodeId;
    const role = node.role?.value;
    const known = backend === undefined ? undefined : rects.get(backend);
    const parent = backend === undefined ? undefined : rects.get(parents.get(backend) ?? -1);
    const rect = rows && role === 'StaticText' ? (parent ?? known) : known;
    const value = node.value?.value;
    return {
      id: node.nodeId,
      childIds: node.childIds ?? [],
      parentId: node.parentId,
      inDom: backend !== undefined,
      role,
      name: node.name?.value,
      value: value === undefined ? undefined : String(value),
      properties: (node.properties ?? []).map((property): AxProperty => {
        return property.value.value === undefined ? [property.name] : [property.name, property.value.value];
      }),
      rect: role === 'RootWebArea' ? [0, 0, 10, 10] : ((known && rect) ?? null),
    };
  });
}
