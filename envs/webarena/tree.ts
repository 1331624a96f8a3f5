/**
 * Accessibility nodes, their rectangles and the open tabs → the observation's text. Pure: the in-process driver, the
 * browser driver and recordings all print through here.
 *
 * Source   web-arena-x/webarena at f62e0b99, `browser_env/processors.py`; the slips of `original` are in README.md
 * Differs  `corrected`: share of an element that is in view, duplicates judged by the parent's name, a select's value
 *          and options shown.
 */
import { reprText, strip } from '../../src/core/python-text.ts';
import type { Fidelity } from './grammar.ts';

/**
 * Dialect of the tree: `chromium` prints what today's Chromium does; `2023` what agents were trained on: no `url`,
 * `img` for `image`.
 */
export type Dialect = '2023' | 'chromium';

/** Rectangle in CSS pixels. */
export type Rect = readonly [x: number, y: number, width: number, height: number];
/** Property of a node; one without a plain value (`labelledby`) has no second entry and is not printed. */
export type AxProperty = readonly [name: string, value?: unknown];

/** Node of Chromium's accessibility tree, in the order `Accessibility.getFullAXTree` lists them. */
export interface AxNode {
  readonly id: string;
  readonly childIds: readonly string[];
  readonly parentId?: string | undefined;
  /** False for nodes without a DOM node behind them (inline text boxes). */
  readonly inDom: boolean;
  readonly role: string | undefined;
  readonly name: string | undefined;
  /** Value of a field or a select, where the node has one. */
  readonly value?: string | undefined;
  readonly properties: readonly AxProperty[];
  /** In CSS pixels, relative to the viewport or to the page's top (see `scrolled`); `null` where the browser gives none. */
  readonly rect: Rect | null;
}

/** Options of printing. */
export interface PrintOptions {
  readonly fidelity: Fidelity;
  readonly dialect: Dialect;
  /** Viewport in CSS pixels. */
  readonly screen: readonly [width: number, height: number];
  /** Small numbers in the page's order instead of the nodes' own ids. */
  readonly numbered?: boolean;
  /** Pixels that the viewport stands below what the rectangles are relative to; 0 by default. */
  readonly scrolled?: number;
}

/** Lines by printed id. */
export interface Lines {
  get(id: string): string | undefined;
  has(id: string): boolean;
}

/** Printed part of a page, the lines that the duplicate filter removes included: what was filtered can still be clicked. */
export class PrintedTree {
  readonly text: string;
  /** Printed ids, and the node behind each. */
  readonly ids: readonly string[];
  readonly nodes: readonly AxNode[];
  readonly #lines: readonly Line[];

  constructor(text: string, ids: readonly string[], nodes: readonly AxNode[], lines: readonly Line[]) {
    this.text = text;
    this.ids = ids;
    this.nodes = nodes;
    this.#lines = lines;
  }

  /** Line of a printed element, with its number and without its depth. */
  get(id: string): string | undefined {
    const line = this.#lines[this.ids.indexOf(id)];
    return line && `[${id}] ${line.text}`;
  }

  has(id: string): boolean {
    return this.ids.includes(id);
  }

  nodeOf(id: string): AxNode | undefined {
    return this.nodes[this.ids.indexOf(id)];
  }
}

const DROPPED = new Set(['focusable', 'editable', 'readonly', 'level', 'settable', 'multiline', 'invalid']);
const EMPTY_ROLES = new Set([
  ...['generic', 'img', 'list', 'strong', 'paragraph', 'banner', 'navigation', 'Section', 'LabelText', 'Legend'],
  'listitem',
]);

/** A node's line without number and depth. */
interface Line {
  readonly text: string;
  /** Texts are numbered after all elements. */
  readonly isText: boolean;
}

/** The line of a node, or `undefined` where it prints nothing and its children take its depth. */
function makeLine(node: AxNode, { fidelity, dialect }: Pick<PrintOptions, 'fidelity' | 'dialect'>): Line | undefined {
  const { name } = node;
  if (node.role === undefined || name === undefined || !node.inDom) return undefined;
  const role = dialect === '2023' && node.role === 'image' ? 'img' : node.role;
  let properties = '';
  for (const [key, value] of node.properties) {
    if (value === undefined || DROPPED.has(key) || (dialect === '2023' && key === 'url')) continue;
    properties += ` ${key}: ${value === true ? 'True' : value === false ? 'False' : value}`;
  }
  if (fidelity === 'corrected' && role === 'combobox' && node.value !== undefined)
    properties += ` value: ${reprText(node.value)}`;
  if (strip(name) === '' && (properties === '' ? EMPTY_ROLES.has(role) : role === 'listitem')) return undefined;
  return { text: `${role} ${reprText(name)}${properties}`, isText: role === 'StaticText' };
}

