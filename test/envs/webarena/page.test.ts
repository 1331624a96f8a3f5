/** View trees, their accessibility nodes and their HTML: one cell of each kind, and the rows they stand in. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { htmlOf } from '../../../envs/webarena/html.ts';
import { cellOfId, nodesOf, type PageState } from '../../../envs/webarena/nodes.ts';
import * as build from '../../../envs/webarena/page.ts';
import { printTree } from '../../../envs/webarena/tree.ts';

const UNTOUCHED: PageState = { values: new Map(), focused: -1 };
const URL = 'http://shop.test/a';

/** Lines of a page as it is printed, without the root. */
function printed(page: build.Page, state: PageState = UNTOUCHED): string[] {
  const nodes = nodesOf(build.layoutOf(page), URL, state);
  return printTree(nodes, { fidelity: 'corrected', dialect: 'chromium', screen: [1280, 1e6] })
    .text.split('\n')
    .slice(1);
}
const one = (cell: build.CellLike, state?: PageState) => printed(build.page('T', build.row(cell)), state);

describe('a cell', () => {
  it.each<[build.CellLike, string[], string]>([
    ['plain', ["\t[c0] StaticText 'plain'"], '<span>plain</span>'],
    [7, ["\t[c0] StaticText '7'"], '<span>7</span>'],
    ['', [], '<span></span>'],
    [
      build.status('Saved.'),
      ["\t[c0] status '' live: polite atomic: True relevant: additions text", "\t\t[c0t] StaticText 'Saved.'"],
      '<div role="status">Saved.</div>',
    ],
    [build.heading('H', 2), ["\t[c0] heading 'H'"], '<h2>H</h2>'],
    [build.link('Go', '/b'), ["\t[c0] link 'Go' url: http://shop.test/b"], '<a href="/b">Go</a>'],
    [
      build.linkInNewTab('Map', 'http://map.test/'),
      ["\t[c0] link 'Map' url: http://map.test/"],
      '<a href="http://map.test/" target="_blank">Map</a>',
    ],
    [build.button('Buy', 'n', 'v'), ["\t[c0] button 'Buy'"], '<button name="n" value="v">Buy</button>'],
    [
      build.textbox('Name', 'n', 'Ada'),
      ["\t[c0] textbox 'Name' required: False", "\t\t[c0t] StaticText 'Ada'"],
      '<input type="text" name="n" aria-label="Name" value="Ada">',
    ],
    [
      build.textbox('Name', 'n'),
      ["\t[c0] textbox 'Name' required: False"],
      '<input type="text" name="n" aria-label="Name" value="">',
    ],
    [
      build.searchbox('Find', 'q'),
      ["\t[c0] searchbox 'Find'"],
      '<input type="search" name="q" aria-label="Find" value="">',
    ],
    [
      build.checkbox('On', 'c', true),
      ["\t[c0] checkbox 'On' checked: true"],
      '<input type="checkbox" name="c" aria-label="On" checked>',
    ],
    [
      build.radio('R', 'r', '1', false),
      ["\t[c0] radio 'R' checked: false"],
      '<input type="radio" name="r" value="1" aria-label="R">',
    ],
    [
      build.select('Sort', 's', ['A', 'B'], 'B'),
      ["\t[c0] combobox 'Sort' hasPopup: menu expanded: False value: 'B'"],
      '<select name="s" aria-label="Sort"><option>A</option><option selected>B</option></select>',
    ],
  ])('%j', (cell, lines, html) => {
    expect(one(cell)).toEqual(lines);
    expect(htmlOf(build.page('T', build.row(cell)))).toContain(`<div class="r">${html}</div>`);
  });

  it('of a select holds one of its options', () => {
    expect(build.select('S', 's', ['A', 'B'], 'Z')).toMatchObject({ value: 'A' });
    expect(build.select('S', 's', [], 'Z')).toMatchObject({ value: '' });
  });
});

describe('changed cells', () => {
  const state = (value: string, focused = -1): PageState => ({ values: new Map([[0, value]]), focused });

  it.each<[build.Cell, string, string]>([
    [build.textbox('N', 'n', 'old'), 'new', "\t\t[c0t] StaticText 'new'"],
    [build.checkbox('C', 'c', false), 'on', "\t[c0] checkbox 'C' checked: true"],
    [build.checkbox('C', 'c', true), '', "\t[c0] checkbox 'C' checked: false"],
    [build.select('S', 's', ['A', 'B'], 'A'), 'B', "\t[c0] combobox 'S' hasPopup: menu expanded: False value: 'B'"],
  ])('%j set to %j', (cell, value, line) => {
    expect(one(cell, state(value)).at(-1)).toBe(line);
  });

  it('show the focus first of all', () => {
    expect(one(build.textbox('N', 'n'), state('x', 0))[0]).toBe("\t[c0] textbox 'N' focused: True required: False");
    expect(one(build.button('B'), { values: new Map(), focused: 0 })[0]).toBe("\t[c0] button 'B' focused: True");
  });

  it('share the nodes of all others with the page as it was', () => {
    const layout = build.layoutOf(build.page('T', build.row('a', build.textbox('N', 'n')), build.row('b')));
    const before = nodesOf(layout, URL, UNTOUCHED);
    const after = nodesOf(layout, URL, { values: new Map([[1, 'x']]), focused: -1 });
    expect(nodesOf(layout, URL, UNTOUCHED)).toBe(before);
    const different = before.filter((node, i) => node !== after[i]).map(({ id }) => id);
    expect(different).toEqual(['c1', 'c1t']);
  });
});

