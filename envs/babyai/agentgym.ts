/**
 * AgentGym dialect of BabyAI. Its `score` is the sum of the rewards, a refused action repeats the last reward (and
 * counts it again), and only a reward above ½ ends an episode: `fidelity: original` does that.
 *
 * Differs: the pictures of `/render` have shapes of our own.
 */
import type { AgentGymDialect } from '../../src/core/agentgym.ts';
import { openPublished } from './published.ts';
import { tasks } from './tasks.ts';

const LEVELS = 40;

export const agentgym: AgentGymDialect = {
  server: {
    options: { fidelity: 'original' },
    idField: 'id',
    validation: 'pydantic1',
    routes: [
      { path: '/', does: 'reply', reply: { status: 200, json: 'This is environment BabyAI.' } },
      { path: '/create', does: 'create', body: false, answer: ({ id }) => ({ id }) },
      {
        path: '/reset',
        does: 'reset',
        fields: { data_idx: { kind: 'int' } },
        index({ data_idx }) {
          const index = Number(data_idx);
          if (index >= 0) return index;
          throw new Error(`Seed must be greater or equal to zero, actual value: ${Math.floor(index / LEVELS)}`);
        },
        answer: ({ observation }) => ({ observation, reward: 0, score: 0, deleted: false, done: false }),
      },
      {
        path: '/step',
        does: 'step',
        fields: { action: { kind: 'str' } },
        action: ({ action }) => String(action),
        answer: ({ observation, reward, score, done }) => ({ observation, reward, score, done }),
      },
      { path: '/close', does: 'close', answer: (existed) => existed },
      {
        path: '/observation',
        does: 'look',
        answer({ index, first, observation, reward, score, done }) {
          if (index === undefined) {
            return { observation: 'Environment not initialized', reward: 0, score: 0, done: false, deleted: false };
          }
          const goal = first.slice(0, first.indexOf('\n') + 1);
          const repeated = observation === first ? observation : goal + observation;
          return { observation: repeated, reward, score, done, deleted: false };
        },
      },
      { path: '/render', does: 'render' },
    ],
    refuses({ id, index, done }, path) {
      if (path === '/observation') return undefined;
      if (index === undefined) return String(id); // the words of a KeyError are its key
      return done && path === '/step' ? `The task with environment ${id} has finished.` : undefined;
    },
  },
  client: {
    idField: 'id',
    create: {},
    reset: (id, index) => ({ id, data_idx: index }),
    first: (answer) => (answer as { observation?: string }).observation,
    readStep: ({ observation, score, done }) => ({
      observation: observation as string,
      score: score as number,
      done: done as boolean,
    }),
    score: 'sum',
    isSolved: (score) => score > 0,
    tasks,
    rewardRange: [-1000, 1],
  },
  openPublished,
};
