/**
 * View tree → the accessibility nodes that Chromium gives for the same tree as HTML (html.ts). About twenty rules, each
 * checked against a real browser by the two-driver property.
 */
import { append } from '../../src/core/extremes.ts';
import {
  type Block,
  type Cell,
  type Group,
  type Layout,
  type Page,
  type Placed,
  ROW,
  type Row,
  SCREEN,
} from './page.ts';
import { type AxNode, type AxProperty, type Rect, shapeAs } from './tree.ts';

/** Changes a user made to a page since it was loaded. */
export interface PageState {
  /** Field values by cell index: texts, the chosen option, `on` or `` for boxes. */
  readonly values: ReadonlyMap<number, string>;
  /** Index of the focused cell, -1 for none. */
  readonly focused: number;
}

const LIVE: readonly AxProperty[] = [
  ['live', 'polite'],
  ['atomic', true],
  ['relevant', 'additions text'],
];

/** The value a field has now. */
export function fieldValue({ cell, index }: Placed, values: ReadonlyMap<number, string>): string {
  const changed = values.get(index);
  if (changed !== undefined) return changed;
  if (cell.kind === 'checkbox' || cell.kind === 'radio') return cell.checked ? 'on' : '';
  return 'value' in cell ? cell.value : '';
}

/** Id of the node of a cell. */
function idOfCell(index: number): string {
  return `c${index}`;
}

/** @returns index of the cell a node id stands for and, of an option, its place in the list */
export function cellOfId(id: string): { index: number; option?: number } | undefined {
  const found = /^c(\d+)(?:o(\d+))?t?$/.exec(id);
  if (!found) return undefined;
  return found[2] === undefined ? { index: Number(found[1]) } : { index: Number(found[1]), option: Number(found[2]) };
}

/** Nodes of a page as it was loaded, and the place of each cell's first node. */
interface Untouched {
  readonly url: string;
  readonly nodes: readonly AxNode[];
  readonly firstOf: Int32Array;
}

/** Pages read last: sessions of one task, and steps on one page, read the same ones. */
const untouched = new Map<Page, Untouched>();
const MAX_UNTOUCHED = 128;

/**
 * Nodes of a page in tree order, with rectangles relative to the page's top; the root is the first. Untouched pages give
 * the same array again, touched ones share all nodes but the touched cells'.
 */
export function nodesOf(layout: Layout, url: string, { values, focused }: PageState): readonly AxNode[] {
  const page = createUntouchedPage(layout, url);
  if (values.size === 0 && focused < 0) return page.nodes;
  const nodes = [...page.nodes];
  const origin = originOf(url);
  for (const index of new Set(focused < 0 ? values.keys() : [...values.keys(), focused])) {
    const placed = layout.cells[index];
    if (!placed) continue;
    const own = cellNodes(placed, fieldValue(placed, values), index === focused, origin);
    for (const [i, node] of own.entries()) nodes[page.firstOf[index]! + i] = node;
  }
  return shapeAs(page.nodes, nodes);
}

function createUntouchedPage(layout: Layout, url: string): Untouched {
  const { page } = layout;
  const known = untouched.get(page);
  if (known?.url === url) return known;
  const builder = new Builder(layout, originOf(url));
  builder.root(page, url);
  const made = { url, nodes: builder.nodes, firstOf: builder.firstOf };
  untouched.delete(page);
  untouched.set(page, made);
  if (untouched.size > MAX_UNTOUCHED) untouched.delete(untouched.keys().next().value!);
  return made;
}

function originOf(url: string): string {
  const end = url.indexOf('/', url.indexOf('//') + 2);
  return url.startsWith('http') ? (end < 0 ? url : url.slice(0, end)) : '';
}

/** A node with a place in the DOM and no value. */
function nodeOf(
  id: string,
  role: string,
  name: string | undefined,
  properties: readonly AxProperty[],
  rect: Rect | null,
  childIds: readonly string[] = NONE,
  value?: string,
): AxNode {
  return { id, childIds, inDom: true, role, name, value, properties, rect };
}

const NONE: readonly never[] = [];

class Builder {
  readonly nodes: AxNode[] = [];
  readonly firstOf: Int32Array;
  readonly #layout: Layout;
  readonly #origin: string;
  #row = 0;
  #groups = 0;

  constructor(layout: Layout, origin: string) {
    this.#layout = layout;
    this.#origin = origin;
    this.firstOf = new Int32Array(layout.cells.length);
  }

  root({ title, blocks }: Page, url: string): void {
    const properties: AxProperty[] = [
      ['focused', true],
      ['url', url],
    ];
    const childIds: string[] = [];
    this.nodes.push(nodeOf('root', 'RootWebArea', title, properties, [0, 0, 10, 10], childIds));
    this.#addBlocks(blocks, childIds);
  }

