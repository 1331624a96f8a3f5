/** Printing of accessibility trees: which nodes are shown, how deep, under which numbers, and what is left out. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AxNode, observationText, type PrintOptions, printTree } from '../../../envs/webarena/tree.ts';

const IN_VIEW = [0, 0, 100, 24] as const;

function node(id: string, role: string | undefined, name: string | undefined, rest: Partial<AxNode> = {}): AxNode {
  return { id, childIds: [], inDom: true, role, name, properties: [], rect: IN_VIEW, ...rest };
}

const OPTIONS: PrintOptions = { fidelity: 'corrected', dialect: 'chromium', screen: [1280, 720] };
const print = (nodes: readonly AxNode[], options: Partial<PrintOptions> = {}) =>
  printTree(nodes, { ...OPTIONS, ...options });
const lines = (nodes: readonly AxNode[], options: Partial<PrintOptions> = {}) => print(nodes, options).text.split('\n');

/** A root over these nodes. */
const under = (...children: readonly AxNode[]): AxNode[] => [
  node('9', 'RootWebArea', 'T', { childIds: children.map(({ id }) => id), rect: [0, 0, 10, 10] }),
  ...children,
];

describe('a line', () => {
  it.each([
    ['button', 'Buy', [], "button 'Buy'"],
    ['button', "It's", [], 'button "It\'s"'],
    ['link', 'Edit', [['url', 'http://a.b']], "link 'Edit' url: http://a.b"],
    [
      'textbox',
      'Name',
      [
        ['focused', true],
        ['required', false],
      ],
      "textbox 'Name' focused: True required: False",
    ],
    ['checkbox', 'On', [['checked', 'false']], "checkbox 'On' checked: false"],
    ['slider', 'S', [['valuemin', 1]], "slider 'S' valuemin: 1"],
    ['spinbutton', 'N', [['valuetext', '']], "spinbutton 'N' valuetext: "],
    ['tab', 'A', [['labelledby', undefined]], "tab 'A'"],
    ['heading', 'H', [['level', 2]], "heading 'H'"],
    [
      'textbox',
      'E',
      [
        ['focusable', true],
        ['editable', 'x'],
        ['readonly', false],
        ['settable', true],
        ['multiline', false],
        ['invalid', 'false'],
      ],
      "textbox 'E'",
    ],
    ['heading', '\ue604 A\u00a0B', [], "heading '\\ue604 A\\xa0B'"],
    ['link', 'naïve 漢字 😀', [], "link 'naïve 漢字 😀'"],
  ] as const)('of a %s %j is printed', (role, name, properties, expected) => {
    const made = node('1', role, name, { properties: properties as never });
    expect(lines(under(made))[1]).toBe(`\t[1] ${expected}`);
  });

  it('in the dialect of 2023 has no addresses, and pictures are img', () => {
    const nodes = under(
      node('1', 'link', 'Edit', { properties: [['url', 'http://a.b']] }),
      node('2', 'image', 'Cat'),
      node('3', 'image', ''),
    );
    expect(lines(nodes, { dialect: '2023' }).slice(1)).toEqual(["\t[1] link 'Edit'", "\t[2] img 'Cat'"]);
    expect(lines(nodes).slice(1)).toEqual(["\t[1] link 'Edit' url: http://a.b", "\t[2] image 'Cat'", "\t[3] image ''"]);
  });

  it('of a select shows its value where corrected', () => {
    const nodes = under(node('1', 'combobox', 'Sort', { value: 'Name' }));
    expect(lines(nodes)[1]).toBe("\t[1] combobox 'Sort' value: 'Name'");
    expect(lines(nodes, { fidelity: 'original' })[1]).toBe("\t[1] combobox 'Sort'");
  });
});

