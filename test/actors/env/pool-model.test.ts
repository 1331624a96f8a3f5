/**
 * The pool against a model of its episodes, over hosts that answer in every order and die at any moment. Whatever
 * happens around it, an episode gets its own answers, in order, once; only the one whose action killed a host fails.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BeaconReading } from '../../../actors/env/beacon.ts';
import { createEnvPool, type EnvPool } from '../../../actors/env/env-pool.ts';
import type { Host, HostFactory, HostListener } from '../../../actors/env/hosts.ts';
import type { EnvCommand, EnvEvent, Observed } from '../../../actors/env/protocol.ts';
import { SimulatedClock } from '../../../src/core/clock.ts';
import { mid } from '../../../src/core/env.ts';

const runs = process.env.LONGPLAY_LONG === '1' ? 3000 : 200;
const HOSTS = 2;
const NONE = new Int32Array(0);

/** Faults of a pool or host: changes what a host receives, what it sends, or which episode its beacon shows. */
interface Sabotage {
  readonly commands?: (commands: readonly EnvCommand[]) => readonly EnvCommand[];
  readonly events?: (events: readonly EnvEvent[]) => readonly EnvEvent[];
  readonly shows?: (reading: BeaconReading) => BeaconReading;
}

/**
 * Adds numbers. `x` breaks the episode, `die` the host. Batches arrive and leave in order, when the scheduler decides.
 */
class AddingHost implements Host {
  readonly facts = [];
  readonly #s: fc.Scheduler;
  readonly #listener: HostListener;
  readonly #sabotage: Sabotage;
  readonly #sums = new Map<number, { sum: number; turn: number }>();
  #work: Promise<void> = Promise.resolve();
  #reading: BeaconReading = { current: -1, began: 0, calls: 0 };
  #gone = false;

  constructor(s: fc.Scheduler, listener: HostListener, sabotage: Sabotage) {
    this.#s = s;
    this.#listener = listener;
    this.#sabotage = sabotage;
  }

  send(commands: readonly EnvCommand[]): void {
    const received = this.#sabotage.commands?.(commands) ?? commands;
    this.#soon(() => this.#handle(received));
  }

  beacon(): BeaconReading {
    return this.#sabotage.shows?.(this.#reading) ?? this.#reading;
  }

  kill(): void {
    this.#gone = true;
  }

  async close(): Promise<void> {
    this.#gone = true;
  }

  #soon(work: () => void): void {
    this.#work = this.#work
      .then(() => this.#s.schedule(Promise.resolve()))
      .then(() => {
        if (!this.#gone) work();
      });
  }

  #handle(commands: readonly EnvCommand[]): void {
    const events: EnvEvent[] = [];
    for (const command of commands) {
      const { episode } = command;
      this.#reading = { ...this.#reading, began: this.#reading.began + 1 };
      if (command.type === 'close') this.#sums.delete(episode);
      else if (command.type === 'open') {
        const { replay = [] } = command;
        const state = { sum: replay.reduce((sum, action) => sum + Number(action), 0), turn: replay.length };
        this.#sums.set(episode, state);
        events.push(observed(episode, state, replay.length === 0));
      } else if (command.action === 'die') {
        this.#reading = { ...this.#reading, current: episode };
        // Every other batch got out before the end.
        if (this.#reading.began % 2 === 0) this.#emit(events);
        this.#soon(() => this.#listener.onDied('exited', 'the host ended'));
        return;
      } else if (command.action === 'x') {
        this.#sums.delete(episode);
        events.push({ type: 'failed', episode, failure: { cause: 'threw', where: '/host', message: 'x' } });
      } else {
        const state = this.#sums.get(episode);
        if (!state) continue; // its `open` was lost by sabotage
        state.sum += Number(command.action);
        state.turn++;
        events.push(observed(episode, state, false));
      }
    }
    this.#emit(events);
  }

  #emit(events: readonly EnvEvent[]): void {
    if (events.length === 0) return;
    const sent = this.#sabotage.events?.(events) ?? events;
    if (sent.length > 0) this.#soon(() => this.#listener.events(sent));
  }
}

function observed(episode: number, { sum, turn }: { sum: number; turn: number }, first: boolean): Observed {
  const observation = `sum ${sum}`;
  const step = first ? ({ kind: 'first', observation } as const) : mid(observation);
  return { type: 'observed', episode, turn, step, actions: NONE, newActions: [], envMs: 0 };
}

interface Played {
  readonly received: string[][];
  readonly pool: EnvPool;
}

