/**
 * AgentGym dialect of SciWorld. `score` is that of the game in points, 100 is solved; some variations begin with points,
 * which the original pays for the `look around` that it makes at the reset. Routes that look into the world play the
 * episode again up to now: they change nothing of it.
 *
 * Differs: `/object_tree` has our names of fields; `/detail` answers the last step, as its field names promise.
 */
import type { AgentGymDialect, AgentGymSession } from '../../src/core/agentgym.ts';
import { points } from './env.ts';
import { Simulator } from './simulator.ts';
import { TABLES } from './tasks.ts';
import type { Thing } from './thing.ts';

const TASKS = TABLES.agentgym;

/** Replays the episode: its simulator as it stands after its actions. */
function replayEpisode({ index, actions }: AgentGymSession): Simulator {
  const { registered, variation } = TASKS.at(index!);
  const simulator = new Simulator(registered, variation);
  for (const action of ['look around', ...actions]) {
    simulator.step(action);
    simulator.drawValid();
  }
  simulator.settle();
  return simulator;
}

/** Description of the task: the first line of an episode. */
function description({ first }: AgentGymSession): string {
  return first.slice(0, first.indexOf('\n'));
}

/** Observation as the server gives it: without the task, which our first one begins with. */
function formatObservation(session: AgentGymSession): string {
  return session.observation === session.first
    ? session.first.slice(description(session).length + 1)
    : session.observation;
}

const begins = new Map<number, number>();

/** Points that a task begins with: its score after the first look. */
function firstPoints(index: number): number {
  let begin = begins.get(index);
  if (begin === undefined) {
    const { registered, variation } = TASKS.at(index);
    const simulator = new Simulator(registered, variation);
    simulator.step('look around');
    begin = points(simulator.goals.score);
    begins.set(index, begin);
  }
  return begin;
}

interface Node {
  readonly name: string;
  readonly id: number;
  readonly temperature: number | null;
  readonly contents: readonly Node[];
}

function tree(thing: Thing): Node {
  const { name, id, matter, contents } = thing;
  return { name, id, temperature: matter?.temperature ?? null, contents: contents.filter((t) => !t.hidden).map(tree) };
}

export const agentgym: AgentGymDialect = {
  server: {
    options: { fidelity: 'original' },
    idField: 'id',
    validation: 'pydantic1',
    firstReward: firstPoints,
    routes: [
      { path: '/', does: 'reply', reply: { status: 200, json: 'This is environment ScienceWorld.' } },
      { path: '/create', does: 'create', body: false, answer: ({ id }) => ({ id }) },
      {
        path: '/reset',
        does: 'reset',
        fields: { data_idx: { kind: 'int' } },
        index({ data_idx }) {
          // A list in Python counts negative indices from its end.
          const requested = Number(data_idx);
          const index = requested < 0 ? requested + TASKS.count : requested;
          if (index >= 0 && index < TASKS.count) return index;
          throw new Error('list index out of range');
        },
        answer(session) {
          const { registered, variation } = TASKS.at(session.index!);
          return {
            task_name: registered.task.name,
            var_num: variation,
            task_description: description(session),
            observation: formatObservation(session),
            reward: session.reward,
            score: session.score,
            deleted: false,
            done: false,
          };
        },
      },
      {
        path: '/step',
        does: 'step',
        fields: { action: { kind: 'str' } },
        action: ({ action }) => String(action),
        answer: ({ observation, reward, score, done }) => ({ observation, reward, score, done }),
      },
      { path: '/observation', does: 'look', answer: formatObservation },
      {
        path: '/task_description',
        does: 'look',
        answer: (session) => ({ task_description: description(session) }),
      },
      {
        path: '/action_hint',
        does: 'look',
        answer(session) {
          const simulator = replayEpisode(session);
          return { possible_actions: simulator.forms(), possible_objects: simulator.objects() };
        },
      },
      { path: '/goals', does: 'look', answer: (session) => ({ goals: replayEpisode(session).goals.progress }) },
      {
        path: '/object_tree',
        does: 'look',
        answer: (session) => ({ object_tree: tree(replayEpisode(session).world.universe) }),
      },
      {
        path: '/detail',
        does: 'look',
        answer(session) {
          const { registered, variation } = TASKS.at(session.index!);
          const { reward, score, done } = session;
          return {
            task_name: registered.task.name,
            var_num: variation,
            task_description: description(session),
            observation: formatObservation(session),
            reward,
            score,
            deleted: false,
            done,
          };
        },
      },
      {
        path: '/close',
        does: 'close',
        answer(existed) {
          if (existed) return true;
          throw new Error('no such environment');
        },
      },
    ],
    refuses({ id, index, done }) {
      if (index === undefined) return "'ScienceWorldEnv' object has no attribute 'variationIdx'";
      return done ? `The task with environment ${id} has finished.` : undefined;
    },
    mistake(mistake) {
      if (mistake.kind !== 'unknown-id') return undefined;
      const { id, closed } = mistake;
      const error = closed ? `The task with environment ${id} has been deleted.` : `The id ${id} is not valid.`;
      return { status: 200, json: { error } };
    },
  },
  client: {
    idField: 'id',
    create: undefined,
    reset: (id, index) => ({ id, data_idx: index }),
    /** First observation: the task before the first look, as AgentGym's client puts it. */
    first(answer) {
      const { task_description: task, observation } = answer as Readonly<Record<string, unknown>>;
      if (typeof task !== 'string' || typeof observation !== 'string') return undefined;
      return `${task}\n${observation}`;
    },
    firstScore: ({ score }) => (typeof score === 'number' ? score : 0),
    readStep: ({ observation, score, done }) => ({
      observation: observation as string,
      score: score as number,
      done: done as boolean,
    }),
    score: 'sum',
    isSolved: (score) => score >= 100,
    tasks: TASKS,
    rewardRange: [-200, 200],
  },
};
