/**
 * Default view, for worlds that bring none: the goal, the last actions and the newest observation, lower-cased and cut to
 * a budget of tokens; rendered anew every turn. It knows nothing of the world, so a view of the world's own learns faster.
 *
 *     goal heat some egg and put it in garbagecan | go to fridge 1 ; open fridge 1 | the fridge 1 is open in it you see …
 *
 * A listed action is mentioned by the words it shares with the text, the rarest first.
 */
import type { First } from '../../core/env.ts';
import type { Rendered, SeenTurn, WindowView } from '../../core/view.ts';
import { COMMON_WORDS } from './common-words.ts';

/** Budgets in tokens; a word that has no token of its own costs its letters. */
const GOAL_TOKENS = 64;
const ACTION_TOKENS = 24;
const OBSERVATION_TOKENS = 256;
/** Whole actions of the past that are shown. */
const REMEMBERED = 4;
const MAX_MENTIONS_OF_ITEM = 6;

const known = new Set<string>(COMMON_WORDS);

/** Window view of worlds without one. */
export const defaultView: WindowView = {
  id: 'default@1',
  mode: 'window',
  lexicon: [],
  words: [...COMMON_WORDS, '|', ';'],
  render,
};

function render(first: First, turns: readonly SeenTurn[]): Rendered {
  const goal = goalOf(first.observation);
  const { past, stages } = actionsOf(turns);
  const newest = turns.findLast(({ partial }) => !partial)?.observation ?? first.observation;
  const words = [
    ...takeWithin(GOAL_TOKENS, goal),
    '|',
    ...past.slice(-REMEMBERED).flatMap((action) => [...takeWithin(ACTION_TOKENS, action), ';']),
    '|',
    ...takeWithin(OBSERVATION_TOKENS, newest),
    ...(stages.length > 0 ? ['|', ...takeWithin(ACTION_TOKENS, stages.join(' '))] : []),
  ];
  const places = new Map<string, number[]>();
  words.forEach((word, i) => {
    const list = places.get(word);
    if (list) list.push(i);
    else places.set(word, [i]);
  });
  return {
    segments: words.map((word, i) => (i === 0 ? word : ` ${word}`)),
    focus: takeWithin(GOAL_TOKENS, goal).join(' '),
    mentions(action) {
      const lists = [...new Set(wordsOf(action))].map((word) => places.get(word) ?? []);
      const rarest = lists.filter((list) => list.length > 0).sort((a, b) => a.length - b.length);
      return [...new Set(rarest.flatMap((list) => list.slice(-MAX_MENTIONS_OF_ITEM)))]
        .slice(0, MAX_MENTIONS_OF_ITEM)
        .sort((a, b) => a - b);
    },
  };
}

/** Line of the opening that states the goal; its first words where none does. */
function goalOf(opening: string): string {
  const lines = opening.split('\n').filter((line) => line.trim() !== '');
  return lines.find((line) => /\b(goal|task|question|objective|instruction|mission)\b/i.test(line)) ?? lines[0] ?? '';
}

/** Whole actions, their stages joined, and the stages of the one under way. */
function actionsOf(turns: readonly SeenTurn[]): { readonly past: string[]; readonly stages: string[] } {
  const past: string[] = [];
  let stages: string[] = [];
  for (const { action, partial } of turns) {
    stages.push(action);
    if (partial) continue;
    past.push(stages.join(' '));
    stages = [];
  }
  return { past, stages };
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[a-z]+|[0-9]+/g) ?? [];
}

/** Leading words of a text that cost at most `budget` tokens. */
function takeWithin(budget: number, text: string): string[] {
  let left = budget;
  const words: string[] = [];
  for (const word of wordsOf(text)) {
    left -= known.has(word) || (word.length < 3 && Number(word) < 100) ? 1 : word.length;
    if (left < 0) break;
    words.push(word);
  }
  return words;
}
