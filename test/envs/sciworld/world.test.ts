/** Rules of SciWorld that no recording shows: options, splits, rewards, stages, simplifications, random streams. */
import { describe, expect, it } from 'vitest';
import { createEnv, type SciWorldSession } from '../../../envs/sciworld/index.ts';
import { JavaRandom } from '../../../envs/sciworld/java-random.ts';
import { findRegistered, Simulator } from '../../../envs/sciworld/simulator.ts';
import { UserError } from '../../../src/core/errors.ts';

const open = (index: number, options = {}) =>
  createEnv(options).open({ env: 'sciworld', index, seed: 0 }) as SciWorldSession;

describe('options', () => {
  it.each([
    [{ level: 3 }, /no option "level"; it has: fidelity, tasks, failure, simplifications/],
    [{ fidelity: 'exact' }, /fidelity must be one of "corrected", "original", got "exact"/],
    [{ tasks: 'babyai' }, /tasks must be one of "agentgym", "scienceworld"/],
    [{ simplifications: 'easy' }, /simplifications must be a list/],
    [{ simplifications: ['easier'] }, /simplifications must be one of .*"easy", got "easier"/],
  ])('%j is one clear line', (options, message) => {
    expect(() => createEnv(options)).toThrow(UserError);
    expect(() => createEnv(options)).toThrow(message);
  });
});

describe('tasks', () => {
  it("are AgentGym's 4,639 ids with the paper's lists, of which training leaves out what is tested on", () => {
    const { tasks } = createEnv();
    expect(tasks.count).toBe(4639);
    expect(tasks.split('test')).toHaveLength(200);
    expect(tasks.split('train')).toHaveLength(2120 - 61);
    expect(tasks.sets?.['paper-train']).toHaveLength(2120);
    expect(tasks.sets?.['unseen-test']).toHaveLength(139);
    const perLabel: Record<string, number> = {};
    for (const index of tasks.split('test')) perLabel[tasks.label(index)] = (perLabel[tasks.label(index)] ?? 0) + 1;
    expect(perLabel).toEqual({ Measure: 53, 'Test-Conductivity': 83, Find: 44, 'Chem-Mix': 5, Lifespan: 15 });
  });

  it("are all of ScienceWorld's 30 with its split: half, a quarter, the rest of each", () => {
    const { tasks } = createEnv({ tasks: 'scienceworld' });
    expect(tasks.count).toBe(7207);
    expect(tasks.sets?.['test-even']).toHaveLength(30 * 4);
    expect(tasks.split('test')).toEqual(expect.arrayContaining([...(tasks.sets?.['test-even'] ?? [])]));
    const boiling = [...tasks.split('train')].filter((index) => index < 30);
    expect(boiling).toEqual(Array.from({ length: 14 }, (_, i) => i));
    expect([...tasks.split('test')].filter((index) => index < 30)).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29]);
  });
});

describe('rewards', () => {
  it('are rises of the score, paid once, and 1 in all for a solved task', () => {
    // find-living-thing, variation 0: the red box stands in the kitchen, a butterfly egg outside.
    const session = open(2936);
    const actions = ['open door to kitchen', 'go to kitchen', 'open door to outside', 'go to outside'];
    actions.push('focus on butterfly egg', 'pick up butterfly egg', 'reset task', 'focus on butterfly egg');
    actions.push('go to kitchen', 'move butterfly egg to red box');
    const steps = actions.map((action) => session.step(action));
    expect(steps.reduce((sum, step) => sum + step.reward, 0)).toBeCloseTo(1, 9);
    expect(steps.every(({ reward }) => reward >= 0)).toBe(true);
    expect(steps[7]).toMatchObject({ kind: 'mid', reward: 0 });
    expect(steps.at(-1)).toMatchObject({ kind: 'terminated', success: true });
  });

  it('take back what was earned where a failure forfeits it', () => {
    const session = open(2936, { failure: 'forfeits' });
    const steps = ['open door to kitchen', 'go to kitchen', 'focus on agent'].map((action) => session.step(action));
    expect(steps[1]!.reward).toBeGreaterThan(0);
    expect(steps.at(-1)).toMatchObject({ kind: 'terminated', success: false });
    expect(steps.reduce((sum, { reward }) => sum + reward, 0)).toBe(0);
  });

  it('are nothing for a wrong focus, which ends the episode, and minus points in the original', () => {
    expect(open(2936).step('focus on agent')).toMatchObject({ kind: 'terminated', reward: 0, success: false });
    const original = open(2936, { fidelity: 'original' });
    expect(original.step('focus on agent')).toMatchObject({ kind: 'terminated', reward: -100, success: false });
  });
});

