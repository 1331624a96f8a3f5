/** AgentGym dialect of SearchQA: bare numbers and texts for answers, and a bare 500 for every mistake. */
import type { AgentGymDialect, AgentGymReply } from '../../src/core/agentgym.ts';
import { AGENTGYM_RUNS, tableOf } from './questions.ts';

const BROKEN: AgentGymReply = { status: 500, text: 'Internal Server Error' };

export const agentgym: AgentGymDialect = {
  server: {
    options: { fidelity: 'original' },
    idField: 'env_idx',
    validation: 'pydantic2',
    routes: [
      { path: '/', does: 'reply', method: 'GET', reply: { status: 200, json: 'ok' } },
      {
        path: '/create',
        does: 'create',
        fields: { id: { kind: 'int' } },
        index: (_, { id }) => id as number,
        answer: ({ id }) => id,
      },
      {
        path: '/reset',
        does: 'reset',
        fields: { id: { kind: 'int', fallback: null } },
        index({ id }) {
          if (id === null || id === undefined) throw new RangeError('no item id');
          return id as number;
        },
        answer: ({ first }) => first,
      },
      { path: '/observation', does: 'look', answer: ({ first }) => first },
      {
        path: '/step',
        does: 'step',
        fields: { action: { kind: 'str' } },
        action: ({ action }) => action as string,
        answer: ({ observation, reward, done }) => ({ observation, reward, done, info: null }),
      },
      { path: '/close', does: 'close', answer: (existed) => existed },
    ],
    mistake: () => BROKEN,
  },
  client: {
    idField: 'env_idx',
    create: { id: 0 },
    reset: (id, index) => ({ env_idx: id, id: index }),
    first: (answer) => (typeof answer === 'string' ? answer : undefined),
    readStep: ({ observation, reward, done }) => ({
      observation: observation as string,
      score: reward as number,
      done: done as boolean,
    }),
    score: 'step',
    isSolved: (score) => score > 0,
    tasks: tableOf(AGENTGYM_RUNS),
    rewardRange: [0, 1],
  },
};
