/** The env laws hold of TextCraft under both rules. */
import * as textcraft from '../../../envs/textcraft/index.ts';
import { TREE, words } from '../../../envs/textcraft/recipes.ts';
import type { Rng } from '../../../src/core/rng.ts';
import { testEnvLaws } from '../laws.ts';

const ITEMS = [...TREE.items.map(words), ...[...TREE.tags].map(words), 'foo', 'planks ', ' stone'];
const AMOUNTS = ['0', '1', '2', '4', '007', '-1', '1.5', '', '99999999999999999999999'];
const COMMANDS = [...TREE.recipesOf.values()].flat().map(({ command }) => command);
const FIXED = ['inventory', 'Inventory', 'look', 'craft', 'get 1', 'craft 1 x using', 'get 3 oak log\nget 1 stone'];

function stack(rng: Rng): string {
  return `${rng.pick(AMOUNTS)} ${rng.pick(ITEMS)}`;
}

/** Commands of this world: right ones, and ones that are nearly right. */
function texts(rng: Rng): string {
  const kind = rng.int(4);
  if (kind === 0) return rng.pick(COMMANDS);
  if (kind === 1) return `get ${stack(rng)}`;
  if (kind === 2) return `craft ${stack(rng)} using ${Array.from({ length: rng.int(4) }, () => stack(rng)).join(',')}`;
  return rng.pick(FIXED);
}

testEnvLaws('textcraft', { createEnv: () => textcraft.createEnv(), texts, module: textcraft });
testEnvLaws("textcraft, fidelity 'original',", {
  createEnv: () => textcraft.createEnv({ fidelity: 'original' }),
  texts,
});
