/** Page of the viewer: what is shown follows from the address (`#/episodes/0/17/3`), so that every view is a link. */
import type { RunInfo } from '../api.ts';
import { asksForNumber, needleOf } from '../search.ts';
import { type ChartsOptions, overviewCharts, type RunCurves, timeCharts, type XAxis } from './curves.ts';
import { choice, focusWithin, h, numberText, show, visible } from './dom.ts';
import { episodeElement } from './episode.ts';
import { evaluationsElement } from './evaluations.ts';
import { groupElement } from './group.ts';
import { EpisodeList, firstList, type ListState, PAGE } from './list.ts';
import { SearchHits } from './search-hits.ts';
import { openSource } from './source.ts';
import type { Shade } from './turn.ts';

/** Milliseconds between looks at a run that is still going on. */
const FOLLOW_MS = 3000;

const source = openSource();
const app = document.getElementById('app')!;
const main = h('main', { id: 'main', tabindex: '-1' });
const nav = h('nav', { aria: { 'aria-label': 'views' } });
const runBox = h('div', { class: 'end' });

let runs: readonly RunInfo[] = [];
let run = 0;
let list: ListState = firstList;
let shade: Shade = 'advantage';
let charts: ChartsOptions = { x: 'update', bands: true, smooth: 10 };
/** Keys of the present view, with what each does. */
let keys: Readonly<Record<string, () => void>> = {};
/** Number of the newest view; an older one that comes later is not shown. */
let drawn = 0;
/** List in the page, of a run; it stays while its rows change. */
let shownList: { readonly run: number; readonly list: EpisodeList } | undefined;
let finding: SearchHits | undefined;
/** Focus for the next view: the name of one of its elements (`data-focus`). */
let nextFocus: string | undefined;

async function start(): Promise<void> {
  applyTheme(readStored('theme'));
  const theme = h(
    'button',
    { type: 'button', aria: { 'aria-label': 'switch between light and dark' }, on: { click: switchTheme } },
    '◐',
  );
  show(app, h('header', {}, h('h1', {}, 'longplay'), nav, runBox, theme), main);
  runs = await source.runs();
  addEventListener('hashchange', () => void route());
  addEventListener('keydown', onKey);
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth !== width) void route();
    width = innerWidth;
  });
  await route();
  if (source.live) setInterval(() => void follow(), FOLLOW_MS);
}

/** Follows running runs: redraws when they have grown, but not while a person reads an episode. */
async function follow(): Promise<void> {
  if (document.hidden) return;
  const next = await source.runs().catch(() => runs);
  const grown = next.some((one, i) => one.rows !== runs[i]?.rows || one.episodes !== runs[i]?.episodes);
  runs = next;
  const [view, , at] = parts();
  const typing =
    document.activeElement instanceof HTMLInputElement || document.activeElement instanceof HTMLSelectElement;
  if (grown && at === undefined && !typing && (view !== 'episodes' || list.offset === 0)) await route();
}

function parts(): string[] {
  return location.hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '');
}

async function route(): Promise<void> {
  const turn = ++drawn;
  const [view = 'curves', runText, atText, turnText] = parts();
  run = Math.min(Math.max(0, Number(runText ?? run) || 0), Math.max(0, runs.length - 1));
  drawNav(view);
  keys = {};
  try {
    const content =
      runs.length === 0
        ? h('p', {}, 'There is no run here.')
        : view === 'episodes' && atText !== undefined
          ? await episodeView(Number(atText), Number(turnText ?? 0))
          : view === 'group' && atText !== undefined
            ? await groupView(Number(atText))
            : view === 'episodes'
              ? await listView()
              : view === 'time'
                ? await timeView()
                : view === 'config'
                  ? configView()
                  : await curvesView();
    if (turn !== drawn) return; // a later view was faster
    if (main.firstElementChild !== content) showKeepingFocus(content);
    if (view !== 'episodes' || atText !== undefined) shownList = undefined;
  } catch (error) {
    if (turn === drawn) show(main, h('p', { class: 'bad', role: 'alert' }, visible(String(error))));
  }
}

/** Shows a view; the focus stays on what has the same name in it, or goes where a key has sent it. */
function showKeepingFocus(content: HTMLElement): void {
  const within = main.contains(document.activeElement);
  const name = nextFocus ?? (within ? document.activeElement?.getAttribute('data-focus') : undefined);
  nextFocus = undefined;
  show(main, content);
  const found = name ? focusWithin(main, name) : false;
  if (!found && within) main.focus();
}

