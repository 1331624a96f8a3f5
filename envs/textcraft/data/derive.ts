/**
 * Derives TextCraft's recipes from the npm package `minecraft-data` and writes them to `recipes.ts` beside this file.
 * Run from the repository root, only when the recipes themselves are to be rebuilt:
 *
 *     npm install --no-save minecraft-data@3.117.0
 *     npm run build && node dist/envs/textcraft/data/derive.js [folder of minecraft-data]
 *
 * TextCraft plays the crafting recipes of Minecraft 1.16 (one JSON file a recipe), read in the order of their sorted
 * file names. `minecraft-data` 1.16.2 has the same recipes, but
 * - expanded: one variant for every member of a tag (`planks`) or of a list of alternatives (`sand | red_sand`);
 * - without the recipe's `group`, which TextCraft takes for the output's tag;
 * - without file names, and shaped recipes without the order in which the file declares its ingredients.
 * The tables below hold those facts of the game's files, as rules over item names where there is a rule. Everything
 * else (which recipes there are, their ingredients, counts and outputs) comes from the package.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGE = '3.117.0';
const VERSION = '1.16.2';
const TARGET = 'envs/textcraft/data/recipes.ts';

/** One crafting recipe as the game's file states it. */
interface Recipe {
  readonly file: string;
  readonly output: string;
  readonly count: number;
  readonly group: string;
  /** Ingredient name (tags begin with `#`) → count, in the file's order. */
  readonly ingredients: ReadonlyMap<string, number>;
}

/** One entry of `minecraft-data`: a single choice of ingredients. */
interface Variant {
  readonly output: string;
  readonly count: number;
  readonly shaped: boolean;
  /** Filled cells of the pattern; distinguishes patterns with the same cells. */
  readonly mask: string;
  /** Ingredient of each filled cell, row by row. */
  readonly cells: readonly string[];
}

/** Stand-in for a set of interchangeable items: a tag, or the first of a list of alternatives. */
interface Choice {
  readonly label: string;
  readonly members: readonly string[];
  /** Outputs the choice is restricted to, where two choices have the same members. */
  readonly only?: RegExp;
}

const WOODS = ['oak', 'spruce', 'birch', 'jungle', 'acacia', 'dark_oak'];
const STEMS = ['crimson', 'warped'];

/** The 16 ingredient tags of the crafting recipes, and the eight lists of alternatives (of which only the first counts). */
function choicesOver(items: readonly string[]): Choice[] {
  const filterBySuffix = (suffix: string) => items.filter((item) => item.endsWith(suffix));
  const trunk = (wood: string, log: string, bark: string) => {
    return [`${wood}_${log}`, `${wood}_${bark}`, `stripped_${wood}_${log}`, `stripped_${wood}_${bark}`];
  };
  const logs = WOODS.map((wood) => ({ label: `#${wood}_logs`, members: trunk(wood, 'log', 'wood') }));
  const stems = STEMS.map((wood) => ({ label: `#${wood}_stems`, members: trunk(wood, 'stem', 'hyphae') }));
  const coals = ['coal', 'charcoal'];
  const rocks = ['cobblestone', 'blackstone'];
  const alternatives = [
    ['purpur_block', 'purpur_pillar'],
    ['chiseled_quartz_block', 'quartz_block', 'quartz_pillar'],
    ['red_sandstone', 'chiseled_red_sandstone', 'cut_red_sandstone'],
    ['red_sandstone', 'chiseled_red_sandstone'],
    ['sandstone', 'chiseled_sandstone', 'cut_sandstone'],
    ['sandstone', 'chiseled_sandstone'],
    ['sand', 'red_sand'],
  ];
  return [
    { label: '#planks', members: filterBySuffix('_planks') },
    { label: '#wool', members: filterBySuffix('_wool') },
    { label: '#wooden_slabs', members: [...WOODS, ...STEMS].map((wood) => `${wood}_slab`) },
    { label: '#logs', members: [...logs, ...stems].flatMap(({ members }) => members) },
    ...logs,
    ...stems,
    { label: '#coals', members: coals, only: /^(soul_)?campfire$/ },
    { label: 'coal', members: coals, only: /^(torch|soul_torch|fire_charge)$/ },
    { label: '#stone_tool_materials', members: rocks, only: /^stone_(axe|hoe|pickaxe|shovel|sword)$/ },
    { label: '#stone_crafting_materials', members: rocks, only: /^(furnace|brewing_stand)$/ },
    { label: '#soul_fire_base_blocks', members: ['soul_sand', 'soul_soil'] },
    ...alternatives.map((members) => ({ label: members[0]!, members })),
  ].sort((a, b) => b.members.length - a.members.length);
}

