/**
 * View of the local policy on a turn: the goal without its articles, the last three actions, what is in sight and
 * in hand, what was in sight before; some 20 to 50 tokens instead of the observation's 300. Rendered anew every turn.
 *
 *   go to red ball | turn left go to red ball 1 see red ball 3 left 2 blue key 4 ahead facing wall 5 was green door 1 behind left 2
 *   candidates: turn left done 1 · go through red open door 1 done 0
 *
 * Nothing separates the parts: each begins with a word that no part ends with. Which of two red balls an action means
 * is shown by where it points (`mentions`), so the observation's numbers are left out. Memory (memory.ts) restates what
 * was seen and done; it plans nothing.
 */
import type { First } from '../../src/core/env.ts';
import type { Rendered, SeenTurn, WindowView } from '../../src/core/view.ts';
import { parse, print } from './grammar.ts';
import { COLOR_NAMES } from './grid.ts';
import { describes, listRemembered, type Memory, thingsIn, track } from './memory.ts';

/** Actions of the past that are shown. */
const REMEMBERED = 3;
const TYPES = ['key', 'ball', 'box', 'door'] as const;

/** Things of the past that are shown, the latest first. */
const SHOWN = 4;
/** Largest number that has a token. */
const MOST = 12;

/** The compact rendering of both text worlds. */
export const view: WindowView<Memory> = {
  id: 'babyai/compact@3',
  mode: 'window',
  lexicon: [
    'toggle and go through',
    'go through',
    'go to',
    'turn left',
    'turn right',
    'move forward',
    'next to',
    'in front of you',
    'behind you',
    'on your left',
    'on your right',
    'after you',
  ],
  words: [
    ...COLOR_NAMES,
    ...TYPES,
    ...['object', 'wall', 'open', 'closed', 'locked'],
    ...['pickup', 'put', 'drop', 'toggle', 'then', 'and'],
    ...['left', 'right', 'ahead', 'see', 'facing', 'clear', 'carrying', 'refused', '|'],
    ...['was', 'behind', 'ago', 'done'],
    ...Array.from({ length: MOST + 1 }, (_, n) => String(n)),
  ],
  track,
  candidate: (action, { done }) => `${action} done ${Math.min(MOST, done.get(action) ?? 0)}`,
  render,
};

function render(first: First, turns: readonly SeenTurn[], memory: Memory): Rendered {
  const goal = goalWords(first.observation);
  const segments = [`${goal} |`];
  for (const { action } of turns.slice(-REMEMBERED)) segments.push(` ${shorten(action)}`);

  let seen = first.observation;
  for (const { observation } of turns) if (describes(observation)) seen = observation;
  if (turns.length > 0 && !describes(turns.at(-1)!.observation)) segments.push(' refused');

  segments.push(' see');
  const places = new Map<string, number>();
  let ahead = -1;
  for (const { name, number, front, right } of thingsIn(seen)) {
    places.set(`${name} ${number}`, segments.length);
    if (front === 1 && right === 0) ahead = segments.length;
    segments.push(` ${name} ${describePosition(front, right)}`);
  }
  const barrier = /You are facing a (\w+) (\d+) steps away/.exec(seen);
  const facing = segments.length;
  segments.push(barrier ? ` facing ${barrier[1]} ${barrier[2]}` : ' clear');
  const held = /You are carrying a (\w+ \w+)\./.exec(seen);
  const hand = held ? segments.length : -1;
  if (held) segments.push(` carrying ${held[1]}`);
  const before = listRemembered(memory).slice(0, SHOWN);
  if (before.length > 0) segments.push(' was');
  for (const { name, place, age } of before) {
    segments.push(` ${name} ${place ? describePosition(place.front, place.right) : `${Math.min(MOST, age)} ago`}`);
  }

  return {
    segments,
    focus: goal
      .split(' ')
      .filter(
        (word) => (COLOR_NAMES as readonly string[]).includes(word) || (TYPES as readonly string[]).includes(word),
      )
      .join(' '),
    mentions(action) {
      const command = parse(action);
      const segment =
        command.type === 'thing'
          ? (places.get(`${command.name} ${command.number}`) ?? -1)
          : command.type === 'unparsed'
            ? -1
            : command.action === 'drop'
              ? hand
              : command.action === 'toggle'
                ? ahead
                : command.action === 'move forward'
                  ? facing
                  : -1;
      return segment < 0 ? [] : [segment];
    },
  };
}

/** `3 left 2`, `4 ahead`, `2 behind right 1` */
function describePosition(front: number, right: number): string {
  const along = `${Math.min(MOST, Math.abs(front))}`;
  const aside = `${right < 0 ? 'left' : 'right'} ${Math.min(MOST, Math.abs(right))}`;
  if (front < 0) return right === 0 ? `${along} behind` : `${along} behind ${aside}`;
  return right === 0 ? `${along} ahead` : `${along} ${aside}`;
}

/** `Your goal: pick up the red ball, then …` → `pickup red ball then …` */
function goalWords(observation: string): string {
  const goal = /^Your goal: (.*)$/m.exec(observation)?.[1] ?? '';
  return goal
    .toLowerCase()
    .replaceAll(',', '')
    .replace(/\b(the|a) /g, '')
    .replaceAll('pick up', 'pickup');
}

/** An action as it is listed; what was not understood, in one word. */
function shorten(action: string): string {
  return print(parse(action)) || 'refused';
}