  #addBlocks(blocks: readonly Block[], into: string[]): void {
    for (const block of blocks) {
      if (block.kind === 'row') this.#addRow(block, into);
      else this.#addGroup(block, into);
    }
  }

  #addGroup({ role, name, blocks }: Group, into: string[]): void {
    const first = this.#row;
    const id = `g${this.#groups++}`;
    const at = this.nodes.length;
    const childIds: string[] = [];
    into.push(id);
    this.nodes.push(nodeOf(id, role, name, NONE, null, childIds));
    this.#addBlocks(blocks, childIds);
    // A group's rectangle is known when its rows are.
    const rect: Rect = [0, first * ROW, SCREEN[0], (this.#row - first) * ROW];
    this.nodes[at] = nodeOf(id, role, name, NONE, rect, childIds);
  }

  #addRow({ role }: Row, into: string[]): void {
    const cells = this.#layout.rows[this.#row]!;
    const rect: Rect = [0, this.#row * ROW, SCREEN[0], ROW];
    const id = `r${this.#row++}`;
    if (role === 'plain') {
      for (const placed of cells) this.#addCell(placed, into);
      return;
    }
    const childIds: string[] = [];
    into.push(id);
    this.nodes.push(
      role === 'item' ? nodeOf(id, 'listitem', '', LEVEL, rect, childIds) : nodeOf(id, 'row', '', NONE, rect, childIds),
    );
    for (const placed of cells) {
      if (role === 'item') this.#addCell(placed, childIds);
      else this.#addTableCell(placed, role === 'header', childIds);
    }
  }

  #addTableCell(placed: Placed, isHeader: boolean, into: string[]): void {
    const id = `d${placed.index}`;
    const [role, properties] = isHeader ? (['columnheader', HEADER] as const) : (['cell', NONE] as const);
    const childIds: string[] = [];
    into.push(id);
    this.nodes.push(nodeOf(id, role, textOf(placed.cell), properties, rectOf(placed), childIds));
    this.#addCell(placed, childIds);
  }

  #addCell(placed: Placed, into: string[]): void {
    this.firstOf[placed.index] = this.nodes.length;
    const own = cellNodes(placed, fieldValue(placed, UNCHANGED), false, this.#origin);
    if (own.length === 0) return;
    into.push(own[0]!.id);
    append(this.nodes, own);
  }
}

const LEVEL: readonly AxProperty[] = [['level', 1]];
const HEADER: readonly AxProperty[] = [
  ['readonly', false],
  ['required', false],
];
const FOCUSED: readonly AxProperty[] = [['focused', true]];
const UNCHANGED: ReadonlyMap<number, string> = new Map();

function rectOf({ row, x, width }: Placed): Rect {
  return [x, row * ROW, width, ROW];
}

/** Nodes of a cell, the element first; as many, under the same ids, whatever its value and focus are. */
function cellNodes(placed: Placed, value: string, isFocused: boolean, origin: string): AxNode[] {
  const { cell } = placed;
  const id = idOfCell(placed.index);
  const rect = rectOf(placed);
  const focus = isFocused ? FOCUSED : NONE;
  const text = (role: string, name: string, properties: readonly AxProperty[], content: string): AxNode[] =>
    content === ''
      ? [nodeOf(id, role, name, properties, rect)]
      : [nodeOf(id, role, name, properties, rect, [`${id}t`]), nodeOf(`${id}t`, 'StaticText', content, NONE, rect)];
  // An empty field's text is a node without a name, which nothing prints: the browser has none.
  const field = (role: string, label: string, properties: readonly AxProperty[]): AxNode[] => [
    nodeOf(id, role, label, properties, rect, [`${id}t`], value),
    nodeOf(`${id}t`, 'StaticText', value === '' ? undefined : value, NONE, rect),
  ];
  switch (cell.kind) {
    case 'text':
      return cell.text === '' ? [] : [nodeOf(id, 'StaticText', cell.text, NONE, rect)];
    case 'status':
      return text('status', '', LIVE, cell.text);
    case 'heading':
    case 'button':
      return text(cell.kind, cell.text, focus, cell.text);
    case 'link':
      return text(
        'link',
        cell.text,
        [...focus, ['url', cell.href.startsWith('/') ? origin + cell.href : cell.href]],
        cell.text,
      );
    case 'textbox':
      return field('textbox', cell.label, [...focus, ['required', false]]);
    case 'searchbox':
      return field('searchbox', cell.label, focus);
    case 'checkbox':
    case 'radio':
      return [nodeOf(id, cell.kind, cell.label, [...focus, ['checked', value === 'on' ? 'true' : 'false']], rect)];
    case 'select':
      return selectNodes(cell, id, value, focus, rect);
  }
}

/** A closed select; its list and options are in the tree without a place. */
function selectNodes(
  { label, options }: Extract<Cell, { kind: 'select' }>,
  id: string,
  value: string,
  focus: readonly AxProperty[],
  rect: Rect,
): AxNode[] {
  const properties: AxProperty[] = [...focus, ['hasPopup', 'menu'], ['expanded', false]];
  const optionIds = options.map((_, i) => `${id}o${i}`);
  return [
    nodeOf(id, 'combobox', label, properties, rect, [`${id}p`], value),
    nodeOf(`${id}p`, 'MenuListPopup', '', NONE, null, optionIds),
    ...options.map((option, i) => nodeOf(optionIds[i]!, 'option', option, [['selected', option === value]], null)),
  ];
}

/** A cell's text as a table cell's name. */
function textOf(cell: Cell): string {
  return 'text' in cell ? cell.text : '';
}
