/**
 * Mailboxes of whole runs: each takes as much as its capacity and makes others wait, and admission alone keeps a run
 * below that, however late one of its actors comes to its messages.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Run } from '../../actors/handle.ts';
import { capacities } from '../../actors/mailbox-capacities.ts';
import { PATHS } from '../../actors/options.ts';
import type { RecorderCommand } from '../../actors/recorder/protocol.ts';
import { weightOf } from '../../actors/recorder/spawn.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import { countUnaccounted } from '../../src/core/failure.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import type { Message } from '../../src/runtime/actor.ts';
import { ActorCell } from '../../src/runtime/cell.ts';
import { Mailbox } from '../../src/runtime/mailbox.ts';
import { SerialDispatcher } from '../../src/runtime/serial.ts';
import { inFolder, toyConfig, withToyRun } from '../support/toy-run.ts';
import { trajectoryOf } from '../support/traces.ts';

type Name = keyof typeof PATHS;
const names = Object.keys(PATHS) as Name[];
/** Those bounded in messages. */
const bounded = names.filter((name) => name !== 'recorder');

/** Messages that change nothing. */
const harmless: Readonly<Record<Name, Message>> = {
  recorder: { type: 'noticed', text: '' } as Message,
  scheduler: { type: 'dropped', stale: [] } as Message,
  envs: { type: 'commands', commands: [] } as Message,
  rollout: { type: 'observed', events: [] } as Message,
  inference: { type: 'release', episodes: [] } as Message,
  learner: {
    type: 'group',
    group: { group: -1, task: null, horizon: 1, trajectories: [] },
    progress: 0,
    barrier: -1,
  } as Message,
};

const nameOf = (path: string) => names.find((name) => PATHS[name] === path);

afterEach(() => vi.restoreAllMocks());

/** Most messages that waited for each actor, those of waiting senders included; and its cell. */
interface Watched {
  readonly longest: Record<Name, number>;
  readonly cells: Map<Name, ActorCell>;
  /** Messages dropped by all of them. */
  readonly dropped: () => number;
}

/**
 * Watches the mailboxes of a run. An actor that is `starved` gets a message only when no other has one, and time itself
 * would have to move.
 */
function watch(starved?: Name): Watched {
  const longest = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
  const cells = new Map<Name, ActorCell>();
  const waiting = new Map<ActorCell, number>();
  const { receive } = ActorCell.prototype;
  vi.spyOn(ActorCell.prototype, 'receive').mockImplementation(function (this: ActorCell, ...args) {
    const sent = receive.apply(this, args);
    const name = nameOf(this.path);
    if (!name) return sent;
    cells.set(name, this);
    if (sent) {
      waiting.set(this, (waiting.get(this) ?? 0) + 1);
      void sent.then(() => waiting.set(this, waiting.get(this)! - 1));
    }
    longest[name] = Math.max(longest[name], this.mailbox.length + (waiting.get(this) ?? 0));
    return sent;
  });
  let dropped = 0;
  const { offer } = Mailbox.prototype;
  vi.spyOn(Mailbox.prototype, 'offer').mockImplementation(function (this: Mailbox<unknown>, item) {
    const offered = offer.call(this, item);
    if (offered && 'dropped' in offered) dropped += offered.dropped.length;
    return offered;
  });
  if (starved) starve(PATHS[starved]);
  return { longest, cells, dropped: () => dropped };
}

/** Keeps a cell out of the line of those that may run, until the line is empty. */
function starve(path: string): void {
  let late: { readonly dispatcher: SerialDispatcher; readonly cell: ActorCell } | undefined;
  let turn = false;
  const { wake } = SerialDispatcher.prototype;
  vi.spyOn(SerialDispatcher.prototype, 'wake').mockImplementation(function (this: SerialDispatcher, one) {
    if (turn || !(one instanceof ActorCell) || one.path !== path) return wake.call(this, one);
    late = { dispatcher: this, cell: one };
  });
  const { get } = Object.getOwnPropertyDescriptor(SimulatedClock.prototype, 'untilNext')!;
  vi.spyOn(SimulatedClock.prototype, 'untilNext', 'get').mockImplementation(function (this: SimulatedClock) {
    if (!late?.cell.deliverable) return get!.call(this) as number | undefined;
    turn = true;
    late.dispatcher.wake(late.cell);
    turn = false;
    return 0; // no time passes
  });
}

/** A run with as many episodes at once as admission allows, whose environments answer one at a time. */
const config = (): RunConfig => {
  const one = toyConfig('chain', {
    rollout: { groupSize: 4, concurrentGroups: 8 },
    learner: { groupsPerUpdate: 2, maxLag: 5 },
    horizon: { type: 'fixed', rounds: 5 },
    evaluation: { everyUpdates: 1, episodesPerTask: 4 },
    stop: { updates: 2 },
  });
  return { ...one, env: { ...one.env, options: { ...one.env.options, apart: true } } };
};
const plan = {
  name: 'test',
  tasks: Array.from({ length: 8 }, (_, seed) => ({ env: 'toy', index: seed % 4, seed })),
  episodes: 4,
  horizon: 5,
  temperature: 1,
  seed: 3,
};

