/** AgentGym's dialect of SciWorld: what each route answers, and what the client reads out of an answer. */
import { describe, expect, it } from 'vitest';
import { agentgym } from '../../../envs/sciworld/agentgym.ts';
import { createEnv } from '../../../envs/sciworld/index.ts';
import type { AgentGymSession } from '../../../src/core/agentgym.ts';

const { client } = agentgym;
const server = agentgym.server!;
// biome-ignore lint/suspicious/noExplicitAny: routes are of several shapes, which tests look into
const route = (path: string): any => server.routes.find((one) => one.path === path);

/** A session of task 0, after these actions. */
function session(index: number, ...actions: readonly string[]): AgentGymSession {
  const env = createEnv({ fidelity: 'original' });
  const played = env.open({ env: 'sciworld', index, seed: 0 });
  let observation = played.first.observation;
  let [reward, score, done] = [0, 0, false];
  for (const action of actions) {
    const step = played.step(action);
    observation = step.observation;
    reward = step.reward;
    score += step.reward;
    done = step.kind === 'terminated';
  }
  return { id: 3, index, actions, first: played.first.observation, observation, reward, score, done } as never;
}

describe('resetting', () => {
  it.each([
    [0, 0],
    [4638, 4638],
    [-1, 4638],
    [-4639, 0],
  ])('index %i is task %i, as a list in Python counts', (requested, index) => {
    expect(route('/reset').index({ data_idx: requested })).toBe(index);
  });

  it.each([4639, -4640])('index %i is out of range', (requested) => {
    expect(() => route('/reset').index({ data_idx: requested })).toThrow('list index out of range');
  });

  it('separates the task from the first look', () => {
    const answer = route('/reset').answer(session(0));
    expect(answer).toMatchObject({ task_name: 'boil', var_num: 0, reward: 0, score: 0, deleted: false, done: false });
    expect(answer.task_description).toMatch(/^Your task is to boil water\./);
    expect(answer.observation).toMatch(/^This (?:room|outside location) is called/);
  });
});

describe('routes that look', () => {
  it('step: only four fields', () => {
    const answer = route('/step').answer(session(0, 'wait1'));
    expect(answer).toEqual({ observation: 'You decide to wait for 1 iterations.', reward: 0, score: 0, done: false });
  });

  it('observation: the last one, and the first without the task', () => {
    expect(route('/observation').answer(session(0, 'inventory'))).toMatch(/^In your inventory/);
    expect(route('/observation').answer(session(0))).not.toContain('Your task');
  });

  it('task description: the line of the task', () => {
    expect(route('/task_description').answer(session(0, 'wait1'))).toEqual({
      task_description: expect.stringMatching(/^Your task is to boil water\.[^\n]*$/),
    });
  });

  it('action hint: the forms and the things within reach', () => {
    const hint = route('/action_hint').answer(session(0));
    expect(hint.possible_actions).toEqual(expect.arrayContaining(['open OBJ', 'connect OBJ to OBJ', 'wait1']));
    expect(hint.possible_actions).toHaveLength(26);
    expect(hint.possible_objects).toEqual(expect.arrayContaining(['art studio door', 'door to kitchen', 'picture']));
    expect(hint.possible_objects).toHaveLength(16);
  });

  it('goals: those met so far', () => {
    const goals = route('/goals').answer(session(2936, 'focus on agent')).goals as string;
    expect(goals).toContain('Sequential Subgoals:');
    expect(goals).toContain('0\tfalse\tGoalFocusOnLivingThing\tfocus on a living thing');
  });

  it('object tree: all that is not hidden, with temperatures', () => {
    const { object_tree: top } = route('/object_tree').answer(session(0));
    expect(top).toMatchObject({ name: 'universe', temperature: null });
    const rooms = top.contents.map(({ name }: { name: string }) => name);
    expect(rooms).toEqual(expect.arrayContaining(['kitchen', 'sewer', 'outside']));
    const kitchen = top.contents.find(({ name }: { name: string }) => name === 'kitchen');
    const air = kitchen.contents.find(({ name }: { name: string }) => name === 'air');
    expect(air.temperature).toBeCloseTo(25, 0);
    // Ordinary things keep their contacts hidden.
    expect(air.contents).toEqual([]);
  });

  it('detail: the last step whole', () => {
    expect(route('/detail').answer(session(0, 'wait1'))).toMatchObject({
      task_name: 'boil',
      var_num: 0,
      observation: 'You decide to wait for 1 iterations.',
      done: false,
      deleted: false,
    });
  });

  it('change nothing of the episode that they look into', () => {
    const queried = session(2936, 'wait1', 'wait1');
    const before = JSON.stringify(queried);
    const first = route('/object_tree').answer(queried);
    route('/action_hint').answer(queried);
    expect(route('/object_tree').answer(queried)).toEqual(first);
    expect(JSON.stringify(queried)).toBe(before);
  });
});

describe('mistakes', () => {
  it('a step before a reset, and after the end', () => {
    expect(server.refuses!({ id: 1, index: undefined, done: false } as never, undefined as never)).toBe(
      "'ScienceWorldEnv' object has no attribute 'variationIdx'",
    );
    expect(server.refuses!({ id: 4, index: 0, done: true } as never, undefined as never)).toBe(
      'The task with environment 4 has finished.',
    );
    expect(server.refuses!({ id: 4, index: 0, done: false } as never, undefined as never)).toBeUndefined();
  });

  it('an id that was never given, and one that was closed', () => {
    const reply = (closed: boolean) => server.mistake!({ kind: 'unknown-id', id: 9, closed } as never);
    expect(reply(false)).toEqual({ status: 200, json: { error: 'The id 9 is not valid.' } });
    expect(reply(true)).toEqual({ status: 200, json: { error: 'The task with environment 9 has been deleted.' } });
    expect(server.mistake!({ kind: 'other' } as never)).toBeUndefined();
  });

  it('closing a session that does not exist', () => {
    expect(route('/close').answer(true)).toBe(true);
    expect(() => route('/close').answer(false)).toThrow('no such environment');
  });
});

describe('the client', () => {
  it('puts the task before the first look', () => {
    expect(client.first!({ task_description: 'Boil.', observation: 'A room.' } as never)).toBe('Boil.\nA room.');
    expect(client.first!({ observation: 'A room.' } as never)).toBeUndefined();
  });

  it('asks for a task by its index, and knows a solved one by its score', () => {
    expect(client.reset!('7' as never, 12 as never)).toEqual({ id: '7', data_idx: 12 });
    expect([client.isSolved!(100), client.isSolved!(99)]).toEqual([true, false]);
    expect(client.tasks!.count).toBe(4639);
  });
});
