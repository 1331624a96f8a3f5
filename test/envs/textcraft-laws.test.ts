/** The env laws hold of TextCraft, and each of them notices a TextCraft that breaks it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createEnv } from '../../envs/textcraft/index.ts';
import { TREE, words } from '../../envs/textcraft/recipes.ts';
import { type Env, mid, type Session } from '../../src/core/env.ts';
import { envLaws, laws } from './laws.ts';

const item = fc.constantFrom(...TREE.items.map(words), ...[...TREE.tags].map(words), 'foo', 'planks ', ' stone');
const amount = fc.constantFrom('0', '1', '2', '4', '007', '-1', '1.5', '', '99999999999999999999999');
const stack = fc.tuple(amount, item).map(([n, what]) => `${n} ${what}`);
const listed = fc.constantFrom(...[...TREE.recipesOf.values()].flat().map(({ command }) => command));
const action = fc.oneof(
  listed,
  stack.map((one) => `get ${one}`),
  fc.tuple(stack, fc.array(stack, { maxLength: 3 })).map(([made, used]) => `craft ${made} using ${used.join(',')}`),
  fc.constantFrom(
    '',
    'inventory',
    'Inventory',
    'look',
    'craft',
    'get 1',
    'craft 1 x using',
    'get 3 oak log\nget 1 stone',
  ),
);

envLaws('textcraft', { createEnv: () => createEnv(), action });
envLaws("textcraft, fidelity 'original',", { createEnv: () => createEnv({ fidelity: 'original' }), action });

/** Wraps every session of a right env so that it does one thing wrong. */
function broken(change: (session: Session, env: Env) => Partial<Session>, over: Partial<Env> = {}): () => Env {
  return () => {
    const env = createEnv();
    return {
      id: env.id,
      description: env.description,
      tasks: env.tasks,
      rewardRange: env.rewardRange,
      maxObservationChars: env.maxObservationChars,
      open(task) {
        const session = env.open(task);
        return {
          first: session.first,
          step: (text) => session.step(text),
          actions: () => session.actions(),
          close: () => session.close(),
          ...change(session, env),
        };
      },
      ...over,
    };
  };
}

let calls = 0;
let shared: Session | undefined;
const right = createEnv();
const planted: readonly (readonly [law: string, bug: string, createEnv: () => Env])[] = [
  [
    'replays a task and its actions to the same trace',
    'a step counter outlives the episode',
    broken((session) => ({ step: async (text) => ({ ...(await session.step(text)), observation: `${calls++}` }) })),
  ],
  [
    'keeps sessions apart',
    'sessions share their inventory',
    () => {
      shared = undefined;
      return broken((session) => {
        shared ??= session;
        const mine = shared;
        return { step: (text) => mine.step(text) };
      })();
    },
  ],
  [
    'opens with `first` and never returns to it',
    'an unknown action starts anew',
    broken((session) => ({ step: () => session.first as never })),
  ],
  [
    'leaves truncation to the horizon',
    'the env cuts its episodes',
    broken(() => ({ step: () => ({ kind: 'truncated', observation: '', reward: 0 }) as never })),
  ],
  ['pays finite rewards within its range', 'a reward is NaN', broken(() => ({ step: () => mid('', Number.NaN) }))],
  ['pays finite rewards within its range', 'a reward is too high', broken(() => ({ step: () => mid('', 2) }))],
  [
    'observes in text no longer than it says',
    'the bound is too small',
    broken(() => ({}), { maxObservationChars: 20 }),
  ],
  [
    'lists the same actions however often it is asked, none twice',
    'asking for actions changes what is held',
    broken((session) => ({
      actions() {
        session.step('get 1 stone');
        return session.actions();
      },
    })),
  ],
  [
    'lists the same actions however often it is asked, none twice',
    'an action is listed twice',
    broken((session) => ({ actions: () => [...session.actions(), 'inventory'] })),
  ],
  [
    'answers harmlessly after the end',
    'an action throws',
    broken((session) => ({
      step(text) {
        if (text === '') throw new Error('empty');
        return session.step(text);
      },
    })),
  ],
  [
    'has a sound task table',
    'a test task is trained on',
    broken(() => ({}), { tasks: { ...right.tasks, split: () => right.tasks.split('test') } }),
  ],
  [
    'opens no task outside its table',
    'indices wrap around',
    () => {
      const env = createEnv();
      return {
        ...broken(() => ({}))(),
        open: (task) => env.open({ ...task, index: Math.abs(Math.trunc(task.index)) % env.tasks.count }),
      };
    },
  ],
];

describe('each law fails on a planted bug', () => {
  for (const [name, bug, createBroken] of planted) {
    it(`${name}: ${bug}`, async () => {
      const { check } = laws.find((one) => one.name === name)!;
      await expect(check({ createEnv: createBroken, action, runs: 60 })).rejects.toThrow();
    });
  }
  it('plants a bug for every law', () => {
    expect(new Set(planted.map(([name]) => name))).toEqual(new Set(laws.map(({ name }) => name)));
  });
});
