import { describe, expect, it } from 'vitest';
import { createEnv as babyai, heldOutTasks } from '../../envs/babyai/index.ts';
import { createEnv as textcraft } from '../../envs/textcraft/index.ts';
import { evaluatedTasks, trainedTasks } from '../../src/evaluation/tasks.ts';

describe('the tasks of an evaluation', () => {
  it('are the split where no set is named', () => {
    const env = babyai();
    expect(evaluatedTasks(env, { split: 'test' })).toBe(env.tasks.split('test'));
    expect(evaluatedTasks(env, { split: 'train' })).toBe(env.tasks.split('train'));
  });

  it('are the named set: 360 of BabyAI, in neither of the paper’s lists', () => {
    const env = babyai();
    const tasks = evaluatedTasks(env, { split: 'test', tasks: 'held-out' });
    expect(tasks).toEqual(heldOutTasks);
    expect(tasks.length).toBe(360);
    expect(env.tasks.split('test').some((index) => tasks.includes(index))).toBe(false);
    expect(env.tasks.split('train').some((index) => tasks.includes(index))).toBe(false);
  });

  it('cannot be a set that is not there', () => {
    expect(() => evaluatedTasks(babyai(), { split: 'test', tasks: 'heldout' })).toThrow(
      /it has held-out, test-and-held-out, fresh/,
    );
    expect(() => evaluatedTasks(textcraft(), { split: 'test', tasks: 'held-out' })).toThrow(/it has outside-test/);
  });
});

describe('the tasks of training', () => {
  it('are the split or the named set, with the named labels', () => {
    const env = textcraft();
    const deep = trainedTasks(env, { split: 'train', set: 'outside-test', labels: ['depth 4'] });
    expect(deep).toHaveLength(11 - 3);
    expect(trainedTasks(env, { split: 'train' })).toEqual(env.tasks.split('train'));
    expect(() => trainedTasks(env, { split: 'train', set: 'toString' })).toThrow(/tasks.set: textcraft has no set/);
  });
});
