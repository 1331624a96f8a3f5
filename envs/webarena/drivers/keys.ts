/** Keys on a page of rows: the twin, in process, of the script that html.ts puts into the page. */
import { fieldValue } from '../nodes.ts';
import { type Layout, maxScroll, type Placed, ROW, SCREEN } from '../page.ts';

/** Effect of a key or click that is left to the tab: following a link, sending a form. */
export type Effect =
  | { readonly type: 'follow'; readonly href: string; readonly blank: boolean }
  | { readonly type: 'submit'; readonly by: Placed };

/** A page as it stands in a tab; changed in place. */
export interface Live {
  readonly layout: Layout;
  readonly values: Map<number, string>;
  focused: number;
  scroll: number;
  /** Selection in the focused text field: from anchor to caret, in UTF-16 units. */
  anchor: number;
  caret: number;
}

/** Keys whose effect the sites define; all others do nothing. */
const SITE_KEYS: ReadonlySet<string> = new Set([
  ...['Tab', 'Shift+Tab', 'Enter', 'Space', 'Escape', 'Backspace', 'Delete', 'Home', 'End', 'PageUp', 'PageDown'],
  ...['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Control+a'],
]);

/** True for a key that has an effect defined here: one of the list, or a single printable character. */
export function isSiteKey(key: string): boolean {
  return SITE_KEYS.has(key) || /^[!-*,-~]$/.test(key);
}

/** True for a cell that the Tab key stops at. */
export function isFocusable({ cell }: Placed): boolean {
  return ['link', 'button', 'textbox', 'searchbox', 'checkbox', 'radio', 'select'].includes(cell.kind);
}

/** True for a field that text is typed into. */
export function isText(placed: Placed | undefined): boolean {
  return placed?.cell.kind === 'textbox' || placed?.cell.kind === 'searchbox';
}

function radios(live: Live, { cell, form }: Placed): Placed[] {
  return live.layout.cells.filter((other) => {
    return other.cell.kind === 'radio' && cell.kind === 'radio' && other.cell.name === cell.name && other.form === form;
  });
}

/** The radio of a group that Tab stops at: the chosen one, else the first. */
function stopOf(live: Live, placed: Placed): Placed {
  const all = radios(live, placed);
  return all.find((radio) => fieldValue(radio, live.values) === 'on') ?? all[0]!;
}

/** Cell that has the focus; undefined where none has. */
export function findFocusedCell(live: Live): Placed | undefined {
  return live.layout.cells[live.focused];
}

/** Focuses a cell; the caret goes to the end of a text. */
export function focus(live: Live, placed: Placed): void {
  live.focused = placed.index;
  live.caret = isText(placed) ? fieldValue(placed, live.values).length : 0;
  live.anchor = live.caret;
}

function scrollTo(live: Live, top: number): void {
  live.scroll = Math.min(Math.max(0, top), maxScroll(live.layout));
}

/** Scrolls by so many pixels, within the page. */
export function scrollBy(live: Live, pixels: number): void {
  scrollTo(live, live.scroll + pixels);
}

function focusAndShow(live: Live, placed: Placed): void {
  focus(live, placed);
  const y = placed.row * ROW - live.scroll;
  if (y < 0 || y + ROW > SCREEN[1]) scrollTo(live, placed.row * ROW - 15 * ROW);
}

function tab(live: Live, backwards: boolean): void {
  const stops = live.layout.cells.filter((placed) => {
    return isFocusable(placed) && (placed.cell.kind !== 'radio' || stopOf(live, placed) === placed);
  });
  if (stops.length === 0) return;
  const now = findFocusedCell(live);
  const at = now ? stops.indexOf(now.cell.kind === 'radio' ? stopOf(live, now) : now) : -1;
  const next = at < 0 ? (backwards ? stops.length - 1 : 0) : at + (backwards ? -1 : 1);
  const target = stops[next];
  if (target) focusAndShow(live, target);
  else live.focused = -1;
}

/** Selects one radio button of its group, and no other of it. */
export function selectRadio(live: Live, placed: Placed): void {
  for (const radio of radios(live, placed)) live.values.set(radio.index, radio === placed ? 'on' : '');
}

