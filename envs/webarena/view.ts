/**
 * Text that the local policy reads. Names of things are left out: what the objective quotes is `q1`, `q2`, … wherever it
 * stands, words of the sites' own labels stay, everything else is `other`, `number`, `money`, … So nothing is learnt of a
 * world by heart. The prompt gives the objective, with `used` behind what was typed, chosen or followed already, the
 * page's title, what its fields hold and the last actions; each listed action shows what it acts on, where that stands,
 * what the objective calls the text that it gives (`as to`), and how often the same was done before. `named` is what
 * bears a word of the objective: a field the word that its text is called by, a link or button any but the commonest.
 *
 *     goal add q1 used to my wish list | at q1 store | holds quantity number | did type search q1 enter | did link q1
 *     candidates: press add to wish list named · link reviews number · type quantity q1 as add · stop
 *
 * It restates what was read and counts it; nothing is compared with what the task needs, but names for equality.
 */

import type { First } from '../../src/core/env.ts';
import { append } from '../../src/core/extremes.ts';
import type { Rendered, SeenTurn, WindowView } from '../../src/core/view.ts';
import { readTurn } from './describe.ts';
import { isCalled, SLOT, type Slot, slotsOf, stem } from './objective.ts';

/** Actions of the past that are shown, fields of a page, words of a name, rows that are distinguished. */
const REMEMBERED = 4;
const MAX_FIELDS = 6;
const MAX_WORDS = 5;
const MAX_ROWS = 20;
const MAX_SLOTS = 6;
const MAX_AGAIN = 3;

/** Memory of an episode. */
interface Memory {
  readonly objective: string;
  /** Text of the page as it is now. */
  readonly page: string;
  /** Last actions in words. */
  readonly trail: readonly string[];
  /** Times that an action in words was done. */
  readonly done: Readonly<Record<string, number>>;
  /** Slots that were typed, chosen or followed, by their place. */
  readonly used: readonly number[];
  /** A stage is chosen. */
  readonly inStage: boolean;
}

function begin({ observation }: First): Memory {
  const turn = readTurn(observation);
  return {
    objective: turn?.objective ?? '',
    page: turn?.observation ?? '',
    trail: [],
    done: {},
    used: [],
    inStage: false,
  };
}

function updateMemory(memory: Memory, { action, observation, partial }: SeenTurn): Memory {
  if (partial) return { ...memory, inStage: action !== 'cancel' };
  const turn = readTurn(observation);
  const { words } = actOf(action, readingOf(memory));
  const did = words.join(' ');
  const failed = turn === undefined || turn.error !== '';
  return {
    ...memory,
    page: turn?.observation ?? memory.page,
    trail: [...memory.trail, failed ? `${did} fail` : did].slice(-REMEMBERED),
    done: { ...memory.done, [did]: (memory.done[did] ?? 0) + 1 },
    used: failed ? memory.used : [...new Set([...memory.used, ...words.map(slotOf).filter((at) => at >= 0)])],
    inStage: false,
  };
}

/** One printed line, in words. */
interface Element {
  readonly role: string;
  readonly name: string;
  /** The name in words. */
  readonly words: readonly string[];
  /** The label before it, or its column and row. */
  place: readonly string[];
  /** Text of a field, choice of a select, `on` or `off` of a box. */
  holds: readonly string[];
}

/** Objective and page of a turn. */
interface Reading {
  readonly goal: readonly string[];
  /** Words of the goal that carry meaning, as stems. */
  readonly stems: ReadonlySet<string>;
  /** Texts of the slots in lower case, and what they are called. */
  readonly slots: readonly string[];
  readonly called: readonly Slot[];
  readonly elements: ReadonlyMap<string, Element>;
  readonly title: readonly string[];
  readonly notices: readonly string[];
}

const readings = new WeakMap<Memory, Reading>();

function readingOf(memory: Memory): Reading {
  const known = readings.get(memory);
  if (known) return known;
  const reading = read(memory.objective, memory.page);
  readings.set(memory, reading);
  return reading;
}

