/** Texts: every sentence that the agent reads, word for word the original's, and the parser of an opening. */

import { describeValue } from '../../src/core/describe-value.ts';
import { reprText } from '../../src/core/python-text.ts';
import type { Amount } from './grammar.ts';
import { nameOf, words } from './recipes.ts';

/** Start of an episode. The rule book is always the whole tree, not just the listed commands. */
export interface Start {
  /** Item to be made, with underscores and without the `minecraft:` prefix. */
  readonly goal: string;
  /** Recipes listed to the agent: all that the goal may need, and some that distract. */
  readonly commands: readonly string[];
}

const HEAD = 'Crafting commands:\n';
const GOAL = '\n\nGoal: craft ';

export function opening({ goal, commands }: Start): string {
  return `${HEAD}${commands.join('\n')}${GOAL}${words(goal)}.`;
}

/** Reads the start that an opening describes. @throws {RangeError} for a text that `opening` did not write */
export function readOpening(observation: string): Start {
  const at = observation.lastIndexOf(GOAL);
  if (!observation.startsWith(HEAD) || at < HEAD.length || !observation.endsWith('.')) {
    throw new RangeError(`textcraft: not an opening observation: ${describeValue(observation, 80)}`);
  }
  const list = observation.slice(HEAD.length, at);
  return {
    goal: nameOf(observation.slice(at + GOAL.length, -1)),
    commands: list === '' ? [] : list.split('\n'),
  };
}

export function formatGot(amount: Amount, item: string): string {
  return `Got ${amount} ${item}`;
}

export function formatNotFound(item: string): string {
  return `Could not find ${item}`;
}

export function formatCrafted(count: number, name: string): string {
  return `Crafted ${count} minecraft:${name}`;
}

/** Reply to a lack of items. @param id `minecraft:…`, or `None` where the original has lost the name */
export function formatNotEnough(id: string): string {
  return `Could not find enough items to craft ${id}`;
}

/** Reply without a recipe: the original prints its own data class here, in Python's notation. */
export function formatNoRecipe(id: string, isTag: boolean, amount: Amount): string {
  const [tag, item] = isTag ? [reprText(id), 'None'] : ['None', reprText(id)];
  return `Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag=${tag}, item_id=${item}), count=${amount})`;
}

export function wrongFormat(part: string): string {
  return `Wrong item format: ${part}`;
}

export function formatNotExecuted(action: string): string {
  return `Could not execute ${action}`;
}

export const INVENTORY = 'Inventory: ';
export const EMPTY = 'You are not carrying anything.';

/** Inventory text: every entry is followed by a space, the last one too. */
export function inventory(held: Iterable<readonly [name: string, amount: Amount]>): string {
  let list = '';
  for (const [name, amount] of held) list += `[${words(name)}] (${amount}) `;
  return INVENTORY + (list || EMPTY);
}

export function formatOver(goal: string): string {
  return `The episode is over: ${words(goal)} has been made.`;
}