/** Plays every script until nothing moves any more. */
async function play(s: fc.Scheduler, scripts: readonly (readonly string[])[], sabotage: Sabotage): Promise<Played> {
  const received: string[][] = scripts.map(() => []);
  const hosts: HostFactory = {
    async start(_, listener) {
      if (pool) await s.schedule(Promise.resolve());
      return new AddingHost(s, listener, sabotage);
    },
    async close() {},
  };
  let pool: EnvPool | undefined;
  pool = await createEnvPool({
    envs: [{ id: 'adding', url: new URL('file:///nowhere') }],
    threads: HOSTS,
    isolation: 'thread',
    hosts,
    stepDeadlineMs: 1000,
    openDeadlineMs: 1000,
    maxRestarts: Number.POSITIVE_INFINITY,
    clock: new SimulatedClock(), // never moved: this test is not about deadlines
  });
  const { observations$ } = pool;
  const send = (command: EnvCommand) => pool.send(command);
  observations$.subscribe((event) => {
    const { episode } = event;
    if (event.type === 'failed') {
      received[episode]!.push(event.failure.cause);
      return;
    }
    const { turn, step } = event;
    received[episode]!.push(`${turn}: ${step.observation}`);
    const action = scripts[episode]![turn];
    send(action === undefined ? { type: 'close', episode } : { type: 'step', episode, turn: turn + 1, action });
  });
  for (const episode of scripts.keys()) {
    send({ type: 'open', episode, attempt: 1, task: { env: 'adding', index: 0, seed: episode } });
  }
  for (let quiet = 0; quiet < 3; quiet++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (s.count() === 0) continue;
    quiet = -1;
    await s.waitOne();
  }
  return { received, pool };
}

/** The observations that an episode must get. */
function model(script: readonly string[]): string[] {
  const out = ['0: sum 0'];
  let sum = 0;
  for (const [i, action] of script.entries()) {
    if (action === 'x' || action === 'die') return [...out, action === 'x' ? 'threw' : 'exited'];
    sum += Number(action);
    out.push(`${i + 1}: sum ${sum}`);
  }
  return out;
}

const script = fc.array(fc.constantFrom('1', '2', '3', '4', 'x', 'die'), { maxLength: 6 });
const scripts = fc.array(script, { minLength: 1, maxLength: 6 });

const hold = (numRuns: number, sabotage: () => Sabotage = () => ({})) =>
  fc.check(
    fc.asyncProperty(fc.scheduler(), scripts, async (s, all) => {
      const { received, pool } = await play(s, all, sabotage());
      expect(received).toEqual(all.map(model));
      const deaths = all.filter((one) => model(one).at(-1) === 'exited').length;
      const { open, hosts } = pool.stats();
      expect(open).toBe(0);
      expect(hosts.reduce((sum, { replaced }) => sum + replaced, 0)).toBe(deaths);
      await pool.close();
    }),
    { numRuns, endOnFailure: true },
  );

/** Does `change` to every third batch. */
function everyThird<T>(change: (batch: readonly T[]) => readonly T[]): (batch: readonly T[]) => readonly T[] {
  let n = 0;
  return (batch) => (++n % 3 === 0 ? change(batch) : batch);
}

describe('a pool of hosts that die', () => {
  it('gives each episode its own answers, in order, once; no other episode notices who killed a host', async () => {
    const { failed, counterexample, error } = (await hold(runs)) as {
      failed: boolean;
      counterexample: unknown;
      error?: unknown;
    };
    expect({ failed, counterexample: String(counterexample), error }).toMatchObject({ failed: false });
  }, 120_000);

  it.each<[string, () => Sabotage]>([
    ['a command lost', () => ({ commands: everyThird((commands) => commands.slice(1)) })],
    ['an action taken twice', () => ({ commands: everyThird((commands) => [...commands, commands[0]!]) })],
    ['answers lost', () => ({ events: everyThird<EnvEvent>(() => []) })],
    ['an answer twice', () => ({ events: everyThird((events) => [...events, events[0]!]) })],
    [
      'the answer of another episode',
      () => ({ events: everyThird((events) => events.map((event) => ({ ...event, episode: 0 }))) }),
    ],
    ['the wrong episode blamed', () => ({ shows: ({ began, calls }) => ({ current: 0, began, calls }) })],
  ])('is found out with %s', async (_, sabotage) => {
    expect((await hold(200, sabotage)).failed).toBe(true);
  });
});

describe('a host that answers for the wrong episode', () => {
  it('is ended; the answer reaches no episode, and both are played on elsewhere', async () => {
    let first = true;
    const swapped = (events: readonly EnvEvent[]) => {
      const wrong = first && events.some((event) => event.type === 'observed' && event.turn > 0);
      if (!wrong) return events;
      first = false;
      return events.map((event) => ({ ...event, episode: 1 - event.episode }));
    };
    const s = fc.schedulerFor(Array.from({ length: 200 }, (_, i) => i + 1));
    const { received, pool } = await play(s, [['1', '1'], ['2']], { events: swapped });
    const failed = received.flat().filter((line) => !/^\d/.test(line));
    expect(failed.length).toBeLessThanOrEqual(2);
    for (const line of failed) expect(line).toBe('protocol');
    for (const [episode, lines] of received.entries()) {
      expect(model([['1', '1'], ['2']][episode]!)).toEqual(
        expect.arrayContaining(lines.filter((line) => /^\d/.test(line))),
      );
    }
    expect(pool.stats().hosts.some(({ replaced }) => replaced > 0)).toBe(true);
    await pool.close();
  });
});
