/**
 * The actions that can be executed now. What the rules allow is endless (any amount of any item); what is listed is
 * what the listed commands speak of: finding an ingredient in an amount they name, and crafting what they craft when
 * its ingredients are held, a tag standing for each held item of that tag.
 */
import type { CraftEffect, Effects } from './effects.ts';
import type { Inventory } from './env.ts';
import { type CraftCommand, parse, print, type Stack } from './grammar.ts';
import { isGettable, nameOf, type Tree, words } from './recipes.ts';

/** A line of the list before it is known what is held. */
export type Offer = GetOffer | CraftOffer | TagOffer;

/** Can always be executed. */
interface GetOffer {
  readonly type: 'get';
  readonly action: string;
}
interface CraftOffer {
  readonly type: 'craft';
  readonly action: string;
  readonly effect: CraftEffect;
}
/** A command with a tag among its ingredients. */
interface TagOffer {
  readonly type: 'tag';
  readonly command: CraftCommand;
  /** For each ingredient the names that may stand for it. */
  readonly choices: readonly (readonly string[])[];
}

/** Ways of filling one command's tags that are listed at most. */
const MAX_WAYS = 64;

/** Reads the listed commands once: gets in the order of their first mention, then crafts in the order of the list. */
export function offersOf(effects: Effects, commands: readonly string[]): readonly Offer[] {
  const { tree } = effects;
  const gets = new Set<string>();
  const crafts: Offer[] = [];
  for (const listed of new Set(commands)) {
    const command = parse(listed);
    if (command.type !== 'craft') continue;
    for (const stack of command.using) {
      if (isGettable(tree, nameOf(stack.item))) gets.add(print({ type: 'get', stack }));
    }
    if (command.using.some((stack) => tree.tags.has(nameOf(stack.item)))) {
      crafts.push({ type: 'tag', command, choices: command.using.map((stack) => choicesFor(tree, stack)) });
    } else {
      const effect = effects.of(listed);
      if (effect.type === 'craft' && effect.makes) crafts.push({ type: 'craft', action: listed, effect });
    }
  }
  return [...Array.from(gets, (action): Offer => ({ type: 'get', action })), ...crafts];
}

/** `inventory`, then the offers that what is held allows, in their order, each once. */
export function listActions(effects: Effects, offers: readonly Offer[], held: Inventory): readonly string[] {
  const actions = ['inventory'];
  for (const offer of offers) {
    if (offer.type === 'get') actions.push(offer.action);
    else if (offer.type === 'craft') {
      if (isHeld(offer.effect, held)) actions.push(offer.action);
    } else {
      for (const action of waysOf(effects.tree, offer, held)) {
        const effect = effects.of(action);
        if (effect.type === 'craft' && effect.makes && isHeld(effect, held) && !actions.includes(action)) {
          actions.push(action);
        }
      }
    }
  }
  return actions;
}

/** Every way of filling the command with held items, as action text. */
function waysOf(tree: Tree, { command, choices }: TagOffer, held: Inventory): readonly string[] {
  let ways: Stack[][] = [[]];
  for (const [i, { amount }] of command.using.entries()) {
    const able = choices[i]!.filter((name) => {
      const item = tree.numberOf.get(name);
      const n = item === undefined ? undefined : held.get(item);
      return n !== undefined && n >= amount;
    });
    ways = ways.flatMap((way) => able.map((name) => [...way, { amount, item: words(name) }]));
    if (ways.length > MAX_WAYS) ways.length = MAX_WAYS;
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

function choicesFor(tree: Tree, stack: Stack): readonly string[] {
  const name = nameOf(stack.item);
  return tree.tags.has(name) ? (tree.membersOf.get(name) ?? []) : [name];
}