describe('nodes that print nothing', () => {
  it.each([
    'generic',
    'img',
    'list',
    'strong',
    'paragraph',
    'banner',
    'navigation',
    'Section',
    'LabelText',
    'Legend',
    'listitem',
  ])('%s without a name lets its children take its place', (role) => {
    const [root, outer, inner] = [
      node('9', 'RootWebArea', 'T', { childIds: ['1'], rect: [0, 0, 10, 10] }),
      node('1', role, ' ', { childIds: ['2'] }),
      node('2', 'button', 'B'),
    ];
    expect(lines([root, outer, inner]).slice(1)).toEqual(["\t[2] button 'B'"]);
    const named = [root, { ...outer, name: 'N' }, inner];
    expect(lines(named).slice(1)).toEqual([`\t[1] ${role} 'N'`, "\t\t[2] button 'B'"]);
  });

  it.each(['main', 'article', 'form', 'table', 'row', 'image', 'emphasis', 'code'])(
    'but %s is printed without a name',
    (role) => {
      expect(lines(under(node('1', role, '')))[1]).toBe(`\t[1] ${role} ''`);
    },
  );

  it('a nameless part with a property is printed, unless it is a list item', () => {
    const live = { properties: [['live', 'polite']] as never };
    expect(lines(under(node('1', 'generic', '', live)))[1]).toBe("\t[1] generic '' live: polite");
    expect(lines(under(node('1', 'listitem', '', live)))).toHaveLength(1);
  });

  it.each([
    ['no role', node('1', undefined, 'x')],
    ['no name', node('1', 'button', undefined)],
    ['no place in the document', node('1', 'button', 'x', { inDom: false })],
    ['no rectangle', node('1', 'button', 'x', { rect: null })],
    ['no width', node('1', 'button', 'x', { rect: [0, 0, 0, 24] })],
    ['no height', node('1', 'button', 'x', { rect: [0, 0, 24, 0] })],
  ])('with %s', (_what, hidden) => {
    for (const fidelity of ['original', 'corrected'] as const)
      expect(lines(under(hidden), { fidelity })).toHaveLength(1);
  });
});

describe('the viewport', () => {
  const shown = (rect: AxNode['rect'], fidelity: 'original' | 'corrected') =>
    print(under(node('1', 'button', 'B', { rect })), { fidelity }).has('1');

  it.each([
    ['whole', [0, 0, 300, 30], true, true],
    ['a pixel of it', [0, 719.7, 300, 30], true, false],
    ['half of it', [0, 705, 300, 30], true, true],
    ['less than half of it', [0, 706, 300, 30], true, false],
    ['below', [0, 720, 300, 30], false, false],
    ['right of it', [1280, 0, 300, 30], false, false],
    ['above', [0, -30, 300, 30], false, false],
    ['a point for screen readers', [5, 5, 1, 1], true, true],
    ['a hair line', [0, 10, 1280, 0.4], false, true],
    ['a line of a pixel', [0, 10, 1280, 1], true, true],
    ['larger than the screen', [0, -500, 1280, 5000], true, true],
  ] as const)('%s: original %#, corrected by share', (_what, rect, original, corrected) => {
    expect([shown(rect, 'original'), shown(rect, 'corrected')]).toEqual([original, corrected]);
  });

  it('moves with scrolling, but for the root', () => {
    const nodes = under(node('1', 'button', 'B', { rect: [0, 1000, 300, 24] }));
    expect(print(nodes).ids).toEqual(['9']);
    expect(print(nodes, { scrolled: 720 }).ids).toEqual(['9', '1']);
    expect(print(nodes, { scrolled: 1500 }).ids).toEqual(['9']);
  });
});