/** Replaces what is selected in the focused text field. */
export function insert(live: Live, text: string): void {
  const field = findFocusedCell(live);
  if (!field || !isText(field)) return;
  const value = fieldValue(field, live.values);
  const [from, to] = [Math.min(live.anchor, live.caret), Math.max(live.anchor, live.caret)];
  live.values.set(field.index, value.slice(0, from) + text + value.slice(to));
  live.caret = from + text.length;
  live.anchor = live.caret;
}

/** Enter in a field sends its form by the form's first button. */
function implicitSubmit(live: Live, placed: Placed): Effect | undefined {
  if (!placed.form) return undefined;
  const by = live.layout.cells.find(({ cell, form }) => cell.kind === 'button' && form === placed.form);
  return by && { type: 'submit', by };
}

/** Takes one key. */
export function press(live: Live, key: string): Effect | undefined {
  if (key === 'Tab' || key === 'Shift+Tab') {
    tab(live, key !== 'Tab');
    return undefined;
  }
  const now = findFocusedCell(live);
  if (now && isText(now)) return pressInText(live, now, key);
  if (now?.cell.kind === 'select') return pressInSelect(live, now, key);
  if (now?.cell.kind === 'radio' && key.startsWith('Arrow')) {
    const all = radios(live, now);
    const step = key === 'ArrowDown' || key === 'ArrowRight' ? 1 : -1;
    const next = all[(all.indexOf(now) + step + all.length) % all.length]!;
    selectRadio(live, next);
    focusAndShow(live, next);
    return undefined;
  }
  if (now && (key === 'Enter' || key === 'Space')) {
    const effect = activate(live, now, key);
    if (effect !== 'none') return effect;
  }
  const amount = SCROLLS[key];
  if (amount !== undefined) scrollBy(live, amount);
  return undefined;
}

const SCROLLS: Readonly<Record<string, number>> = {
  ArrowDown: 2 * ROW,
  ArrowUp: -2 * ROW,
  PageDown: SCREEN[1] - 3 * ROW,
  PageUp: 3 * ROW - SCREEN[1],
  Space: SCREEN[1] - 3 * ROW,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/** Enter or Space on what has the focus; `none` where the key keeps its meaning for the page. */
function activate(live: Live, now: Placed, key: string): Effect | undefined | 'none' {
  const { cell } = now;
  switch (cell.kind) {
    case 'link':
      return key === 'Enter' ? { type: 'follow', href: cell.href, blank: cell.blank } : 'none';
    case 'button':
      return now.form ? { type: 'submit', by: now } : undefined;
    case 'checkbox':
      if (key === 'Enter') return implicitSubmit(live, now);
      live.values.set(now.index, fieldValue(now, live.values) === 'on' ? '' : 'on');
      return undefined;
    case 'radio':
      if (key === 'Enter') return implicitSubmit(live, now);
      selectRadio(live, now);
      return undefined;
    default:
      return 'none';
  }
}

function pressInSelect(live: Live, now: Placed, key: string): undefined {
  if (now.cell.kind !== 'select') return undefined;
  const { options } = now.cell;
  const at = options.indexOf(fieldValue(now, live.values));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: options.length - 1 }[key] ?? -1;
  if (to >= 0 && to < options.length) live.values.set(now.index, options[to]!);
  return undefined;
}

function pressInText(live: Live, field: Placed, key: string): Effect | undefined {
  const length = fieldValue(field, live.values).length;
  const [from, to] = [Math.min(live.anchor, live.caret), Math.max(live.anchor, live.caret)];
  const moveTo = (caret: number) => {
    live.caret = Math.min(Math.max(0, caret), length);
    live.anchor = live.caret;
  };
  switch (key) {
    case 'Enter':
      return implicitSubmit(live, field);
    case 'Control+a':
      [live.anchor, live.caret] = [0, length];
      break;
    case 'Home':
      moveTo(0);
      break;
    case 'End':
      moveTo(length);
      break;
    case 'ArrowLeft':
      moveTo(from === to ? live.caret - 1 : from);
      break;
    case 'ArrowRight':
      moveTo(from === to ? live.caret + 1 : to);
      break;
    case 'Backspace':
      if (from === to) live.anchor = Math.max(0, live.caret - 1);
      if (live.anchor !== live.caret) insert(live, '');
      break;
    case 'Delete':
      if (from === to) live.anchor = Math.min(length, live.caret + 1);
      if (live.anchor !== live.caret) insert(live, '');
      break;
    case 'Space':
      insert(live, ' ');
      break;
    default:
      if (key.length === 1) insert(live, key);
  }
  return undefined;
}
