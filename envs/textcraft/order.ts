/**
 * Rule books by the order in which a machine lists its recipe files, on which three recipes and the meaning of every
 * task id depend.
 */
import { AGENTTRAJ_GOALS } from './data/agenttraj-goals.ts';
import { RECIPE_LINES } from './data/recipes.ts';
import { buildTree, type Goal, TREE, type Tree } from './recipes.ts';
import { TRAIN_IDS } from './tasks.ts';

/**
 * Order. `sorted`: files by name, as the recordings have them. `agenttraj`: as on the machine of the published
 * trajectories.
 */
export type Order = 'sorted' | 'agenttraj';

/** Recipes that the authors' machine listed after all others. Sorted order with these moved to the end has its rules. */
const LISTED_LAST = /^(iron_ingot_from_|honey_block )/;

let agentTraj: Tree | undefined;

/** Rule book of an order; built once. */
export function treeOf(order: Order): Tree {
  if (order === 'sorted') return TREE;
  agentTraj ??= agentTrajTree();
  return agentTraj;
}

/**
 * Tree of the published trajectories' rule book: iron ingots are found and nuggets crafted, honey bottles are crafted;
 * 140, 280, 113 and 11 goals of depth 1 to 4. Each train id names its published goal; the other ids of a depth's block
 * are given the goals that are left, in load order.
 */
function agentTrajTree(): Tree {
  const lines = RECIPE_LINES.trim().split('\n');
  const last = lines.filter((line) => LISTED_LAST.test(line));
  const tree = buildTree([...lines.filter((line) => !LISTED_LAST.test(line)), ...last].join('\n'));
  const byItem = new Map(tree.goals.map((goal) => [goal.item, goal]));
  const goals: (Goal | undefined)[] = tree.goals.map(() => undefined);
  const published = AGENTTRAJ_GOALS.trim().split(/\s+/);
  for (const [at, id] of TRAIN_IDS.entries()) {
    goals[id] = byItem.get(published[at]!)!;
    byItem.delete(published[at]!);
  }
  const left = [...byItem.values()]; // by depth, as tree.goals is; so are the blocks of ids
  return { ...tree, goals: goals.map((goal) => goal ?? left.shift()!) };
}
