/** Worlds of a scheduler: each has its own tasks, horizon and quarantine, and a checkpoint keeps them apart. */
import { describe, expect, it } from 'vitest';
import { type ScheduledWorld, TrainingWorlds } from '../../../actors/scheduler/worlds.ts';
import { createLabels } from '../../../src/core/task.ts';
import {
  create,
  type HorizonConfig,
  type HorizonState,
  restore,
} from '../../../src/learning/schedule/horizon-schedule.ts';

const stepwise = (...rounds: number[]): HorizonConfig => ({
  type: 'scaling_inter_stepwise',
  rounds,
  steps_scaling_inter: 2,
});
const rounds = { a: stepwise(3, 6, 9), b: stepwise(20, 40) };

function worldOf(name: 'a' | 'b', weight: number): ScheduledWorld {
  return {
    name,
    schedule: [{ from: 0, weight }],
    tasks: name === 'a' ? [0, 1, 2] : [5, 6, 7],
    sampling: { type: 'epoch' },
    labelOf: (index) => `task ${index}`,
    horizon: create(rounds[name]),
  };
}

const make = (saved?: ConstructorParameters<typeof TrainingWorlds>[1], worlds = [worldOf('a', 1), worldOf('b', 1)]) =>
  new TrainingWorlds({ seed: 4, worlds, mixture: 'fixed' }, saved);
const consumed = (...worlds: string[]) => ({
  byHorizon: worlds.map((world) => ({ world, horizon: 1, episodes: 1, successes: 0, truncated: 0 })),
});
const draws = (worlds: TrainingWorlds, n: number) =>
  Array.from({ length: n }, () => worlds.next(0)).map(
    ({ task: { env, index, seed }, horizon }) => `${env}${index}/${seed} h${horizon}`,
  );