/** Nodes in the order they are printed, depth first from the first node: each with its parent's place in that order. */
interface Shape {
  /** Index into the nodes. */
  readonly order: Int32Array;
  /** −1 for the root. */
  readonly parents: Int32Array;
}

/** All that is kept of an array of nodes: a page's array comes again after most actions. */
interface Kept {
  readonly shape: Shape;
  /** Lines in the order of the shape, by fidelity and dialect. */
  readonly lines: Map<string, readonly (Line | undefined)[]>;
  /** Trees by options; a few, since pages are short. */
  readonly printed: Map<string, PrintedTree>;
  /** Nodes of which most are the same, at the same places. */
  readonly like: readonly AxNode[] | undefined;
}

/** Place of what is kept, on the array itself: a WeakMap of arrays that live for a step costs more than the printing. */
const KEPT = Symbol('kept');
type Nodes = readonly AxNode[] & { [KEPT]?: Kept };

const MAX_PRINTED = 8;

function computeKept(nodes: Nodes): Kept {
  nodes[KEPT] ??= { shape: shapeOf(nodes), lines: new Map(), printed: new Map(), like: undefined };
  return nodes[KEPT];
}

/**
 * Declares that `nodes` have the ids and children of `other`, at the same places: shape and lines are then not made again
 * but of what differs.
 */
export function shapeAs(other: readonly AxNode[], nodes: Nodes): readonly AxNode[] {
  nodes[KEPT] = { shape: computeKept(other).shape, lines: new Map(), printed: new Map(), like: other };
  return nodes;
}

/** Stops at cycles; of nodes with one id the first counts. */
function shapeOf(nodes: readonly AxNode[]): Shape {
  const byId = new Map<string, number>();
  for (let i = 0; i < nodes.length; i++) if (!byId.has(nodes[i]!.id)) byId.set(nodes[i]!.id, i);
  const order: number[] = [];
  const parents: number[] = [];
  const seen = new Uint8Array(nodes.length);
  /** Pairs: a node, and its parent's place. */
  const stack: number[] = nodes.length > 0 ? [0, -1] : [];
  while (stack.length > 0) {
    const parent = stack.pop()!;
    const at = stack.pop()!;
    if (seen[at]) continue;
    seen[at] = 1;
    const place = order.length;
    order.push(at);
    parents.push(parent);
    const { childIds } = nodes[at]!;
    for (let i = childIds.length - 1; i >= 0; i--) {
      const child = byId.get(childIds[i]!);
      if (child !== undefined && !seen[child]) stack.push(child, place);
    }
  }
  return { order: Int32Array.from(order), parents: Int32Array.from(parents) };
}

/** Prints the part of the page that is in view. The same array of nodes and options give the same object. */
export function printTree(nodes: readonly AxNode[], options: PrintOptions): PrintedTree {
  const { fidelity, dialect, screen, numbered = false, scrolled = 0 } = options;
  const { printed } = computeKept(nodes);
  const key = `${fidelity} ${dialect} ${screen} ${numbered} ${scrolled}`;
  let tree = printed.get(key);
  if (!tree) {
    tree = print(nodes, options);
    if (printed.size >= MAX_PRINTED) printed.clear();
    printed.set(key, tree);
  }
  return tree;
}

/** Lines of the nodes in the order of the shape. */
function linesOf(nodes: readonly AxNode[], options: PrintOptions): readonly (Line | undefined)[] {
  const { shape, lines, like } = computeKept(nodes);
  const key = `${options.fidelity} ${options.dialect}`;
  const known = lines.get(key);
  if (known) return known;
  const others = like && linesOf(like, options);
  const made: (Line | undefined)[] = [];
  for (let i = 0; i < shape.order.length; i++) {
    const at = shape.order[i]!;
    made.push(others && like[at] === nodes[at] ? others[i] : makeLine(nodes[at]!, options));
  }
  lines.set(key, made);
  return made;
}

/**
 * Numbers are small: elements first, in the page's order, then texts, in view or not. They do not change while a page is
 * scrolled or a field filled, and do not depend on the browser.
 */
