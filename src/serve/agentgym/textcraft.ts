/**
 * What AgentGym's TextCraft server answers. `commands` and `goal` of `/create` are read and then ignored, `/commands`
 * and `/goal` always fail, and an episode goes on after its end: all as recorded.
 *
 * Differs: which commands a task lists beside the needed ones comes from the task here, and from Python's hash order
 * there.
 */
import type { AgentGymSession } from './sessions.ts';
import type { AgentGymWorld } from './world.ts';

/** Goals of the original's recipe tree; a `data_idx` is taken modulo this. */
const TASKS = 544;

export const textcraft: AgentGymWorld = {
  env: 'textcraft',
  greeting: 'This is environment TextCraft.',
  createNeedsBody: true,
  indexAtCreate: (id) => id,
  defaultIndex: 0,
  taskIndex: (dataIndex) => ((dataIndex % TASKS) + TASKS) % TASKS,
  created: started,
  wasReset: started,
  stepped: ({ observation, reward, done }) => ({ observation, reward, done }),
  observation: ({ observation }) => observation,
  routes: {
    '/detail': ({ observation, done, reward }) => ({ observation, done, reward, deleted: false }),
  },
  brokenRoutes: ['/commands', '/goal'],
  refusesStep: () => undefined,
};

function started({ id, observation }: AgentGymSession) {
  return { id, observation, done: false, reward: 0 };
}