/** Readings of the pages seen last: the members of a group see the same ones. */
const recent = new Map<string, Reading>();
const MAX_RECENT = 256;

function read(objective: string, page: string): Reading {
  const key = `${objective}\n${page}`;
  const known = recent.get(key);
  if (known) return known;
  const called = slotsOf(objective).slice(0, MAX_SLOTS);
  const slots = called.map(({ text }) => text.toLowerCase());
  const goal = renderObjective(objective, slots);
  const stems = new Set(goal.filter((word) => !COMMON.has(word) && slotOf(word) < 0).map(stem));
  const reading = { goal, stems, slots, called, ...readPage(page, slots) };
  if (recent.size >= MAX_RECENT) recent.delete(recent.keys().next().value!);
  recent.set(key, reading);
  return reading;
}

/** An objective in words, its slots as `q1`, `q2`, … */
function renderObjective(objective: string, slots: readonly string[]): string[] {
  const goal: string[] = [];
  const addWords = (text: string) => {
    for (const word of text.toLowerCase().match(/[a-z]+/g) ?? []) goal.push(WORDS.has(word) ? word : 'other');
  };
  let from = 0;
  for (const found of objective.matchAll(SLOT)) {
    addWords(objective.slice(from, found.index));
    from = found.index + found[0].length;
    const at = slots.indexOf((found[1] ?? found[0]).toLowerCase());
    goal.push(at >= 0 ? slotWord(at) : 'other');
  }
  addWords(objective.slice(from));
  return goal;
}

function slotWord(at: number): string {
  return `q${at + 1}`;
}

/** Place of a word among the slots, from 0; −1 for another word. */
function slotOf(word: string): number {
  return /^q\d$/.test(word) ? Number(word[1]) - 1 : -1;
}

const TYPES: readonly (readonly [RegExp, string])[] = [
  [/^\$[\d,]+(?:\.\d+)?$/, 'money'],
  [/^\d{4}-\d{2}-\d{2}$/, 'date'],
  [/^[\d,.]+ k?m$/, 'distance'],
  [/^\d+ (?:minutes?|hours?)$/, 'minutes'],
  [/^\d+$/, 'number'],
];

/** A name in words: a slot, a type, or the sites' own words with slots and numbers among them; else `other`. */
function renderName(name: string, slots: readonly string[]): readonly string[] {
  const lower = name.toLowerCase().trim();
  if (lower === '') return [];
  const exact = slots.indexOf(lower);
  if (exact >= 0) return [slotWord(exact)];
  return slots.some((slot) => slot.length > 2 && lower.includes(slot)) ? inWords(lower, slots) : plainWords(lower);
}

/** Words of names without slots, by name: pages come again. */
const plain = new Map<string, readonly string[]>();
const MAX_PLAIN = 4096;

function plainWords(lower: string): readonly string[] {
  const known = plain.get(lower);
  if (known) return known;
  const type = TYPES.find(([pattern]) => pattern.test(lower))?.[1];
  const words = type === undefined ? inWords(lower, []) : [type];
  if (plain.size >= MAX_PLAIN) plain.clear();
  plain.set(lower, words);
  return words;
}

function inWords(lower: string, slots: readonly string[]): readonly string[] {
  let text = lower;
  for (const [i, slot] of slots.entries()) if (slot.length > 2) text = text.replaceAll(slot, ` ${slotWord(i)} `);
  const words = text.match(/q\d\b|[a-z]+|\d+/g) ?? [];
  const known = words.map((word) =>
    slotOf(word) >= 0 || WORDS.has(word) ? word : /\d/.test(word) ? 'number' : 'other',
  );
  if (!known.includes('other')) return known.slice(0, MAX_WORDS);
  const found = known.filter((word) => slotOf(word) >= 0);
  return found.length > 0 ? ['other', 'with', ...found] : ['other'];
}

