/**
 * Variants of the rule book for training, drawn from a task's seed: item names permuted, recipes recombined. They teach
 * to read a list of recipes, since neither a name nor a familiar recipe suffices to choose an action.
 *
 * Both change the distribution of training tasks and are named wherever a result rests on them. Evaluation
 * (`EVAL_SEED`) always has the rule book itself.
 */
import { largestOf, smallestOf } from '../../src/core/extremes.ts';
import type { Rng } from '../../src/core/rng.ts';
import { type Ingredient, type Recipe, type Tree, words } from './recipes.ts';

export interface Variation {
  /** Permutes item names: members of a tag within it, items without a tag among themselves. */
  readonly names: boolean;
  /**
   * Share of variants, in [0, 1], whose recipes are recombined: each ingredient without a tag is replaced by one of the same
   * depth without a tag, drawn as often as the rule book uses it, so that what many recipes share, many share in a variant
   * too. No two recipes of one output take the same ingredients. An index keeps its goal's depth; recipes that are not on
   * an easiest way (33 of 613) are left out, so no cycle arises. The other variants keep the true recipes, all of them.
   */
  readonly recombined: number;
}

/** Variants of one rule book: what all of them share is worked out once, since training draws one for every group. */
export class Variants {
  readonly #tree: Tree;
  readonly #variation: Variation;
  /** Recipes in load order within their output, and those on an easiest way, which are recombined. */
  readonly #recipes: readonly Recipe[];
  readonly #easiest: readonly Recipe[];
  /** Items that may stand in the place of an ingredient, once for each recipe that uses them: of its depth, neither with a tag. */
  readonly #pools: ReadonlyMap<string, readonly string[]>;
  /** Ingredients of the recipes that make one thing in several ways, by output. */
  readonly #waysOf: ReadonlyMap<string, readonly string[]>;
  /** Names that are permuted among themselves. */
  readonly #classes: readonly (readonly string[])[];

  constructor(tree: Tree, variation: Variation) {
    const depthOf = depths(tree);
    const isEasiest = ({ output, ingredients }: Recipe) =>
      1 + largestOf(ingredients.map(depthOf)) === depthOf({ name: output, tag: false });
    this.#tree = tree;
    this.#variation = variation;
    this.#recipes = [...tree.recipesOf.values()].flat();
    this.#easiest = this.#recipes.filter(isEasiest);
    this.#pools = poolsOf(tree, this.#easiest);
    this.#waysOf = waysOf(this.#easiest);
    // A name that a recipe's group has too is left alone: it would make what bears it craftable (`iron_ingot`).
    const untagged = tree.items.filter((name) => !tree.tagOf.has(name) && !tree.recipesOfTag.has(name));
    this.#classes = [untagged, ...[...tree.membersOf.values()].map((members) => [...new Set(members)])];
  }

  /** Draws a variant; indices of goals and depths stay what they were. */
  draw(rng: Rng): Tree {
    const { names, recombined } = this.#variation;
    const recombines = rng.split('share').float() < recombined;
    const recipes = recombines ? this.#recombine(rng.split('recipes')) : this.#recipes;
    if (!names) return withRecipes(this.#tree, recipes);
    const to = this.#drawNames(rng.split('names'));
    const of = (name: string) => to.get(name) ?? name;
    const renamed = recipes.map(({ output, count, tag, ingredients }) => {
      const used = ingredients.map((one) => (one.tag ? one : { name: of(one.name), tag: false, count: one.count }));
      return new Varied(of(output), count, tag, used);
    });
    const goals = this.#tree.goals.map(({ item, depth }) => ({ item: of(item), depth }));
    return { ...withRecipes(this.#tree, renamed), goals };
  }

  #recombine(rng: Rng): readonly Recipe[] {
    const ways = new Map(this.#waysOf);
    return this.#easiest.map((recipe) => {
      const used = recipe.ingredients.map(({ name }) => name);
      const ingredients = recipe.ingredients.map((ingredient) => {
        const pool = ingredient.tag ? undefined : this.#pools.get(ingredient.name);
        if (!pool) return ingredient;
        const name = pool[rng.int(pool.length)]!;
        if (used.includes(name)) return ingredient; // an item stands in a recipe once
        used.push(name);
        return { name, tag: false, count: ingredient.count };
      });
      const { output, count, tag } = recipe;
      const taken = ways.get(output);
      if (taken) {
        // Two ways with the same ingredients are one command to the world, and one of two yields is never had.
        const now = keyIngredients(ingredients);
        if (now !== keyIngredients(recipe.ingredients) && taken.includes(now)) return recipe;
        ways.set(output, [...taken, now]);
      }
      return new Varied(output, count, tag, ingredients);
    });
  }

  /** New name of each item that gets one. */
  #drawNames(rng: Rng): ReadonlyMap<string, string> {
    const to = new Map<string, string>();
    for (const names of this.#classes) {
      const shuffled = rng.shuffle(names);
      for (const [at, name] of names.entries()) to.set(name, shuffled[at]!);
    }
    return to;
  }
}