describe('groups', () => {
  it('stand around their rows', () => {
    const page = build.page(
      'T',
      build.nav('Menu', build.link('A', '/a'), build.link('B', '/b')),
      build.main('Title', build.list('Things', [['one'], ['two']])),
      build.table('Rows', ['X'], [['1']]),
      build.form('post', '/send', { h: '1' }, build.row(build.button('Go'))),
    );
    expect(printed(page).map((line) => line.replace(/\[\w+\] /, ''))).toEqual([
      "\tnavigation 'Menu'",
      "\t\tlink 'A' url: http://shop.test/a",
      "\t\tlink 'B' url: http://shop.test/b",
      "\tmain ''",
      "\t\theading 'Title'",
      "\t\tlist 'Things'",
      "\t\t\tStaticText 'one'",
      "\t\t\tStaticText 'two'",
      "\ttable 'Rows'",
      "\t\trow ''",
      "\t\t\tcolumnheader 'X' required: False",
      "\t\trow ''",
      "\t\t\tcell '1'",
      "\tform ''",
      "\t\tbutton 'Go'",
    ]);
    const html = htmlOf(page);
    expect(html).toContain('<nav aria-label="Menu">');
    expect(html).toContain(
      '<div role="list" aria-label="Things"><div class="r" role="listitem"><span>one</span></div>',
    );
    expect(html).toContain(
      '<form action="/send" method="post" autocomplete="off"><input type="hidden" name="h" value="1">',
    );
  });

  it('of many links take a row for each eight', () => {
    const links = Array.from({ length: 17 }, (_, i) => build.link(`L${i}`, '/'));
    expect(build.layoutOf(build.page('T', build.nav('N', ...links))).rows.map(({ length }) => length)).toEqual([
      8, 8, 1,
    ]);
  });

  it('span the rows they hold', () => {
    const page = build.page('T', build.row('a'), build.list('L', [['b'], ['c']]), build.row('d'));
    const group = nodesOf(build.layoutOf(page), URL, UNTOUCHED).find(({ role }) => role === 'list')!;
    expect(group.rect).toEqual([0, build.ROW, 1280, 2 * build.ROW]);
  });
});

describe('places', () => {
  it('share a row equally, a row after a row', () => {
    const { cells } = build.layoutOf(build.page('T', build.row('a', 'b'), build.row('c', 'd', 'e', 'f')));
    expect(cells.map(({ row, x, width }) => [row, x, width])).toEqual([
      [0, 0, 640],
      [0, 640, 640],
      [1, 0, 320],
      [1, 320, 320],
      [1, 640, 320],
      [1, 960, 320],
    ]);
  });

  it('know the form around them, the inner of two', () => {
    const inner = build.form('get', '/b', {}, build.row(build.button('B')));
    const { cells } = build.layoutOf(
      build.page('T', build.form('post', '/a', {}, build.row('x'), inner), build.row('y')),
    );
    expect(cells.map(({ form }) => form?.action)).toEqual(['/a', '/b', undefined]);
  });

  it.each([
    [1, 0],
    [30, 0],
    [31, 24],
    [100, 70 * 24],
  ])('of %i rows scroll by up to %i pixels', (rows, most) => {
    const page = build.page('T', ...Array.from({ length: rows }, () => build.row('x')));
    expect(build.maxScroll(build.layoutOf(page))).toBe(most);
  });

  it('are found again by the number of a node', () => {
    expect(cellOfId('c12')).toEqual({ index: 12 });
    expect(cellOfId('c12t')).toEqual({ index: 12 });
    expect(cellOfId('c12o3')).toEqual({ index: 12, option: 3 });
    for (const id of ['g1', 'r2', 'd3', 'root', 'c', 'c1x']) expect(cellOfId(id)).toBeUndefined();
  });
});

describe('HTML', () => {
  it('lets no value end its attribute', () => {
    const forged = `a" onfocus="alert(1)' x='`;
    const html = htmlOf(build.page('T', build.row(build.textbox(forged, 'n', forged), build.link('x', forged))));
    const escaped = 'a&#34; onfocus=&#34;alert(1)&#39; x=&#39;';
    expect(html).toContain(`<input type="text" name="n" aria-label="${escaped}" value="${escaped}">`);
    expect(html).toContain(`<a href="${escaped}">x</a>`);
  });

  it('holds every text as text, whatever it contains', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const html = htmlOf(build.page(text, build.row(text, build.link(text, text), build.textbox(text, text, text))));
        const body = html.slice(html.indexOf('<body>'), html.indexOf('<script>'));
        const tags = body.replace(/&#\d+;/g, '').match(/<\/?[a-z]+/g);
        expect(tags).toEqual(['<body', '<div', '<span', '</span', '<a', '</a', '<input', '</div']);
      }),
    );
  });
});
