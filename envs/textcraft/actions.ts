/**
 * Actions that can be executed now. The rules allow endlessly many (any amount of any item); listed are those that the
 * listed commands speak of: finding an ingredient in an amount they name, and crafting what they craft when its
 * ingredients are held, a tag standing for each held item of that tag.
 */
import { append } from '../../src/core/extremes.ts';
import type { CraftEffect, Effects } from './effects.ts';
import type { Inventory } from './env.ts';
import { type CraftCommand, parse, print, type Stack } from './grammar.ts';
import { isGettable, nameOf, type Tree, words } from './recipes.ts';

/** Actions that a list of commands offers at all, whatever is held. */
export interface Offers {
  /** `inventory` where it is listed, then gets in the order of their first mention; can always be executed. */
  readonly always: readonly string[];
  /** Crafts in the order of the list, tags filled; can be executed when their ingredients are held. */
  readonly crafts: readonly CraftOffer[];
}

export interface CraftOffer {
  readonly action: string;
  readonly effect: CraftEffect;
}

/**
 * Amounts in which a found item is listed: those that the commands name, or besides them the powers of two up to a full
 * stack, so that what several crafts need can be found in one turn.
 */
export type Amounts = 'named' | 'powers';

/** Most of an item that Minecraft puts in one place; the rules set no limit. */
const FULL_STACK = 64;

/** Share of one command in the offers. */
interface Part {
  readonly gets: readonly Stack[];
  readonly crafts: readonly CraftOffer[];
}

/** Ways of filling one command's tags that are offered at most; no recipe of the tree has more than 15. */
const MAX_WAYS = 64;
const REMEMBERED = 8192;

/** Book of offers: computes them, and remembers those of each command, since lists share most commands. */
export class OfferBook {
  readonly #effects: Effects;
  readonly #amounts: Amounts;
  readonly #parts = new Map<string, Part>();

  constructor(effects: Effects, amounts: Amounts) {
    this.#effects = effects;
    this.#amounts = amounts;
  }

  of(commands: readonly string[], listInventory: boolean): Offers {
    const stacks: Stack[] = [];
    const crafts = new Map<string, CraftOffer>();
    for (const listed of commands) {
      const part = this.#partOf(listed);
      append(stacks, part.gets);
      for (const offer of part.crafts) if (!crafts.has(offer.action)) crafts.set(offer.action, offer);
    }
    const gets = new Set(listStacks(stacks, this.#amounts).map((stack) => print({ type: 'get', stack })));
    return { always: [...(listInventory ? ['inventory'] : []), ...gets], crafts: [...crafts.values()] };
  }

  #partOf(listed: string): Part {
    const known = this.#parts.get(listed);
    if (known) return known;
    const part = this.#work(listed);
    if (this.#parts.size >= REMEMBERED) this.#parts.clear();
    this.#parts.set(listed, part);
    return part;
  }

  #work(listed: string): Part {
    const { tree } = this.#effects;
    const command = parse(listed);
    if (command.type !== 'craft') return { gets: [], crafts: [] };
    const found = command.using.filter(({ item }) => isGettable(tree, nameOf(item)));
    const crafts: CraftOffer[] = [];
    for (const action of waysOf(tree, command, listed)) {
      const effect = this.#effects.of(action);
      if (effect.type === 'craft' && effect.makes) crafts.push({ action, effect });
    }
    return { gets: found, crafts };
  }
}

/**
 * Amounts and items that `get` is listed with.
 * @param named by the commands
 * @returns `named` as they are; with powers each item's amounts, ascending, items in the order of their first mention
 */
export function listStacks(named: readonly Stack[], amounts: Amounts): readonly Stack[] {
  if (amounts === 'named') return named;
  const byItem = new Map<string, Set<number>>();
  for (const { item, amount } of named) byItem.set(item, (byItem.get(item) ?? new Set()).add(Number(amount)));
  return [...byItem].flatMap(([item, found]) => {
    for (let power = 1; power <= FULL_STACK; power *= 2) found.add(power);
    return [...found].sort((a, b) => a - b).map((amount) => ({ amount, item }));
  });
}

/** Offers that can be executed with what is held. */
export function listActions({ always, crafts }: Offers, held: Inventory): readonly string[] {
  if (held.size === 0) return always;
  const actions = always.slice();
  for (const { action, effect } of crafts) if (isHeld(effect, held)) actions.push(action);
  return actions;
}

/** Ways to write a command: every choice of items for its tags, as action text; without tags, as it is listed. */
function waysOf(tree: Tree, command: CraftCommand, listed: string): readonly string[] {
  if (!command.using.some(({ item }) => tree.tags.has(nameOf(item)))) return [listed];
  let ways: Stack[][] = [[]];
  for (const stack of command.using) {
    const members = tree.membersOf.get(nameOf(stack.item));
    const items = members ? members.map(words) : [stack.item];
    ways = ways.flatMap((way) => items.map((item) => [...way, { amount: stack.amount, item }])).slice(0, MAX_WAYS);
  }
  return ways.map((using) => print({ ...command, using }));
}

function isHeld({ takes }: CraftEffect, held: Inventory): boolean {
  for (const { item, amount } of takes) {
    const n = held.get(item);
    if (n === undefined || n < amount) return false;
  }
  return true;
}
