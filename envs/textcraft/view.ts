/**
 * World in few tokens, for the local policy: goal first, then the recipes, a line each, then about four tokens a turn.
 * Each listed action shows how many of what it finds or makes are held, and how many times it was found or made,
 * counted from the answers read so far: what a craft uses up is held no longer, but a policy that goes in circles sees
 * that it does.
 *
 *     goal stick
 *     4 stick using 2 planks
 *     4 oak planks using 1 oak logs …
 *     1 oak logs ok · craft oak planks ok · inventory 4 oak planks · craft stick ok
 *     candidates: get 1 oak logs held 0 times 1 · craft 4 stick using 2 oak planks held 4 times 1
 */
import type { AppendView, Rendered, SeenTurn, Track } from '../../src/core/view.ts';
import { type Command, type CraftCommand, parse, type Stack } from './grammar.ts';
import { nameOf, TREE, words } from './recipes.ts';
import { EMPTY, INVENTORY, readOpening } from './text.ts';

/** Most places of the prompt that an action points at. */
const MAX_MENTIONS = 6;
/** Entries of an inventory that a turn shows: two tokens each. */
const MAX_ENTRIES = 11;

const lexicon = [...TREE.items, ...TREE.tags].map(words);
const isKnown = new Set(lexicon);

/** Counts by an item's name with blanks. */
type Counts = ReadonlyMap<string, number>;

/** Counts from the answers; they restate what was read and plan nothing. */
interface Seen {
  /** Number held of each item. */
  readonly held: Counts;
  /** Times that each item was found. */
  readonly found: Counts;
  /** Times that each item was made. */
  readonly made: Counts;
}

const NONE: Counts = new Map();

const track: Track<Seen> = {
  begin: () => ({ held: NONE, found: NONE, made: NONE }),
  reduce: updateSeen,
  situation: inventoryOf,
};

export const view: AppendView<Seen> = {
  id: 'textcraft/compact@5',
  mode: 'append',
  lexicon,
  words: ['goal', 'get', 'craft', 'using', 'inventory', 'ok', 'fail', 'nothing', 'unknown', 'held', 'times'],
  prompt: ({ observation }) => renderPrompt(observation),
  turn: renderTurn,
  track,
  candidate: (action, { held, found, made }) => {
    const command = parse(action);
    const item = findObtained(command);
    if (item === undefined) return action;
    const times = (command.type === 'get' ? found : made).get(item) ?? 0;
    return `${action} held ${held.get(item) ?? 0} times ${times}`;
  },
};

/** Item that a command finds or makes. */
function findObtained(command: Command): string | undefined {
  if (command.type === 'get') return command.stack.item;
  return command.type === 'craft' ? command.makes.item : undefined;
}

function updateSeen(seen: Seen, { action, observation }: SeenTurn): Seen {
  const obtained = /^(?:Got (\d+) |Crafted (\d+) minecraft:)(.*)$/.exec(observation);
  if (!obtained) {
    return observation.startsWith(INVENTORY) ? { ...seen, held: new Map(entriesOf(observation)) } : seen;
  }
  const [, got, crafted, name] = obtained as unknown as [string, string?, string?, string?];
  const item = words(name!);
  if (got !== undefined) {
    return { ...seen, held: addCounts(seen.held, [[item, Number(got)]]), found: addCounts(seen.found, [[item, 1]]) };
  }
  const command = parse(action);
  const used =
    command.type === 'craft' ? command.using.map((stack) => [stack.item, -Number(stack.amount)] as const) : [];
  const held = addCounts(seen.held, [...used, [item, Number(crafted)]]);
  return { ...seen, held, made: addCounts(seen.made, [[item, 1]]) };
}

function addCounts(counts: Counts, changes: readonly (readonly [string, number])[]): Counts {
  const after = new Map(counts);
  for (const [item, n] of changes) after.set(item, Math.max(0, (after.get(item) ?? 0) + n));
  return after;
}

/** Inventory as text, in one order: the rest of an episode depends on nothing else. */
function inventoryOf({ held }: Seen): string {
  const entries = [...held].filter(([, n]) => n > 0).map(([item, n]) => `${n} ${item}`);
  return entries.sort().join(', ');
}

interface Line {
  readonly command: CraftCommand;
  /** Segment that ends with the output item. */
  readonly at: number;
}

function renderPrompt(observation: string): Rendered {
  const { goal, commands } = readOpening(observation);
  const segments = [`goal ${words(goal)}`];
  const lines: Line[] = [];
  /** Segments by what they name: `2 oak planks`, and `oak planks` in whatever amount. */
  const places = new Map<string, number[]>();
  const place = (name: string) => {
    const known = places.get(name) ?? [];
    if (known.length < MAX_MENTIONS) known.push(segments.length);
    places.set(name, known);
  };
  for (const listed of commands) {
    const command = parse(listed);
    if (command.type !== 'craft') continue;
    lines.push({ command, at: segments.length });
    segments.push(`\n${stackText(command.makes)}`);
    for (const [i, stack] of command.using.entries()) {
      place(stackText(stack));
      place(stack.item);
      segments.push(`${i === 0 ? ' using ' : ', '}${stackText(stack)}`);
    }
  }
  const find = (action: string): readonly number[] => {
    const command = parse(action);
    // An amount that no recipe names is an item that some do.
    if (command.type === 'get') return places.get(stackText(command.stack)) ?? places.get(command.stack.item) ?? [];
    if (command.type !== 'craft') return [];
    return lines
      .filter((line) => isWayOf(command, line.command))
      .map(({ at }) => at)
      .slice(0, MAX_MENTIONS);
  };
  const mentions = new Map<string, readonly number[]>(); // needed again every turn
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

/** Contents of an inventory: `Inventory: [oak planks] (4) [stick] (2) ` → `4 oak planks 2 stick`. */
function contents(observation: string): string {
  if (observation.endsWith(EMPTY)) return 'nothing';
  const entries = entriesOf(observation).map(([item, amount]) => `${amount} ${item}`);
  return entries.slice(0, MAX_ENTRIES).join(' ');
}

function entriesOf(observation: string): [item: string, amount: number][] {
  const entries = observation.slice(INVENTORY.length).matchAll(/\[([^\]]*)\] \((\d+)\) /g);
  return Array.from(entries, ([, item, amount]) => [item!, Number(amount)]);
}

function stackText({ amount, item }: Stack): string {
  return `${amount} ${item}`;
}
