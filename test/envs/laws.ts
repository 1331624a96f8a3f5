/**
 * The laws every environment obeys. A family's test file calls `envLaws` once, with its own arbitrary of action
 * texts; `laws` is exported so that each law can be seen to fail on a broken environment.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Env, EnvStep, Session, TimeStep } from '../../src/core/env.ts';
import type { Task } from '../../src/core/task.ts';

/** What the laws are checked on. */
export interface LawSubject {
  /** A fresh environment; the laws compare two of them. */
  readonly createEnv: () => Env;
  /** Texts a policy of this world might send, malformed ones among them. */
  readonly action: fc.Arbitrary<string>;
  /** Episodes each law is tried on; default 30, ten times as many where LONGPLAY_LONG is 1. */
  readonly runs?: number;
}

export interface Law {
  readonly name: string;
  /** Rejects when the law is broken. */
  readonly check: (subject: LawSubject) => Promise<void>;
}

/** One move of a script: say a text, or take one of the listed actions. */
type Move = { readonly say: string } | { readonly pick: number };

interface Script {
  /** Reduced modulo the number of tasks. */
  readonly index: number;
  readonly seed: number;
  readonly moves: readonly Move[];
}

const long = process.env.LONGPLAY_LONG === '1';

export const laws: readonly Law[] = [
  law('replays a task and its actions to the same trace', async (env, script, { createEnv }) => {
    const { trace, actions } = await play(env, script);
    const again = await play(createEnv(), { ...script, moves: actions.map((say) => ({ say })) });
    expect(again.trace).toEqual(trace);
  }),
  law('keeps sessions apart', async (env, script) => {
    const alone = await play(env, script);
    const task = taskOf(env, script);
    const session = await env.open(task);
    const trace: TimeStep[] = [session.first];
    for (const action of alone.actions) {
      const other = await env.open(task);
      await other.step(action); // a sibling on its own first turn, opened and stepped in between
      trace.push(await session.step(action));
      await other.close();
    }
    await session.close();
    expect(trace).toEqual(alone.trace);
  }),
  law('opens with `first` and never returns to it', async (env, script) => {
    const { trace } = await play(env, script);
    expect(trace.map(({ kind }) => kind).lastIndexOf('first')).toBe(0);
  }),
  law('leaves truncation to the horizon', async (env, script) => {
    const { trace } = await play(env, script);
    expect(trace.map(({ kind }) => kind)).not.toContain('truncated');
  }),
  law('pays finite rewards within its range', async (env, script) => {
    const [least, most] = env.rewardRange;
    for (const step of (await play(env, script)).trace) {
      if (step.kind === 'first') continue;
      expect(step.reward).toSatisfy(Number.isFinite);
      expect(step.reward).toBeGreaterThanOrEqual(least);
      expect(step.reward).toBeLessThanOrEqual(most);
    }
  }),
  law('observes in text no longer than it says', async (env, script) => {
    for (const { observation } of (await play(env, script)).trace) {
      expect(observation).toBeTypeOf('string');
      expect(observation.length).toBeLessThanOrEqual(env.maxObservationChars);
    }
  }),
  law('lists the same actions however often it is asked, none twice', async (env, script, { createEnv }) => {
    const session = await env.open(taskOf(env, script));
    const twin = await createEnv().open(taskOf(env, script));
    for (const move of script.moves) {
      const listed = [...session.actions()];
      expect(session.actions()).toEqual(listed);
      expect(new Set(listed).size).toBe(listed.length);
      const action = actionOf(move, session);
      const [step, unasked] = [await session.step(action), await twin.step(action)]; // the twin is never asked
      expect(unasked).toEqual(step);
      if (step.kind === 'terminated') break;
      expect([...twin.actions()]).toEqual([...session.actions()]);
    }
    await session.close();
    await twin.close();
  }),
  law('answers harmlessly after the end', async (env, script) => {
    const session = await env.open(taskOf(env, script));
    for (const move of script.moves) {
      const step: EnvStep = await session.step(actionOf(move, session)); // not stopped by `terminated`
      expect(['mid', 'terminated']).toContain(step.kind);
      expect(step.reward).toSatisfy(Number.isFinite);
      expect(step.observation).toBeTypeOf('string');
    }
    await session.close();
    await session.close();
  }),
  {
    name: 'has a sound task table',
    async check({ createEnv }) {
      const { tasks } = createEnv();
      const [train, test] = [tasks.split('train'), tasks.split('test')];
      for (const split of [train, test]) {
        expect([...split].sort((a, b) => a - b)).toEqual(split);
        expect(new Set(split).size).toBe(split.length);
        for (const index of split) expect(tasks.labels).toContain(tasks.label(index));
      }
      expect(train.filter((index) => test.includes(index))).toEqual([]);
      expect(Number.isInteger(tasks.evalSeed)).toBe(true);
      for (const index of [-1, tasks.count, 0.5, Number.NaN]) expect(() => tasks.label(index)).toThrow(RangeError);
    },
  },
  {
    name: 'opens no task outside its table',
    async check({ createEnv }) {
      const env = createEnv();
      for (const index of [-1, env.tasks.count, 0.5]) {
        await expect((async () => env.open({ env: env.id, index, seed: 0 }))()).rejects.toThrow(RangeError);
      }
    },
  },
];

/** Declares one test for every law. */
export function envLaws(name: string, subject: LawSubject): void {
  describe(`${name} obeys the env laws`, () => {
    for (const { name: title, check } of laws) it(title, () => check(subject), 120_000);
  });
}

/** A law that holds of every script. */
function law(name: string, holds: (env: Env, script: Script, subject: LawSubject) => Promise<void>): Law {
  return {
    name,
    async check(subject) {
      const move = fc.oneof(
        { weight: 2, arbitrary: fc.record({ pick: fc.nat() }) },
        {
          weight: 1,
          arbitrary: fc.record({ say: fc.oneof(subject.action, fc.string({ unit: 'binary', maxLength: 60 })) }),
        },
      );
      const script = fc.record({
        index: fc.nat(),
        seed: fc.nat({ max: 2 ** 32 - 1 }),
        moves: fc.array(move, { maxLength: 40 }),
      });
      const numRuns = (subject.runs ?? 30) * (long ? 10 : 1);
      const property = fc.asyncProperty(script, (drawn) => holds(subject.createEnv(), drawn, subject));
      await fc.assert(property, { numRuns });
    },
  };
}

/** Plays a script and stops where the episode does; tells also what was said. */
async function play(env: Env, script: Script): Promise<{ trace: readonly TimeStep[]; actions: readonly string[] }> {
  const session = await env.open(taskOf(env, script));
  const trace: TimeStep[] = [session.first];
  const actions: string[] = [];
  for (const move of script.moves) {
    if (trace.at(-1)!.kind === 'terminated') break;
    const action = actionOf(move, session);
    actions.push(action);
    trace.push(await session.step(action));
  }
  await session.close();
  return { trace, actions };
}

function taskOf(env: Env, { index, seed }: Script): Task {
  return { env: env.id, index: index % env.tasks.count, seed };
}

function actionOf(move: Move, session: Session): string {
  if ('say' in move) return move.say;
  const listed = session.actions();
  return listed.length === 0 ? '' : listed[move.pick % listed.length]!;
}
