/** Every on-line algorithm solves worlds whose answer is known, through both decoders and both kinds of view. */
import { describe, expect, it } from 'vitest';
import { learnToy, type ToyConfig, toyConfig } from '../../support/toy-run.ts';
import type { ToyWorld } from '../../support/toy-worlds.ts';

const long = process.env.LONGPLAY_LONG === '1';
const windowed = new URL('../../support/toy-window.ts', import.meta.url);

type LearnerInput = NonNullable<ToyConfig['learner']>;

const algorithms = {
  grpo: { estimator: { algorithm: 'grpo' } },
  // Divided by the std of its own turn the 0.1 for stopping early is as loud as the 1 for going on.
  'grpo by turn': {
    estimator: { algorithm: 'grpo', credit: 'turn', std: false, aggregation: { type: 'sequence-mean' } },
    entropyCoef: 0.02,
  },
  dr_grpo: { estimator: { algorithm: 'dr_grpo', aggregation: { type: 'constant', tokens: 4 } } },
  dapo: { estimator: { algorithm: 'grpo' }, clipHigh: 0.28, minibatches: 2, oversampling: 3 },
  rloo: { estimator: { algorithm: 'rloo' } },
  reinforce_pp: { estimator: { algorithm: 'reinforce_pp' } },
  'reinforce_pp with a baseline': { estimator: { algorithm: 'reinforce_pp', baseline: 'group' } },
  ppo: { estimator: { algorithm: 'ppo', truncation: 'bootstrap' }, valueCoef: 0.5, minibatches: 2 },
  gigpo: { estimator: { algorithm: 'gigpo' } },
  agent_evol: { estimator: { algorithm: 'agent_evol', threshold: 0.5 } },
} satisfies Record<string, LearnerInput>;

type LearntWorld = Exclude<ToyWorld, 'wage'>;

/** A world's answer: what an episode pays at least once it is solved. The second best of each is far below. */
const worlds: Readonly<Record<LearntWorld, { readonly updates: number; readonly least: number }>> = {
  bandit: { updates: 30, least: 0.7 }, // best arm 0.8, next 0.5
  chain: { updates: 25, least: 0.95 },
  memory: { updates: 20, least: 0.95 },
  long: { updates: 20, least: 0.95 },
};

async function solves(world: LearntWorld, config: ToyConfig, envModule?: URL): Promise<void> {
  const { updates, least } = worlds[world];
  const phases: ToyConfig['horizon'] = { type: 'scaling_inter_stepwise', rounds: [4, 8], steps_scaling_inter: 3 };
  const { score, rows } = await learnToy(
    toyConfig(world, { stop: { updates }, ...(world === 'long' ? { horizon: phases! } : {}), ...config }),
    envModule,
  );
  if (world === 'long') expect(rows.slice(0, 3).map(({ success }) => success)).toEqual([0, 0, 0]);
  expect(rows.at(-1)!.update).toBe(config.stop?.updates ?? updates);
  expect(score).toBeGreaterThanOrEqual(least);
}

describe('toy worlds', () => {
  const names = Object.keys(algorithms) as (keyof typeof algorithms)[];
  for (const [w, world] of (Object.keys(worlds) as LearntWorld[]).entries()) {
    for (const [a, name] of names.entries()) {
      if (!long && (w + a) % 4 !== 0) continue; // a quarter: every algorithm once, every world twice or more
      it(`${name} solves ${world}`, () => solves(world, { learner: algorithms[name] }), 30_000);
    }
  }

  const variants: Readonly<
    Record<string, { readonly world: LearntWorld; readonly config: ToyConfig; readonly view?: URL }>
  > = {
    'tokens, spelt out of the listed actions': { world: 'memory', config: { policy: { decoder: 'tokens' } } },
    'tokens, up to two versions old': {
      world: 'memory',
      config: { policy: { decoder: 'tokens' }, learner: { maxLag: 2, offPolicy: { type: 'truncated', per: 'token' } } },
    },
    'ppo through tokens': {
      world: 'memory',
      config: { policy: { decoder: 'tokens' }, learner: algorithms.ppo, stop: { updates: 25 } },
    },
    'a window view': { world: 'memory', config: { learner: algorithms.ppo }, view: windowed },
    'decisions up to four versions old': {
      world: 'chain',
      config: { learner: { maxLag: 4 }, rollout: { concurrentGroups: 16 }, stop: { updates: 40 } },
    },
    'a horizon that grows by itself': {
      world: 'long',
      config: {
        horizon: { type: 'adaptive', rounds: [4, 8] },
        stop: { updates: 40 }, // it stays at 4 for 20
      },
    },
    'KL to the start in the loss': {
      world: 'chain',
      config: {
        learner: {
          kl: {
            in: 'loss',
            estimator: 'k2',
            control: { type: 'adaptive', coefficient: 0.01, target: 0.5, window: 100 },
          },
        },
      },
    },
    'KL to the start in the reward': {
      world: 'memory',
      config: { learner: { kl: { in: 'reward', estimator: 'k1', control: { type: 'fixed', coefficient: 0.01 } } } },
    },
  };
  for (const [name, { world, config, view }] of Object.entries(variants)) {
    it(`${world}: ${name}`, () => solves(world, config, view), 30_000);
  }
});
