import { describe, expect, it } from 'vitest';
import { createEnv as babyai, heldOutTasks } from '../../../envs/babyai/index.ts';
import { createEnv as textcraft } from '../../../envs/textcraft/index.ts';
import { waysTo } from '../../../envs/textcraft/start.ts';
import { summarise } from '../../../src/learning/evaluation/summary.ts';
import { listEvaluatedTasks, listTrainTasks, readTaskIds } from '../../../src/learning/evaluation/tasks.ts';

describe('the tasks of an evaluation', () => {
  it('are the split where no set is named', () => {
    const env = babyai();
    expect(listEvaluatedTasks(env, { split: 'test' })).toBe(env.tasks.split('test'));
    expect(listEvaluatedTasks(env, { split: 'train' })).toBe(env.tasks.split('train'));
  });

  it('are the named set: 360 of BabyAI, in neither of the paper’s lists', () => {
    const env = babyai();
    const tasks = listEvaluatedTasks(env, { split: 'test', tasks: 'held-out' });
    expect(tasks).toEqual(heldOutTasks);
    expect(tasks.length).toBe(360);
    expect(env.tasks.split('test').some((index) => tasks.includes(index))).toBe(false);
    expect(env.tasks.split('train').some((index) => tasks.includes(index))).toBe(false);
  });

  it('cannot be a set that is not there', () => {
    expect(() => listEvaluatedTasks(babyai(), { split: 'test', tasks: 'heldout' })).toThrow(
      /it has held-out, test-and-held-out, fresh/,
    );
    expect(() => listEvaluatedTasks(textcraft(), { split: 'test', tasks: 'held-out' })).toThrow(/it has outside-test/);
  });
});

describe('a list of tasks', () => {
  it('is played in order, each once, and holds no task that is not there', () => {
    expect(listEvaluatedTasks(textcraft(), { split: 'test', tasks: [7, 3, 7] })).toEqual([3, 7]);
    expect(() => listEvaluatedTasks(textcraft(), { split: 'test', tasks: [3, 544] })).toThrow(
      /has tasks 0 … 543, got 544/,
    );
    expect(() => listEvaluatedTasks(textcraft(), { split: 'test', tasks: [3, -1] })).toThrow(
      /has tasks 0 … 543, got -1/,
    );
    expect(() => listEvaluatedTasks(textcraft(), { split: 'test', tasks: [] })).toThrow(
      /expected task indices .* got none/,
    );
  });

  it.each([
    ['31 33\n40', [31, 33, 40]],
    ['31-34, 40', [31, 32, 33, 34, 40]],
    ['[3, 5]', [3, 5]],
    ['[{ "item_id": "textcraft_31" }, { "item_id": "textcraft_2" }]', [31, 2]],
  ])('is read from a file: %j', (text, ids) => {
    expect(readTaskIds(text, 'ids')).toEqual(ids);
  });

  it.each([
    ['', /ids names no task/],
    ['31 x', /expected ids like 31 or 31-139, got 'x'/],
    ['9-3', /got '9-3'/],
    ['[3', /ids is not JSON/],
  ])('cannot be read from %j', (text, message) => {
    expect(() => readTaskIds(text, 'ids')).toThrow(message);
  });
});

describe('a task that training has seen in part', () => {
  it('is a goal that a recipe on the way to a train goal makes', () => {
    for (const order of ['sorted', 'agenttraj'] as const) {
      const env = textcraft({ order });
      const { goals } = env.treeUnder(env.tasks.evalSeed);
      const seen = env.tasks.split('test').filter((index) => env.tasks.isSeen!(index));
      const train = env.tasks.split('train').map((index) => goals[index]!.item);
      for (const index of seen) {
        const { item } = goals[index]!;
        const ways = train.flatMap((goal) => waysTo(env.treeUnder(env.tasks.evalSeed), goal));
        expect(ways.some(({ ingredients, output }) => output === item && ingredients.length > 0)).toBe(true);
      }
      console.log(`${order}: ${seen.length} of the 100 test goals are crafted on the way to a train goal`);
      expect(seen.length).toBeGreaterThanOrEqual(10);
    }
  });

  it('is a level that opens with the words of a train level', () => {
    const { tasks } = babyai();
    const counts = [tasks.split('test'), heldOutTasks].map(
      (list) => list.filter((index) => tasks.isSeen!(index)).length,
    );
    console.log(`${counts[0]} of BabyAI's 90 and ${counts[1]} of its 360 open as a train level of their kind does`);
    expect(tasks.split('train').every((index) => tasks.isSeen!(index))).toBe(true);
    expect(counts[0]).toBeGreaterThan(0);
    expect(counts[0]).toBeLessThan(45);
  });

  it('is left out of a row of its own', () => {
    const { tasks } = textcraft();
    const outcome = (index: number, won: boolean) => ({
      task: { env: 'textcraft', index, seed: 42 },
      successes: [won],
      returns: [Number(won)],
      turns: [3],
    });
    const plan = { name: 'x', horizon: 24, temperature: 1 };
    const test = tasks.split('test');
    const results = test.map((index) => outcome(index, tasks.isSeen!(index)));
    const { all, unseen } = summarise({ plan, results, failed: 0 }, tasks);
    expect(unseen!.success.value).toBe(0);
    expect(unseen!.tasks).toBe(test.filter((index) => !tasks.isSeen!(index)).length);
    expect(all.success.value).toBeGreaterThan(0);
    const known = tasks.split('train').slice(0, 3);
    expect(
      summarise({ plan, results: known.map((index) => outcome(index, true)), failed: 0 }, tasks).unseen,
    ).toBeUndefined();
  });
});

describe('the tasks of training', () => {
  it('are the split or the named set, with the named labels', () => {
    const env = textcraft();
    const deep = listTrainTasks(env, { set: 'outside-test', labels: ['depth 4'] });
    expect(deep).toHaveLength(11 - 3);
    expect(listTrainTasks(env, {})).toEqual(env.tasks.split('train'));
    expect(() => listTrainTasks(env, { set: 'toString' })).toThrow(/tasks.set: textcraft has no set/);
  });
});
