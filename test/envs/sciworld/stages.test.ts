/** Staged lists of SciWorld's actions: forms, things, second things, the way back, and the names things are listed by. */
import { describe, expect, it } from 'vitest';
import { createEnv, type SciWorldSession } from '../../../envs/sciworld/index.ts';
import { kind } from '../../../envs/sciworld/kinds.ts';
import { BACK, MAX_STAGES, MORE, Stages } from '../../../envs/sciworld/stages.ts';
import { ACTIONS_PER_STAGE } from '../../../src/core/env.ts';
import { act, house, thingIn } from '../../support/small-sciworld.ts';

function staged(task = 'boil', variation = 0, place = 'kitchen') {
  const simulator = house(task, variation);
  act(simulator, `teleport to ${place}`);
  return { simulator, stages: new Stages(simulator) };
}

const open = (index: number, options = {}) =>
  createEnv({ tasks: 'scienceworld', ...options }).open({ env: 'sciworld', index, seed: 0 }) as SciWorldSession;

describe('the first stage', () => {
  it('has whole actions without a thing and forms with a question mark', () => {
    const actions = staged().stages.actions();
    expect(actions).toEqual(expect.arrayContaining(['look around', 'inventory', 'wait', 'wait1', 'reset task']));
    expect(actions).toEqual(expect.arrayContaining([`open ${MORE}`, `move ${MORE}`, `teleport to ${MORE}`]));
  });

  it('leaves out forms for which there is nothing', () => {
    const actions = staged('boil', 0, 'hallway').stages.actions();
    for (const form of ['flush', 'read', 'dunk', 'eat']) {
      const has = form === 'eat';
      expect([form, actions.includes(`${form} ${MORE}`)]).toEqual([form, has]);
    }
  });

  it('opens doors that are closed and goes through those that are open', () => {
    const { simulator, stages } = staged();
    expect(stages.actions()).toEqual(expect.arrayContaining(['open door to hallway', 'open door to outside']));
    simulator.step('open door to hallway');
    expect(stages.actions()).toContain('go to hallway');
    expect(stages.actions()).not.toContain('open door to hallway');
  });

  it('has whole actions on the things that the task names', () => {
    const { stages } = staged('use-thermometer', 0);
    expect(stages.actions()).toEqual(expect.arrayContaining(['focus on thermometer', 'pick up thermometer']));
    expect(stages.actions()).not.toContain('focus on soap');
  });

  it('has 64 texts at most, everywhere', () => {
    for (const place of ['kitchen', 'workshop', 'art studio', 'outside', 'greenhouse']) {
      const { stages } = staged('mendelian-genetics-known-plant', 0, place);
      expect(stages.actions().length).toBeLessThanOrEqual(ACTIONS_PER_STAGE);
    }
  });

  it('lists nothing twice', () => {
    for (const place of ['kitchen', 'workshop', 'art studio']) {
      const actions = staged('test-conductivity', 0, place).stages.actions();
      expect(new Set(actions).size).toBe(actions.length);
    }
  });
});

describe('going on to a thing', () => {
  it('shows what the form can be done to', () => {
    const { stages } = staged();
    expect(stages.take(`activate ${MORE}`)).toBe('activate: choose from the list.');
    const actions = stages.actions();
    expect(actions).toEqual(expect.arrayContaining(['activate stove', 'activate oven', 'activate sink', BACK]));
    expect(actions).not.toContain('activate fridge');
  });

  it('asks for the first thing, then for the second', () => {
    const { stages } = staged();
    stages.take(`use ${MORE}`);
    expect(stages.actions()).toEqual(expect.arrayContaining([`use lighter on ${MORE}`, `use thermometer on ${MORE}`]));
    expect(stages.take(`use lighter on ${MORE}`)).toBe('use lighter on: choose from the list.');
    expect(stages.actions()).toContain('use lighter on soap');
    expect(stages.actions()).not.toContain('use lighter on lighter');
  });

  it('goes back', () => {
    const { stages } = staged();
    stages.take(`open ${MORE}`);
    expect(stages.take(BACK)).toBe('Choose an action.');
    expect(stages.actions()).toContain(`open ${MORE}`);
  });

  it.each([
    ['a whole action', 'open fridge'],
    ['a form that is none', `sing ${MORE}`],
    ['an action without a thing', `wait ${MORE}`],
    ['the way back where there is none', BACK],
    ['a thing that is not there', `use moon on ${MORE}`],
    ['nothing', ''],
  ])('takes no stage from %s', (_what, text) => {
    const { stages } = staged();
    expect(stages.take(text)).toBeUndefined();
    expect(stages.actions()).toContain(`open ${MORE}`);
  });

  it('forgets the stage with a whole action', () => {
    const { stages } = staged();
    stages.take(`open ${MORE}`);
    expect(stages.take('open fridge')).toBeUndefined();
    expect(stages.actions()).toContain(`open ${MORE}`);
  });

  it('never takes more partial steps in a row than the contract allows', () => {
    const { stages } = staged();
    let taken = 0;
    for (let i = 0; i < 3 * MAX_STAGES; i++) {
      const [text] = stages.actions().filter((one) => one === BACK || one.endsWith(` ${MORE}`));
      if (text === undefined || stages.take(text) === undefined) break;
      taken++;
    }
    expect(taken).toBeGreaterThan(1);
    expect(taken).toBeLessThanOrEqual(MAX_STAGES);
    expect(stages.actions().every((text) => !text.endsWith(MORE))).toBe(true);
  });

  it('takes no time', () => {
    const { simulator, stages } = staged();
    const before = [simulator.moves, simulator.world.random.draws];
    stages.take(`use ${MORE}`);
    stages.take(`use lighter on ${MORE}`);
    expect([simulator.moves, simulator.world.random.draws]).toEqual(before);
  });
});