/** Room that is there for control messages, beside what admission bounds. */
const control = (() => {
  const { rollout, evaluation, learner } = config();
  return capacities({ rollout, evaluation, learner: { ...learner, maxLag: -1 } }, 0);
})();

/** Trains to the end, evaluating beside it. */
async function play(during?: (run: Run) => void): Promise<readonly Trajectory[]> {
  const played: Trajectory[] = [];
  await inFolder((dir) =>
    withToyRun(
      config(),
      dir,
      async ({ run }) => {
        during?.(run);
        const { status } = await run.train();
        expect(status.version).toBe(2);
        expect(countUnaccounted(status.accounting)).toBe(0);
        expect(run.stats().actors.map(({ restarts }) => restarts)).toEqual(names.map(() => 0));
        await run.flush();
      },
      {
        onEpisodes: (trajectories) => played.push(...trajectories),
        evaluation: { plans: () => [plan], onRecord: () => {} },
      },
    ),
  );
  return played;
}

describe('capacities', () => {
  it('follow from admission: a small run has small mailboxes, and they grow by what may be under way', () => {
    for (const [concurrentGroups, groupSize, maxLag] of [
      [1, 1, 0],
      [16, 8, 2],
      [500, 64, 9],
    ] as const) {
      const { rollout, evaluation, learner } = config();
      const all = capacities({
        rollout: { ...rollout, concurrentGroups, groupSize },
        evaluation: { ...evaluation, episodesPerTask: groupSize },
        learner: { ...learner, maxLag },
      });
      const episodes = concurrentGroups * groupSize;
      const groups = concurrentGroups + (maxLag + 1) * learner.groupsPerUpdate;
      for (const name of bounded) {
        expect(all[name], name).toBeLessThanOrEqual(1024 + (name === 'learner' ? 2 * groups : 4 * episodes));
        expect(all[name], name).toBeGreaterThanOrEqual(name === 'learner' ? groups : episodes);
      }
      expect(all.recorder).toBe(2 ** 28);
    }
  });
});

describe('mailboxes of a run', () => {
  it.each(names)(
    'hold what admission lets wait, and no more, where the %s comes last to its messages',
    async (late) => {
      const { longest, dropped } = watch(late);
      await play();
      const all = capacities(config());
      for (const name of bounded) expect(longest[name], name).toBeLessThanOrEqual(all[name] - control[name]);
      expect(longest[late]).toBeGreaterThan(5); // and it was late
      expect(dropped()).toBe(0);
    },
  );

  it('make senders wait once they are full; nothing is lost, and the run goes on', async () => {
    const { longest, cells, dropped } = watch();
    const all = capacities(config());
    const beyond = 30;
    await play((run) => {
      for (const name of bounded) {
        for (let n = 0; n < all[name] + beyond; n++) run.tell(PATHS[name], harmless[name]);
        expect(cells.get(name)!.mailbox.length).toBe(all[name]);
        expect(longest[name]).toBeGreaterThanOrEqual(all[name] + beyond);
      }
    });
    for (const name of bounded) expect(cells.get(name)!.handled, name).toBeGreaterThan(all[name] + beyond);
    expect(dropped()).toBe(0);
  });

  it('hold as many bytes as their capacity, the recorder’s: past it the oldest are dropped and counted', async () => {
    const { cells, dropped } = watch();
    const observation = 'x'.repeat(2 ** 21); // the same for all: sent many times, held once
    const message = (episode: number): RecorderCommand => ({
      type: 'episodes',
      trajectories: [trajectoryOf({ episode, observation })],
      purpose: 'test',
    });
    const bytes = weightOf(message(0));
    const fits = Math.ceil(capacities(config()).recorder / bytes); // one more is taken where there is any room
    const beyond = 7;
    const played = await play((run) => {
      for (let n = 0; n < fits + beyond; n++) run.tell(PATHS.recorder, message(10_000 + n));
      expect(cells.get('recorder')!.mailbox.length).toBe(fits);
      expect(dropped()).toBe(beyond);
    });
    const recorded = played.filter(({ episode }) => episode >= 10_000).map(({ episode }) => episode);
    expect(recorded).toEqual(Array.from({ length: fits }, (_, n) => 10_000 + beyond + n));
  });
});

describe('the weight of a message to the recorder', () => {
  it('grows with whatever in it grows', () => {
    const long = 'x'.repeat(50_000);
    const failure = { cause: 'threw', where: '/env-hosts/0', message: long } as const;
    const task = { env: 'toy', index: 0, seed: 0 };
    const advantages = Array.from({ length: 8 }, () => new Float32Array(2000));
    const results = Array.from({ length: 500 }, () => ({ task, successes: [true], returns: [1], turns: [2] }));
    const messages = [
      { type: 'episodes', trajectories: [trajectoryOf({ observation: long })], purpose: 'train' },
      { type: 'updated', report: { credit: [{ group: 1, advantages }] } },
      { type: 'evaluated', version: 1, record: { plan: { tasks: [], episodes: 1 }, results, failed: 0 } },
      { type: 'failed', task, failure },
      { type: 'quarantined', task, failure, attempts: 3 },
      { type: 'noticed', text: long },
    ] as unknown as RecorderCommand[];
    for (const message of messages) expect(weightOf(message), message.type).toBeGreaterThan(50_000);
  });
});
