/** Keys and clicks on a page of rows: caret, focus order, selects, radios, forms and scrolling, without a browser. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type Effect,
  findFocusedCell,
  focus,
  insert,
  isFocusable,
  isSiteKey,
  type Live,
  press,
  scrollBy,
} from '../../../envs/webarena/drivers/keys.ts';
import { fieldValue } from '../../../envs/webarena/nodes.ts';
import * as build from '../../../envs/webarena/page.ts';

/** A page with every kind of cell; its cells by label or text. */
const PAGE = build.page(
  'T',
  build.row('plain', build.link('Home', '/'), build.linkInNewTab('Map', 'http://map.test/')),
  build.form(
    'get',
    '/search',
    { h: '1' },
    build.row(build.searchbox('Find', 'q', 'abc'), build.button('Go', 'go', '1'), build.button('Other', 'go', '2')),
    build.row(build.checkbox('Whole', 'whole', false), build.select('Sort', 'sort', ['A', 'B', 'C'], 'B')),
    build.row(
      build.radio('One', 'in', '1', true),
      build.radio('Two', 'in', '2', false),
      build.radio('Three', 'in', '3', false),
    ),
  ),
  build.row(build.button('Loose'), build.textbox('Alone', 'alone')),
  ...Array.from({ length: 40 }, (_, i) => build.row(`line ${i}`)),
  build.row(build.link('Last', '/last')),
);

let live: Live;
beforeEach(() => {
  live = { layout: build.layoutOf(PAGE), values: new Map(), focused: -1, scroll: 0, anchor: 0, caret: 0 };
});

const at = (label: string) =>
  live.layout.cells.find(({ cell }) => ('label' in cell ? cell.label : 'text' in cell ? cell.text : '') === label)!;
const on = (label: string) => focus(live, at(label));
const value = (label: string) => fieldValue(at(label), live.values);
const focused = () => {
  const cell = findFocusedCell(live)?.cell;
  return cell && ('label' in cell ? cell.label : 'text' in cell ? cell.text : '');
};
const keys = (...names: string[]): Effect | undefined => {
  let effect: Effect | undefined;
  for (const name of names) effect = press(live, name);
  return effect;
};

describe('in a text field', () => {
  beforeEach(() => on('Find'));

  it.each([
    [['x'], 'abcx'],
    [['Space'], 'abc '],
    [['Home', 'x'], 'xabc'],
    [['ArrowLeft', 'x'], 'abxc'],
    [['ArrowLeft', 'ArrowRight', 'x'], 'abcx'],
    [['Home', 'ArrowLeft', 'x'], 'xabc'],
    [['End', 'ArrowRight', 'x'], 'abcx'],
    [['Backspace'], 'ab'],
    [['Home', 'Backspace'], 'abc'],
    [['Home', 'Delete'], 'bc'],
    [['Delete'], 'abc'],
    [['Control+a', 'x'], 'x'],
    [['Control+a', 'Backspace'], ''],
    [['Control+a', 'Delete', 'y'], 'y'],
    [['Control+a', 'ArrowLeft', 'x'], 'xabc'],
    [['Control+a', 'ArrowRight', 'x'], 'abcx'],
    [['ArrowUp', 'ArrowDown', 'PageDown', 'Escape', 'x'], 'abcx'],
    [['Home', 'End', 'x'], 'abcx'],
  ])('%j leaves %j', (names, expected) => {
    keys(...names);
    expect(value('Find')).toBe(expected);
  });

  it('takes text at the caret, and replaces what is selected', () => {
    keys('ArrowLeft');
    insert(live, 'XY');
    expect(value('Find')).toBe('abXYc');
    keys('Control+a');
    insert(live, 'new');
    expect([value('Find'), live.caret]).toEqual(['new', 3]);
  });

  it('sends its form by Enter, as if by the first button', () => {
    const effect = keys('Enter') as Extract<Effect, { type: 'submit' }>;
    expect([effect.type, effect.by.cell]).toEqual(['submit', at('Go').cell]);
  });

  it('without a form lets Enter pass', () => {
    on('Alone');
    expect(keys('Enter')).toBeUndefined();
  });

  it('never scrolls the page', () => {
    keys('PageDown', 'Space', 'End');
    expect(live.scroll).toBe(0);
  });
});

