/** WebArena's action texts: what each is read as, and the error that a wrong one raises. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Action, parseAction } from '../../../envs/webarena/grammar.ts';

const ok = (text: string, fidelity?: 'original' | 'corrected') => {
  const parsed = parseAction(text, fidelity);
  if ('error' in parsed) throw new Error(`${text}: ${parsed.error.message}`);
  return parsed.ok;
};
const refused = (text: string, fidelity?: 'original' | 'corrected') => {
  const parsed = parseAction(text, fidelity);
  return 'error' in parsed ? `${parsed.error.class}: ${parsed.error.message}` : parsed.ok;
};

/** Texts with the action they are. */
const READ: readonly (readonly [text: string, action: Action])[] = [
  ['click [1]', { type: 'CLICK', id: '1' }],
  ['click[12]', { type: 'CLICK', id: '12' }],
  ['  click [1]  ', { type: 'CLICK', id: '1' }],
  ['click [1] [2]', { type: 'CLICK', id: '1' }],
  ['click [１２]', { type: 'CLICK', id: '１２' }],
  ['hover [7]', { type: 'HOVER', id: '7' }],
  ['type [5] [red kettle]', { type: 'TYPE', id: '5', text: 'red kettle\n' }],
  ['type [5] [red kettle] [1]', { type: 'TYPE', id: '5', text: 'red kettle\n' }],
  ['type [5] [red kettle] [0]', { type: 'TYPE', id: '5', text: 'red kettle' }],
  ['type [5] [a] [b] [0]', { type: 'TYPE', id: '5', text: 'a] [b' }],
  ['type [5] [hello] []', { type: 'TYPE', id: '5', text: 'hello] [\n' }],
  ['type [5] [hello] [press_enter_after=1]', { type: 'TYPE', id: '5', text: 'hello] [press_enter_after=1\n' }],
  ['type [5] [x] [3]', { type: 'TYPE', id: '5', text: 'x] [3\n' }],
  ['type[5][x][0]', { type: 'TYPE', id: '5', text: 'x' }],
  ['press [Enter]', { type: 'KEY_PRESS', key: 'Enter' }],
  ['press [enter]', { type: 'KEY_PRESS', key: 'Enter' }],
  ['press [Meta+a]', { type: 'KEY_PRESS', key: 'Meta+a' }],
  ['press [arrowdown]', { type: 'KEY_PRESS', key: 'ArrowDown' }],
  ['press [f5]', { type: 'KEY_PRESS', key: 'F5' }],
  ['press [+]', { type: 'KEY_PRESS', key: '+' }],
  ['scroll [down]', { type: 'SCROLL', direction: 'down' }],
  ['scroll up', { type: 'SCROLL', direction: 'up' }],
  ['scroll [down|up]', { type: 'SCROLL', direction: 'down' }],
  ['scroll [downwards]', { type: 'SCROLL', direction: 'down' }],
  ['goto [http://a.b/c?d=[e]]', { type: 'GOTO_URL', url: 'http://a.b/c?d=[e]' }],
  ['tab_focus [2]', { type: 'PAGE_FOCUS', page: 2 }],
  ['tab_focus [٢]', { type: 'PAGE_FOCUS', page: 2 }],
  ['new_tab', { type: 'NEW_TAB' }],
  ['new_tab [x]', { type: 'NEW_TAB' }],
  ['close_tab', { type: 'PAGE_CLOSE' }],
  ['go_back', { type: 'GO_BACK' }],
  ['go_forward', { type: 'GO_FORWARD' }],
  ['stop [42]', { type: 'STOP', answer: '42' }],
  ['stop [a] [b]', { type: 'STOP', answer: 'a] [b' }],
  ['stop', { type: 'STOP', answer: '' }],
  ['stop []', { type: 'STOP', answer: '' }],
];