describe('several worlds', () => {
  it('a group has the task and the horizon of one world: a swap of two horizons is seen', () => {
    const all = Array.from({ length: 12 }, () => make()).flatMap((worlds) =>
      Array.from({ length: 6 }, () => worlds.next(0)),
    );
    for (const { task, horizon } of all) {
      expect({ env: task.env, horizon }).toEqual(
        task.env === 'a' ? { env: 'a', horizon: 3 } : { env: 'b', horizon: 20 },
      );
      expect(task.env === 'a' ? [0, 1, 2] : [5, 6, 7]).toContain(task.index);
    }
    expect(new Set(all.map(({ task }) => task.env)).size).toBe(2);
  });

  it('draws of two worlds are apart: the same tasks have other seeds', () => {
    const worlds = make(undefined, [worldOf('a', 1), { ...worldOf('b', 1), tasks: [0, 1, 2] }]);
    const seeds = Array.from({ length: 20 }, () => worlds.next(0).task.seed);
    expect(new Set(seeds).size).toBe(20);
  });

  it('a horizon advances by the updates that consumed episodes of its world', () => {
    const worlds = make();
    const horizons = () => worlds.status(0)!.map(({ horizon }) => horizon);
    for (let i = 0; i < 2; i++) worlds.advance(consumed('a'));
    expect(horizons()).toEqual([6, 20]);
    worlds.advance(consumed('b'));
    expect(horizons()).toEqual([6, 20]);
    worlds.advance(consumed('a', 'b'));
    expect(horizons()).toEqual([6, 40]);
    expect(worlds.horizon).toBe(40);
    worlds.advance(consumed());
    expect(worlds.firstHorizon.updates).toBe(3);
  });

  it('an adaptive horizon sees the episodes of its own world alone', () => {
    const ladder: HorizonConfig = { type: 'adaptive', rounds: [3, 6] };
    const worlds = make(undefined, [
      { ...worldOf('a', 1), horizon: create(ladder) },
      { ...worldOf('b', 1), horizon: create(ladder) },
    ]);
    const stats = (world: string, successes: number) => ({ world, horizon: 3, episodes: 10, successes, truncated: 5 });
    worlds.advance({ byHorizon: [stats('a', 10), stats('b', 0)] });
    const [first, other] = [worlds.firstHorizon, worlds.saved.mixture!.others[0]!.horizon];
    expect(first.ladder!.success).toBeCloseTo(0.2);
    expect(other.ladder!.success).toBe(0);
  });

  it('goes on from what a checkpoint keeps', () => {
    const worlds = make();
    draws(worlds, 5);
    worlds.advance(consumed('a', 'b'));
    worlds.advance(consumed('a'));
    worlds.observe({ env: 'b', index: 6, seed: 1 }, 0.5);
    worlds.giveUp({ env: 'a', index: 1, seed: 1 }, 'threw');
    worlds.giveUp({ env: 'b', index: 6, seed: 1 }, 'unreachable');
    const saved = JSON.parse(
      JSON.stringify({ ...worlds.saved, horizon: worlds.firstHorizon }),
    ) as typeof worlds.saved & { horizon: HorizonState };
    const resumed = make(saved, [
      { ...worldOf('a', 1), horizon: restore(rounds.a, saved.horizon) },
      { ...worldOf('b', 1), horizon: restore(rounds.b, saved.mixture!.others[0]!.horizon) },
    ]);
    expect(resumed.saved).toEqual(worlds.saved);
    expect(draws(resumed, 20)).toEqual(draws(worlds, 20));
    expect(resumed.status(0)).toEqual(worlds.status(0));
    // The states of two worlds are of their own tasks: they do not fit each other.
    const { mixture, ...first } = saved;
    const [other] = mixture!.others;
    expect(() => make({ ...other!, mixture: { ...mixture!, others: [{ ...other!, ...first }] } })).toThrow(
      /belongs to another seed, env/,
    );
  });

  it('a task is quarantined in its own world', () => {
    const worlds = make(undefined, [worldOf('a', 1), { ...worldOf('b', 1), tasks: [0, 1, 2] }]);
    expect(worlds.giveUp({ env: 'a', index: 1, seed: 0 }, 'threw')).toEqual({ quarantined: true, down: false });
    const drawn = Array.from({ length: 30 }, () => worlds.next(0).task).filter(({ index }) => index === 1);
    expect(new Set(drawn.map(({ env }) => env))).toEqual(new Set(['b']));
  });

  it('a world that does not answer is said once, is drawn no more, and is said to be back once', () => {
    const worlds = make();
    const task = { env: 'b', index: 5, seed: 0 };
    expect(worlds.giveUp(task, 'unreachable')).toEqual({ quarantined: false, down: true });
    expect(worlds.giveUp(task, 'unreachable')).toEqual({ quarantined: false, down: false });
    const drawn = Array.from({ length: 16 }, () => worlds.next(0).task.env);
    expect(new Set(drawn)).toEqual(new Set(['a']));
    expect(worlds.status(0)!.map(({ isUp }) => isUp)).toEqual([true, false]);
    expect(worlds.next(0).task.env).toBe('b');
    expect(worlds.observe(task, 0)).toBe(true);
    expect(worlds.observe(task, 1)).toBe(false);
  });

  it('labels carry the name of the world', () => {
    const labelOf = createLabels([worldOf('a', 1), worldOf('b', 1)]);
    expect(labelOf({ env: 'b', index: 5, seed: 0 })).toBe('b: task 5');
    expect(createLabels([worldOf('a', 1)])({ env: 'other', index: 2, seed: 0 })).toBe('task 2');
  });
});

describe('one world', () => {
  const one = (saved?: ConstructorParameters<typeof TrainingWorlds>[1]) => make(saved, [worldOf('a', 1)]);

  it('has no draw, no status and no more state than it had', () => {
    const worlds = one();
    expect(Object.keys(worlds.saved).sort()).toEqual(['quarantined', 'sampler']);
    expect(worlds.status(0)).toBeUndefined();
    expect(worlds.giveUp({ env: 'a', index: 0, seed: 0 }, 'unreachable')).toEqual({ quarantined: false, down: false });
    worlds.advance(consumed());
    expect(worlds.firstHorizon.updates).toBe(1);
  });

  it('is not of another name than its tasks', () => {
    const worlds = one();
    expect(worlds.observe({ env: 'called otherwise', index: 0, seed: 0 }, 1)).toBe(false);
    worlds.advance(consumed('called otherwise'));
    expect(worlds.firstHorizon.updates).toBe(1);
  });
});