const WOOD = `(${[...WOODS, ...STEMS].join('|')})`;

/** Output → group; the first match counts. */
const GROUPS: readonly (readonly [output: RegExp, group: string | ((recipe: Ungrouped) => string)])[] = [
  [/_bed$/, ({ ingredients }) => (ingredients.has('white_bed') ? 'dyed_bed' : 'bed')],
  [/^sugar$/, ({ file }) => (file === 'sugar' ? '' : 'sugar')],
  [/^white_wool$/, ''],
  [/_wool$/, 'wool'],
  [/^(cyan|gray|lime|purple)_dye$/, ''],
  [/_dye$|^(gold|iron|netherite)_ingot$|^rabbit_stew$/, ({ output }) => output],
  [new RegExp(`^${WOOD}_boat$`), 'boat'],
  [new RegExp(`^${WOOD}_planks$`), 'planks'],
  [new RegExp(`^${WOOD}_sign$`), 'sign'],
  [
    new RegExp(`^${WOOD}_(button|door|fence|fence_gate|pressure_plate|slab|stairs|trapdoor)$`),
    ({ output }) => output.replace(new RegExp(`^${WOOD}`), 'wooden'),
  ],
  [/_(wood|hyphae)$/, 'bark'],
  [
    /_(banner|carpet|concrete_powder|stained_glass|stained_glass_pane)$/,
    ({ output }) => COLOURED.exec(output)?.[1] ?? '',
  ],
  [/_terracotta$/, 'stained_terracotta'],
  [/^stick$/, 'sticks'],
  [/^bone_meal$/, 'bonemeal'],
];
const COLOURED = /(banner|carpet|concrete_powder|stained_glass|stained_glass_pane)$/;

/** Suffix of file names that are not the bare output's name: output, ingredients joined by spaces, suffix (`*`: those ingredients). */
const FILES: readonly (readonly [output: RegExp, ingredients: RegExp, suffix: string])[] = [
  [/_bed$/, /white_bed/, '_from_white_bed'],
  [/_carpet$/, /white_carpet/, '_from_white_carpet'],
  [/_stained_glass_pane$/, /glass_pane/, '_from_glass_pane'],
  [/^(gold|iron)_ingot$/, /_nugget/, '_from_nuggets'],
  [/^(bone_meal|gold_ingot|iron_ingot|netherite_ingot)$/, /_block$/, '_from_*'],
  [/^(black|blue)_dye$/, /^(wither_rose|cornflower)$/, '_from_*'],
  [/^light_blue_dye$/, /^blue_orchid$/, '_from_*'],
  [/^light_blue_dye$/, /^blue_dye white_dye$/, '_from_blue_white_dye'],
  [/^light_gray_dye$/, /^(azure_bluet|oxeye_daisy|white_tulip)$/, '_from_*'],
  [/^light_gray_dye$/, /^black_dye white_dye$/, '_from_black_white_dye'],
  [/^light_gray_dye$/, /^gray_dye white_dye$/, '_from_gray_white_dye'],
  [/^magenta_dye$/, /^(allium|lilac)$/, '_from_*'],
  [/^magenta_dye$/, /^blue_dye red_dye pink_dye$/, '_from_blue_red_pink'],
  [/^magenta_dye$/, /^blue_dye red_dye white_dye$/, '_from_blue_red_white_dye'],
  [/^magenta_dye$/, /^purple_dye pink_dye$/, '_from_purple_and_pink'],
  [/^orange_dye$/, /^orange_tulip$/, '_from_*'],
  [/^orange_dye$/, /^red_dye yellow_dye$/, '_from_red_yellow'],
  [/^pink_dye$/, /^(peony|pink_tulip)$/, '_from_*'],
  [/^pink_dye$/, /^red_dye white_dye$/, '_from_red_white_dye'],
  [/^red_dye$/, /^red_tulip$/, '_from_tulip'],
  [/^(red_dye|yellow_dye)$/, /^(beetroot|poppy|rose_bush|dandelion|sunflower)$/, '_from_*'],
  [/^white_dye$/, /^lily_of_the_valley$/, '_from_*'],
  [/^rabbit_stew$/, /brown_mushroom/, '_from_brown_mushroom'],
  [/^rabbit_stew$/, /red_mushroom/, '_from_red_mushroom'],
  [/^stick$/, /^bamboo$/, '_from_bamboo_item'],
  [/^sugar$/, /^honey_bottle$/, '_from_*'],
  [/^white_wool$/, /^string$/, '_from_*'],
];

