/** Drawing for console and viewer: the items held, and the goal's recipes with the ingredients at hand. */
import type { Draw, ListPanel, TextPanel } from '../../src/core/draw.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { TextCraft } from './env.ts';
import type { Amount } from './grammar.ts';
import { type Ingredient, type Tree, words } from './recipes.ts';
import { readOpening } from './text.ts';

const MAX_LINES = 40;

/** Worlds by what varies names and recipes: each keeps the rule books of the seeds it has opened. */
const worlds = new Map<string, TextCraft>();

export const draw: Draw = (task, first, turns, options = {}) => {
  const start = readOpening(first.observation);
  const world = worldOf(options);
  const session = world.openFrom(start, task.seed);
  for (const { action } of turns) session.step(action);
  const held = new Map(session.inventory);
  return { panels: [inventoryPanel(start.goal, held), recipesPanel(world.treeUnder(task.seed), start.goal, held)] };
};

function worldOf(options: EnvOptions): TextCraft {
  const names = options.names === 'permuted' ? 'permuted' : 'true';
  const recipes = options.recipes === 'recombined' || options.recipes === 'mixed' ? options.recipes : 'true';
  const order = options.order === 'agenttraj' ? 'agenttraj' : 'sorted';
  const key = `${names} ${recipes} ${order}`;
  let world = worlds.get(key);
  if (!world) worlds.set(key, (world = new TextCraft({ fidelity: 'original', names, recipes, order })));
  return world;
}

function inventoryPanel(goal: string, held: ReadonlyMap<string, Amount>): ListPanel {
  const items = Array.from(held, ([name, amount]) => {
    const entry = { name: words(name), count: Number(amount) };
    return name === goal ? { ...entry, mark: 'goal' as const } : entry;
  });
  return { kind: 'list', title: 'Inventory', items };
}

/**
 * Recipes panel: the goal's tree, ingredients indented under each recipe; `+` is held in the number needed, `-` is not.
 */
function recipesPanel(tree: Tree, goal: string, held: ReadonlyMap<string, Amount>): TextPanel {
  const lines: string[] = [];
  const seen = new Set<string>();
  const visit = (name: string, indent: string) => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const recipe of tree.recipesOf.get(name) ?? tree.recipesOfTag.get(name) ?? []) {
      lines.push(`${indent}${recipe.count} ${words(recipe.output)} from`);
      for (const ingredient of recipe.ingredients) {
        lines.push(
          `${indent}  ${isAtHand(tree, ingredient, held) ? '+' : '-'} ${ingredient.count} ${words(ingredient.name)}`,
        );
        visit(ingredient.name, `${indent}    `);
      }
    }
  };
  visit(goal, '');
  const shown =
    lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES - 1), `… ${lines.length - MAX_LINES + 1} more`] : lines;
  return { kind: 'text', title: `Goal: ${words(goal)}`, lines: shown };
}

function isAtHand(tree: Tree, { name, tag, count }: Ingredient, held: ReadonlyMap<string, Amount>): boolean {
  const names = tag ? (tree.membersOf.get(name) ?? []) : [name];
  return names.some((one) => (held.get(one) ?? 0) >= count);
}
