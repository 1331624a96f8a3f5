/** Turns as WebArena's agents read them: the previous action, the parts of the text, blocks between backticks, addresses. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blocksOf, describeAction, readTurn, turnText } from '../../../envs/webarena/describe.ts';
import type { Action } from '../../../envs/webarena/grammar.ts';
import { PUBLIC, toLocal, toPublic } from '../../../envs/webarena/urls.ts';

const LINES = new Map([['12', "[12] link  'My\tCart'"]]);

describe('the previous action', () => {
  it.each<[Action, string]>([
    [{ type: 'CLICK', id: '12' }, "click [12] where [12] is link 'My Cart'"],
    [{ type: 'HOVER', id: '12' }, "hover [12] where [12] is link 'My Cart'"],
    [{ type: 'TYPE', id: '12', text: 'red\n' }, "type [12] [red ] where [12] is link 'My Cart'"],
    [{ type: 'KEY_PRESS', key: 'Control+a' }, 'press [Control+a]'],
    [{ type: 'SCROLL', direction: 'up' }, 'scroll [up]'],
    [{ type: 'GOTO_URL', url: 'http://a.b' }, 'goto [http://a.b]'],
    [{ type: 'PAGE_FOCUS', page: 1 }, 'page_focus [1]'],
    [{ type: 'NEW_TAB' }, 'new_tab'],
    [{ type: 'PAGE_CLOSE' }, 'close_tab'],
    [{ type: 'GO_BACK' }, 'go_back'],
    [{ type: 'GO_FORWARD' }, 'go_forward'],
    [{ type: 'STOP', answer: '42' }, 'stop [42]'],
  ])('%j', (action, text) => {
    expect(describeAction(action, LINES)).toBe(text);
  });

  it('on an element that is not there is an error, in the spelling of the original', () => {
    expect(describeAction({ type: 'HOVER', id: '99' }, LINES)).toBe(
      'Attempt to perfom "hover" on element "[99]" but no matching element found. Please check the observation more carefully.',
    );
  });
});

describe('a turn', () => {
  const BASES = { shopping: 'http://shop.test', map: 'http://map.test' };
  const line = fc.stringMatching(/^[ -~]{0,40}$/);

  it('has four parts, with the address under its public name', () => {
    const turn = { observation: 'Tab 0', url: 'http://shop.test/a', objective: 'Buy.', previousAction: 'None' };
    expect(turnText(turn, BASES)).toBe(
      'OBSERVATION:\nTab 0\nURL: http://onestopmarket.com/a\nOBJECTIVE: Buy.\nPREVIOUS ACTION: None',
    );
  });

  it('is read back as it was written, an error at its end too', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), line, line, line, (seen, url, objective, previousAction) => {
        const turn = { observation: seen.join('\n'), url, objective, previousAction };
        const text = turnText(turn, {});
        expect(readTurn(text)).toEqual({ ...turn, error: '' });
        expect(readTurn(`${text}\nERROR: no such thing`)).toEqual({ ...turn, error: 'no such thing' });
      }),
    );
  });

  it.each(['', 'Invalid action dance', 'OBSERVATION:\nx\nURL: y'])('is not read out of %j', (text) => {
    expect(readTurn(text)).toBeUndefined();
  });
});

describe('blocks between backticks', () => {
  it.each([
    ['I will ```click [1]```', ['click [1]']],
    ['```a``` and ```b```', ['a', 'b']],
    ['```bash\nclick [1]\n```', ['bash\nclick [1]\n']],
    ['```click [1]', []],
    ['``````', ['']],
    ['none', []],
  ])('of %j', (reply, blocks) => {
    expect(blocksOf(reply)).toEqual(blocks);
  });
});

describe('addresses', () => {
  const bases = {
    reddit: 'http://forum.test',
    shopping: 'http://shop.test:7770',
    shopping_admin: 'http://shop.test:7780/admin',
    gitlab: 'http://code.test',
  };

  it.each([
    ['http://forum.test/f/books', 'http://reddit.com/f/books'],
    ['http://shop.test:7770/a and http://code.test/b', 'http://onestopmarket.com/a and http://gitlab.com/b'],
    ['http://shop.test:7780/admin/x', 'http://luma.com/admin/x'],
    // Plain text replacement: a longer port is taken for the shop's.
    ['http://shop.test:77700/', 'http://onestopmarket.com0/'],
    ['http://elsewhere.test/', 'http://elsewhere.test/'],
  ])('%s is shown as %s', (local, shown) => {
    expect(toPublic(local, bases)).toBe(shown);
  });

  it('that the agent writes are turned back, as https too', () => {
    expect(toLocal('goto [http://reddit.com/f/books]', bases)).toBe('goto [http://forum.test/f/books]');
    expect(toLocal('goto [https://gitlab.com/a]', bases)).toBe('goto [http://code.test/a]');
    expect(toLocal('type [1] [see reddit.com]', bases)).toBe('type [1] [see reddit.com]');
    expect(toLocal('goto [http://wikipedia.org/]', bases)).toBe('goto [http://wikipedia.org/]');
  });

  it('go there and back', () => {
    for (const [site, base] of Object.entries(bases)) {
      const shown = toPublic(`${base}/x?y=1`, bases);
      expect(shown).toBe(`${PUBLIC[site as keyof typeof bases]}/x?y=1`);
      expect(toLocal(shown, bases)).toBe(`${base}/x?y=1`);
    }
  });
});
