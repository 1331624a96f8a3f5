/**
 * Crafting tree: every recipe of the world, the items that can be found or must be made, and their depths. Built once
 * from the derived data by the original's rules, in the original's load order; immutable.
 */
import { largestOf, smallestOf } from '../../src/core/extremes.ts';
import { RECIPE_LINES } from './data/recipes.ts';

/** Item number, in the order in which the tree first meets them. */
export type Item = number;

export interface Ingredient {
  /** Item or tag, with underscores and without the `minecraft:` prefix. */
  readonly name: string;
  /** True where any item of the tag `name` serves. */
  readonly tag: boolean;
  readonly count: number;
}

export interface Recipe {
  readonly output: string;
  readonly count: number;
  /** Group of the recipe, which TextCraft takes for the output's tag. */
  readonly tag: string | undefined;
  readonly ingredients: readonly Ingredient[];
  /** Command that crafts it, as listed to the agent: `craft 4 stick using 2 planks`. */
  readonly command: string;
}

export interface Goal {
  readonly item: string;
  /** Longest chain of crafts on the easiest way, 1 … 4. */
  readonly depth: number;
}

export interface Tree {
  /** Recipes of an item, in load order; the first that fits is crafted. */
  readonly recipesOf: ReadonlyMap<string, readonly Recipe[]>;
  readonly recipesOfTag: ReadonlyMap<string, readonly Recipe[]>;
  /** Names of all items, by number. */
  readonly items: readonly string[];
  readonly numberOf: ReadonlyMap<string, Item>;
  readonly tags: ReadonlySet<string>;
  readonly tagOf: ReadonlyMap<string, string>;
  /** Members of a tag, in load order. */
  readonly membersOf: ReadonlyMap<string, readonly string[]>;
  /**
   * Uses of an item or tag: the recipes that use it, twice where the recipe has a group, so that these are drawn more
   * often.
   */
  readonly usesOf: ReadonlyMap<string, readonly Recipe[]>;
  /** Goals by task index: 544 items by depth, within a depth in load order. */
  readonly goals: readonly Goal[];
}

/** Words of a name: `oak_planks` → `oak planks`. */
export function words(name: string): string {
  return name.replaceAll('_', ' ');
}

/** Name of words: `oak planks` → `oak_planks`; only blanks become underscores, nothing else is corrected. */
export function nameOf(text: string): string {
  return text.replaceAll(' ', '_');
}

/** True for what `get` finds: a known item that no recipe makes. */
export function isGettable(tree: Tree, name: string): boolean {
  return tree.numberOf.has(name) && !tree.tags.has(name) && !tree.recipesOf.has(name) && !tree.recipesOfTag.has(name);
}

/** Stand-ins, the items that may serve as an ingredient: itself, or the members of its tag. */
export function standIns(tree: Tree, { name, tag }: Ingredient): readonly string[] {
  return tag ? (tree.membersOf.get(name) ?? []) : [name];
}

interface Draft {
  readonly output: string;
  readonly count: number;
  readonly group: string | undefined;
  readonly ingredients: Ingredient[];
}

/**
 * Builds the tree from recipe lines (format: data/recipes.ts).
 *
 * Load order decides three things, so it is kept: a recipe that would close a cycle with those before it is left
 * out; of two recipes that fit, the first is crafted; goals of one depth follow it. A recipe whose only ingredient
 * ends in `_block` is left out too (its items still exist).
 *
 * @see AgentGym, agentenv-textcraft at 3ef9235d, over sorted file names
 */