describe('a text', () => {
  it.each(READ)('%j is an action', (text, action) => {
    expect(ok(text)).toEqual(action);
  });

  it.each([
    ['click 1', 'ActionParsingError: Invalid click action click 1'],
    ['click [a]', 'ActionParsingError: Invalid click action click [a]'],
    ['hover []', 'ActionParsingError: Invalid hover action hover []'],
    ['please click [1]', 'ActionParsingError: Invalid action please click [1]'],
    ['Click [1]', 'ActionParsingError: Invalid action Click [1]'],
    ['bash\nclick [1]', 'ActionParsingError: Invalid action bash\nclick [1]'],
    ['type [5] [1]', 'ActionParsingError: Invalid type action type [5] [1]'],
    ['type [5] []', 'ActionParsingError: Invalid type action type [5] [] [1]'],
    ['type [5] [] [0]', 'ActionParsingError: Invalid type action type [5] [] [0]'],
    ['type [5] [two\nlines] [0]', 'ActionParsingError: Invalid type action type [5] [two\nlines] [0]'],
    ['press []', 'ActionParsingError: Invalid press action press []'],
    ['scroll [direction=left]', 'ActionParsingError: Invalid scroll action scroll [direction=left]'],
    ['goto []', 'ActionParsingError: Invalid goto action goto []'],
    ['tab_focus [x]', 'ActionParsingError: Invalid tab_focus action tab_focus [x]'],
    ['page_focus [0]', 'ActionParsingError: Invalid action page_focus [0]'],
    ['', 'IndexError: list index out of range'],
    ['  \n ', 'IndexError: list index out of range'],
    ['type [1] [漢]', "KeyError: '漢'"],
    ['type [1] [“quoted”]', "KeyError: '“'"],
    ['type [1] [a\tb]', "KeyError: '\\t'"],
  ])('%j raises what the original raises', (text, error) => {
    expect(refused(text)).toBe(error);
  });

  it('begins with its verb, up to the first bracket', () => {
    expect(refused('scroll [direction=down]')).toBe(
      'ActionParsingError: Invalid scroll action scroll [direction=down]',
    );
  });
});

describe('keys', () => {
  it.each([
    ['Ctrl+a', 'Ctrl+a', 'Control+a'],
    ['ctrl + V', 'ctrl + V', 'Control+V'],
    ['ArrowLeft', 'ArrowLeft', 'ArrowLeft'],
    ['arrowleft', 'arrowleft', 'ArrowLeft'],
    ['esc', 'esc', 'Escape'],
    ['Return', 'Return', 'Enter'],
    ['space', 'space', 'Space'],
    ['shift+tab', 'shift+Tab', 'Shift+Tab'],
    ['down', 'down', 'ArrowDown'],
    ['q', 'q', 'q'],
  ])('%s: %s in the original, %s corrected', (keys, original, corrected) => {
    expect(ok(`press [${keys}]`, 'original')).toEqual({ type: 'KEY_PRESS', key: original });
    expect(ok(`press [${keys}]`, 'corrected')).toEqual({ type: 'KEY_PRESS', key: corrected });
  });
});

describe('laws', () => {
  const plain = fc.stringMatching(/^[a-zA-Z0-9 .,$-]{1,30}$/).filter((text) => text.trim() === text);

  it('a typed text comes back as it was, with Enter where it is requested', () => {
    fc.assert(
      fc.property(fc.nat(9999), plain, fc.boolean(), (id, text, enter) => {
        expect(ok(`type [${id}] [${text}] [${enter ? 1 : 0}]`)).toEqual({
          type: 'TYPE',
          id: String(id),
          text: enter ? `${text}\n` : text,
        });
      }),
    );
  });

  it('blanks around an action change nothing', () => {
    fc.assert(
      fc.property(fc.constantFrom(...READ), fc.stringMatching(/^[ \t\n\u3000]{0,4}$/), ([text, action], space) => {
        expect(ok(space + text + space)).toEqual(action);
      }),
    );
  });

  it('any text is an action or one of three errors, whatever the fidelity', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom('original' as const, 'corrected' as const),
        (text, fidelity) => {
          const parsed = parseAction(text, fidelity);
          if ('error' in parsed) expect(['ActionParsingError', 'IndexError', 'KeyError']).toContain(parsed.error.class);
          else expect(parsed.ok.type).toMatch(/^[A-Z_]+$/);
        },
      ),
    );
  });

  it('corrected takes every text that the original takes', () => {
    fc.assert(
      fc.property(fc.constantFrom(...READ), ([text]) => {
        expect('ok' in parseAction(text, 'corrected')).toBe(true);
      }),
    );
    expect(ok('type [1] [漢字] [0]', 'corrected')).toEqual({ type: 'TYPE', id: '1', text: '漢字' });
  });
});
