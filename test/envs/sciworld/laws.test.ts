/** The env laws hold of SciWorld under both rules, over both tables of tasks, and with simplifications. */
import * as sciworld from '../../../envs/sciworld/index.ts';
import type { Rng } from '../../../src/core/rng.ts';
import { testEnvLaws } from '../laws.ts';

const VERBS = [
  'open',
  'close',
  'go to',
  'pick up',
  'move',
  'pour',
  'focus on',
  'use',
  'connect',
  'mix',
  'activate',
  'dunk',
];
const THINGS = [
  'door to kitchen',
  'kitchen',
  'orange',
  'agent',
  'inventory',
  'air',
  'door',
  'substance',
  'cup',
  'moon',
  '',
];
const JOINTS = ['', ' to ', ' in ', ' on ', ' into '];
const FIXED = [
  'look around',
  'inventory',
  'wait1',
  'wait',
  'task',
  'reset task',
  'help',
  'objects',
  '0',
  '1',
  ' +1',
  'back',
  'open ?',
  'move ?',
  '?',
];

/** Commands of this world: right ones, and ones that are nearly right. */
function texts(rng: Rng): string {
  if (rng.int(3) === 0) return rng.pick(FIXED);
  return `${rng.pick(VERBS)} ${rng.pick(THINGS)}${rng.pick(JOINTS)}${rng.pick(THINGS)}`;
}

const long = process.env.LONGPLAY_LONG === '1';

// Houses take long to build: a usual run of the tests tries a hundred cases a law, a long one ten thousand.
testEnvLaws('sciworld', { createEnv: () => sciworld.createEnv(), texts, module: sciworld }, long ? 1 : 0.1, long);
testEnvLaws(
  "sciworld, fidelity 'original', all tasks,",
  { createEnv: () => sciworld.createEnv({ fidelity: 'original', tasks: 'scienceworld' }), texts },
  0.02,
  false,
);
testEnvLaws(
  'sciworld, simplified,',
  {
    createEnv: () => sciworld.createEnv({ tasks: 'scienceworld', simplifications: ['easy', 'openContainers'] }),
    texts,
  },
  0.02,
  false,
);
