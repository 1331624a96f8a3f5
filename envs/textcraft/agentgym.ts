/**
 * AgentGym dialect of TextCraft. `commands` and `goal` of `/create` are read and then ignored, `/commands` and `/goal`
 * always fail, and an episode goes on after its end: all as recorded.
 *
 * Differs: which commands a task lists beside the needed ones comes from the task here, and from Python's hash order
 * there.
 */
import type { AgentGymDialect, AgentGymSession } from '../../src/core/agentgym.ts';
import { taskTable } from '../../src/core/task.ts';
import { openPublished } from './published.ts';
import { TEST_IDS, TRAIN_IDS } from './tasks.ts';

/** Goals of the original's recipe tree; a `data_idx` is taken modulo this. */
const TASKS = 544;
const taskOf = (dataIndex: number) => ((dataIndex % TASKS) + TASKS) % TASKS;
const formatStart = ({ id, observation }: AgentGymSession) => ({ id, observation, done: false, reward: 0 });
const text = { kind: 'str', fallback: null } as const;
const broken = { status: 500, text: 'Internal Server Error' } as const;

export const agentgym: AgentGymDialect = {
  server: {
    options: { fidelity: 'original' },
    idField: 'id',
    validation: 'pydantic1',
    routes: [
      { path: '/', does: 'reply', reply: { status: 200, json: 'This is environment TextCraft.' } },
      { path: '/create', does: 'create', fields: { commands: text, goal: text }, index: taskOf, answer: formatStart },
      {
        path: '/reset',
        does: 'reset',
        fields: { data_idx: { kind: 'int', fallback: 0 } },
        index: ({ data_idx }) => taskOf(Number(data_idx)),
        answer: formatStart,
      },
      {
        path: '/step',
        does: 'step',
        fields: { action: { kind: 'str' } },
        action: ({ action }) => String(action),
        answer: ({ observation, reward, done }) => ({ observation, reward, done }),
      },
      { path: '/close', does: 'close', answer: (existed) => existed },
      { path: '/observation', does: 'look', answer: ({ observation }) => observation },
      {
        path: '/detail',
        does: 'look',
        answer: ({ observation, done, reward }) => ({ observation, done, reward, deleted: false }),
      },
      { path: '/commands', does: 'reply', reply: broken },
      { path: '/goal', does: 'reply', reply: broken },
    ],
  },
  client: {
    idField: 'id',
    create: {},
    reset: (id, index) => ({ id, data_idx: index }),
    first: (answer) => (answer as { observation?: string }).observation,
    readStep: ({ observation, reward, done }) => ({
      observation: observation as string,
      score: reward as number,
      done: done as boolean,
    }),
    score: 'step',
    isSolved: (score) => score > 0,
    // The paper's ids. Which goals they name depends on the server's machine, so no depths are given.
    tasks: {
      ...taskTable(TASKS, [], 'textcraft'),
      split: (split) => (split === 'train' ? TRAIN_IDS : TEST_IDS),
    },
    rewardRange: [0, 1],
  },
  openPublished,
};