/** The game has these two files with the same recipe; `minecraft-data` keeps it once. */
const TWICE: Readonly<Record<string, string>> = { sugar: 'sugar_from_sugar_cane' };

/**
 * Shaped recipes whose file does not declare its ingredients in the order of the pattern: those declared first, the
 * rest following in the pattern's order.
 */
const DECLARED_FIRST: readonly (readonly [output: RegExp, first: string])[] = [
  [/_(axe|hoe|pickaxe|shovel|sword|fence)$|^(arrow|rail|redstone_torch|torch)$/, 'stick'],
  [/^(campfire|soul_campfire)$/, '#logs'],
  [/^(cartography_table|fletching_table|loom|smithing_table)$/, '#planks'],
  [/^tripwire_hook$/, '#planks stick'],
  [/^piston$/, 'redstone cobblestone'],
  [/^observer$/, 'quartz redstone'],
  [/^(dispenser|dropper)$/, 'redstone'],
  [/^detector_rail$/, 'redstone stone_pressure_plate'],
  [/^powered_rail$/, 'redstone stick'],
  [/^activator_rail$/, 'redstone_torch stick'],
  [/^beacon$/, 'nether_star'],
  [/^blast_furnace$/, 'smooth_stone furnace'],
  [/^cake$/, 'milk_bucket sugar wheat'],
  [/^chain$/, 'iron_ingot'],
  [/^(hopper|shulker_box)$/, 'chest'],
  [/^daylight_detector$/, 'quartz'],
  [/^crossbow$/, 'string'],
  [/^diorite$/, 'quartz'],
  [/^enchanting_table$/, 'book obsidian'],
  [/^end_crystal$/, 'ghast_tear ender_eye'],
  [/^end_rod$/, 'popped_chorus_fruit'],
  [/^lantern$/, 'torch'],
  [/^soul_lantern$/, 'soul_torch'],
  [/^lever$/, 'cobblestone'],
  [/^red_nether_bricks$/, 'nether_wart'],
  [/^scaffolding$/, 'string'],
  [/^sticky_piston$/, 'piston'],
  [/^target$/, 'hay_block'],
  [/^tnt$/, 'sand'],
];

type Ungrouped = Omit<Recipe, 'group'>;

/** Rebuilds the recipe files of the game. @param folder of minecraft-data, holding `minecraft-data/data/pc/1.16.2` */
export function derive(folder: string): readonly Recipe[] {
  const read = (name: string) =>
    JSON.parse(readFileSync(join(folder, 'minecraft-data/data/pc', VERSION, name), 'utf8'));
  const nameOf = new Map((read('items.json') as { id: number; name: string }[]).map(({ id, name }) => [id, name]));
  const choices = choicesOver([...nameOf.values()]);

  const families = new Map<string, Variant[]>();
  for (const list of Object.values(read('recipes.json') as Record<string, RawRecipe[]>)) {
    for (const raw of list) {
      const variant = variantOf(raw, nameOf);
      const key = `${variant.output} ${variant.count} ${variant.mask}`;
      families.get(key)?.push(variant) ?? families.set(key, [variant]);
    }
  }

  const recipes: Recipe[] = [];
  for (const family of families.values()) {
    for (const variant of collapse(family, choices)) {
      const recipe = nameVariant(variant);
      for (const file of [recipe.file, TWICE[recipe.file]]) {
        if (file !== undefined) recipes.push({ ...recipe, file, group: groupOf({ ...recipe, file }) });
      }
    }
  }
  return recipes.sort((a, b) => (`${a.file}.json` < `${b.file}.json` ? -1 : 1));
}

type RawCell = number | null | { readonly id: number };
interface RawRecipe {
  readonly result: { readonly id: number; readonly count?: number };
  readonly inShape?: readonly (readonly RawCell[])[];
  readonly ingredients?: readonly RawCell[];
}