const LINE = /^(\t*)\[(\d+)\] (\S+) (?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")(.*)$/;
const FIELDS = new Set(['textbox', 'searchbox', 'spinbutton']);

function readPage(page: string, slots: readonly string[]): Omit<Reading, 'goal' | 'stems' | 'slots' | 'called'> {
  const elements = new Map<string, Element>();
  const table = new TableReader();
  const notices: string[] = [];
  let title: readonly string[] = [];
  let before: Element | undefined;
  let depth = 0;
  for (const line of page.split('\n')) {
    const [, tabs, id, role, single, double, rest = ''] = LINE.exec(line) ?? [];
    if (id === undefined || role === undefined) continue;
    const name = single ?? double ?? '';
    if (role === 'RootWebArea') title = renderTitle(name, slots);
    const words = renderName(name, slots);
    const element: Element = { role, name, words, place: [], holds: findHeldSlots(role, rest, slots) };
    // A text of the site's own words is the label of what follows it.
    if (before?.role === 'StaticText' && isLabel(before.words)) element.place = ['by', ...before.words.slice(0, 3)];
    // Only what stands inside is a field's text: after an empty one comes the label of the next.
    if (role === 'StaticText' && before && tabs!.length > depth) {
      if (FIELDS.has(before.role)) before.holds = words;
      if (before.role === 'status' || before.role === 'alert') append(notices, words);
    }
    table.take(tabs!.length, element);
    elements.set(id, element);
    before = element;
    depth = tabs!.length;
  }
  table.end();
  return { elements, title, notices: notices.slice(0, MAX_WORDS) };
}

function isLabel(words: readonly string[]): boolean {
  return words.length > 0 && !words.includes('other') && !words.includes('number') && slotOf(words[0]!) < 0;
}

/** `Orders - Harbour Store`: the page's own part, then the site's last word. */
function renderTitle(title: string, slots: readonly string[]): readonly string[] {
  const parts = title.split(/ [-|·/] /);
  const site = renderName(parts.length > 1 ? parts.at(-1)! : '', slots);
  return [...renderName(parts[0]!, slots), ...site.slice(-1)];
}

function findHeldSlots(role: string, rest: string, slots: readonly string[]): readonly string[] {
  if (role === 'checkbox' || role === 'radio') return [/ checked: true/.test(rest) ? 'on' : 'off'];
  if (role === 'option') return / selected: True/.test(rest) ? ['on'] : [];
  const value = role === 'combobox' ? / value: (?:'([^']*)'|"([^"]*)")/.exec(rest) : null;
  return value ? renderName(value[1] ?? value[2] ?? '', slots) : [];
}

/** Places of what stands in a table: the column's header, the number of the row, and the slots that the row names. */
class TableReader {
  #tableDepth = -1;
  #rowDepth = -1;
  #rows = 0;
  #column = 0;
  #headers: (readonly string[])[] = [];
  #row: { readonly element: Element; readonly column: number }[] = [];

