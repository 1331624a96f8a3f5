/**
 * View tree → the accessibility nodes that Chromium gives for the same tree as HTML (html.ts). About twenty rules, each
 * checked against a real browser by the two-driver property.
 */
import {
  type Block,
  type Cell,
  type Group,
  type Layout,
  layoutOf,
  type Page,
  type Placed,
  ROW,
  type Row,
  SCREEN,
} from './page.ts';
import type { AxNode, AxProperty, Rect } from './tree.ts';

/** Changes a user made to a page since it was loaded. */
export interface PageState {
  /** Field values by cell index: texts, the chosen option, `on` or `` for boxes. */
  readonly values: ReadonlyMap<number, string>;
  /** Index of the focused cell, -1 for none. */
  readonly focused: number;
  /** Pixels scrolled down. */
  readonly scroll: number;
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

/** Nodes of pages nobody has touched, by scroll position: sessions of one task ask for the same ones. */
const untouched = new Map<Page, Map<string, readonly AxNode[]>>();
const MAX_UNTOUCHED = 64;

/** Nodes of a page in tree order; the root is the first. Untouched pages give the same array again. */
export function nodesOf(page: Page, url: string, state: PageState): readonly AxNode[] {
  if (state.values.size > 0 || state.focused >= 0) return buildNodes(page, url, state);
  const known = untouched.get(page) ?? new Map<string, readonly AxNode[]>();
  const key = `${state.scroll} ${url}`;
  const nodes = known.get(key) ?? buildNodes(page, url, state);
  known.set(key, nodes);
  untouched.set(page, known);
  if (untouched.size > MAX_UNTOUCHED) untouched.delete(untouched.keys().next().value!);
  return nodes;
}

function buildNodes(page: Page, url: string, state: PageState): AxNode[] {
  const builder = new Builder(layoutOf(page), state, url);
  const root: AxProperty[] = [
    ['focused', true],
    ['url', url],
  ];
  builder.add('root', 'RootWebArea', page.title, root, [0, 0, 10, 10], (childIds) =>
    builder.blocks(page.blocks, childIds),
  );
  return builder.nodes;
}

/** Parts of a closed select: in the tree, without a place. */
const UNPLACED = { childIds: [], inDom: true, properties: [], rect: null } as const;

class Builder {
  readonly nodes: AxNode[] = [];
  readonly #layout: Layout;
  readonly #state: PageState;
  readonly #origin: string;
  #row = 0;
  #groups = 0;

  constructor(layout: Layout, state: PageState, url: string) {
    this.#layout = layout;
    this.#state = state;
    this.#origin = URL.canParse(url) ? new URL(url).origin : '';
  }

  add(
    id: string,
    role: string,
    name: string,
    properties: readonly AxProperty[],
    rect: Rect | (() => Rect),
    children?: (childIds: string[]) => void,
    value?: string,
  ): void {
    const childIds: string[] = [];
    const at = this.nodes.length;
    const known = typeof rect === 'function' ? null : rect;
    const node: AxNode = { id, childIds, inDom: true, role, name, value, properties, rect: known };
    this.nodes.push(node);
    children?.(childIds);
    // A group's rectangle is known when its rows are.
    if (typeof rect === 'function') this.nodes[at] = { ...node, rect: rect() };
  }

  blocks(blocks: readonly Block[], into: string[]): void {
    for (const block of blocks) {
      if (block.kind === 'row') this.#addRow(block, into);
      else this.#addGroup(block, into);
    }
  }

  #rowsFrom(first: number): Rect {
    return [0, first * ROW - this.#state.scroll, SCREEN[0], (this.#row - first) * ROW];
  }

  #addGroup(group: Group, into: string[]): void {
    const first = this.#row;
    const id = `g${this.#groups++}`;
    into.push(id);
    this.add(
      id,
      group.role,
      group.name,
      [],
      () => this.#rowsFrom(first),
      (childIds) => this.blocks(group.blocks, childIds),
    );
  }