/** Key of ingredients, the same in any order. */
function keyIngredients(ingredients: readonly Ingredient[]): string {
  const parts = ingredients.map(({ name, count }) => `${count} ${name}`);
  return parts.sort().join(', ');
}

/** Ingredients of each recipe, by output, of the outputs that more than one recipe makes. */
function waysOf(recipes: readonly Recipe[]): ReadonlyMap<string, readonly string[]> {
  const ways = new Map<string, string[]>();
  for (const { output, ingredients } of recipes)
    ways.set(output, [...(ways.get(output) ?? []), keyIngredients(ingredients)]);
  return new Map([...ways].filter(([, several]) => several.length > 1));
}

/** Ingredients without a tag of the recipes, by name: all those of the same depth, once for each recipe that has them. */
function poolsOf(tree: Tree, recipes: readonly Recipe[]): ReadonlyMap<string, readonly string[]> {
  const depthOf = depths(tree);
  const byDepth = new Map<number, string[]>();
  const pools = new Map<string, readonly string[]>();
  for (const ingredient of recipes.flatMap(({ ingredients }) => ingredients)) {
    if (ingredient.tag || tree.tagOf.has(ingredient.name)) continue;
    const depth = depthOf(ingredient);
    const pool = byDepth.get(depth) ?? [];
    byDepth.set(depth, pool);
    pool.push(ingredient.name);
    pools.set(ingredient.name, pool);
  }
  return pools;
}

/** Depth of an ingredient: of an item, or of its tag's easiest member; 0 for what is found. */
function depths(tree: Tree): (ingredient: Pick<Ingredient, 'name' | 'tag'>) => number {
  const known = new Map(tree.goals.map(({ item, depth }) => [item, depth]));
  return ({ name, tag }) =>
    tag ? smallestOf((tree.membersOf.get(name) ?? []).map((member) => known.get(member) ?? 0)) : (known.get(name) ?? 0);
}

/** Varied recipe, whose command is written when it is first read: few of a variant's 613 are. */
class Varied implements Recipe {
  readonly output: string;
  readonly count: number;
  readonly tag: string | undefined;
  readonly ingredients: readonly Ingredient[];

  constructor(output: string, count: number, tag: string | undefined, ingredients: readonly Ingredient[]) {
    this.output = output;
    this.count = count;
    this.tag = tag;
    this.ingredients = ingredients;
  }

  get command(): string {
    const using = this.ingredients.map(({ count, name }) => `${count} ${words(name)}`).join(', ');
    return `craft ${this.count} ${words(this.output)} using ${using}`;
  }
}

/** Tree of the same items and tags under other recipes. */
function withRecipes(tree: Tree, recipes: readonly Recipe[]): Tree {
  const recipesOf = new Map<string, Recipe[]>();
  const recipesOfTag = new Map<string, Recipe[]>();
  const usesOf = new Map<string, Recipe[]>();
  const add = (map: Map<string, Recipe[]>, key: string, recipe: Recipe) => {
    const list = map.get(key);
    if (list) list.push(recipe);
    else map.set(key, [recipe]);
  };
  for (const recipe of recipes) {
    add(recipesOf, recipe.output, recipe);
    if (recipe.tag !== undefined) add(recipesOfTag, recipe.tag, recipe);
    for (const { name } of recipe.ingredients) {
      add(usesOf, name, recipe);
      if (recipe.tag !== undefined) add(usesOf, name, recipe); // twice, as recipes.ts counts them
    }
  }
  return { ...tree, recipesOf, recipesOfTag, usesOf };
}
