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
  set: (change: Partial<ListState>) => void,
  hrefOf: (at: number) => string,
  open: (row: EpisodeRow) => void,
): HTMLElement {
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
  const filters = h(
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
  const head = h('tr');
  for (const [key, title, numeric] of COLUMNS) {
    const sorted = state.sort === key;
    const mark = sorted ? (state.descending ? ' ↓' : ' ↑') : '';
    head.append(
      h(
        'th',
        {
          scope: 'col',
          class: numeric ? 'n' : '',
          aria: { 'aria-sort': sorted ? (state.descending ? 'descending' : 'ascending') : undefined },
        },
        h(
          'button',
          {
            type: 'button',
            on: { click: () => set({ sort: key, descending: sorted ? !state.descending : numeric, offset: 0 }) },
          },
          title + mark,
        ),
      ),
    );
  }
  head.append(h('th', { scope: 'col' }, 'outcome'));
  const body = h('tbody');
  body.append(...page.rows.map((row, i) => rowElement(row, i === state.selected, hrefOf, () => open(row))));
  const last = state.offset + PAGE >= page.matching;
  return h(
    'div',
    {},
    filters,
    h('div', { class: 'scroll' }, h('table', { aria: { 'aria-label': 'episodes' } }, h('thead', {}, head), body)),
    page.rows.length === 0
      ? h('p', { class: 'muted' }, page.total === 0 ? 'No episode has been recorded yet.' : 'No episode matches.')
      : null,
    h(
      'div',
      { class: 'row', style: { 'margin-top': '.7rem' } },
      h(
        'button',
        {
          type: 'button',
          disabled: state.offset === 0,
          on: { click: () => set({ offset: Math.max(0, state.offset - PAGE) }) },
        },
        'previous page',
      ),
      h(
        'button',
        { type: 'button', disabled: last, on: { click: () => set({ offset: state.offset + PAGE }) } },
        'next page',
      ),
      h('span', { class: 'muted' }, 'keys: j k move, Enter opens, / searches'),
    ),
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
