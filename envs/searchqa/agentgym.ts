/** SearchQA's dialect of AgentGym's HTTP protocol, as its client speaks it: bare numbers and texts for answers. */
import type { AgentGymDialect } from '../../src/core/agentgym.ts';
import { taskTable } from '../../src/core/task.ts';

export const agentgym: AgentGymDialect = {
  client: {
    idField: 'env_idx',
    create: { id: 0 },
    reset: (id, index) => ({ env_idx: id, id: index }),
    first: (answer) => (typeof answer === 'string' ? answer : undefined),
    stepped: ({ observation, reward, done }) => ({
      observation: observation as string,
      score: reward as number,
      done: done as boolean,
    }),
    score: 'step',
    solved: (score) => score > 0,
    tasks: taskTable(221_328, [[0, 51_712]], 'searchqa'),
    rewardRange: [0, 1],
  },
};
