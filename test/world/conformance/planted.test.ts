/** Each law notices a world that breaks it. The right world is TextCraft; every planted bug is one line. */
import { describe, expect, it } from 'vitest';
import * as textcraft from '../../../envs/textcraft/index.ts';
import { type Env, type EnvStep, mid, type Session } from '../../../src/core/env.ts';
import { checkLaw, checkLaws, envLaws, formatBroken } from '../../../src/world/conformance/check.ts';
import { rejectAfter } from '../../../src/world/conformance/deadline.ts';
import { laws, type Subject } from '../../../src/world/conformance/laws.ts';
import { measureLeak } from '../../../src/world/conformance/measure.ts';
import type { ActionTexts } from '../../../src/world/conformance/script.ts';
import { createEnv as createStaged } from '../../support/staged-env.ts';

const right = textcraft.createEnv();

/** Wraps every session of a right env so that it does one thing wrong. */
function broken(change: (session: Session) => Partial<Session>, over: Partial<Env> = {}): () => Env {
  return () => {
    const env = textcraft.createEnv();
    return {
      id: env.id,
      description: env.description,
      tasks: env.tasks,
      rewardRange: env.rewardRange,
      maxObservationChars: env.maxObservationChars,
      open(task) {
        const session = env.open(task) as Session;
        return {
          first: session.first,
          step: (text) => session.step(text),
          actions: () => session.actions(),
          close: () => session.close(),
          ...change(session),
        };
      },
      ...over,
    };
  };
}

const tasks = (over: Partial<Env['tasks']>) => broken(() => ({}), { tasks: { ...right.tasks, ...over } });

let calls = 0;
const stages: ActionTexts = (rng) => rng.pick(['paint', 'press', 'paint wall', 'door']);
const planted: readonly (readonly [law: string, bug: string, subject: Subject | (() => Env)])[] = [
  [
    'puts actions together in few stages, each with a list',
    'stages follow each other for ever',
    { createEnv: () => createStaged({ bug: 'endless' }), texts: stages },
  ],
  [
    'does not move while an action is put together',
    'a stage paints a wall',
    { createEnv: () => createStaged({ bug: 'moves' }), texts: stages },
  ],
  [
    'takes any string as an action',
    'an empty action throws',
    broken((session) => ({
      step(text) {
        if (text === '') throw new Error('empty');
        return session.step(text);
      },
    })),
  ],
  [
    'takes any string as an action',
    'an action named like a method is looked up on an object',
    broken((session) => {
      const answers: Record<string, EnvStep> = {};
      return { step: (text) => answers[text] ?? session.step(text) };
    }),
  ],
  [
    'takes any string as an action',
    'the answer has no reward',
    broken(() => ({ step: () => ({ kind: 'mid', observation: '' }) as never })),
  ],
  [
    'takes any string as an action',
    'closing twice throws',
    broken((session) => {
      let open = true;
      return {
        close() {
          if (!open) throw new Error('closed already');
          open = false;
          session.close();
        },
      };
    }),
  ],
  [
    'replays a task and its actions to the same trace',
    'a step counter outlives the episode',
    broken((session) => ({ step: async (text) => ({ ...(await session.step(text)), observation: `${calls++}` }) })),
  ],
  [
    'lets episodes be reset, stepped and closed in any order',
    'sessions share their inventory',
    () => {
      let shared: Session | undefined;
      return broken((session) => {
        shared ??= session;
        const mine = shared;
        return { step: (text) => mine.step(text) };
      })();
    },
  ],
  [
    'lets episodes be reset, stepped and closed in any order',
    'closing one session ends its siblings',
    () => {
      let closed = 0;
      return broken((session) => {
        const before = closed;
        return {
          step: (text) => (closed > before ? mid('The server has gone away.') : session.step(text)),
          close: () => void closed++,
        };
      })();
    },
  ],
  [
    'leaves truncation to the horizon',
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
    'observes in text that can be sent and is no longer than it says',
    'the bound is too small',
    broken(() => ({}), { maxObservationChars: 20 }),
  ],
  [
    'observes in text that can be sent and is no longer than it says',
    'a character is cut in half',
    broken(() => ({ step: () => mid('🙂'.slice(0, 1)) })),
  ],
  [
    'observes in text that can be sent and is no longer than it says',
    'a step carries what JSON cannot',
    broken(() => ({ step: () => ({ ...mid(''), seen: new Set(['x']) }) })),
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
    'renders and draws every episode the same twice',
    'the picture counts its calls',
    { createEnv: textcraft.createEnv, module: { draw: () => ({ kind: 'text', lines: [`${calls++}`] }) as never } },
  ],
  [
    'renders and draws every episode the same twice',
    'the view points past its end',
    {
      createEnv: textcraft.createEnv,
      module: {
        view: { ...textcraft.view, prompt: () => ({ segments: ['x'], focus: '', mentions: () => [1] }) } as never,
      },
    },
  ],
  ['has a sound description', 'the id is a sentence', broken(() => ({}), { id: 'My World' })],
  ['has a sound description', 'the range is upside down', broken(() => ({}), { rewardRange: [1, 0] })],
  ['has a sound task table', 'a test task is trained on', tasks({ split: () => right.tasks.split('test') })],
  ['has a sound task table', 'any index has a label', tasks({ label: () => right.tasks.labels[0]! })],
  ['has a sound task table', 'a set is not in order', tasks({ sets: { mine: [2, 1] } })],
  [
    'opens no task outside its table',
    'indices wrap around',
    () => ({
      ...broken(() => ({}))(),
      open: (task) => right.open({ ...task, index: Math.abs(Math.trunc(task.index || 0)) % right.tasks.count }),
    }),
  ],
];