  #addRow(row: Row, into: string[]): void {
    const cells = this.#layout.rows[this.#row]!;
    const rect: Rect = [0, this.#row * ROW - this.#state.scroll, SCREEN[0], ROW];
    const id = `r${this.#row}`;
    this.#row++;
    if (row.role === 'plain') {
      for (const placed of cells) this.#addCell(placed, into);
      return;
    }
    into.push(id);
    if (row.role === 'item') {
      this.add(id, 'listitem', '', [['level', 1]], rect, (childIds) => {
        for (const placed of cells) this.#addCell(placed, childIds);
      });
      return;
    }
    this.add(id, 'row', '', [], rect, (childIds) => {
      for (const placed of cells) this.#addTableCell(placed, row.role === 'header', childIds);
    });
  }

  #rect({ row, x, width }: Placed): Rect {
    return [x, row * ROW - this.#state.scroll, width, ROW];
  }

  #addTableCell(placed: Placed, isHeader: boolean, into: string[]): void {
    const id = `d${placed.index}`;
    into.push(id);
    const properties: AxProperty[] = isHeader
      ? [
          ['readonly', false],
          ['required', false],
        ]
      : [];
    this.add(
      id,
      isHeader ? 'columnheader' : 'cell',
      textOf(placed.cell),
      properties,
      this.#rect(placed),
      (childIds) => {
        this.#addCell(placed, childIds);
      },
    );
  }

  #text(id: string, text: string, rect: Rect, into: string[]): void {
    if (text === '') return;
    into.push(id);
    this.add(id, 'StaticText', text, [], rect);
  }

  #addCell(placed: Placed, into: string[]): void {
    const { cell, index } = placed;
    const id = idOfCell(index);
    const rect = this.#rect(placed);
    if (cell.kind === 'text') {
      this.#text(id, cell.text, rect, into);
      return;
    }
    const focus: AxProperty[] = this.#state.focused === index ? [['focused', true]] : [];
    const value = fieldValue(placed, this.#state.values);
    into.push(id);
    switch (cell.kind) {
      case 'status':
        this.add(id, 'status', '', LIVE, rect, (childIds) => this.#text(`${id}t`, cell.text, rect, childIds));
        break;
      case 'heading':
      case 'button':
        this.add(id, cell.kind, cell.text, focus, rect, (childIds) => this.#text(`${id}t`, cell.text, rect, childIds));
        break;
      case 'link':
        this.add(
          id,
          'link',
          cell.text,
          [...focus, ['url', cell.href.startsWith('/') ? this.#origin + cell.href : cell.href]],
          rect,
          (childIds) => this.#text(`${id}t`, cell.text, rect, childIds),
        );
        break;
      case 'textbox':
        this.add(
          id,
          'textbox',
          cell.label,
          [...focus, ['required', false]],
          rect,
          (childIds) => this.#text(`${id}t`, value, rect, childIds),
          value,
        );
        break;
      case 'searchbox':
        this.add(
          id,
          'searchbox',
          cell.label,
          focus,
          rect,
          (childIds) => this.#text(`${id}t`, value, rect, childIds),
          value,
        );
        break;
      case 'checkbox':
      case 'radio':
        this.add(id, cell.kind, cell.label, [...focus, ['checked', value === 'on' ? 'true' : 'false']], rect);
        break;
      case 'select':
        this.#addSelect(cell, id, value, focus, rect);
    }
  }

  #addSelect(
    cell: Extract<Cell, { kind: 'select' }>,
    id: string,
    value: string,
    focus: AxProperty[],
    rect: Rect,
  ): void {
    const properties: AxProperty[] = [...focus, ['hasPopup', 'menu'], ['expanded', false]];
    this.add(
      id,
      'combobox',
      cell.label,
      properties,
      rect,
      (childIds) => {
        childIds.push(`${id}p`);
        this.nodes.push({
          ...UNPLACED,
          id: `${id}p`,
          role: 'MenuListPopup',
          name: '',
          childIds: cell.options.map((_, i) => `${id}o${i}`),
        });
        for (const [i, option] of cell.options.entries()) {
          this.nodes.push({
            ...UNPLACED,
            id: `${id}o${i}`,
            role: 'option',
            name: option,
            properties: [['selected', option === value]],
          });
        }
      },
      value,
    );
  }
}

/** A cell's text as a table cell's name. */
function textOf(cell: Cell): string {
  return 'text' in cell ? cell.text : '';
}
