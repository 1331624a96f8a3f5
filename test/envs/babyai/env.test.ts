import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { CorrectedSession, createEnv, OriginalSession } from '../../../envs/babyai/env.ts';
import { PLAIN, parse, print, VERBS } from '../../../envs/babyai/grammar.ts';
import { COLOR_NAMES, KEY } from '../../../envs/babyai/grid.ts';
import { heldOutTasks, indexOf, levelOf, PAPER_LEVELS, seedOf, tasks } from '../../../envs/babyai/tasks.ts';
import type { Session, TimeStep } from '../../../src/core/env.ts';
import { UserError } from '../../../src/core/errors.ts';
import { Rng } from '../../../src/core/rng.ts';
import type { World as WorldModule } from '../../../src/core/world.ts';

vi.setConfig({ testTimeout: 120_000 });

const LONG = process.env.LONGPLAY_LONG === '1';
const FIDELITIES = ['corrected', 'original'] as const;

const thingName = fc
  .tuple(
    fc.constantFrom(...COLOR_NAMES),
    fc.constantFrom('key', 'ball', 'box', 'open door', 'closed door', 'locked door'),
  )
  .map(([color, noun]) => `${color} ${noun}`);
const command = fc.oneof(
  fc.constantFrom(...PLAIN).map((action) => ({ type: 'plain' as const, action })),
  fc.record({
    type: fc.constant('thing' as const),
    verb: fc.constantFrom(...VERBS),
    name: thingName,
    number: fc.integer({ min: 1, max: 99 }),
  }),
);
const words = fc.oneof(
  fc.string(),
  command.map(print),
  fc.constantFrom(
    '',
    ' ',
    'check',
    'TURN LEFT',
    'go to',
    'pick up red ball 1',
    'drop everything',
    '💥',
    'a'.repeat(5000),
  ),
);

/** Plays, choosing a listed action where the script has a number, and the string itself otherwise. */
async function play(fidelity: string, index: number, script: readonly (number | string)[]): Promise<TimeStep[]> {
  const session = (await createEnv({ fidelity }).open({ env: 'babyai', index, seed: 0 })) as Session;
  const trace: TimeStep[] = [session.first];
  for (const choice of script) {
    if (trace.at(-1)!.kind === 'terminated') break;
    const listed = session.actions();
    trace.push(await session.step(typeof choice === 'number' ? listed[choice % listed.length]! : choice));
  }
  session.close();
  session.close();
  return trace;
}

const script = fc.array(fc.oneof({ weight: 3, arbitrary: fc.nat(30) }, { weight: 1, arbitrary: words }), {
  maxLength: 40,
});
const index = fc.nat(tasks.count - 1);

describe.each(FIDELITIES)('babyai, %s', (fidelity) => {
  const env = createEnv({ fidelity });

  it('takes any string, gives the same trace twice, and keeps its promises about rewards and lengths', async () => {
    await fc.assert(
      fc.asyncProperty(index, script, async (n, choices) => {
        const trace = await play(fidelity, n, choices);
        expect(await play(fidelity, n, choices)).toEqual(trace);
        for (const step of trace) {
          expect(step.observation.length).toBeLessThanOrEqual(env.maxObservationChars);
          expect(step.kind).not.toBe('truncated');
          if (step.kind === 'first') continue;
          expect(step.reward).toBeGreaterThanOrEqual(env.rewardRange[0]);
          expect(step.reward).toBeLessThanOrEqual(env.rewardRange[1]);
        }
      }),
      { numRuns: LONG ? 3000 : 150 },
    );
  });

  it('answers steps past the end without reward', async () => {
    const session = (await env.open({ env: 'babyai', index: 2, seed: 0 })) as Session;
    let step = await session.step('go to red ball 1');
    for (let t = 0; t < 20 && step.kind === 'mid'; t++) {
      const seen = session.actions().includes('go to red ball 1');
      step = await session.step(seen ? 'go to red ball 1' : 'turn left');
    }
    expect(step).toMatchObject({ kind: 'terminated', success: true });
    expect(await session.step('move forward')).toMatchObject({ kind: 'terminated', reward: 0, success: true });
  });
});

