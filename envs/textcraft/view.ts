/**
 * The world in few tokens, for the small policy: goal first, then the recipes, then about four tokens a turn.
 *
 *     goal stick craft 4 stick using 2 planks craft 4 oak planks using 1 oak logs …
 *     1 oak logs ok · craft oak planks ok · inventory 4 oak planks · craft stick ok
 */
import type { AppendView, Rendered, SeenTurn } from '../../src/core/view.ts';
import { type Command, type CraftCommand, parse, type Stack } from './grammar.ts';
import { nameOf, TREE, words } from './recipes.ts';
import { EMPTY, INVENTORY, readOpening } from './text.ts';

/** An action points at this many places of the prompt at most. */
const MAX_MENTIONS = 6;
/** Entries of an inventory that a turn shows: two tokens each. */
const MAX_ENTRIES = 11;

const lexicon = [...TREE.items, ...TREE.tags].map(words);
const isKnown = new Set(lexicon);

export const view: AppendView = {
  id: 'textcraft/compact@1',
  mode: 'append',
  lexicon,
  words: ['goal', 'get', 'craft', 'using', 'inventory', 'ok', 'fail', 'nothing', 'unknown'],
  prompt: ({ observation }) => renderPrompt(observation),
  turn: renderTurn,
};

interface Line {
  readonly command: CraftCommand;
  /** Segment that ends with the output item. */
  readonly at: number;
}

function renderPrompt(observation: string): Rendered {
  const { goal, commands } = readOpening(observation);
  const segments = [`goal ${words(goal)}`];
  const lines: Line[] = [];
  const found = new Map<string, number[]>();
  for (const listed of commands) {
    const command = parse(listed);
    if (command.type !== 'craft') continue;
    lines.push({ command, at: segments.length });
    segments.push(` craft ${stackText(command.makes)}`);
    for (const [i, stack] of command.using.entries()) {
      const mention = stackText(stack);
      const places = found.get(mention) ?? [];
      if (places.length < MAX_MENTIONS) places.push(segments.length);
      found.set(mention, places);
      segments.push(`${i === 0 ? ' using ' : ', '}${mention}`);
    }
  }
  const find = (action: string): readonly number[] => {
    const command = parse(action);
    if (command.type === 'get') return found.get(stackText(command.stack)) ?? [];
    if (command.type !== 'craft') return [];
    return lines
      .filter((line) => isWayOf(command, line.command))
      .map(({ at }) => at)
      .slice(0, MAX_MENTIONS);
  };
  const mentions = new Map<string, readonly number[]>(); // asked for again every turn
  return {
    segments,
    focus: words(goal),
    mentions(action) {
      const known = mentions.get(action) ?? find(action);
      mentions.set(action, known);
      return known;
    },
  };
}

/** True if `command` is the listed one, or the listed one with items in the place of its tags. */
function isWayOf(command: CraftCommand, listed: CraftCommand): boolean {
  if (command.makes.item !== listed.makes.item || command.using.length !== listed.using.length) return false;
  return command.using.every(({ amount, item }, i) => {
    const other = listed.using[i]!;
    return amount === other.amount && (item === other.item || TREE.tagOf.get(nameOf(item)) === nameOf(other.item));
  });
}

function renderTurn({ action, observation }: SeenTurn): string {
  const command = parse(action);
  if (command.type === 'inventory') return ` inventory ${contents(observation)}`;
  const outcome = /^(Got|Crafted) /.test(observation) ? 'ok' : 'fail';
  return ` ${inShort(command)} ${outcome}`;
}

function inShort(command: Exclude<Command, { type: 'inventory' }>): string {
  if (command.type === 'get' && isKnown.has(command.stack.item)) return stackText(command.stack);
  if (command.type === 'craft' && isKnown.has(command.makes.item)) return `craft ${command.makes.item}`;
  return 'unknown';
}

/** `Inventory: [oak planks] (4) [stick] (2) ` → `4 oak planks 2 stick` */
function contents(observation: string): string {
  const list = observation.slice(INVENTORY.length);
  if (list === EMPTY) return 'nothing';
  const entries = [...list.matchAll(/\[([^\]]*)\] \((\d+)\) /g)].map(([, item, amount]) => `${amount} ${item}`);
  return entries.slice(0, MAX_ENTRIES).join(' ');
}

function stackText({ amount, item }: Stack): string {
  return `${amount} ${item}`;
}