describe('repeated texts', () => {
  it('are left out by the parent’s name where corrected', () => {
    const nodes = [
      node('9', 'RootWebArea', 'T', { childIds: ['1', '4'], rect: [0, 0, 10, 10] }),
      node('1', 'link', 'My Cart (2)', { childIds: ['2'] }),
      node('2', 'StaticText', 'My Cart'),
      node('4', 'StaticText', '2'),
    ];
    expect(lines(nodes).slice(1)).toEqual(["\t[1] link 'My Cart (2)'", "\t[4] StaticText '2'"]);
  });

  it('are left out by any of three lines in the original, numbers and roles among them', () => {
    const texts = (...names: string[]) => under(...names.map((name, i) => node(String(40 + i), 'StaticText', name)));
    expect(lines(texts('abc', 'b', 'd'), { fidelity: 'original' }).slice(1)).toEqual([
      "\t[40] StaticText 'abc'",
      "\t[42] StaticText 'd'",
    ]);
    expect(lines(texts('x', '40'), { fidelity: 'original' })).toHaveLength(2);
    expect(lines(texts('abc', 'Q1', 'Q2', 'Q3', 'abc'), { fidelity: 'original' })).toHaveLength(6);
    expect(lines(texts('abc', 'Q1', 'Q2', 'abc'), { fidelity: 'original' })).toHaveLength(4);
  });

  it('can still be clicked', () => {
    const tree = print(under(node('40', 'StaticText', 'abc'), node('41', 'StaticText', 'b')), { fidelity: 'original' });
    expect(tree.text).not.toContain("'b'");
    expect([tree.has('41'), tree.get('41'), tree.nodeOf('41')?.name]).toEqual([true, "[41] StaticText 'b'", 'b']);
    expect([tree.has('99'), tree.get('99'), tree.nodeOf('99')]).toEqual([false, undefined, undefined]);
  });
});

describe('numbers', () => {
  const nodes = under(
    node('100', 'StaticText', 'first'),
    node('200', 'button', 'B'),
    node('300', 'StaticText', 'second'),
    node('400', 'link', 'L', { rect: [0, 5000, 10, 24] }),
  );

  it('count elements first, then texts, those out of view too', () => {
    expect(lines(nodes, { numbered: true })).toEqual([
      "[1] RootWebArea 'T'",
      "\t[4] StaticText 'first'",
      "\t[2] button 'B'",
      "\t[5] StaticText 'second'",
    ]);
  });

  it('stay as they are while the page is scrolled', () => {
    const scrolled = print(nodes, { numbered: true, scrolled: 4800 });
    expect(scrolled.nodeOf('3')?.name).toBe('L');
  });

  it('are all different', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('StaticText', 'button', 'generic', 'listitem'), { maxLength: 30 }),
        (roles) => {
          const { ids } = print(under(...roles.map((role, i) => node(`n${i}`, role, `text ${i}`))), { numbered: true });
          expect(new Set(ids).size).toBe(ids.length);
        },
      ),
    );
  });
});

describe('invalid trees', () => {
  it('with a circle end', () => {
    const nodes = [
      node('1', 'main', 'a', { childIds: ['2'] }),
      node('2', 'group', 'b', { childIds: ['1', '2', '3'] }),
      node('3', 'button', 'c'),
    ];
    expect(lines(nodes)).toEqual(["[1] main 'a'", "\t[2] group 'b'", "\t\t[3] button 'c'"]);
  });

  it('with one id twice print the first', () => {
    const nodes = [...under(node('1', 'button', 'first')), node('1', 'button', 'second')];
    expect(print(nodes).text).not.toContain('second');
  });

  it('without nodes are an empty text', () => {
    expect(print([]).text).toBe('');
  });

  it('with children that are missing go on without them', () => {
    expect(lines([node('9', 'RootWebArea', 'T', { childIds: ['7', '1'] }), node('1', 'button', 'B')])).toHaveLength(2);
  });

  it('are printed once: the same nodes and options give the same object', () => {
    const nodes = under(node('1', 'button', 'B'));
    expect(print(nodes)).toBe(print(nodes));
    expect(print(nodes, { scrolled: 24 })).not.toBe(print(nodes));
  });
});

describe('the line of tabs', () => {
  it('lists all titles in order, and marks the current one', () => {
    expect(observationText(['Shop', '', 'Map'], 1, 'tree')).toBe(
      'Tab 0: Shop | Tab 1 (current):  | Tab 2: Map\n\ntree',
    );
  });
});