describe('the corrected rules', () => {
  const snapshot = ({ text: { world } }: CorrectedSession) =>
    JSON.stringify([world.agentX, world.agentY, world.agentDir, world.carrying, [...world.encode()]]);

  it('list exactly the actions that change the world', () => {
    const rng = Rng.fromSeed(1);
    for (let n = 0; n < (LONG ? 400 : 60); n++) {
      const start = indexOf((n % 40) + 1, 100 + n);
      const taken: string[] = [];
      for (let t = 0; t < 8; t++) {
        const fork = () => {
          const session = new CorrectedSession(start);
          for (const action of taken) session.step(action);
          return session;
        };
        const listed = fork().actions();
        expect(new Set(listed).size).toBe(listed.length);
        expect(listed).not.toContain('check available actions');
        for (const action of listed) {
          expect(print(parse(action))).toBe(action);
          const session = fork();
          const before = snapshot(session);
          session.step(action);
          expect(snapshot(session), `task ${start} after ${taken}: ${action}`).not.toBe(before);
        }
        const session = fork();
        const before = snapshot(session);
        for (const action of ['move forward', 'drop', 'toggle', 'check available actions']) {
          if (listed.includes(action)) continue;
          expect(session.step(action).kind).toBe('mid');
          expect(snapshot(session)).toBe(before);
        }
        taken.push(rng.pick(listed));
        const next = fork().text.answer;
        if (next.terminated) break;
      }
    }
  });

  it('repeat the goal, with its order kept', () => {
    const n = indexOf(15, 0);
    const goal = 'Your goal: open the red door, then open the blue door\n';
    const session = new CorrectedSession(n);
    expect(session.first.observation.startsWith(goal)).toBe(true);
    expect(session.step('turn left').observation.startsWith(goal)).toBe(true);
    expect(session.step('nonsense').observation.startsWith(goal)).toBe(true);
    const original = new OriginalSession(n);
    expect(original.first.observation).toContain('Your goal: open the red door, and open the blue door\n');
    expect(original.step('turn left').observation).not.toContain('Your goal');
  });

  /** Finds a paper-level task whose first scene offers an action like `pattern`. */
  function findTask(levels: readonly number[], pattern: RegExp): [index: number, action: string] {
    for (let seed = 0; seed < 200; seed++) {
      for (const level of levels) {
        const n = indexOf(level, seed);
        const action = new CorrectedSession(n).actions().find((each) => pattern.test(each));
        if (action) return [n, action];
      }
    }
    throw new Error(`no task offers ${pattern}`);
  }

  it('stop a macro where the mission is fulfilled; the original walks on and loses the reward', () => {
    const [n, action] = findTask([13], /^toggle and go through red closed door 1$/);
    expect(new CorrectedSession(n).step(action)).toMatchObject({ kind: 'terminated', success: true });
    expect(new OriginalSession(n).step(action)).toMatchObject({ kind: 'mid', reward: 0 });
  });

  it('distinguish success from reward: a late success still ends the episode, as a success', () => {
    const corrected = new CorrectedSession(2);
    const original = new OriginalSession(2);
    for (const { text } of [corrected, original]) text.world.stepCount = 60;
    const last = (session: Session) => {
      for (let t = 0; t < 20; t++) {
        const there = session.actions().includes('go to red ball 1');
        const step = session.step(there ? 'go to red ball 1' : 'turn left');
        if (there) return step;
      }
    };
    expect(last(corrected)).toMatchObject({ kind: 'terminated', success: true });
    expect(last(original)).toMatchObject({ kind: 'mid' });
    expect(original.text.payload.observation).toContain('The task is completed.');
  });

  it('end a failed strict mission as a failure', () => {
    const session = new CorrectedSession(indexOf(20, 0));
    const { world } = session.text;
    const wrong = session
      .actions()
      .find((action) => action.startsWith('pickup') && !world.mission.includes(action.split(' ')[2]!));
    expect(wrong).toBeDefined();
    expect(session.step(wrong!)).toMatchObject({ kind: 'terminated', reward: 0, success: false });
    expect(session.text.answer.observation).toContain('The task has failed.');
  });

  it('open boxes: the key of level 26 comes out', () => {
    const [n, action] = findTask([26], /^go to \w+ box 1$/);
    const session = new CorrectedSession(n);
    session.step(action);
    expect(session.actions()).toContain('toggle');
    session.step('toggle');
    const { world } = session.text;
    expect(world.codes[world.cells[world.front]!]! & 0xff).toBe(KEY);
    const original = new OriginalSession(n);
    original.step(action);
    expect(original.actions()).not.toContain('toggle');
  });

  it('close and reopen doors', () => {
    const [n, action] = findTask([10, 11, 12], /^go to \w+ closed door 1$/);
    const session = new CorrectedSession(n);
    session.step(action);
    for (let t = 0; t < 3; t++) {
      expect(session.actions()).toContain('toggle');
      session.step('toggle');
    }
  });

  it('drop only where there is room, and the first scene of level 23 shows the full hand', () => {
    const n = indexOf(23, 0);
    const session = new CorrectedSession(n);
    const held = session.text.world.codes[session.text.world.carrying]!;
    const name = `${COLOR_NAMES[held >>> 8]} `;
    expect(session.first.observation).toContain(`You are carrying a ${name}`);
    const { world } = session.text;
    const isFree = () => world.cells[world.front] === 0;
    for (let t = 0; t < 8; t++) {
      expect(session.actions().includes('drop')).toBe(isFree());
      session.step(t % 3 === 2 ? 'move forward' : 'turn left');
    }
  });

  /** Both worlds after the same actions. */
  function both(n: number, ...actions: string[]): [CorrectedSession, OriginalSession] {
    const [corrected, original] = [new CorrectedSession(n), new OriginalSession(n)];
    for (const action of actions) for (const session of [corrected, original]) session.step(action);
    return [corrected, original];
  }

  it('number things as the description does; the original counts only those with a path', () => {
    const [corrected, original] = both(40, 'turn left', 'pickup grey box 1', 'drop');
    for (const session of [corrected, original]) expect(session.step('jump').observation).not.toBe('');
    expect(corrected.actions()).toContain('pickup grey key 2');
    expect(corrected.actions()).not.toContain('pickup grey key 1');
    expect(original.actions()).toContain('pickup grey key 1');
    // The same key by two names.
    const keys = [corrected.step('pickup grey key 2'), original.step('pickup grey key 1')];
    expect(keys.map((step) => step.kind)).toEqual(['mid', 'mid']);
    expect(corrected.text.world.encode()).toEqual(original.text.world.encode());
  });

  it('do not plan through shut doors', () => {
    const action = 'toggle and go through yellow closed door 1';
    const [corrected, original] = both(109);
    expect(corrected.actions()).not.toContain(action);
    expect(corrected.step(action).observation).toContain('there is no path leading to it');
    const planned = original.text.expand(action).length;
    original.step(action);
    expect(original.text.world.stepCount).toBeLessThan(planned);
  });

  it('carry a macro on where the view happens to stay the same', () => {
    const through = (door: string) => `toggle and go through ${door} closed door`;
    const way = [`${through('yellow')} 2`, 'move forward', `${through('red')} 1`, 'turn right'];
    for (const session of both(540, ...way)) {
      const { world } = session.text;
      const start = world.stepCount;
      const low = session.text.expand('go to yellow closed door 1');
      session.step('go to yellow closed door 1');
      if (session instanceof CorrectedSession) expect(world.stepCount - start).toBe(low.length);
      else expect(world.stepCount - start).toBeLessThan(low.length);
    }
  });

  it('never pay below zero, nor twice', () => {
    for (const stepCount of [60, 400]) {
      const [corrected, original] = both(2);
      const low = { corrected: 0, original: 0 };
      for (const [name, session] of [
        ['corrected', corrected],
        ['original', original],
      ] as const) {
        session.text.world.stepCount = stepCount;
        for (let t = 0; t < 20 && !session.actions().includes('go to red ball 1'); t++) session.step('turn left');
        low[name] = (session.step('go to red ball 1') as { reward: number }).reward;
      }
      expect(low.corrected).toBe(Math.max(0, low.original));
      expect(low.original < 0).toBe(stepCount === 400);
      // The original repeats its last reward, and adds it to the score.
      expect(original.step('jump')).toMatchObject({ reward: low.original });
      expect(original.text.payload.score).toBe(2 * low.original);
      expect(corrected.step('jump')).toMatchObject({ kind: 'terminated', reward: 0 });
    }
  });

  it('understand what the prompt taught: pick up, any case, blanks, a missing number', () => {
    const [n, action] = findTask([1, 2, 5], /^pickup \w+ box 1$/);
    for (const form of [
      action.replace('pickup', 'pick up'),
      action.toUpperCase(),
      ` ${action} .`.replace(' .', '.'),
      action.slice(0, -2),
    ]) {
      const session = new CorrectedSession(n);
      session.step(form);
      expect(session.text.world.carrying, form).toBeGreaterThan(0);
    }
    expect(new OriginalSession(n).step(action.replace('pickup', 'pick up')).observation).toContain('not recognized');
  });

  it('answer why an action fails', () => {
    const [n, action] = findTask([5], /^pickup \w+ ball 1$/);
    const session = new CorrectedSession(n);
    const answerTo = (text: string) => session.step(text).observation;
    expect(answerTo('drop')).toContain('not carrying anything');
    expect(answerTo('toggle')).toContain('nothing in front of you');
    expect(answerTo('go to purple locked door 9')).toContain('You cannot see purple locked door 9 from here.');
    expect(answerTo('jump')).toContain('The action is not recognized.');
    expect(answerTo('check available actions')).toContain('You can take the following actions: turn left, turn right');
    answerTo(action);
    expect(session.text.world.carrying).toBeGreaterThan(0);
    const other = /There is a (\w+ (?:ball|key|box)) 1/.exec(session.text.answer.observation)![1];
    expect(answerTo(`pickup ${other} 1`)).toContain('already carrying something');
  });
});

