/**
 * Effect of an action, worked out as far as it can be without knowing what is held. An agent repeats the same few dozen
 * actions, so effects are remembered by action text.
 */
import { type Mid, mid } from '../../src/core/env.ts';
import { type Amount, type CraftCommand, type GetCommand, parse, type Stack } from './grammar.ts';
import { type Ingredient, type Item, isGettable, nameOf, type Recipe, standIns, type Tree } from './recipes.ts';
import * as text from './text.ts';

export type Effect = ReplyEffect | InventoryEffect | GetEffect | CraftEffect;

/** Reply effect: the same answer whatever is held; nothing changes. */
export interface ReplyEffect {
  readonly type: 'reply';
  readonly answer: Mid;
}
export interface InventoryEffect {
  readonly type: 'inventory';
}
export interface GetEffect {
  readonly type: 'get';
  readonly item: Item;
  readonly amount: Amount;
  readonly answer: Mid;
}
export interface CraftEffect {
  readonly type: 'craft';
  readonly takes: readonly Taken[];
  /** Answer when something of `takes` is not held. */
  readonly lacking: Mid;
  /** Answer when all is held: the craft succeeds, or no recipe fits and nothing changes. */
  readonly answer: Mid;
  readonly makes: { readonly item: Item; readonly count: number } | undefined;
}

export interface Taken {
  readonly item: Item;
  readonly amount: Amount;
}

/** Fidelity. `original` does as AgentGym's server does; `corrected` differs from it as the README's table lists. */
export type Fidelity = 'corrected' | 'original';

/** Longest action that the corrected world reads, in UTF-16 units. */
const MAX_ACTION_CHARS = 1000;
/** Most digits of a number in an action that the corrected world reads. */
const MAX_DIGITS = 30;

const REMEMBERED = 8192;

export class Effects {
  readonly tree: Tree;
  readonly fidelity: Fidelity;
  readonly #known = new Map<string, Effect>();

  constructor(tree: Tree, fidelity: Fidelity) {
    this.tree = tree;
    this.fidelity = fidelity;
  }

  of(action: string): Effect {
    const known = this.#known.get(action);
    if (known) return known;
    const effect = this.#work(action);
    if (action.length <= 128) {
      if (this.#known.size >= REMEMBERED) this.#known.clear();
      this.#known.set(action, effect);
    }
    return effect;
  }

  #work(action: string): Effect {
    if (this.fidelity === 'corrected' && isOutsize(action)) {
      const start = action.slice(0, MAX_ACTION_CHARS);
      return reply(text.formatNotExecuted(start.length < action.length ? `${start}…` : start));
    }
    const command = parse(action);
    switch (command.type) {
      case 'inventory':
        return { type: 'inventory' };
      case 'get':
        return this.#get(command);
      case 'craft':
        return this.#craft(command);
      case 'malformed':
        return reply(text.wrongFormat(command.part));
      case 'unknown':
        return reply(text.formatNotExecuted(action));
    }
  }

  #get({ stack: { amount, item } }: GetCommand): Effect {
    const name = nameOf(item);
    if (!isGettable(this.tree, name)) return reply(text.formatNotFound(item));
    return { type: 'get', item: this.tree.numberOf.get(name)!, amount, answer: mid(text.formatGot(amount, item)) };
  }

  #craft({ makes, using }: CraftCommand): Effect {
    const { tree, fidelity } = this;
    const output = nameOf(makes.item);
    const isTag = tree.tags.has(output);
    const lacking = mid(text.formatNotEnough(isTag && fidelity === 'original' ? 'None' : `minecraft:${output}`));
    const takes: Taken[] = [];
    for (const { amount, item } of using) {
      const name = nameOf(item);
      const number = tree.tags.has(name) ? undefined : tree.numberOf.get(name);
      if (number === undefined) return { type: 'reply', answer: lacking }; // a tag or no item at all: never held
      takes.push({ item: number, amount });
    }
    const recipe = isTag ? undefined : tree.recipesOf.get(output)?.find((one) => fits(tree, one, using));
    if (!recipe) {
      const answer = mid(text.formatNoRecipe(`minecraft:${output}`, isTag, makes.amount));
      return { type: 'craft', takes, lacking, answer, makes: undefined };
    }
    const answer = mid(text.formatCrafted(recipe.count, recipe.output));
    const made = { item: tree.numberOf.get(recipe.output)!, count: recipe.count };
    return { type: 'craft', takes, lacking, answer, makes: made };
  }
}

/**
 * True if the stacks are the recipe's ingredients, in any order, each exactly in its number. The output's number is
 * not checked: `craft 99 stick using 2 oak planks` makes 4.
 */
function fits(tree: Tree, recipe: Recipe, stacks: readonly Stack[]): boolean {
  const left = [...stacks];
  for (const ingredient of recipe.ingredients) {
    const at = left.findIndex(({ item }) => isStandIn(tree, ingredient, nameOf(item)));
    if (at < 0 || left[at]!.amount !== ingredient.count) return false;
    left.splice(at, 1);
  }
  return left.length === 0;
}

function isStandIn(tree: Tree, ingredient: Ingredient, name: string): boolean {
  return standIns(tree, ingredient).includes(name);
}

function isOutsize(action: string): boolean {
  if (action.length > MAX_ACTION_CHARS) return true;
  return action.length > MAX_DIGITS && new RegExp(`[0-9]{${MAX_DIGITS + 1}}`).test(action);
}

function reply(observation: string): ReplyEffect {
  return { type: 'reply', answer: mid(observation) };
}
