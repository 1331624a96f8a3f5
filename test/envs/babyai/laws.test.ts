/** The env laws hold of BabyAI under both rules. */
import * as babyai from '../../../envs/babyai/index.ts';
import type { Rng } from '../../../src/core/rng.ts';
import { testEnvLaws } from '../laws.ts';

const VERBS = ['go to', 'pickup', 'go through', 'toggle and go through', 'toggle', 'open', 'drop'];
const COLORS = ['red', 'green', 'blue', 'purple', 'yellow', 'grey', 'pink', ''];
const THINGS = ['ball', 'box', 'key', 'door', 'open door', 'closed door', 'locked door', 'wall', 'unicorn'];
const PLAIN = [
  'turn left',
  'turn right',
  'move forward',
  'toggle',
  'drop',
  'pickup',
  'check available actions',
  'done',
];

/** Commands of this world: right ones, and ones that are nearly right. */
function texts(rng: Rng): string {
  if (rng.int(3) === 0) return rng.pick(PLAIN);
  return `${rng.pick(VERBS)} ${rng.pick(COLORS)} ${rng.pick(THINGS)} ${rng.int(4)}`;
}

testEnvLaws('babyai', { createEnv: () => babyai.createEnv(), texts, module: babyai });
testEnvLaws("babyai, fidelity 'original',", { createEnv: () => babyai.createEnv({ fidelity: 'original' }), texts });