export function buildTree(lines: string): Tree {
  const items = new Set<string>();
  const tags = new Set<string>();
  const tagOf = new Map<string, string>();
  const kept: Draft[] = [];
  /** Items below an output. */
  const below = new Map<string, Set<string>>();

  for (const draft of lines.trim().split('\n').map(readLine)) {
    const { output, group, ingredients } = draft;
    for (const { name, tag } of ingredients) (tag ? tags : items).add(name);
    items.add(output);
    if (ingredients.length === 1 && ingredients[0]!.name.endsWith('_block')) continue;
    if (group !== undefined && group !== output) {
      tags.add(group);
      tagOf.set(output, group);
    }
    const mine = below.get(output) ?? new Set();
    below.set(output, mine);
    if (ingredients.some(({ name }) => below.get(name)?.has(output))) continue;
    for (const { name } of ingredients) {
      mine.add(name);
      for (const deeper of below.get(name) ?? []) mine.add(deeper);
    }
    kept.push(draft);
  }

  // A tag none of whose items can be crafted becomes an item of its own, to be found: `get 1 oak logs`.
  const made = new Set(kept.map(({ output }) => output));
  const membersOf = groupBy(
    tagOf,
    ([, tag]) => tag,
    ([item]) => item,
  );
  const literal = new Set<string>();
  for (const { ingredients } of kept) {
    for (const [i, ingredient] of ingredients.entries()) {
      if (!ingredient.tag || membersOf.get(ingredient.name)?.some((member) => made.has(member))) continue;
      ingredients[i] = { ...ingredient, tag: false };
      literal.add(ingredient.name);
    }
  }
  for (const name of literal) {
    tags.delete(name);
    items.add(name);
  }

  const recipes = kept.map(toRecipe);
  const recipesOf = groupBy(
    recipes,
    ({ output }) => output,
    (recipe) => recipe,
  );
  const recipesOfTag = groupBy(
    recipes.filter(({ tag }) => tag !== undefined),
    ({ tag }) => tag!,
    (recipe) => recipe,
  );
  const uses = [...recipesOf.values(), ...recipesOfTag.values()]
    .flat()
    .flatMap((recipe) => recipe.ingredients.map(({ name }) => ({ name, recipe })));
  const names = [...items];
  return {
    recipesOf,
    recipesOfTag,
    items: names,
    numberOf: new Map(names.map((name, i) => [name, i])),
    tags,
    tagOf,
    membersOf,
    usesOf: groupBy(
      uses,
      ({ name }) => name,
      ({ recipe }) => recipe,
    ),
    goals: goalsOf(recipesOf, recipesOfTag),
  };
}

function readLine(line: string): Draft {
  const [head = '', using = ''] = line.split(' < ');
  const [, group, count, output] = head.split(' ');
  const ingredients = using.split(', ').map((part) => {
    const [n, name = ''] = part.split(' ');
    return { name: name.replace('#', ''), tag: name.startsWith('#'), count: Number(n) };
  });
  return { output: output!, count: Number(count), group: group === '-' ? undefined : group, ingredients };
}

function toRecipe({ output, count, group, ingredients }: Draft): Recipe {
  const using = ingredients.map((ingredient) => `${ingredient.count} ${words(ingredient.name)}`).join(', ');
  return { output, count, tag: group, ingredients, command: `craft ${count} ${words(output)} using ${using}` };
}

/**
 * Goals by depth: an item is as deep as its easiest recipe, a recipe one deeper than its deepest ingredient; found
 * things are 0.
 */
function goalsOf(
  recipesOf: ReadonlyMap<string, readonly Recipe[]>,
  recipesOfTag: ReadonlyMap<string, readonly Recipe[]>,
): readonly Goal[] {
  const depths = new Map<string, number>();
  const depthOf = (name: string): number => {
    const known = depths.get(name);
    if (known !== undefined) return known;
    const recipes = recipesOf.get(name) ?? recipesOfTag.get(name) ?? [];
    const ways = recipes.map(({ ingredients }) => 1 + largestOf(ingredients.map((one) => depthOf(one.name))));
    const depth = ways.length === 0 ? 0 : smallestOf(ways);
    depths.set(name, depth);
    return depth;
  };
  return [...recipesOf.keys()]
    .map((item) => ({ item, depth: depthOf(item) }))
    .filter(({ depth }) => depth > 0)
    .sort((a, b) => a.depth - b.depth);
}

function groupBy<T, V>(
  entries: Iterable<T>,
  keyOf: (entry: T) => string,
  contentOf: (entry: T) => V,
): Map<string, V[]> {
  const groups = new Map<string, V[]>();
  for (const entry of entries) {
    const key = keyOf(entry);
    const group = groups.get(key);
    if (group) group.push(contentOf(entry));
    else groups.set(key, [contentOf(entry)]);
  }
  return groups;
}

/** Tree of the world: the whole rule book, over sorted file names. */
export const TREE: Tree = buildTree(RECIPE_LINES);
