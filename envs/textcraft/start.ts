/** Starts of episodes: draws the goal of a task index and the commands listed for a seed. */
import { Rng, seedFrom } from '../../src/core/rng.ts';
import type { Recipe, Tree } from './recipes.ts';
import type { Start } from './text.ts';

/** Recipes listed at most beside those that the goal may need. */
const MAX_DISTRACTORS = 10;
/** Uses of an ingredient that are drawn as candidates. */
const MAX_USES = 10;

/**
 * Lists every recipe on any way to the goal, and up to ten others that use something of what those use, shuffled.
 * The original draws them the same way (an ingredient puts forward ten of its uses, repeats among them), but from
 * Python's hash order; ours come from (index, seed) alone.
 *
 * @throws {RangeError} for an index without a goal
 */
export function drawStart(tree: Tree, index: number, seed: number): Start {
  const goal = tree.goals[index];
  if (!goal)
    throw new RangeError(`textcraft: task index must be an integer in [0, ${tree.goals.length}), got ${index}`);
  const rng = Rng.fromSeed(seedFrom('textcraft', index, seed));
  const needed = waysTo(tree, goal.item);
  const commands = new Set(needed.map(({ command }) => command));
  const others = new Set<string>();
  for (const name of new Set(needed.flatMap(({ ingredients }) => ingredients.map((one) => one.name)))) {
    for (const { command } of sample(rng, tree.usesOf.get(name) ?? [], MAX_USES)) {
      if (!commands.has(command)) others.add(command);
    }
  }
  const listed = [...commands, ...sample(rng, [...others], MAX_DISTRACTORS)];
  return { goal: goal.item, commands: rng.shuffle(listed) };
}

/** Ways to an item: every recipe that may be used, from the item down; a tag brings those of all its members. */
export function waysTo(tree: Tree, item: string): readonly Recipe[] {
  const recipes = new Set<Recipe>();
  const seen = new Set<string>();
  const visit = (name: string) => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const recipe of tree.recipesOf.get(name) ?? tree.recipesOfTag.get(name) ?? []) {
      recipes.add(recipe);
      for (const ingredient of recipe.ingredients) visit(ingredient.name);
    }
  };
  visit(item);
  return [...recipes];
}

/**
 * Samples up to `n` of the places of `items`, none twice, in random order (the first n steps of a Fisher–Yates
 * shuffle).
 */
function sample<T>(rng: Rng, items: readonly T[], n: number): readonly T[] {
  const pool = [...items];
  const size = Math.min(n, pool.length);
  for (let i = 0; i < size; i++) {
    const j = i + rng.int(pool.length - i);
    [pool[i], pool[j]] = [pool[j]!, pool[i]!];
  }
  return pool.slice(0, size);
}