function drawNav(view: string): void {
  const link = (name: string, text: string, current = view === name) =>
    h('a', { href: `#/${name}/${run}`, aria: { 'aria-current': current ? 'page' : undefined } }, text);
  show(
    nav,
    link('curves', 'Curves'),
    link('episodes', 'Episodes', view === 'episodes' || view === 'group'),
    link('time', 'Time'),
    link('config', 'Config'),
  );
  const perRun = view !== 'curves' && view !== 'time';
  const options = runs.map(({ id, name, env }): [string, string] => [String(id), visible(`${name} (${env})`)]);
  show(
    runBox,
    perRun && runs.length > 1
      ? choice('run', String(run), options, (value) => go(`${view === 'group' ? 'episodes' : view}/${value}`))
      : h('span', { class: 'muted' }, visible(runs.length === 1 ? runs[0]!.name : `${runs.length} runs`)),
  );
}

function go(path: string): void {
  if (location.hash === `#/${path}`) void route();
  else location.hash = `#/${path}`;
}

async function curvesOf(chosen: readonly RunInfo[]): Promise<RunCurves[]> {
  return Promise.all(chosen.map(async (info) => ({ info, curves: await source.curves(info.id) })));
}

function chartControls(): HTMLElement {
  const set = (change: Partial<ChartsOptions>) => {
    charts = { ...charts, ...change };
    void route();
  };
  return h(
    'div',
    { class: 'row' },
    choice(
      'over',
      charts.x,
      [
        ['update', 'updates'],
        ['elapsed', 'seconds'],
        ['envSteps', 'env steps'],
      ],
      (x) => set({ x: x as XAxis }),
    ),
    choice(
      'smooth',
      String(charts.smooth),
      [
        ['1', 'off'],
        ['10', '10 points'],
        ['50', '50 points'],
      ],
      (n) => set({ smooth: Number(n) }),
    ),
    runs.length > 1
      ? choice(
          'seeds',
          charts.bands ? 'band' : 'lines',
          [
            ['band', 'one band'],
            ['lines', 'a line each'],
          ],
          (value) => set({ bands: value === 'band' }),
        )
      : null,
  );
}

async function curvesView(): Promise<HTMLElement> {
  const all = await curvesOf(runs);
  if (all.every(({ curves }) => curves.rows === 0 && curves.evaluations.length === 0)) {
    return h('p', { class: 'muted' }, 'No update has been made yet; episodes may be there already.');
  }
  const trained = all.filter(({ curves }) => curves.rows > 0);
  return h('div', {}, chartControls(), evaluationsElement(all), overviewCharts(trained, charts));
}

async function timeView(): Promise<HTMLElement> {
  const all = await curvesOf(runs);
  const known = all.filter(({ curves }) => curves.series['time/env']);
  if (known.length === 0) return h('p', { class: 'muted' }, 'No run has reported yet where its time went.');
  return h(
    'div',
    {},
    chartControls(),
    h(
      'div',
      { class: 'charts' },
      known.map((one) => timeCharts(one, charts)),
    ),
  );
}

function configView(): HTMLElement {
  const text = runs[run]!.config;
  return h(
    'section',
    { class: 'card' },
    h('h2', {}, visible(runs[run]!.name)),
    text === '' ? h('p', { class: 'muted' }, 'No configuration is known.') : h('pre', {}, visible(text)),
  );
}

async function listView(): Promise<HTMLElement> {
  const view = drawn;
  if (shownList?.run !== run) shownList = { run, list: newList() };
  const { list: element } = shownList;
  keys = {
    j: () => element.move(1),
    ArrowDown: () => element.move(1),
    k: () => element.move(-1),
    ArrowUp: () => element.move(-1),
    Enter: () => element.open(),
    Escape: () => main.focus(),
    '/': () => document.getElementById('search')?.focus(),
  };
  const { text } = list;
  if (needleOf(text) === '' || asksForNumber(text)) {
    finding = undefined;
    const page = await source.episodes(run, { ...list, limit: PAGE });
    if (view === drawn) element.update(page, list);
  } else await search(element, view);
  return element.element;
}

/** New list; a change of what it shows draws it again. */
function newList(): EpisodeList {
  return new EpisodeList(list.text, {
    set(change) {
      list = { ...list, ...change };
      shownList?.list.reset();
      void route();
    },
    hrefOf: (at, turn) => `#/episodes/${run}/${at}/${turn}`,
    go: (href) => go(href.slice(2)),
  });
}