  /** Takes a line; its place is known at the row's end. */
  take(depth: number, element: Element): void {
    if (this.#rowDepth >= 0 && depth <= this.#rowDepth) this.end();
    if (this.#tableDepth >= 0 && depth <= this.#tableDepth) this.#tableDepth = -1;
    const { role } = element;
    if (role === 'table') {
      this.#tableDepth = depth;
      this.#rows = 0;
      this.#headers = [];
    } else if (role === 'row') {
      this.#rowDepth = depth;
      this.#column = 0;
    } else if (role === 'columnheader') this.#headers.push(element.words);
    else if (this.#rowDepth >= 0) {
      if (role === 'cell') this.#column++;
      this.#row.push({ element, column: this.#column - 1 });
    }
  }

  end(): void {
    if (this.#row.length > 0) {
      this.#rows++;
      const named = new Set(this.#row.flatMap(({ element }) => element.words.filter((word) => slotOf(word) >= 0)));
      for (const { element, column } of this.#row) {
        const others = [...named].filter((word) => !element.words.includes(word));
        const header = this.#headers[column] ?? [];
        const number = String(Math.min(this.#rows, MAX_ROWS));
        element.place = ['in', ...header.slice(0, 2), 'row', number, ...(others.length > 0 ? ['with', ...others] : [])];
      }
    }
    this.#row = [];
    this.#rowDepth = -1;
  }
}

/** An action in words, and what else a candidate shows. */
interface Act {
  readonly words: readonly string[];
  readonly about: readonly string[];
}

const VERBS: Readonly<Record<string, string>> = {
  button: 'press',
  combobox: 'open',
  option: 'option',
  checkbox: 'check',
  radio: 'check',
};

const ACTION = /^(click|type|hover) \[(\d+)\](?: \[([\s\S]*)\] \[([01])\])?$/;

function actOf(action: string, reading: Reading): Act {
  const [, verb, id, text, enter] = ACTION.exec(action) ?? [];
  if (id === undefined) {
    const about = placeOfAnswer(action, reading);
    return { words: listOtherWords(action, reading), about: [...about, ...findNamedWords(about, reading)] };
  }
  const on = reading.elements.get(id);
  if (!on) return { words: ['click', 'other'], about: [] };
  const holds = on.holds.length > 0 ? ['holds', ...on.holds] : [];
  if (verb === 'type') {
    const typed = text === undefined ? [] : renderName(text, reading.slots);
    const words = ['type', ...on.words, ...typed, ...(enter === '1' ? ['enter'] : [])];
    return { words, about: [...findCallingWords(text, on, reading), ...holds] };
  }
  return {
    words: [VERBS[on.role] ?? 'link', ...on.words],
    about: [...on.place, ...findNamedWords(on.words, reading), ...holds],
  };
}

/** `named` for words of which the objective has one, the commonest apart. */
function findNamedWords(words: readonly string[], { stems }: Reading): readonly string[] {
  return words.some((word) => stems.has(stem(word))) ? ['named'] : [];
}

/** Words by which the objective calls a text that a field is given: `named` where the field is called so, else its words. */
function findCallingWords(text: string | undefined, on: Element, { called, slots }: Reading): readonly string[] {
  const slot = called[slots.indexOf((text ?? '').toLowerCase())];
  if (!slot) return [];
  if (isCalled(slot, on.name)) return ['named'];
  return ['as', ...slot.called.slice(0, 2).map((word) => (WORDS.has(word) ? word : 'other'))];
}

function listOtherWords(action: string, { slots }: Reading): string[] {
  const given = /^stop \[([\s\S]*)\]$/.exec(action)?.[1];
  if (given === '') return ['stop'];
  if (given === 'N/A') return ['answer', 'none'];
  if (given !== undefined) return ['answer', ...renderName(given, slots)];
  if (action.startsWith('goto')) return ['home'];
  return (action.toLowerCase().match(/[a-z]+|\d+/g) ?? []).map((word) => (/\d/.test(word) ? 'number' : word));
}

/** Place of an answer on the page: the first place that shows it, and how many values come before it there. */
function placeOfAnswer(action: string, { elements, slots }: Reading): readonly string[] {
  const given = /^stop \[([\s\S]+)\]$/.exec(action)?.[1];
  if (given === undefined) return [];
  let inside: Element | undefined;
  for (const element of elements.values()) {
    if (element.name === given && element.place.length > 0) return element.place;
    if (!inside && standsAlone(given, element.name)) inside = element;
  }
  if (!inside) return [];
  if (inside.name === given) return [inside.role === 'heading' ? 'heading' : 'link'];
  const at = (inside.name.slice(0, inside.name.indexOf(given)).match(/\d+/g) ?? []).length;
  return ['of', ...renderName(inside.name, slots), String(at + 1)];
}

/** True if a text has another in it, and not as a piece of a longer number or word. */
function standsAlone(part: string, text: string): boolean {
  const at = text.indexOf(part);
  return at >= 0 && !/[\w.$-]/.test(text[at - 1] ?? '') && !/[\w-]/.test(text[at + part.length] ?? '');
}

function candidate(action: string, memory: Memory): string {
  const { words, about } = actOf(action, readingOf(memory));
  const times = memory.done[words.join(' ')] ?? 0;
  return [...words, ...about, ...(times > 0 ? ['again', String(Math.min(times, MAX_AGAIN))] : [])].join(' ');
}

function render(first: First, _turns: readonly SeenTurn[], state?: Memory): Rendered {
  const memory = state ?? begin(first);
  const reading = readingOf(memory);
  const { goal, title, notices, elements } = reading;
  const segments = ['goal'];
  const wordAt = goal.map((word) => {
    segments.push(` ${word}`);
    const at = segments.length - 1;
    if (memory.used.includes(slotOf(word))) segments.push(' used');
    return at;
  });
  const put = (words: readonly string[]) => segments.push(` | ${words.join(' ')}`);
  put(['at', ...title]);
  if (notices.length > 0) put(['note', ...notices]);
  const fields = [...elements.values()].filter(({ role, holds }) => SHOWN.has(role) && (holds[0] ?? 'off') !== 'off');
  for (const { words, holds } of fields.slice(0, MAX_FIELDS)) put(['holds', ...words, ...holds]);
  for (const text of memory.trail) put(['did', text]);
  if (memory.inStage) put(['choose']);
  return {
    segments,
    focus: goal.join(' '),
    mentions(action) {
      const { words, about } = actOf(action, reading);
      // What a field holds already is not what the action is about.
      const held = about.indexOf('holds');
      const meant = [...words, ...(held < 0 ? about : about.slice(0, held))];
      const slots = new Set(meant.filter((word) => slotOf(word) >= 0));
      const stems = new Set(meant.map(stem).filter((word) => reading.stems.has(word)));
      return goal.flatMap((word, i) => (slots.has(word) || stems.has(stem(word)) ? [wordAt[i]!] : []));
    },
  };
}

const SHOWN = new Set([...FIELDS, 'combobox', 'checkbox']);

/** Words of the sites' labels and titles, and of objectives. */
const WORDS: ReadonlySet<string> = new Set(
  `store harbour admin postbox forge cartographer almanac home page found welcome no such site not
  my account wish list cart contact us search find categories apply sort by highest price with reviews rating position
  ascending descending name product products order orders date status total customer customers option quantity add to
  sku category back write a review stars your submit waiting for approval author text shipping standard express pick up
  place proceed checkout shopping empty is there nothing address street city postcode save newsletter general subscription
  you are subscribed email phone number reason message draft saved added needs question refund damage delivery was the items item
  dashboard choose section above in all menu filter month comment approve delete pending approved any keyword stock
  view shop bestsellers search terms term uses from show report yyyy mm dd sold give both months
  posts post title body forums forum settings sort hot new top upvote downvote retract vote votes comments subscribe
  unsubscribe user block unblock biography create results profile
  project projects issue issues merge request requests commits contributors members milestones label labels assignee
  state open closed close reopen assign due clone ssh http https star unstar fork invite role guest reporter developer
  maintainer start milestone update stars owner
  map go places kind mode directions near this route time distance on foot car bike to first last next previous of
  coordinates opening hours fact value facts articles article everywhere titles only whole history
  what how many has got it which did i spend complete canceled processing cheapest best selling have mention word
  raise percent set change newest often used birthday who wrote negative written most expensive make made command
  assigned far does take can get within minutes longer than nearest entrance fee whose architect founded thanks its as
  repository warranty me sorted result about long contributor an much spend assigned nobody email called author person who customer own wish yes no its than between and or at one between count`
    .split(/\s+/)
    .filter((word) => word !== ''),
);

/** Words of objectives that name nothing by themselves. */
const COMMON = new Set(
  `other number the a an of to in on with and or for from by at is are was it its my your i me what who which how many much
  long often has have got did does do can get not yes no than most first last between up about one all`.split(/\s+/),
);

/** Words of the view itself. */
const OWN =
  'goal | at note holds did choose other with number money date distance minutes by in row of link press open option check type enter click hover answer none stop home fail again heading on off cancel more scroll down go back forward tab focus new close rows named as used'.split(
    ' ',
  );

export const view: WindowView<Memory> = {
  id: 'webarena/page@3',
  mode: 'window',
  lexicon: [],
  words: [...new Set([...OWN, ...Array.from({ length: MAX_SLOTS }, (_, i) => slotWord(i)), ...WORDS])],
  track: { begin, reduce: updateMemory },
  candidate,
  render,
};
