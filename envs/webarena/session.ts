/**
 * One episode in a browser, whichever drives it: reads actions, finds elements by number, asks the driver, prints what
 * is seen. All that both drivers must agree on is decided here.
 */
import { type EnvStep, type First, mid, type Session, terminated } from '../../src/core/env.ts';
import { reprText, strip } from '../../src/core/python-text.ts';
import { type Choices, Stage } from './actions.ts';
import { blocksOf, describeAction, turnText } from './describe.ts';
import { type Driver, MAX_TABS, type Snapshot } from './drivers/driver.ts';
import { type Action, type Fidelity, parseAction } from './grammar.ts';
import { printable } from './python.ts';
import {
  type AxNode,
  type Dialect,
  observationText,
  type PrintedTree,
  placeOf,
  printTree,
  type Rect,
  shapeAs,
} from './tree.ts';
import { type SiteBases, toLocal } from './urls.ts';

/** Bound of an observation's length in UTF-16 units. */
export const MAX_OBSERVATION = 16_384;
const MAX_TYPED = 2_000;
/** Room for what stands around the tree: address, objective, previous action, error. */
const MAX_LINE = 2_400;

/** Options of a session: how it reads actions and prints pages, and where it may go. */
export interface BrowseOptions {
  readonly fidelity: Fidelity;
  readonly dialect: Dialect;
  readonly screen: readonly [width: number, height: number];
  readonly bases: SiteBases;
  /** Elements get small numbers in the page's order; without it Chromium's own ids are printed. */
  readonly numbered: boolean;
  /** @returns the address to open, or undefined where it may not be opened */
  resolveAllowed(url: string): string | undefined;
  /** Keys that have an effect; all where absent. */
  isKey?(key: string): boolean;
  /** Hook that runs before each observation is returned, while the page stands as it was read. */
  onObservation?(observation: string): Promise<void>;
}

/** Verdict of a task on an end. */
export interface Judged {
  readonly success: boolean;
  /** In [0, 1]. */
  readonly reward: number;
}

/** Task of an episode, and its judge. */
export interface Objective {
  readonly intent: string;
  /** Addresses to open at the start, a tab each; the first is current. */
  readonly startUrls: readonly string[];
  /** @throws where judging itself fails: a failure of the episode, never a reward */
  judge(answer: string, url: string): Judged | Promise<Judged>;
}

/** Links followed last that another site's fields may be given. */
const MAX_FOLLOWED = 2;

/** Messages of the last line, where an action could not be carried out. */
const ERRORS = {
  element: 'there is no such element in view',
  middle: 'the middle of that element is not in view',
  typing: 'nothing can be typed into that element',
  key: 'that key does nothing',
  tab: 'there is no such tab',
  tabs: `there are ${MAX_TABS} tabs already`,
  address: 'that address cannot be opened',
} as const;

const EDITABLE = new Set(['textbox', 'searchbox', 'spinbutton', 'Date', 'InputTime', 'DateTime']);

/** Session of one episode over a driver. */
export class WebSession implements Session {
  readonly #driver: Driver;
  readonly #options: BrowseOptions;
  readonly #objective: Objective;
  readonly #stage = new Stage();
  #first: First | undefined;
  #snapshot: Snapshot | undefined;
  #tree: PrintedTree | undefined;
  #previous = 'None';
  #text = '';
  /** Node id of the select whose options are listed. */
  #expanded: string | undefined;
  /** Links followed last, with the host they stood on. */
  readonly #followed: { readonly name: string; readonly host: string }[] = [];
  /** Address of the page that the episode began with. */
  #startUrl = '';
  #end: EnvStep | undefined;

  private constructor(driver: Driver, options: BrowseOptions, objective: Objective) {
    this.#driver = driver;
    this.#options = options;
    this.#objective = objective;
  }

  /** Opens the pages of the task. Closes the driver where that fails, and throws on. */
  static async open(driver: Driver, options: BrowseOptions, objective: Objective): Promise<WebSession> {
    try {
      const session = new WebSession(driver, options, objective);
      for (const [i, url] of objective.startUrls.entries()) {
        if (i > 0) await driver.newTab();
        await driver.goto(url);
      }
      if (objective.startUrls.length > 1) await driver.focusTab(0);
      session.#first = { kind: 'first', observation: await session.#look('') };
      session.#startUrl = session.url;
      return session;
    } catch (thrown) {
      await driver.close();
      throw thrown;
    }
  }

  get first(): First {
    return this.#first!;
  }

  /** Address of the current page. */
  get url(): string {
    return this.#snapshot!.url;
  }

