/**
 * List of episodes: filters, a search as one types, sorting by every column, pages; keys move and open. The form stays the
 * same element while the rows below it change, so that nothing that is being typed is lost.
 */
import type { EpisodeHit, EpisodePage, EpisodeRow } from '../api.ts';
import { outcomeOf } from '../query.ts';
import { choice, focusWithin, h, numberText, show, visible } from './dom.ts';

export interface ListState {
  readonly purpose: string;
  readonly label: string;
  readonly outcome: string;
  readonly text: string;
  readonly sort: string;
  readonly descending: boolean;
  readonly offset: number;
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
};

/** Milliseconds without a key after which what was typed is searched for. */
const TYPING_MS = 200;

const COLUMNS: readonly (readonly [key: string, title: string, numeric: boolean])[] = [
  ['episode', 'episode', true],
  ['return', 'return', true],
  ['turns', 'turns', true],
  ['label', 'sub-task', false],
  ['task', 'task', true],
  ['group', 'group', true],
  ['purpose', 'purpose', false],
  ['horizon', 'horizon', true],
  ['version', 'version', true],
];

/** Search as the list shows it. */
export interface ListSearch {
  readonly hits: readonly EpisodeHit[];
  readonly status: string;
  /** True once all episodes have been looked at. */
  readonly done: boolean;
  /** Goes on with a search that waits. */
  readonly more: (() => void) | undefined;
}

export interface ListActions {
  readonly set: (change: Partial<ListState>) => void;
  /** Address of an episode, at a turn. */
  readonly hrefOf: (at: number, turn: number) => string;
  readonly go: (href: string) => void;
}

/** List in the page. */
export class EpisodeList {
  readonly element: HTMLElement;
  readonly #actions: ListActions;
  readonly #choices = h('span', { class: 'row choices' });
  readonly #status = h('span', { class: 'muted', aria: { 'aria-live': 'polite' } });
  readonly #results = h('div');
  #filters = '';
  #links: HTMLElement[] = [];
  #selected = 0;

