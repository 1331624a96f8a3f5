/**
 * Accessibility nodes, their rectangles and the open tabs → the observation's text. Pure: the in-process driver, the
 * browser driver and recordings all print through here.
 *
 * Source   web-arena-x/webarena at f62e0b99, `browser_env/processors.py`; the slips of `original` are in README.md
 * Differs  `corrected`: share of an element that is in view, duplicates judged by the parent's name, a select's value
 *          and options shown.
 */
import type { Fidelity } from './grammar.ts';
import { repr, strip } from './python.ts';

/** `chromium` prints what today's Chromium says; `2023` what agents were trained on: no `url`, `img` for `image`. */
export type Dialect = '2023' | 'chromium';

export type Rect = readonly [x: number, y: number, width: number, height: number];
/** A property without a plain value (`labelledby`) has no second entry and is not printed. */
export type AxProperty = readonly [name: string, value?: unknown];

/** One node of Chromium's accessibility tree, in the order `Accessibility.getFullAXTree` lists them. */
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
  /** Relative to the viewport, in CSS pixels; `null` where the browser gives none. */
  readonly rect: Rect | null;
}

export interface PrintOptions {
  readonly fidelity: Fidelity;
  readonly dialect: Dialect;
  /** Viewport in CSS pixels. */
  readonly screen: readonly [width: number, height: number];
  /** Small numbers in the page's order instead of the nodes' own ids. */
  readonly numbered?: boolean;
}

export interface PrintedTree {
  readonly text: string;
  /** Line of every printed element by printed id, before the duplicate filter: what was filtered can still be clicked. */
  readonly lines: ReadonlyMap<string, string>;
  /** Node behind each printed id. */
  readonly nodes: ReadonlyMap<string, AxNode>;
}

const DROPPED = new Set(['focusable', 'editable', 'readonly', 'level', 'settable', 'multiline', 'invalid']);
const EMPTY_ROLES = new Set([
  ...['generic', 'img', 'list', 'strong', 'paragraph', 'banner', 'navigation', 'Section', 'LabelText', 'Legend'],
  'listitem',
]);

/** Parts of a node's line, in the dialect asked for. */
interface Line {
  readonly role: string;
  readonly name: string;
  readonly properties: string;
}

/** The line of a node, or `undefined` where it prints nothing and its children take its depth. */
function lineOf(node: AxNode, { fidelity, dialect }: Pick<PrintOptions, 'fidelity' | 'dialect'>): Line | undefined {
  const { name } = node;
  if (node.role === undefined || name === undefined || !node.inDom) return undefined;
  const role = dialect === '2023' && node.role === 'image' ? 'img' : node.role;
  let properties = '';
  for (const [key, value] of node.properties) {
    if (value === undefined || DROPPED.has(key) || (dialect === '2023' && key === 'url')) continue;
    properties += ` ${key}: ${value === true ? 'True' : value === false ? 'False' : value}`;
  }
  if (fidelity === 'corrected' && role === 'combobox' && node.value !== undefined)
    properties += ` value: ${repr(node.value)}`;
  if (strip(name) === '' && (properties === '' ? EMPTY_ROLES.has(role) : role === 'listitem')) return undefined;
  return { role, name, properties };
}

interface Entry {
  readonly node: AxNode;
  readonly line: Line;
  readonly depth: number;
  readonly parent: AxNode | undefined;
  /** In view, and so printed. */
  readonly isShown: boolean;
}

/** Nodes with a line, depth first from the first node; those out of view are passed through. Stops at cycles. */
function entriesOf(nodes: readonly AxNode[], options: PrintOptions): Entry[] {
  const [root] = nodes;
  if (!root) return [];
  const byId = new Map<string, AxNode>();
  for (const node of nodes) if (!byId.has(node.id)) byId.set(node.id, node);
  const { screen } = options;
  const inView = options.fidelity === 'original' ? inViewBySlip : inViewByShare;
  const entries: Entry[] = [];
  const stack: { node: AxNode; depth: number; parent: AxNode | undefined }[] = [
    { node: root, depth: 0, parent: undefined },
  ];
  for (let top = stack.pop(); top; top = stack.pop()) {
    const { node, depth, parent } = top;
    if (!byId.delete(node.id)) continue;
    const { rect } = node;
    const line = lineOf(node, options);
    const isShown = line !== undefined && rect !== null && rect[2] !== 0 && rect[3] !== 0 && inView(rect, screen);
    if (line) entries.push({ node, line, depth, parent, isShown });
    const [below, from] = isShown ? [depth + 1, node] : [depth, parent];
    for (let i = node.childIds.length - 1; i >= 0; i--) {
      const child = byId.get(node.childIds[i]!);
      if (child) stack.push({ node: child, depth: below, parent: from });
    }
  }
  return entries;
}