describe('Tab', () => {
  it('goes through all that can be focused, in order, and then nowhere', () => {
    const seen: (string | undefined)[] = [];
    for (let i = 0; i < 12; i++) {
      keys('Tab');
      seen.push(focused());
    }
    // Of a group of radios it stops at the chosen one.
    expect(seen).toEqual([
      'Home',
      'Map',
      'Find',
      'Go',
      'Other',
      'Whole',
      'Sort',
      'One',
      'Loose',
      'Alone',
      'Last',
      undefined,
    ]);
  });

  it('with Shift goes the other way', () => {
    keys('Shift+Tab');
    expect(focused()).toBe('Last');
    keys('Shift+Tab', 'Shift+Tab', 'Shift+Tab');
    expect(focused()).toBe('One');
  });

  it('stops at the radio that was chosen', () => {
    on('One');
    keys('ArrowDown');
    expect(focused()).toBe('Two');
    on('Sort');
    keys('Tab');
    expect(focused()).toBe('Two');
  });

  it('puts the caret at the end of a text', () => {
    on('Map');
    keys('Tab', '!');
    expect(value('Find')).toBe('abc!');
  });

  it('brings what it reaches into view', () => {
    on('Alone');
    keys('Tab');
    expect(focused()).toBe('Last');
    const y = at('Last').row * build.ROW - live.scroll;
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y).toBeLessThan(build.SCREEN[1]);
    keys('Tab', 'Tab');
    expect([focused(), live.scroll]).toEqual(['Home', 0]);
  });

  it('on a page without anything does nothing', () => {
    live = { ...live, layout: build.layoutOf(build.page('empty', build.row('text'))) };
    keys('Tab');
    expect(live.focused).toBe(-1);
  });
});

describe('in a select', () => {
  it.each([
    [['ArrowDown'], 'C'],
    [['ArrowUp'], 'A'],
    [['Home'], 'A'],
    [['End'], 'C'],
    [['End', 'ArrowDown'], 'C'],
    [['Home', 'ArrowUp'], 'A'],
    [['x', 'Enter', 'PageDown'], 'B'],
  ])('%j chooses %s', (names, expected) => {
    on('Sort');
    keys(...names);
    expect([value('Sort'), live.scroll]).toEqual([expected, 0]);
  });
});

describe('boxes', () => {
  it('are turned by Space, sent by Enter', () => {
    on('Whole');
    keys('Space');
    expect(value('Whole')).toBe('on');
    keys('Space');
    expect(value('Whole')).toBe('');
    expect(keys('Enter')).toMatchObject({ type: 'submit' });
  });

  it.each([
    ['ArrowDown', 'Two'],
    ['ArrowRight', 'Two'],
    ['ArrowUp', 'Three'],
    ['ArrowLeft', 'Three'],
  ])('of a group move with %s to %s, and one is chosen', (key, expected) => {
    on('One');
    keys(key);
    expect(focused()).toBe(expected);
    expect(['One', 'Two', 'Three'].filter((label) => value(label) === 'on')).toEqual([expected]);
  });

  it('of a group go round', () => {
    on('Three');
    keys('ArrowDown');
    expect(focused()).toBe('One');
  });
});

describe('links and buttons', () => {
  it('are followed by Enter', () => {
    on('Home');
    expect(keys('Enter')).toEqual({ type: 'follow', href: '/', blank: false });
    on('Map');
    expect(keys('Enter')).toEqual({ type: 'follow', href: 'http://map.test/', blank: true });
  });

  it.each(['Enter', 'Space'])('are pressed by %s', (key) => {
    on('Other');
    const effect = keys(key) as Extract<Effect, { type: 'submit' }>;
    expect(effect.by).toBe(at('Other'));
  });

  it('outside a form do nothing', () => {
    on('Loose');
    expect(keys('Enter', 'Space')).toBeUndefined();
    expect(live.scroll).toBe(0);
  });
});

describe('scrolling', () => {
  const most = () => build.maxScroll(live.layout);

  it('by keys goes a line, a page or to an end', () => {
    keys('ArrowDown');
    expect(live.scroll).toBe(2 * build.ROW);
    keys('ArrowUp');
    expect(live.scroll).toBe(0);
    keys('PageDown');
    expect(live.scroll).toBe(Math.min(most(), build.SCREEN[1] - 3 * build.ROW));
    keys('End');
    expect(live.scroll).toBe(most());
    keys('Home');
    expect(live.scroll).toBe(0);
    keys('Space');
    expect(live.scroll).toBeGreaterThan(0);
  });

  it('never leaves the page', () => {
    keys('ArrowUp');
    expect(live.scroll).toBe(0);
    scrollBy(live, 1e9);
    expect(live.scroll).toBe(most());
    scrollBy(live, -1e9);
    expect(live.scroll).toBe(0);
  });

  it('by Space is left to what has the focus where that takes it', () => {
    on('Home');
    keys('Space');
    expect(live.scroll).toBeGreaterThan(0);
  });
});

describe('keys with an effect', () => {
  it.each(['Tab', 'Shift+Tab', 'Control+a', 'PageUp', 'a', 'Z', '7', '!', '~'])('%s is one', (key) => {
    expect(isSiteKey(key)).toBe(true);
  });

  it.each(['F5', 'Control+w', 'Alt+ArrowLeft', 'Meta', '+', ' ', 'é', '', 'ab'])('%j is none', (key) => {
    expect(isSiteKey(key)).toBe(false);
  });

  it('can go to links, buttons and fields alone', () => {
    const kinds = new Set(live.layout.cells.filter(isFocusable).map(({ cell }) => cell.kind));
    expect([...kinds].sort()).toEqual(['button', 'checkbox', 'link', 'radio', 'searchbox', 'select', 'textbox']);
  });
});
