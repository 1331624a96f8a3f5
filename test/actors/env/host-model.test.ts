/** A host against a model of its episodes, with sessions that answer in every order. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HostCore } from '../../../actors/env/host-core.ts';
import type { EnvEvent } from '../../../actors/env/protocol.ts';
import { type Env, mid } from '../../../src/core/env.ts';

const runs = process.env.LONGPLAY_LONG === '1' ? 3000 : 200;

/** Adds numbers; slow sessions answer when the scheduler decides. `x` throws, `n` pays NaN. */
function addingEnv(s: fc.Scheduler): Env {
  return {
    id: 'adding',
    description: 'Adds.',
    tasks: { count: 1, labels: ['all'], label: () => 'all', split: () => [], evalSeed: 0 },
    rewardRange: [0, 1],
    maxObservationChars: 100,
    open(task) {
      let sum = 0;
      return {
        first: { kind: 'first', observation: 'sum 0' },
        step(action) {
          const take = () => {
            if (action === 'x') throw new Error('broke');
            if (action === 'n') return mid('sum', Number.NaN);
            sum += Number(action);
            return mid(`sum ${sum}`);
          };
          // Every other episode is slow.
          return task.seed % 2 === 0 ? take() : s.schedule(Promise.resolve()).then(take);
        },
        actions: () => [],
        close() {},
      };
    },
  };
}

type Sabotage = (events: EnvEvent[]) => EnvEvent[];

/** Plays every script until nothing moves any more. @returns what each episode observed */
async function play(
  s: fc.Scheduler,
  scripts: readonly (readonly string[])[],
  sabotage: Sabotage = (events) => events,
): Promise<string[][]> {
  const observed: string[][] = scripts.map(() => []);
  const next = (episode: number, turn: number) => {
    const action = scripts[episode]![turn];
    core.handle([
      action === undefined ? { type: 'close', episode } : { type: 'step', episode, turn: turn + 1, action },
    ]);
  };
  const core = new HostCore({
    envs: new Map([['adding', addingEnv(s)]]),
    listActions: false,
    where: '/host',
    now: () => 0,
    emit(events) {
      for (const event of sabotage(events)) {
        if (event.type === 'failed') observed[event.episode]!.push(event.failure.cause);
        else {
          observed[event.episode]!.push(`${event.turn}: ${event.step.observation}`);
          queueMicrotask(() => next(event.episode, event.turn));
        }
      }
    },
  });
  const open = (_: unknown, episode: number) =>
    ({ type: 'open', episode, attempt: 1, task: { env: 'adding', index: 0, seed: episode } }) as const;
  core.handle(scripts.map(open));
  for (let quiet = 0; quiet < 2; quiet++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (s.count() === 0) continue;
    quiet = -1;
    await s.waitOne();
  }
  return observed;
}

/** The observations that an episode must get. */
function model(script: readonly string[]): string[] {
  const out = ['0: sum 0'];
  let sum = 0;
  for (const [i, action] of script.entries()) {
    if (action === 'x' || action === 'n') return [...out, action === 'x' ? 'threw' : 'protocol'];
    sum += Number(action);
    out.push(`${i + 1}: sum ${sum}`);
  }
  return out;
}

const scripts = fc.array(fc.array(fc.constantFrom('1', '2', '3', 'x', 'n'), { maxLength: 6 }), {
  minLength: 1,
  maxLength: 5,
});

const hold = (numRuns: number, sabotage?: () => Sabotage) =>
  fc.check(
    fc.asyncProperty(fc.scheduler(), scripts, async (s, all) => {
      expect(await play(s, all, sabotage?.())).toEqual(all.map(model));
    }),
    { numRuns, endOnFailure: true },
  );

describe('a host', () => {
  it('gives each episode its own answers, in order, once, and a failure to the one that failed', async () => {
    const { failed, counterexample } = (await hold(runs)) as { failed: boolean; counterexample: unknown };
    expect({ failed, counterexample: String(counterexample) }).toMatchObject({ failed: false });
  }, 60_000);

  it.each<[string, () => Sabotage]>([
    [
      'the answer of another episode',
      () => (events) =>
        events.map((event) => (event.type === 'observed' && event.turn === 1 ? { ...event, episode: 0 } : event)),
    ],
    ['an answer twice', () => (events) => [...events, events[0]!]],
    [
      'an answer lost',
      () => {
        let n = 0;
        return (events) => events.filter(() => ++n !== 3);
      },
    ],
  ])(
    'with %s is found out',
    async (_, sabotage) => {
      expect((await hold(100, sabotage)).failed).toBe(true);
    },
    60_000,
  );
});