function variantOf(raw: RawRecipe, nameOf: ReadonlyMap<number, string>): Variant {
  const nameAt = (cell: RawCell) => (cell === null ? undefined : nameOf.get(typeof cell === 'object' ? cell.id : cell));
  const rows = (raw.inShape ?? [raw.ingredients ?? []]).map((row) => row.map(nameAt));
  const mask = rows.map((row) => row.map((cell) => (cell ? 'x' : '.')).join('')).join('/');
  const cells = rows.flat().filter((cell) => cell !== undefined);
  return {
    output: nameOf.get(raw.result.id)!,
    count: raw.result.count ?? 1,
    shaped: raw.inShape !== undefined,
    mask: (raw.inShape ? 'shaped ' : 'shapeless ') + mask,
    cells,
  };
}

/** Replaces variants that together go through all members of a choice by one recipe that names the choice. */
function collapse(family: readonly Variant[], choices: readonly Choice[]): readonly Variant[] {
  let variants = family;
  for (const { label, members, only } of choices) {
    if (only && !only.test(family[0]!.output)) continue;
    const byPattern = new Map<string, Variant[]>();
    for (const variant of variants) {
      if (!variant.cells.some((cell) => members.includes(cell))) continue;
      const key = variant.cells.map((cell) => (members.includes(cell) ? label : cell)).join(' ');
      byPattern.get(key)?.push(variant) ?? byPattern.set(key, [variant]);
    }
    for (const [key, same] of byPattern) {
      const used = new Set(same.flatMap(({ cells }) => cells.filter((cell) => members.includes(cell))));
      if (used.size < members.length) continue;
      variants = [...variants.filter((variant) => !same.includes(variant)), { ...same[0]!, cells: key.split(' ') }];
    }
  }
  return variants;
}

function nameVariant({ output, count, shaped, cells }: Variant): Ungrouped {
  const declared = shaped ? (DECLARED_FIRST.find(([pattern]) => pattern.test(output))?.[1].split(' ') ?? []) : [];
  const order = [...declared.filter((name) => cells.includes(name)), ...cells];
  const ingredients = new Map([...new Set(order)].map((name) => [name, cells.filter((cell) => cell === name).length]));
  const list = [...ingredients.keys()].join(' ');
  const suffix = FILES.find(([pattern, ingredient]) => pattern.test(output) && ingredient.test(list))?.[2] ?? '';
  return { file: output + suffix.replace('*', list), output, count, ingredients };
}

function groupOf(recipe: Ungrouped): string {
  const group = GROUPS.find(([pattern]) => pattern.test(recipe.output))?.[1] ?? '';
  return typeof group === 'string' ? group : group(recipe);
}

/** `file output count group < ingredient count, …`, a dash where there is no group. */
function line({ file, output, count, group, ingredients }: Recipe): string {
  const using = [...ingredients].map(([name, n]) => `${n} ${name}`).join(', ');
  return `${file} ${group || '-'} ${count} ${output} < ${using}`;
}

/** The text of recipes.ts. `tsc` keeps its comment, so the notice travels with the built file. */
export function moduleText(recipes: readonly Recipe[]): string {
  return `/**
 * The crafting recipes of Minecraft 1.16, one a line, in the order of the game's sorted file names:
 * \`file group count output < count ingredient, …\`; a dash is no group, tags begin with \`#\`.
 *
 * Generated by derive.ts; not to be edited by hand. Derived from minecraft-data ${VERSION} (npm minecraft-data ${PACKAGE},
 * https://github.com/PrismarineJS/minecraft-data), which is under the MIT License:
 *
 * Copyright (c) Romain Beaumont and the PrismarineJS contributors
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
 * documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
 * rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
 * permit persons to whom the Software is furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all copies or substantial portions of
 * the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
 * WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
 * COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
 * OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 */
export const RECIPE_LINES = \`
${recipes.map(line).join('\n')}
\`;
`;
}

if (process.argv[1]?.endsWith('derive.js')) {
  const folder = process.argv[2] ?? 'node_modules/minecraft-data';
  if (existsSync(folder)) {
    const recipes = derive(folder);
    writeFileSync(TARGET, moduleText(recipes));
    console.log(`${recipes.length} recipes written to ${TARGET}`);
  } else {
    console.error(
      `no minecraft-data at ${folder}: npm install --no-save minecraft-data@${PACKAGE}, or pass its folder`,
    );
    process.exitCode = 2;
  }
}
