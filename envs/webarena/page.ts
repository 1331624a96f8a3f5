/**
 * View trees: what a site answers to a request. A small closed set of elements on a layout of rows, so that both
 * drivers can print the same page: a page is a column of 24-pixel rows, a row shares its width equally among its cells,
 * nothing wraps, and what is in view follows from row numbers alone. No font matters.
 */
import { append } from '../../src/core/extremes.ts';

/** Height of a row in CSS pixels; the viewport holds 30 of them exactly. */
export const ROW = 24;
/** Viewport in CSS pixels. */
export const SCREEN = [1280, 720] as const;

/** Page as a site answers it: title, status and blocks. */
export interface Page {
  readonly title: string;
  /** HTTP status. */
  readonly status: number;
  readonly blocks: readonly Block[];
}

/** Block of a page: a row, or a group of rows. */
export type Block = Row | Group;

/** One line of cells, as wide as the page. */
export interface Row {
  readonly kind: 'row';
  /** `row` makes each cell a table cell, `header` a column header; `item` a list item. */
  readonly role: 'plain' | 'item' | 'row' | 'header';
  readonly cells: readonly Cell[];
}

/** Rows that belong together, under an accessible name where one is given. */
export interface Group {
  readonly kind: 'group';
  readonly role: 'navigation' | 'main' | 'form' | 'list' | 'table';
  readonly name: string;
  readonly blocks: readonly Block[];
  /** Address and method of a form, and hidden values that it sends. */
  readonly form?: Form;
}

/** Form: where its fields are sent, and hidden values that go with them. */
export interface Form {
  readonly action: string;
  readonly method: 'get' | 'post';
  readonly hidden: Readonly<Record<string, string>>;
}

/** Cell of a row: a text, a link, a field, … */
export type Cell =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'status'; readonly text: string }
  | { readonly kind: 'heading'; readonly text: string; readonly level: number }
  | { readonly kind: 'link'; readonly text: string; readonly href: string; readonly blank: boolean }
  | { readonly kind: 'button'; readonly text: string; readonly name: string; readonly value: string }
  | { readonly kind: 'textbox' | 'searchbox'; readonly name: string; readonly label: string; readonly value: string }
  | { readonly kind: 'checkbox'; readonly name: string; readonly label: string; readonly checked: boolean }
  | {
      readonly kind: 'radio';
      readonly name: string;
      readonly label: string;
      readonly value: string;
      readonly checked: boolean;
    }
  | {
      readonly kind: 'select';
      readonly name: string;
      readonly label: string;
      readonly options: readonly string[];
      readonly value: string;
    };

/** A cell, or a text for a plain one. */
export type CellLike = Cell | string | number;

function cell(like: CellLike): Cell {
  return typeof like === 'object' ? like : { kind: 'text', text: String(like) };
}

/** Makes a row of plain cells. */
export function row(...cells: readonly CellLike[]): Row {
  return { kind: 'row', role: 'plain', cells: cells.map(cell) };
}

function group(role: Group['role'], name: string, ...blocks: readonly Block[]): Group {
  return { kind: 'group', role, name, blocks };
}

/** Makes the main part of a page, under its heading. */
export function main(title: string, ...blocks: readonly Block[]): Group {
  return group('main', '', row(heading(title)), ...blocks);
}

/** Makes a navigation group of links, eight a row. */
export function nav(name: string, ...links: readonly Cell[]): Group {
  const rows: Row[] = [];
  for (let i = 0; i < links.length; i += 8) rows.push(row(...links.slice(i, i + 8)));
  return group('navigation', name, ...rows);
}

/** Makes a list, an item a row. */
export function list(name: string, items: readonly (readonly CellLike[])[]): Group {
  return group('list', name, ...items.map((cells): Row => ({ kind: 'row', role: 'item', cells: cells.map(cell) })));
}

/** Makes a table with a row of column headers. */
export function table(name: string, columns: readonly string[], rows: readonly (readonly CellLike[])[]): Group {
  const header: Row = { kind: 'row', role: 'header', cells: columns.map(cell) };
  return group(
    'table',
    name,
    header,
    ...rows.map((cells): Row => ({ kind: 'row', role: 'row', cells: cells.map(cell) })),
  );
}

