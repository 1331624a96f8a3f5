/**
 * Text that the local policy reads: the objective, the last actions, and the page's lines without numbers; each listed
 * action as what it acts on.
 *
 *     goal what is the price of urban oak lamp | type search urban oak lamp enter | link urban oak lamp … text 34 50
 */
import type { First } from '../../src/core/env.ts';
import type { Rendered, SeenTurn, WindowView } from '../../src/core/view.ts';
import { readTurn } from './describe.ts';
import * as lists from './worlds/words.ts';

/** Actions of the past that are shown, lines of the page, words of a line. */
const REMEMBERED = 6;
const MAX_LINES = 72;
const MAX_WORDS = 10;

interface Memory {
  readonly goal: string;
  readonly trail: readonly string[];
  /** Text of the page as it is now. */
  readonly page: string;
}

interface Line {
  readonly id: string;
  readonly role: string;
  readonly name: string;
  readonly state: string;
}

const LINE = /^\t*\[(\d+)\] (\S+) (?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")(.*)$/;

/** Lines of the pages read last: each listed action asks for them. */
const read = new Map<string, readonly Line[]>();
const MAX_READ = 64;

function linesOf(page: string): readonly Line[] {
  const known = read.get(page);
  if (known) return known;
  const lines = parseLines(page);
  read.set(page, lines);
  if (read.size > MAX_READ) read.delete(read.keys().next().value!);
  return lines;
}

function parseLines(page: string): Line[] {
  const lines: Line[] = [];
  for (const text of page.split('\n')) {
    const [, id, role, single, double, rest = ''] = LINE.exec(text) ?? [];
    if (id === undefined) continue;
    const state = [
      /checked: true/.test(rest) ? 'on' : '',
      /focused/.test(rest) ? 'here' : '',
      /value: '([^']*)'/.exec(rest)?.[1] ?? '',
    ];
    lines.push({ id, role: role!, name: single ?? double ?? '', state: state.filter((word) => word !== '').join(' ') });
  }
  return lines;
}

/** Words of a text that have a token, numbers in pieces of two digits, `other` for what is left. */
function plainAll(text: string): string {
  const parts = text.toLowerCase().match(/[a-z]+|\d+/g) ?? [];
  return parts
    .map((part) => (/\d/.test(part) ? part.match(/[1-9]\d|\d/g)!.join(' ') : known.has(part) ? part : 'other'))
    .join(' ');
}

/** The beginning of a text in such words. */
function plain(text: string): string {
  return plainAll(text).split(' ').slice(0, MAX_WORDS).join(' ');
}

const ROLES: Readonly<Record<string, string>> = { StaticText: 'text', searchbox: 'textbox', RootWebArea: 'page' };

function lineText({ role, name, state }: Line): string {
  return [ROLES[role] ?? plain(role), plain(name), plain(state)].filter((part) => part !== '').join(' ');
}

/** An action in words: what is clicked, what is typed where. */
function inWords(action: string, lines: readonly Line[]): string {
  const [, verb = '', id, text = '', enter] =
    /^(\w+)(?: \[(\d+)\])?(?: ?\[([\s\S]*?)\])?(?: \[([01])\])?$/.exec(action) ?? [];
  const on = lines.find((line) => line.id === id);
  if (verb === 'stop') return `stop ${plain(/\[([\s\S]*)\]/.exec(action)?.[1] ?? '')}`.trim();
  if (verb === 'click' || verb === 'type') {
    return [verb, on ? lineText(on) : '', plain(text), enter === '1' ? 'enter' : '']
      .filter((part) => part !== '')
      .join(' ');
  }
  return plain(action);
}

function begin({ observation }: First): Memory {
  const turn = readTurn(observation);
  return { goal: turn?.objective ?? '', trail: [], page: turn?.observation ?? observation };
}

function after(memory: Memory, { action, observation, partial }: SeenTurn): Memory {
  if (partial) return { ...memory, trail: [...memory.trail, `${inWords(action, linesOf(memory.page))} ?`] };
  const turn = readTurn(observation);
  const done = `${inWords(action, linesOf(memory.page))}${turn && turn.error === '' ? '' : ' fail'}`;
  const trail = [...memory.trail.filter((text) => !text.endsWith('?')), done].slice(-REMEMBERED);
  return { ...memory, trail, page: turn?.observation ?? memory.page };
}

function render(first: First, _turns: readonly SeenTurn[], state?: unknown): Rendered {
  const memory = (state as Memory | undefined) ?? begin(first);
  const goal = plainAll(memory.goal);
  const lines = linesOf(memory.page).slice(0, MAX_LINES);
  const head = [`goal ${goal}`, ...memory.trail.map((text) => ` | ${text.replace('?', 'stage')}`), ' |'];
  const at = new Map(lines.map(({ id }, i) => [id, head.length + i]));
  return {
    segments: [...head, ...lines.map((line) => ` ${lineText(line)}`)],
    focus: goal,
    mentions(action) {
      const place = at.get(/^(?:click|type) \[(\d+)\]/.exec(action)?.[1] ?? '');
      return place === undefined ? [] : [place];
    },
  };
}

/** Every word of the sites' own lists, and those of pages, roles and objectives. */
const WORDS =
  `goal stage fail here other mail test on text page link button textbox combobox option checkbox radio heading status alert
  main navigation form table row cell columnheader list listitem article dialog search image click type stop scroll up
  down go back answer more cancel enter tab focus close na yes no none nobody
  what is the price of how many reviews has got my last order with number date much did i spend complete orders in which
  category rating above show me sorted by for and open first result add to wish change save a draft shop about reason
  message address street city postcode review stars long warranty total sku most expensive product subscribe newsletter
  best selling from have mention word email customer phone set stock raise percent approve pending delete comment newest
  often was term used canceled birthday who wrote post forum comments negative votes written author top upvote downvote
  create title body biography block commits made project contributor command clone ssh http issues label closed assigned
  due issue merge request invite role milestone fork status user owner far it take can get within minutes longer than
  route nearest on foot bike car coordinates opening hours entrance fee results does give place whose architect founded
  thanks name as its cart account wishlist contact us find sort highest apply quantity added proceed checkout shipping
  standard express pick refund damage delivery question address order items options filter month customers products
  reports bestsellers terms dashboard keyword submit settings new hot board members milestones profile directions near
  kind distance time previous next found welcome your you are signed choose position ascending descending`
    .split(/\s+/)
    .filter((word) => word !== '');

function lexicon(): string[] {
  const all = [
    ...Object.values(lists).flatMap((list) =>
      list.flatMap((item: unknown) => (typeof item === 'string' ? [item] : Object.values(item as object).flat())),
    ),
    ...WORDS,
  ];
  return [
    ...new Set(
      all.flatMap((text) =>
        String(text)
          .toLowerCase()
          .split(/[^a-z0-9]+/),
      ),
    ),
  ]
    .filter((word) => /^[a-z]+$/.test(word))
    .sort();
}

const known = new Set(lexicon());

export const view: WindowView = {
  id: 'webarena/page@1',
  mode: 'window',
  lexicon: [],
  words: [...known, '|'],
  track: { begin, after: (state, turn) => after(state as Memory, turn) },
  candidate: (action, state) => inWords(action, linesOf((state as Memory | undefined)?.page ?? '')),
  render,
};