describe('stages', () => {
  it('put an action together from its form and its things, and change nothing meanwhile', () => {
    const session = open(2936);
    expect(session.actions()).toContain('move ?');
    const before = session.simulator.look();
    expect(session.step('move ?')).toMatchObject({ kind: 'mid', partial: true, reward: 0 });
    expect(session.actions()).toContain('move orange to ?');
    expect(session.step('move orange to ?')).toMatchObject({ partial: true });
    expect(session.actions()).toContain('move orange to hallway');
    expect(session.simulator.look()).toBe(before);
    expect(session.step('move orange to hallway').observation).toBe('You move the orange to the hallway.');
  });

  it('are listed without an effect on what happens', () => {
    const [listed, silent] = [open(2936), open(2936)];
    for (let i = 0; i < 30; i++) {
      listed.actions();
      expect(listed.step('wait')).toEqual(silent.step('wait'));
    }
    expect(listed.simulator.world.random.draws).toBe(silent.simulator.world.random.draws);
  });
});

describe('simplifications', () => {
  const easy = (name: string, variation = 0) =>
    new Simulator(findRegistered(name)!, variation, ['openDoors', 'teleportAction']);

  it('open the doors and let the agent teleport', () => {
    const simulator = easy('boil');
    expect(simulator.look()).not.toContain('closed)');
    expect(simulator.step('teleport to foundry')).toBe('You teleport to the foundry.');
    expect(new Simulator(findRegistered('boil')!, 0).step('teleport to foundry')).toBe(
      'No known action matches that input.',
    );
  });

  it('take the electrical actions away', () => {
    const simulator = new Simulator(findRegistered('boil')!, 0, ['noElectricalAction']);
    expect(simulator.step('connect agent to air')).toBe('No known action matches that input.');
    expect(simulator.valid().some((text) => text.startsWith('connect'))).toBe(false);
  });

  it('open the containers', () => {
    const simulator = new Simulator(findRegistered('boil')!, 0, ['openContainers', 'teleportAction']);
    simulator.step('teleport to kitchen');
    expect(simulator.look()).toContain('The cupboard door is open.');
  });

  it('water the flower pots', () => {
    const simulator = new Simulator(findRegistered('grow-plant')!, 0, ['selfWateringFlowerPots', 'teleportAction']);
    simulator.step('teleport to greenhouse');
    expect(simulator.look()).toContain('a flower pot 1 (containing soil, a substance called water)');
  });
});

describe('random numbers', () => {
  it("are Java's", () => {
    // java.util.Random(42): nextInt(10) five times.
    const random = new JavaRandom(42);
    expect(Array.from({ length: 5 }, () => random.int(10))).toEqual([0, 3, 8, 4, 0]);
  });

  it('are drawn as often by the valid list as the original draws them', () => {
    const draws = ([task, variation]: readonly [string, number]) => {
      const { world, valid } = (() => {
        const simulator = new Simulator(findRegistered(task)!, variation);
        return { world: simulator.world, valid: () => simulator.valid() };
      })();
      world.random.seed(12345);
      const before = world.random.draws;
      valid();
      return world.random.draws - before;
    };
    const listed = [
      ['boil', 0],
      ['boil', 3],
      ['find-plant', 5],
      ['lifespan-longest-lived', 2],
      ['test-conductivity', 10],
      ['mendelian-genetics-known-plant', 7],
    ] as const;
    expect(listed.map(draws)).toEqual([411, 469, 401, 448, 442, 475]);
  });
});