/** Makes a form. @param hidden values that are sent and not shown; never more than names of things */
export function form(
  method: Form['method'],
  action: string,
  hidden: Form['hidden'],
  ...blocks: readonly Block[]
): Group {
  return { kind: 'group', role: 'form', name: '', blocks, form: { action, method, hidden } };
}

/** Makes a heading; level 1 is the page's own. */
export function heading(text: string, level = 1): Cell {
  return { kind: 'heading', text, level };
}

/** Makes a link. */
export function link(text: string, href: string): Cell {
  return { kind: 'link', text, href, blank: false };
}

/** Makes a link that opens a tab. */
export function linkInNewTab(text: string, href: string): Cell {
  return { kind: 'link', text, href, blank: true };
}

/** Makes a button; it sends its form, with `name=value` where it has a name. */
export function button(text: string, name = '', value = ''): Cell {
  return { kind: 'button', text, name, value };
}

/** Makes a text field. */
export function textbox(label: string, name: string, value = ''): Cell {
  return { kind: 'textbox', name, label, value };
}

/** Makes a search field. */
export function searchbox(label: string, name: string, value = ''): Cell {
  return { kind: 'searchbox', name, label, value };
}

/** Makes a checkbox. */
export function checkbox(label: string, name: string, checked: boolean): Cell {
  return { kind: 'checkbox', name, label, checked };
}

/** Makes a radio button; those of one name are a group. */
export function radio(label: string, name: string, value: string, checked: boolean): Cell {
  return { kind: 'radio', name, label, value, checked };
}

/** Makes a list to select from; a value that is none of the options is the first of them. */
export function select(label: string, name: string, options: readonly string[], value: string): Cell {
  return { kind: 'select', name, label, options, value: options.includes(value) ? value : (options[0] ?? '') };
}

/** Makes a live region: a message of the site. */
export function status(text: string): Cell {
  return { kind: 'status', text };
}

/** Makes rows of fields with their labels, one a row. */
export function fields(...labelled: readonly Cell[]): Row[] {
  return labelled.map((field) => ('label' in field ? row(field.label, field) : row(field)));
}

/** Makes a page with status 200. */
export function page(title: string, ...blocks: readonly Block[]): Page {
  return { title, status: 200, blocks };
}

/** A cell's place: what both drivers agree on. */
export interface Placed {
  readonly cell: Cell;
  /** Number of the cell on its page, in reading order. */
  readonly index: number;
  /** Row from the top of the page. */
  readonly row: number;
  /** Left border and width in CSS pixels. */
  readonly x: number;
  readonly width: number;
  /** Innermost form around it. */
  readonly form: Form | undefined;
}

/** A page with every cell's place. */
export interface Layout {
  readonly page: Page;
  readonly cells: readonly Placed[];
  /** Cells of each row. */
  readonly rows: readonly (readonly Placed[])[];
}

const layouts = new WeakMap<Page, Layout>();

/** Layout of a page, kept with it. */
export function layoutOf(page: Page): Layout {
  const known = layouts.get(page);
  if (known) return known;
  const cells: Placed[] = [];
  const rows: Placed[][] = [];
  const place = (blocks: readonly Block[], inForm: Form | undefined): void => {
    for (const block of blocks) {
      if (block.kind === 'group') {
        place(block.blocks, block.form ?? inForm);
        continue;
      }
      const width = SCREEN[0] / Math.max(1, block.cells.length);
      const placed = block.cells.map((cell, i) => {
        return { cell, index: cells.length + i, row: rows.length, x: i * width, width, form: inForm };
      });
      append(cells, placed);
      rows.push(placed);
    }
  };
  place(page.blocks, undefined);
  const layout = { page, cells, rows };
  layouts.set(page, layout);
  return layout;
}

/** Largest scroll position of a page, in pixels. */
export function maxScroll({ rows }: Layout): number {
  return Math.max(0, rows.length * ROW - SCREEN[1]);
}