  async step(text: string): Promise<EnvStep> {
    if (this.#end) return this.#end;
    if (this.#stage.takes(text, this.#choices))
      return { kind: 'mid', observation: this.#text, reward: 0, partial: true };
    this.#stage.reset();
    const written = this.#options.fidelity === 'original' || text.includes('```') ? (blocksOf(text)[0] ?? text) : text;
    const parsed = parseAction(toLocal(strip(written), this.#options.bases), this.#options.fidelity);
    if ('error' in parsed) return mid(await this.#refuse(parsed.error.message));
    const action = parsed.ok;
    const described = describeAction(boundAction(action), this.#tree!);
    const error = await this.#act(action);
    this.#previous = described;
    const observation = await this.#look(error);
    if (action.type !== 'STOP') return mid(observation);
    const { success, reward } = await this.#objective.judge(action.answer, this.url);
    this.#end = terminated(observation, reward, success);
    return this.#end;
  }

  actions(): readonly string[] {
    if (this.#end) return [];
    return this.#stage.list(this.#choices);
  }

  get #choices(): Choices {
    const { intent } = this.#objective;
    const here = hostOf(this.url);
    return {
      intent,
      tree: this.#tree!,
      snapshot: this.#snapshot!,
      screen: this.#options.screen,
      expanded: this.#expanded,
      followed: this.#followed.filter(({ host }) => host !== here).map(({ name }) => name),
      hasHome: this.#options.bases.homepage !== undefined,
      isStart: this.url === this.#startUrl,
    };
  }

  async close(): Promise<void> {
    await this.#driver.close();
  }

  /** A text that is no action: the original answers with the exception alone, we with the page and the reason. */
  async #refuse(message: string): Promise<string> {
    if (this.#options.fidelity === 'original') return message.slice(0, MAX_OBSERVATION);
    this.#previous = 'None';
    return this.#look(message.slice(0, 400));
  }

  /** @returns why it could not be carried out, empty where it was */
  async #act(action: Action): Promise<string> {
    const driver = this.#driver;
    const wasExpanded = this.#expanded;
    if (action.type !== 'SCROLL' && action.type !== 'HOVER') this.#expanded = undefined;
    switch (action.type) {
      case 'CLICK':
      case 'HOVER':
      case 'TYPE':
        return this.#onElement(action, wasExpanded);
      case 'KEY_PRESS': {
        const key = action.key.replaceAll('Meta', 'Control');
        const isBlank = this.url === 'about:blank'; // its keys would leave the page for the browser's own controls
        if (this.#options.isKey && (isBlank || !this.#options.isKey(key))) return ERRORS.key;
        return this.#rescue(/Unknown key/, ERRORS.key, driver.press(key));
      }
      case 'SCROLL':
        await driver.scroll(action.direction);
        return '';
      case 'GOTO_URL': {
        const url = this.#options.resolveAllowed(strip(action.url));
        if (url === undefined) return ERRORS.address;
        // An answer that is no page (a download, for example) leaves everything as it is; a site that is down is a
        // failure.
        return this.#rescue(/net::ERR_ABORTED|Download is starting/, ERRORS.address, driver.goto(url));
      }
      case 'PAGE_FOCUS':
        if (action.page >= this.#snapshot!.titles.length) return ERRORS.tab;
        await driver.focusTab(action.page);
        return '';
      case 'NEW_TAB':
        if (this.#snapshot!.titles.length >= MAX_TABS) return ERRORS.tabs;
        await driver.newTab();
        return '';
      case 'PAGE_CLOSE':
        await driver.closeTab();
        return '';
      case 'GO_BACK':
        await driver.goBack();
        return '';
      case 'GO_FORWARD':
        await driver.forward();
        return '';
      case 'STOP':
        return '';
    }
  }

  /** Carries something out. @returns `error` where it fails with such a message; anything else is thrown on */
  async #rescue(expected: RegExp, error: string, doing: void | Promise<void>): Promise<string> {
    try {
      await doing;
      return '';
    } catch (thrown) {
      if (expected.test(String(thrown))) return error;
      throw thrown;
    }
  }

  async #onElement(action: Extract<Action, { id: string }>, wasExpanded: string | undefined): Promise<string> {
    const corrected = this.#options.fidelity === 'corrected';
    const node = this.#tree!.nodeOf(action.id);
    if (!node) return ERRORS.element;
    if (action.type === 'CLICK' && corrected) {
      if (node.role === 'combobox' && node.childIds.length > 0) {
        await this.#driver.focusNode(node.id);
        this.#expanded = wasExpanded === node.id ? undefined : node.id;
        return '';
      }
      if (node.role === 'option' && wasExpanded !== undefined) {
        await this.#driver.choose(node.id);
        return '';
      }
    }
    if (action.type === 'TYPE' && corrected && !EDITABLE.has(node.role ?? '')) return ERRORS.typing;
    const point = middle(placeOf(node, this.#snapshot!.scrolled), this.#options.screen);
    if (!point) return ERRORS.middle;
    if (action.type === 'HOVER') {
      await this.#driver.hover(...point);
      return '';
    }
    if (action.type === 'CLICK' && node.role === 'link') this.#follow(node.name ?? '');
    await this.#driver.click(...point);
    if (action.type === 'TYPE') await this.#type(action.text, corrected);
    return '';
  }

  #follow(name: string): void {
    if (name === '' || name.length > 80) return;
    this.#followed.push({ name, host: hostOf(this.url) });
    if (this.#followed.length > MAX_FOLLOWED) this.#followed.shift();
  }

  async #type(text: string, replace: boolean): Promise<void> {
    const typed = typable(text.endsWith('\n') ? text.slice(0, -1) : text);
    await this.#driver.type(typed, replace);
    if (text.endsWith('\n')) await this.#driver.press('Enter');
  }

  async #look(error: string): Promise<string> {
    const seen = await this.#driver.snapshot();
    const nodes = this.#options.fidelity === 'corrected' ? withOptions(seen.nodes, this.#expanded) : seen.nodes;
    const { numbered, fidelity, dialect, screen } = this.#options;
    const tree = printTree(nodes, { fidelity, dialect, screen, numbered, scrolled: seen.scrolled });
    this.#snapshot = seen;
    this.#tree = tree;
    // Titles and typed texts stand outside the tree's quotes, so nothing in them may end a line or turn it round.
    const shown = fidelity === 'corrected' ? printable : (text: string) => text;
    const titles = seen.titles.map((title) => shown(title.slice(0, 200)));
    const text = turnText(
      {
        observation: cut(observationText(titles, seen.current, tree.text), MAX_OBSERVATION - MAX_LINE),
        url: seen.url.slice(0, 600),
        objective: this.#objective.intent,
        previousAction: shown(this.#previous.slice(0, 600)),
      },
      this.#options.bases,
    );
    this.#text = error === '' || fidelity === 'original' ? text : `${text}\nERROR: ${reprText(error).slice(1, -1)}`;
    await this.#options.onObservation?.(this.#text);
    return this.#text;
  }
}

function hostOf(url: string): string {
  return /^\w+:\/\/([^/]*)/.exec(url)?.[1] ?? '';
}

/** Text cut at the end of a line, with a last line that marks the cut. */
function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const end = text.lastIndexOf('\n', max);
  const kept = text.slice(0, end > 0 ? end : max);
  return `${kept}\n(the page is longer: ${text.length - kept.length} characters are left out)`;
}

/** The action with long texts cut, for the line that describes it. */
function boundAction(action: Action): Action {
  if (action.type === 'TYPE') return { ...action, text: action.text.slice(0, 400) };
  if (action.type === 'STOP') return { ...action, answer: reprText(action.answer.slice(0, 400)).slice(1, -1) };
  if (action.type === 'GOTO_URL') return { ...action, url: action.url.slice(0, 400) };
  if (action.type === 'KEY_PRESS') return { ...action, key: action.key.slice(0, 60) };
  return action;
}

/** The part of a text that a field can take: no control characters, no halves of characters. */
function typable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is cut
  const clean = text.replace(/\t/g, ' ').replace(/[\u0000-\u001f\u007f-\u009f]/g, '');
  return clean.slice(0, MAX_TYPED).replace(/[\ud800-\udfff]/gu, '');
}

/** Centre of a rectangle where it lies in the viewport. */
function middle(rect: Rect | null, [width, height]: readonly [number, number]): [number, number] | undefined {
  if (!rect) return undefined;
  const [x, y] = [rect[0] + rect[2] / 2, rect[1] + rect[3] / 2];
  return x >= 0 && x < width && y >= 0 && y < height ? [x, y] : undefined;
}

/** Options of the opened select where the select is; the others stay without a place. */
function withOptions(nodes: readonly AxNode[], expanded: string | undefined): readonly AxNode[] {
  if (expanded === undefined) return nodes;
  const at = nodes.findIndex(({ id }) => id === expanded);
  const box = nodes[at];
  if (!box) return nodes;
  const shown = [...nodes];
  shown[at] = {
    ...box,
    properties: box.properties.map(([key, value]) => (key === 'expanded' ? [key, true] : [key, value])),
  };
  const below = new Set(box.childIds);
  for (const [i, node] of nodes.entries()) {
    if (!below.has(node.id)) continue;
    if (node.role === 'MenuListPopup') for (const id of node.childIds) below.add(id);
    else if (node.role === 'option') shown[i] = { ...node, rect: box.rect };
  }
  return shapeAs(nodes, shown);
}