describe('each law fails on a planted bug', { timeout: 120_000 }, () => {
  it.each(planted)('%s: %s', async (name, _, subject) => {
    const law = laws.find((one) => one.name === name)!;
    const result = await checkLaw(law, typeof subject === 'function' ? { createEnv: subject } : subject, {
      cases: 100,
      seed: 1,
    });
    expect(result.ok).toBe(false);
    expect(result.broken!.seen).not.toBe('');
  });

  it('plants a bug for every law', () => {
    expect(new Set(planted.map(([name]) => name))).toEqual(new Set(laws.map(({ name }) => name)));
  });

  it('waits for no answer for ever', async () => {
    const never = new Promise(() => {});
    await expect(rejectAfter(never, "step('go')", 20)).rejects.toThrow("step('go') did not settle within 20 ms");
    await expect(rejectAfter(Promise.resolve(3), 'open', 1000)).resolves.toBe(3);
    expect(rejectAfter(4, 'open')).toBe(4); // a plain value is not waited for at all
  });

  it('sees a leak, and none where there is none', async () => {
    const kept: unknown[] = [];
    const leaking = broken((session) => {
      kept.push([session, new Array<number>(100).fill(0)]);
      return {};
    });
    expect(await measureLeak(leaking, 2000, 1)).toMatchObject({ ok: false, episodes: 8000 });
    expect(kept).toHaveLength(8000);
    expect(
      await measureLeak(
        broken(() => ({})),
        5000,
        1,
      ),
    ).toMatchObject({ ok: true });
  });

  it('takes a cache with a bound for no leak, however slowly it fills', async () => {
    const cache = new Map<number, readonly number[]>();
    const caching = broken(() => {
      // 4 kB each, so that a round of filling stands far above what the heap of a test runner shrinks by meanwhile.
      if (cache.size < 5000) cache.set(cache.size, new Array<number>(500).fill(cache.size));
      return {};
    });
    // Full at 5,000, so the second half of the third round is flat.
    expect(await measureLeak(caching, 2000, 1)).toMatchObject({ ok: true, episodes: 6000 });
  });
});

describe('a counterexample', { timeout: 120_000 }, () => {
  const picky = broken((session) => {
    let gets = 0;
    return {
      step(text) {
        if (text.startsWith('get')) gets++;
        return gets === 2 ? mid('', 7) : session.step(text);
      },
    };
  });

  it('is shrunk to the actions that matter', async () => {
    const results = await checkLaws({ createEnv: picky }, { cases: 50, seed: 3 });
    const found = results.find(({ ok }) => !ok)!;
    expect(found.law).toBe('pays finite rewards within its range');
    expect(found.broken!.actions).toHaveLength(2);
    expect(found.broken!.actions.every((text) => text.startsWith('get'))).toBe(true);
    expect(formatBroken(found).join('\n')).toMatch(/paid 7, outside \[0, 1\](.|\n)*after "get/);
  });

  it('is the same for the same seed', async () => {
    const once = () => checkLaws({ createEnv: picky }, { cases: 50, seed: 3 });
    expect(await once()).toEqual(await once());
  });

  it('is what envLaws throws, for test runners of any kind', async () => {
    await expect(envLaws(picky, { cases: 50, seed: 3 })).rejects.toThrow(/seed 3:\nbroken: pays finite rewards/);
    await expect(envLaws(() => right, { cases: 20 })).resolves.toBeUndefined();
  });
});