const printedTrees = new WeakMap<readonly AxNode[], { readonly key: string; readonly tree: PrintedTree }>();

/** Prints the part of the page that is in view. The same array of nodes gives the same object. */
export function printTree(nodes: readonly AxNode[], options: PrintOptions): PrintedTree {
  const key = `${options.fidelity} ${options.dialect} ${options.screen} ${options.numbered}`;
  const known = printedTrees.get(nodes);
  if (known?.key === key) return known.tree;
  const tree = print(nodes, options);
  printedTrees.set(nodes, { key, tree });
  return tree;
}

function print(nodes: readonly AxNode[], options: PrintOptions): PrintedTree {
  const { fidelity, numbered = false } = options;
  const entries = entriesOf(nodes, options);
  const numbers = numbered ? numbersOf(entries) : undefined;
  const lines = new Map<string, string>();
  const printed = new Map<string, AxNode>();
  const kept: string[] = [];
  for (const entry of entries) {
    const { node, line, depth, parent } = entry;
    if (!entry.isShown) continue;
    const id = numbers ? String(numbers.get(entry)) : node.id;
    const text = `[${id}] ${line.role} ${repr(line.name)}${line.properties}`;
    lines.set(id, text);
    printed.set(id, node);
    if (fidelity === 'original' || !repeatsParent(node, parent)) kept.push('\t'.repeat(depth) + text);
  }
  const shown = fidelity === 'original' ? withoutRepeats(kept.join('\n').split('\n')) : kept;
  return { text: shown.join('\n'), lines, nodes: printed };
}

/**
 * Small numbers for nodes, in view or not: elements first, in the page's order, then texts. They do not change while a
 * page is scrolled or a field filled, and do not depend on the browser.
 */
function numbersOf(entries: readonly Entry[]): ReadonlyMap<Entry, number> {
  const numbers = new Map<Entry, number>();
  for (const entry of entries) if (entry.line.role !== 'StaticText') numbers.set(entry, numbers.size + 1);
  for (const entry of entries) if (entry.line.role === 'StaticText') numbers.set(entry, numbers.size + 1);
  return numbers;
}

/** The original's viewport test: `overlap area / width * height`, evaluated from left to right, at least 0.6. */
function inViewBySlip(rect: Rect, screen: readonly [number, number]): boolean {
  const [, , width, height] = rect;
  const [w, h] = overlap(rect, screen);
  return ((w * h) / width) * height >= 0.6;
}

/** At least half of the element, or of the viewport where the element is larger than that. */
function inViewByShare(rect: Rect, screen: readonly [number, number]): boolean {
  const [w, h] = overlap(rect, screen);
  return w >= Math.min(rect[2], screen[0]) / 2 && h >= Math.min(rect[3], screen[1]) / 2;
}

function overlap([x, y, width, height]: Rect, [right, bottom]: readonly [number, number]): [number, number] {
  return [
    Math.max(0, Math.min(x + width, right) - Math.max(x, 0)),
    Math.max(0, Math.min(y + height, bottom) - Math.max(y, 0)),
  ];
}

/** Text that its printed parent's name says already. */
function repeatsParent(node: AxNode, parent: AxNode | undefined): boolean {
  return node.role === 'StaticText' && parent?.name !== undefined && parent.name.includes(node.name ?? '');
}

/** The original's filter: a line with "statictext" stays only if its text is in none of the three lines kept last. */
function withoutRepeats(lines: readonly string[]): string[] {
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

export function observationText(titles: readonly string[], current: number, tree: string): string {
  return `${tabLine(titles, current)}\n\n${tree}`;
}
