/** List of episodes: filters, sorting by every column, pages; keys move and open. */
import type { EpisodePage, EpisodeRow } from '../api.ts';
import { outcomeOf } from '../query.ts';
import { choice, h, numberText, visible } from './dom.ts';

export interface ListState {
  readonly purpose: string;
  readonly label: string;
  readonly outcome: string;
  readonly text: string;
  readonly sort: string;
  readonly descending: boolean;
  readonly offset: number;
  /** Selected row of the page. */
  readonly selected: number;
}

export const PAGE = 50;

export const firstList: ListState = {
  purpose: '',
  label: '',
  outcome: '',
  text: '',
  sort: 'episode',
  descending: true,
  offset: 0,
  selected: 0,
};

const COLUMNS: readonly (readonly [key: string, title: string, numeric: boolean])[] = [
  ['episode', 'episode', true],
  ['group', 'group', true],
  ['task', 'task', true],
  ['label', 'sub-task', false],
  ['purpose', 'purpose', false],
  ['horizon', 'horizon', true],
  ['turns', 'turns', true],
  ['return', 'return', true],
  ['version', 'version', true],
];

export function listElement(
  page: EpisodePage,
  state: ListState,
  set: Change,
  hrefOf: (at: number) => string,
  open: (row: EpisodeRow) => void,
): HTMLElement {
  const body = h('tbody');
  body.append(...page.rows.map((row, i) => rowElement(row, i === state.selected, hrefOf, () => open(row))));
  const table = h('table', { aria: { 'aria-label': 'episodes' } }, h('thead', {}, headElement(state, set)), body);
  const nothing = page.total === 0 ? 'No episode has been recorded yet.' : 'No episode matches.';
  return h(
    'div',
    {},
    filtersElement(page, state, set),
    h('div', { class: 'scroll' }, table),
    page.rows.length === 0 ? h('p', { class: 'muted' }, nothing) : null,
    pagesElement(page, state, set),
  );
}

/** Change of what the list shows. */
type Change = (change: Partial<ListState>) => void;

function filtersElement(page: EpisodePage, state: ListState, set: Change): HTMLElement {
  const all = (names: readonly string[]): (readonly [string, string])[] => [
    ['', 'all'],
    ...names.map((name): [string, string] => [name, visible(name)]),
  ];
  const search = h('input', {
    type: 'search',
    id: 'search',
    value: state.text,
    placeholder: 'episode, group, task or label',
    aria: { 'aria-label': 'search' },
    on: { change: (event) => set({ text: (event.target as HTMLInputElement).value, offset: 0 }) },
  });
  return h(
    'form',
    { class: 'row', role: 'search', on: { submit: (event) => event.preventDefault() } },
    choice('purpose', state.purpose, all(page.purposes), (purpose) => set({ purpose, offset: 0 })),
    choice('sub-task', state.label, all(page.labels), (label) => set({ label, offset: 0 })),
    choice('outcome', state.outcome, all(['solved', 'failed', 'truncated']), (outcome) => set({ outcome, offset: 0 })),
    search,
    h(
      'span',
      { class: 'muted', aria: { 'aria-live': 'polite' } },
      `${numberText(page.matching)} of ${numberText(page.total)} episodes`,
    ),
  );
}

/** Heads of the columns; a click sorts by one, a second click the other way round. */
function headElement(state: ListState, set: Change): HTMLElement {
  const head = h('tr');
  for (const [key, title, numeric] of COLUMNS) {
    const sorted = state.sort === key;
    const order = state.descending ? 'descending' : 'ascending';
    const mark = sorted ? (state.descending ? ' ↓' : ' ↑') : '';
    const sort = () => set({ sort: key, descending: sorted ? !state.descending : numeric, offset: 0 });
    const button = h('button', { type: 'button', on: { click: sort } }, title + mark);
    const aria = { 'aria-sort': sorted ? order : undefined };
    head.append(h('th', { scope: 'col', class: numeric ? 'n' : '', aria }, button));
  }
  head.append(h('th', { scope: 'col' }, 'outcome'));
  return head;
}

function pagesElement(page: EpisodePage, state: ListState, set: Change): HTMLElement {
  const turn = (title: string, disabled: boolean, offset: number) =>
    h('button', { type: 'button', disabled, on: { click: () => set({ offset }) } }, title);
  return h(
    'div',
    { class: 'row', style: { 'margin-top': '.7rem' } },
    turn('previous page', state.offset === 0, Math.max(0, state.offset - PAGE)),
    turn('next page', state.offset + PAGE >= page.matching, state.offset + PAGE),
    h('span', { class: 'muted' }, 'keys: j k move, Enter opens, / searches'),
  );
}

function rowElement(row: EpisodeRow, selected: boolean, hrefOf: (at: number) => string, open: () => void): HTMLElement {
  const outcome = outcomeOf(row);
  const tone = { solved: 'good', failed: 'bad', truncated: 'warn' }[outcome];
  const cells = COLUMNS.map(([key, , numeric]) => {
    const value = row[key as keyof EpisodeRow];
    const text =
      key === 'version' && row.version < 0 ? '–' : key === 'return' ? numberText(row.return) : visible(String(value));
    return h('td', numeric ? { class: 'n' } : {}, key === 'episode' ? h('a', { href: hrefOf(row.at) }, text) : text);
  });
  return h(
    'tr',
    { aria: { 'aria-selected': String(selected) }, on: { click: open } },
    ...cells,
    h('td', { class: tone }, outcome),
  );
}