function print(nodes: readonly AxNode[], options: PrintOptions): PrintedTree {
  const { fidelity, numbered = false, scrolled = 0, screen } = options;
  const inView = fidelity === 'original' ? inViewBySlip : inViewByShare;
  const { order, parents } = computeKept(nodes).shape;
  const lines = linesOf(nodes, options);
  let element = 0;
  let text = 0;
  for (const line of lines) if (line !== undefined && !line.isText) text++;
  /** Depth of a node's children, and the place of the printed node above them. */
  const depths = new Int32Array(order.length);
  const above = new Int32Array(order.length);
  const ids: string[] = [];
  const shownNodes: AxNode[] = [];
  const shownLines: Line[] = [];
  const texts: string[] = [];
  for (let i = 0; i < order.length; i++) {
    const node = nodes[order[i]!]!;
    const line = lines[i];
    const parent = parents[i]!;
    const depth = parent < 0 ? 0 : depths[parent]!;
    const from = parent < 0 ? -1 : above[parent]!;
    const number = line === undefined ? 0 : line.isText ? ++text : ++element;
    const isShown = line !== undefined && inView(placeOf(node, scrolled), screen);
    depths[i] = isShown ? depth + 1 : depth;
    above[i] = isShown ? i : from;
    if (!isShown) continue;
    const id = numbered ? String(number) : node.id;
    ids.push(id);
    shownNodes.push(node);
    shownLines.push(line);
    if (fidelity === 'original' || !repeatsParent(node, from < 0 ? undefined : nodes[order[from]!]))
      texts.push(`${TABS[depth] ?? '\t'.repeat(depth)}[${id}] ${line.text}`);
  }
  const shown = fidelity === 'original' ? dropRepeats(texts.join('\n').split('\n')) : texts;
  return new PrintedTree(shown.join('\n'), ids, shownNodes, shownLines);
}

const TABS = Array.from({ length: 16 }, (_, depth) => '\t'.repeat(depth));

/** A node's rectangle in a viewport scrolled down by so many pixels; the root is always at its top. */
export function placeOf({ role, rect }: AxNode, scrolled: number): Rect | null {
  if (rect === null || scrolled === 0 || role === 'RootWebArea') return rect;
  return [rect[0], rect[1] - scrolled, rect[2], rect[3]];
}

/** The original's viewport test: `overlap area / width * height`, evaluated from left to right, at least 0.6. */
function inViewBySlip(rect: Rect | null, screen: readonly [number, number]): boolean {
  if (rect === null || rect[2] === 0 || rect[3] === 0) return false;
  const [x, y, width, height] = rect;
  return ((overlap(x, width, screen[0]) * overlap(y, height, screen[1])) / width) * height >= 0.6;
}

/** At least half of the element, or of the viewport where the element is larger than that. */
function inViewByShare(rect: Rect | null, screen: readonly [number, number]): boolean {
  if (rect === null || rect[2] === 0 || rect[3] === 0) return false;
  const [x, y, width, height] = rect;
  return (
    overlap(x, width, screen[0]) >= Math.min(width, screen[0]) / 2 &&
    overlap(y, height, screen[1]) >= Math.min(height, screen[1]) / 2
  );
}

function overlap(from: number, length: number, end: number): number {
  return Math.max(0, Math.min(from + length, end) - Math.max(from, 0));
}

/** True of text that its printed parent's name contains already. */
function repeatsParent(node: AxNode, parent: AxNode | undefined): boolean {
  return node.role === 'StaticText' && parent?.name !== undefined && parent.name.includes(node.name ?? '');
}

/** The original's filter: a line with "statictext" stays only if its text is in none of the three lines kept last. */
function dropRepeats(lines: readonly string[]): string[] {
  const kept: string[] = [];
  for (const line of lines) {
    if (!line.toLowerCase().includes('statictext')) {
      kept.push(line);
      continue;
    }
    const quoted = /\[\p{Nd}+\] StaticText ([\s\S]+)/u.exec(line)?.[1];
    const text = quoted?.slice(1, -1);
    if (text && kept.slice(-3).every((previous) => !previous.includes(text))) kept.push(line);
  }
  return kept;
}

/** The first line: titles of all tabs in the order they were opened. */
function tabLine(titles: readonly string[], current: number): string {
  return titles.map((title, i) => `Tab ${i}${i === current ? ' (current)' : ''}: ${title}`).join(' | ');
}

/** Text of an observation: the line of tabs, and the tree. */
export function observationText(titles: readonly string[], current: number, tree: string): string {
  return `${tabLine(titles, current)}\n\n${tree}`;
}
