/**
 * What AgentGym's BabyAI server answers. Its `score` is the sum of the rewards, a refused action repeats the last
 * reward (and counts it again), and only a reward above ½ ends an episode: the world's `fidelity: original` does that.
 *
 * Differs: the pictures of `/render` have shapes of our own.
 */
import type { AgentGymWorld } from './world.ts';

const LEVELS = 40;

export const babyai: AgentGymWorld = {
  env: 'babyai',
  greeting: 'This is environment BabyAI.',
  createNeedsBody: false,
  defaultIndex: undefined,
  taskIndex(dataIndex) {
    if (dataIndex >= 0) return dataIndex;
    throw new Error(`Seed must be greater or equal to zero, actual value: ${Math.floor(dataIndex / LEVELS)}`);
  },
  created: ({ id }) => ({ id }),
  wasReset: ({ observation }) => ({ observation, reward: 0, score: 0, deleted: false, done: false }),
  stepped: ({ observation, reward, score, done }) => ({ observation, reward, score, done }),
  observation({ index, first, observation, reward, score, done }) {
    if (index === undefined) {
      return { observation: 'Environment not initialized', reward: 0, score: 0, done: false, deleted: false };
    }
    const goal = first.slice(0, first.indexOf('\n') + 1);
    const asked = observation === first ? observation : goal + observation;
    return { observation: asked, reward, score, done, deleted: false };
  },
  routes: {},
  renders: true,
  brokenRoutes: [],
  refusesStep({ id, index, done }) {
    if (index === undefined) return String(id); // a KeyError's words are its key
    return done ? `The task with environment ${id} has finished.` : undefined;
  },
};
