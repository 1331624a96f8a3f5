/** SciWorld's dialect of AgentGym's HTTP protocol, as its client speaks it. `score` is the return so far, 100 is solved. */
import type { AgentGymDialect } from '../../src/core/agentgym.ts';
import { taskTable } from '../../src/core/task.ts';

export const agentgym: AgentGymDialect = {
  client: {
    idField: 'id',
    create: undefined,
    reset: (id, index) => ({ id, data_idx: index }),
    /** The task before the first look, as AgentGym's client puts it. */
    first(answer) {
      const { task_description: task, observation } = answer as Readonly<Record<string, unknown>>;
      if (typeof task !== 'string' || typeof observation !== 'string') return undefined;
      return `${task}\n${observation}`;
    },
    stepped: ({ observation, score, done }) => ({
      observation: observation as string,
      score: score as number,
      done: done as boolean,
    }),
    score: 'sum',
    solved: (score) => score >= 100,
    // Every variation of every task; which ones the paper tests on is not known here, so all are both.
    tasks: taskTable(4639, [], 'sciworld'),
    rewardRange: [-200, 200],
  },
};
