/** WebArena's dialect of AgentGym's HTTP protocol, as its client speaks it. */
import type { AgentGymDialect } from '../../src/core/agentgym.ts';
import { taskTable } from '../../src/core/task.ts';

export const agentgym: AgentGymDialect = {
  client: {
    idField: 'env_idx',
    create: undefined,
    reset: (id, index) => ({ env_idx: id, seed: 0, idx: index }),
    first: (answer) => (answer as { observation?: string }).observation,
    stepped: ({ observation, reward, terminated, truncated }) => ({
      observation: observation as string,
      score: reward as number,
      done: terminated === true || truncated === true,
    }),
    score: 'step',
    solved: (score) => score > 0,
    // Which tasks the paper tests on is not known here, so all are both.
    tasks: taskTable(812, [], 'webarena'),
    rewardRange: [0, 1],
    // Its sites are shared and never reset: an action taken again is a second post, a second order.
    replay: 'never',
  },
};