describe('grammar', () => {
  it('reads what it prints', () => {
    fc.assert(
      fc.property(command, (each) => {
        expect(parse(print(each))).toEqual(each);
      }),
    );
  });
});

describe('options', () => {
  it('belong to a whole env module', async () => {
    const babyai: WorldModule = await import('../../../envs/babyai/index.ts');
    expect(babyai.createEnv!({ fidelity: 'original' }).id).toBe('babyai');
    expect([typeof babyai.createOracle, typeof babyai.draw, babyai.view?.mode]).toEqual([
      'function',
      'function',
      'window',
    ]);
  });

  it('are checked', () => {
    expect(() => createEnv({ fidelity: 'exact' })).toThrow(UserError);
    expect(() => createEnv({ horizon: 3 })).toThrow(UserError);
    expect(() => createEnv().open({ env: 'babyai', index: tasks.count, seed: 0 })).toThrow(RangeError);
    expect(() => createEnv().open({ env: 'babyai', index: -1, seed: 0 })).toThrow(RangeError);
  });
});

describe('the task table', () => {
  it('is the paper’s: 810 training ids, 90 test ids by sub-task, 360 held out', () => {
    const [train, test] = [tasks.split('train'), tasks.split('test')];
    expect([train.length, test.length, heldOutTasks.length]).toEqual([810, 90, 360]);
    const sets = tasks.sets!;
    expect([sets.fresh!.length, sets.fit!.length + sets.selection!.length]).toEqual([580 * 18, 810]);
    for (const apart of [test, heldOutTasks, sets.fresh!]) expect(apart.filter((n) => train.includes(n))).toEqual([]);
    expect(heldOutTasks.filter((n) => test.includes(n) || sets.fresh!.includes(n))).toEqual([]);
    expect([...sets.fit!, ...sets.selection!].sort((x, y) => x - y)).toEqual([...train]);
    for (const split of [train, test, heldOutTasks]) expect([...split].sort((a, b) => a - b)).toEqual([...split]);
    const counts = new Map<string, number>();
    for (const n of test) counts.set(tasks.label(n), (counts.get(tasks.label(n)) ?? 0) + 1);
    expect(Object.fromEntries(counts)).toEqual({
      GoTo: 55,
      Pickup: 15,
      ActionObjDoor: 5,
      FindObjS7: 5,
      OneRoomS20: 5,
      SynthLoc: 5,
    });
  });

  it('labels every level', () => {
    expect(PAPER_LEVELS.length).toBe(18);
    expect(tasks.labels.length).toBe(6 + 22);
    for (let n = 0; n < 80; n++) expect(tasks.labels).toContain(tasks.label(n));
    expect(tasks.label(indexOf(17, 3))).toBe('level 17 Pickup');
    expect([levelOf(1804), seedOf(1804)]).toEqual([5, 45]);
    expect(() => tasks.label(0.5)).toThrow(RangeError);
  });
});