describe('names in the list', () => {
  it('are the shortest that no other thing within reach has', () => {
    const { simulator, stages } = staged();
    const name = (thing: string, place = 'kitchen') => stages.nameOf(thingIn(simulator, thing, place));
    expect(name('stopwatch')).toBe('stopwatch');
    expect(stages.nameOf(thingIn(simulator, 'kitchen').portals[0]!)).toBe('door to hallway');
    expect(name('metal pot')).toBeUndefined();
  });

  it('of two oranges name where each is', () => {
    const { simulator, stages } = staged();
    const [bowl, hand] = [thingIn(simulator, 'bowl'), simulator.world.inventory];
    const orange = (top: typeof bowl) => top.contents.find(({ name }) => name === 'orange')!;
    expect([stages.nameOf(orange(bowl)), stages.nameOf(orange(hand))]).toEqual([
      'orange in bowl',
      'orange in inventory',
    ]);
  });

  it('of look-alikes are listed once, and a question asks which', () => {
    const { simulator, stages } = staged('boil', 0, 'hallway');
    const jugs = [0, 1].map(() => simulator.world.make(kind('jug')));
    for (const jug of jugs) simulator.world.move(jug, thingIn(simulator, 'hallway'));
    stages.take(`pick up ${MORE}`);
    expect(stages.actions().filter((text) => text.includes('jug'))).toHaveLength(1);
    const [text] = stages.actions().filter((one) => one.includes('jug'));
    expect(simulator.step(text!)).toMatch(/^Ambiguous request/);
    expect(stages.actions()).toEqual(['0', '1']);
  });

  it('change with the world', () => {
    const { simulator, stages } = staged();
    act(simulator, 'open cupboard');
    expect(stages.nameOf(thingIn(simulator, 'metal pot'))).toBe('metal pot');
    thingIn(simulator, 'metal pot').name = 'seed jar';
    expect(stages.nameOf(thingIn(simulator, 'seed jar'))).toBe('seed jar');
  });
});

describe('a session', () => {
  it('marks a stage as one, and pays nothing for it', () => {
    const session = open(0);
    expect(session.step(`open ${MORE}`)).toEqual({
      kind: 'mid',
      observation: 'open: choose from the list.',
      reward: 0,
      partial: true,
    });
  });

  it('lists nothing once it is over, and repeats its last answer', () => {
    const session = open(0);
    const last = session.step('focus on agent');
    expect(last.kind).toBe('terminated');
    expect(session.actions()).toEqual([]);
    expect(session.step('look around')).toEqual({ ...last, reward: 0 });
  });

  it('ends after a hundred moves where the original does', () => {
    const [original, corrected] = [open(0, { fidelity: 'original' }), open(0)];
    let kinds: string[] = [];
    for (let i = 0; i < 10; i++) {
      kinds = [original.step('wait').kind, corrected.step('wait').kind];
      if (i < 9) expect(kinds).toEqual(['mid', 'mid']);
    }
    expect(kinds).toEqual(['terminated', 'mid']);
    expect(original.simulator.moves).toBe(110);
  });

  it('pays what the score rises above its best, and nothing when it falls', () => {
    // Boiling: being near water is worth a little; leaving and coming back is worth nothing.
    const session = open(0, { simplifications: ['teleportAction'] });
    const pays = (text: string) => session.step(text).reward;
    const first = pays('teleport to bathroom');
    expect(first).toBeGreaterThan(0);
    expect(pays('teleport to hallway')).toBe(0);
    expect(pays('teleport to bathroom')).toBe(0);
    expect(pays('reset task')).toBe(0);
    expect(pays('wait1')).toBe(0);
  });

  it('counts the points of a reset down and up again in the original', () => {
    const session = open(0, { fidelity: 'original', simplifications: ['teleportAction'] });
    const gained = session.step('teleport to bathroom').reward;
    expect(gained).toBeGreaterThan(0);
    expect(Number.isInteger(gained)).toBe(true);
    session.step('teleport to hallway');
    expect(session.step('reset task').reward).toBe(-gained);
  });
});