  constructor(text: string, actions: ListActions) {
    this.#actions = actions;
    let typing: ReturnType<typeof setTimeout> | undefined;
    const search = h('input', {
      type: 'search',
      id: 'search',
      value: text,
      placeholder: 'number, or text of a turn',
      aria: { 'aria-label': 'search' },
      on: {
        input: () => {
          clearTimeout(typing);
          typing = setTimeout(() => actions.set({ text: (search as HTMLInputElement).value, offset: 0 }), TYPING_MS);
        },
      },
    });
    const submit = (event: Event) => event.preventDefault();
    this.element = h(
      'div',
      {},
      h('form', { class: 'row', role: 'search', on: { submit } }, search, this.#choices, this.#status),
      this.#results,
    );
  }

  /** Shows rows, and what was found in them. */
  update(page: EpisodePage, state: ListState, search?: ListSearch): void {
    this.#showChoices(page, state);
    const hits = new Map(search?.hits.map((hit) => [hit.row.at, hit]));
    const body = h('tbody');
    this.#links = [];
    page.rows.forEach((row, i) => {
      const { element, link } = rowElement(row, hits.get(row.at), this.#actions);
      link.addEventListener('focus', () => this.#mark(i));
      this.#links.push(link);
      body.append(element);
    });
    const table = h(
      'table',
      { aria: { 'aria-label': 'episodes' } },
      h('thead', {}, this.#headElement(state, search)),
      body,
    );
    const nothing = page.total === 0 ? 'No episode has been recorded yet.' : 'No episode matches.';
    const focused = this.#results.contains(document.activeElement)
      ? document.activeElement?.getAttribute('data-focus')
      : undefined;
    show(this.#status, search?.status ?? `${numberText(page.matching)} of ${numberText(page.total)} episodes`);
    show(
      this.#results,
      h('div', { class: 'scroll' }, table),
      page.rows.length === 0 && search?.done !== false ? h('p', { class: 'muted' }, nothing) : null,
      this.#pagesElement(page, state, search),
    );
    this.#mark(Math.min(this.#selected, Math.max(0, page.rows.length - 1)));
    if (focused) focusWithin(this.#results, focused);
  }

  /** Selects the first row: the rows are others now. */
  reset(): void {
    this.#selected = 0;
  }

  /** Moves the selection, and the focus with it. */
  move(by: number): void {
    this.#links[Math.min(this.#links.length - 1, Math.max(0, this.#selected + by))]?.focus();
  }

  /** Opens the selected row. */
  open(): void {
    this.#links[this.#selected]?.click();
  }

  #mark(selected: number): void {
    this.#selected = selected;
    this.#links.forEach((link, i) => {
      link.closest('tr')!.setAttribute('aria-selected', String(i === selected));
    });
  }

  #showChoices(page: EpisodePage, { purpose, label, outcome }: ListState): void {
    const filters = JSON.stringify([page.purposes, page.labels, purpose, label, outcome]);
    if (filters === this.#filters) return; // the same boxes stay, with the focus that one of them may have
    this.#filters = filters;
    const addAllOption = (names: readonly string[]): (readonly [string, string])[] => [
      ['', 'all'],
      ...names.map((name): [string, string] => [name, visible(name)]),
    ];
    const { set } = this.#actions;
    const focused = document.activeElement?.getAttribute('data-focus');
    show(
      this.#choices,
      choice('outcome', outcome, addAllOption(['solved', 'failed', 'truncated']), (value) =>
        set({ outcome: value, offset: 0 }),
      ),
      choice('sub-task', label, addAllOption(page.labels), (value) => set({ label: value, offset: 0 })),
      choice('purpose', purpose, addAllOption(page.purposes), (value) => set({ purpose: value, offset: 0 })),
    );
    if (focused) focusWithin(this.#choices, focused);
  }

  /** Heads of the columns; a click sorts by one, a second click the other way round. */
  #headElement(state: ListState, search: ListSearch | undefined): HTMLElement {
    const head = h('tr', {}, h('th', { scope: 'col' }, 'outcome'));
    for (const [key, title, numeric] of COLUMNS) {
      const sorted = state.sort === key;
      const order = state.descending ? 'descending' : 'ascending';
      const mark = sorted ? (state.descending ? ' ↓' : ' ↑') : '';
      const sort = () => this.#actions.set({ sort: key, descending: sorted ? !state.descending : numeric, offset: 0 });
      const button = h(
        'button',
        { type: 'button', aria: { 'data-focus': `sort ${key}` }, on: { click: sort } },
        title + mark,
      );
      const aria = { 'aria-sort': sorted ? order : undefined };
      head.append(h('th', { scope: 'col', class: numeric ? 'n' : '', aria }, button));
      if (key === 'episode' && search) head.append(h('th', { scope: 'col' }, 'found'));
    }
    return head;
  }

  #pagesElement(page: EpisodePage, { offset }: ListState, search: ListSearch | undefined): HTMLElement {
    const { set } = this.#actions;
    const button = (title: string, disabled: boolean, click: () => void) =>
      h('button', { type: 'button', disabled, aria: { 'data-focus': title }, on: { click } }, title);
    const pages = search
      ? [search.more ? button('search further', false, search.more) : null]
      : [
          button('previous page', offset === 0, () => set({ offset: Math.max(0, offset - PAGE) })),
          button('next page', offset + PAGE >= page.matching, () => set({ offset: offset + PAGE })),
        ];
    return h(
      'div',
      { class: 'row below' },
      pages,
      h('span', { class: 'muted keys' }, 'keys: j k move, Enter opens, / searches'),
    );
  }
}

function rowElement(
  row: EpisodeRow,
  hit: EpisodeHit | undefined,
  { hrefOf, go }: ListActions,
): { element: HTMLElement; link: HTMLElement } {
  const outcome = outcomeOf(row);
  const tone = { solved: 'good', failed: 'bad', truncated: 'warn' }[outcome];
  const href = hrefOf(row.at, hit?.match.turn ?? 0);
  const link = h('a', { href, aria: { 'data-focus': `episode ${row.at}` } }, String(row.episode));
  const cells = COLUMNS.flatMap(([key, , numeric]) => {
    if (key === 'episode') return [h('td', { class: 'n' }, link), hit ? renderFound(hit) : null];
    const value = row[key as keyof EpisodeRow];
    const text =
      key === 'version' && row.version < 0 ? '–' : key === 'return' ? numberText(row.return) : visible(String(value));
    return [h('td', numeric ? { class: 'n' } : {}, text)];
  });
  const click = (event: Event) => {
    if (!(event.target as Element).closest('a')) go(href);
  };
  const element = h('tr', { on: { click } }, h('td', { class: `outcome ${tone}` }, outcome), cells);
  return { element, link };
}

/** Cell of what was found: the turn, and the text around it. */
function renderFound({ row, match }: EpisodeHit): HTMLElement {
  const { turn, part, before, found, after, turns } = match;
  const inTurns = part === 'observation' || part === 'answer' || part === 'action';
  const where = !inTurns ? part : turn >= row.turns ? 'end' : `turn ${turn + 1}, ${part}`;
  const more = turns > 1 ? ` and ${turns - 1} more turn${turns === 2 ? '' : 's'}` : '';
  return h(
    'td',
    { class: 'found' },
    h('span', { class: 'muted' }, `${where}${more}: `),
    visible(before),
    h('mark', {}, visible(found)),
    visible(after),
  );
}