/** Searches on while this view is the newest, and shows what was found so far after every piece. */
async function search(element: EpisodeList, view: number): Promise<void> {
  const { text, sort, descending } = list;
  if (finding?.key !== SearchHits.keyOf(run, text, list)) finding = new SearchHits(source, run, text, list);
  const own = finding;
  const page = await source.episodes(run, {
    purpose: list.purpose,
    label: list.label,
    outcome: list.outcome,
    offset: 0,
    limit: 0,
  });
  const draw = () => {
    const state = own.done ? '' : own.paused ? ', paused' : '…';
    own.total ??= page.matching;
    const status = `${numberText(own.hits.length)} found in ${numberText(own.searched)} of ${numberText(own.total)} episodes${state}`;
    const showMore = () => {
      own.resume();
      void route();
    };
    const rows = own.rows(sort, descending);
    element.update({ ...page, rows }, list, {
      hits: own.hits,
      status,
      done: own.done,
      more: own.paused ? showMore : undefined,
    });
  };
  const current = () => view === drawn && own === finding;
  if (current()) draw();
  const go = async () => {
    while (current() && !own.done && !own.paused) {
      await own.step();
      if (current()) draw();
    }
  };
  void go().catch((error) => {
    if (current()) show(main, h('p', { class: 'bad', role: 'alert' }, visible(String(error))));
  });
}

const LEFT_OUT = 'This episode is not part of the report; open the run with `longplay view` to see it.';

async function episodeView(at: number, turnWished: number): Promise<HTMLElement> {
  const view = await source.episode(run, at);
  if (!view) return h('p', {}, LEFT_OUT);
  const { length } = view.episode.turns;
  const turn = Math.min(length, Math.max(0, turnWished || 0));
  const toTurn = (to: number) => {
    const next = Math.min(length, Math.max(0, to));
    nextFocus = `turn ${next}`;
    go(`episodes/${run}/${at}/${next}`);
  };
  const toEpisode = (to: number) => {
    if (to < 0 || to >= runs[run]!.episodes) return;
    nextFocus = 'title';
    go(`episodes/${run}/${to}/0`);
  };
  keys = {
    ArrowRight: () => toTurn(turn + 1),
    ArrowLeft: () => toTurn(turn - 1),
    Home: () => toTurn(0),
    End: () => toTurn(length),
    j: () => toEpisode(at + 1),
    k: () => toEpisode(at - 1),
    g: () => go(`group/${run}/${at}`),
    Escape: () => toList(at),
  };
  const element = episodeElement(view, {
    turn,
    shade,
    needle: asksForNumber(list.text) ? '' : needleOf(list.text),
    go: toTurn,
    setShade,
    groupHref: `#/group/${run}/${at}`,
    listHref: `#/episodes/${run}`,
  });
  element.append(h('p', { class: 'muted keys' }, 'keys: ← → turns, j k episodes, g group, Esc list'));
  return element;
}

/** Goes back to the list, to the row of an episode. */
function toList(at: number): void {
  nextFocus = `episode ${at}`;
  go(`episodes/${run}`);
}

async function groupView(at: number): Promise<HTMLElement> {
  const view = await source.group(run, at);
  if (!view) return h('p', {}, LEFT_OUT);
  keys = { Escape: () => toList(at) };
  return groupElement(view, {
    shade,
    setShade,
    hrefOf: (member, turn) => `#/episodes/${run}/${member}/${turn}`,
    listHref: `#/episodes/${run}`,
  });
}

function setShade(next: Shade): void {
  shade = next;
  void route();
}

function onKey(event: KeyboardEvent): void {
  const { target } = event;
  const inField = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  const onControl = target instanceof HTMLButtonElement || target instanceof HTMLAnchorElement;
  if (event.ctrlKey || event.metaKey || event.altKey || (inField && event.key !== 'Escape')) return;
  if (onControl && event.key === 'Enter') return;
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function switchTheme(): void {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  applyTheme(dark ? 'light' : 'dark');
  try {
    localStorage.setItem('theme', dark ? 'light' : 'dark');
  } catch {
    // a page from a file may have no storage; the choice then lasts as long as the page
  }
  void route();
}

function applyTheme(theme: string | undefined): void {
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
}

function readStored(name: string): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

void start();
